"""The loops of kernel_pass.h."""
from fastkam._core.kam.kernel cimport fk_kernel

cdef extern from "kernel_pass.h" nogil:
    void fk_kernel_pass(
        const fk_kernel *k, Py_ssize_t n, Py_ssize_t d, const double *z, const double *y,
        double *work, double *Q, double *s)
    Py_ssize_t fk_kernel_pass_work(Py_ssize_t d)
    void fk_kernel_weights(const fk_kernel *k, Py_ssize_t blocks, double *w)
