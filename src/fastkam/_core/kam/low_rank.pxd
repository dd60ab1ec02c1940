"""The loops of low_rank.h."""
from fastkam._core.kam.kernel cimport fk_kernel

cdef extern from "low_rank.h" nogil:
    void fk_distances(
        Py_ssize_t n, Py_ssize_t d, const double *z, const double *y, double *r)
    void fk_measure(
        Py_ssize_t first, Py_ssize_t n, Py_ssize_t d, Py_ssize_t ld, const double *z, double *work,
        double *T)
    void fk_gram(
        const fk_kernel *k, Py_ssize_t n, Py_ssize_t ld, const double *T, const double *r,
        double *work, double *w, double *K)
    void fk_shift(Py_ssize_t n, double a, const double *K, double *B)
    void fk_spread(
        Py_ssize_t n, Py_ssize_t d, const double *z, const double *x, double a, const double *w,
        const double *f, double *work, double *y)
    void fk_project(
        Py_ssize_t n, const double *w, const double *r, const double *r_there, double v2,
        double *b)
