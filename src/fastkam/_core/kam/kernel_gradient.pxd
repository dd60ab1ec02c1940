"""The kernels of KAM, and the covariance computed from a pass of kernel_pass.h."""
from fastkam._core.kam.kernel cimport fk_kernel

cdef class KernelFunction:              # fk_kernel and its table
    cdef fk_kernel k
    cdef const double[:, ::1] table

cdef int proposal_factor(
    Py_ssize_t d, Py_ssize_t n, double gamma, double nu, const double *Q, const double *s,
    double *L, double *v, double *log_det) noexcept nogil

cdef void gradients(
    const fk_kernel *k, Py_ssize_t n, Py_ssize_t d, const double *z, const double *y,
    double *w, double *M) noexcept nogil
