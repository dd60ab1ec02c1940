"""Small dense factors, see linalg.h: L is lower triangular, R square, both column-major."""
cdef extern from "linalg.h" nogil:
    void copy "fk_copy" (Py_ssize_t d, const double *x, double *y)
    void add "fk_add" (Py_ssize_t d, double a, const double *x, double *y)
    double dot "fk_dot" (Py_ssize_t d, const double *v, const double *w)
    double square "fk_square" (Py_ssize_t d, const double *v)
    double log_det_L "fk_log_det_L" (Py_ssize_t d, const double *L)
    bint all_finite "fk_all_finite" (Py_ssize_t d, const double *v)

cdef extern from "factor.h" nogil:
    ctypedef int (*fk_cholesky_fn)(Py_ssize_t d, double *A, double *v,
                                   double *log_det) noexcept nogil
    ctypedef int (*fk_rank_one_fn)(Py_ssize_t d, double *L, double a, double s,
                                   double *v) noexcept nogil
    ctypedef void (*fk_solve_fn)(Py_ssize_t d, const double *L, double *v) noexcept nogil
    ctypedef void (*fk_squares_fn)(Py_ssize_t d, const double *L, double *V,
                                   double *out) noexcept nogil
    ctypedef void (*fk_product_fn)(Py_ssize_t d, double a, const double *M, const double *z,
                                   double *y) noexcept nogil
    ctypedef struct fk_factor:
        fk_cholesky_fn cholesky
        fk_rank_one_fn rank_one
        fk_solve_fn solve_L
        fk_squares_fn squares
        fk_product_fn add_Lz
        fk_product_fn times_Lt
        fk_product_fn add_Rz
        fk_product_fn times_Rt
    const fk_factor *fk_factor_for(const char *level)

cdef fk_cholesky_fn cholesky            # for this processor, see factor.h
cdef fk_rank_one_fn rank_one
cdef fk_solve_fn solve_L
cdef fk_product_fn add_Lz
cdef fk_product_fn times_Lt
cdef fk_product_fn add_Rz
cdef fk_product_fn times_Rt
