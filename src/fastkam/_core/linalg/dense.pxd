"""Small dense factors, see linalg.h: L is lower triangular, R square, both column-major."""
cdef extern from "linalg.h" nogil:
    void copy "fk_copy" (Py_ssize_t d, const double *x, double *y)
    void add "fk_add" (Py_ssize_t d, double a, const double *x, double *y)
    double dot "fk_dot" (Py_ssize_t d, const double *v, const double *w)
    double square "fk_square" (Py_ssize_t d, const double *v)
    double log_det_L "fk_log_det_L" (Py_ssize_t d, const double *L)
    bint all_finite "fk_all_finite" (Py_ssize_t d, const double *v)

# functions of factor.h for other modules
cdef int (*cholesky)(Py_ssize_t d, double *A, double *v, double *log_det) noexcept nogil
cdef int (*rank_one)(Py_ssize_t d, double *L, double a, double s, double *v) noexcept nogil
cdef void (*solve_L)(Py_ssize_t d, const double *L, double *v) noexcept nogil
cdef void (*add_Lz)(
    Py_ssize_t d, double a, const double *L, const double *z, double *y) noexcept nogil
cdef void (*add_Rz)(
    Py_ssize_t d, double a, const double *R, const double *z, double *y) noexcept nogil
cdef void (*times_Lt)(
    Py_ssize_t d, double a, const double *L, const double *g, double *u) noexcept nogil
cdef void (*times_Rt)(
    Py_ssize_t d, double a, const double *R, const double *g, double *u) noexcept nogil

# functions of elementwise.h, for a few dozen dimensions or more
cdef void (*add_products)(
    Py_ssize_t d, double a, const double *s, const double *g, double *v) noexcept nogil
cdef double (*long_square)(Py_ssize_t d, const double *v) noexcept nogil
cdef bint (*long_all_finite)(Py_ssize_t d, const double *v) noexcept nogil


cdef inline bint are_finite(Py_ssize_t d, const double *v) noexcept nogil:
    """Return whether no element is infinite or NaN."""
    return all_finite(d, v) if d < 16 else long_all_finite(d, v)
