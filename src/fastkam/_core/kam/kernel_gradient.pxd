"""The kernels of KAM, and the pass that gives a proposal's covariance."""
cdef extern from "kernel_pass.h" nogil:
    enum:
        FK_LINEAR
        FK_GAUSSIAN
        FK_MATERN
        FK_MATERN_HALF
        FK_CELLS
        FK_FIRST_OCTAVE
        FK_OCTAVES
    ctypedef struct fk_kernel:
        int kind
        double length
        double order
        int degree
        const double *table
        double origin
        double a
        double b
    ctypedef void (*fk_kernel_pass_fn)(
        const fk_kernel *k, Py_ssize_t n, Py_ssize_t d, const double *z, const double *y,
        double *work, double *Q, double *s) noexcept nogil
    Py_ssize_t fk_kernel_pass_work(Py_ssize_t d)
    void fk_kernel_weights(const fk_kernel *k, Py_ssize_t blocks, double *w)
    fk_kernel_pass_fn fk_kernel_pass_for(const char *level)

cdef extern from "low_rank.h" nogil:
    ctypedef struct fk_low_rank:
        void (*distances)(
            Py_ssize_t n, Py_ssize_t d, const double *z, const double *y,
            double *r) noexcept nogil
        void (*measure)(
            Py_ssize_t first, Py_ssize_t n, Py_ssize_t d, Py_ssize_t ld, const double *z,
            double *work, double *T) noexcept nogil
        void (*gram)(
            const fk_kernel *k, Py_ssize_t n, Py_ssize_t ld, const double *T, const double *r,
            double *work, double *w, double *K) noexcept nogil
        void (*shift)(Py_ssize_t n, double a, const double *K, double *B) noexcept nogil
        void (*spread)(
            Py_ssize_t n, Py_ssize_t d, const double *z, const double *x, double a,
            const double *w, const double *f, double *work, double *y) noexcept nogil
        void (*project)(
            Py_ssize_t n, const double *w, const double *r, const double *r_there, double v2,
            double *b) noexcept nogil
    const fk_low_rank *fk_low_rank_for(const char *level)

cdef fk_kernel_pass_fn kernel_pass      # for this processor
cdef const fk_low_rank *low_rank

cdef Py_ssize_t pass_work(Py_ssize_t d) noexcept nogil

cdef class KernelFunction:              # fk_kernel and its table
    cdef fk_kernel k
    cdef const double[:, ::1] table

cdef int proposal_factor(
    Py_ssize_t d, Py_ssize_t n, double gamma, double nu, const double *Q, const double *s,
    double *L, double *v, double *log_det) noexcept nogil

cdef void gradients(
    const fk_kernel *k, Py_ssize_t n, Py_ssize_t d, const double *z, const double *y,
    double *M) noexcept nogil
