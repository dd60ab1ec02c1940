"""The Langevin proposal for a factor L of any shape, which includes the step size.

    h = 1/2 L' grad log pi(x) + e,   y = x + L h,                e ~ N(0, I)
    log q(x|y) - log q(y|x) = (|e|^2 - |h + 1/2 L' grad log pi(y)|^2) / 2

`ndim` is the form of L: a scalar (0), a diagonal (1), lower triangular (2) or SQUARE.
"""
from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport add_Lz, add_Rz, copy, dot, square, times_Lt, times_Rt
from fastkam._core.engine.step cimport draw_normals

cdef enum:
    SQUARE = 3

cdef inline void scaled_gradient(Chain *c, double scale, int ndim, const double *L,
                                 const double *grad, double *u) noexcept nogil:
    """u = scale 1/2 L' grad"""
    cdef Py_ssize_t i
    if ndim == 2:
        times_Lt(c.d, 0.5 * scale, L, grad, u)
    elif ndim == SQUARE:
        times_Rt(c.d, 0.5 * scale, L, grad, u)
    else:
        for i in range(c.d):
            u[i] = 0.5 * scale * L[i if ndim else 0] * grad[i]

cdef inline void langevin_move(Chain *c, double scale, int ndim, const double *L, double *e,
                               double *h) noexcept nogil:
    """Draw e, and compute h and y, for the factor scale L."""
    cdef Py_ssize_t i
    draw_normals(c, c.d, e)
    scaled_gradient(c, scale, ndim, L, c.grad_x, h)
    for i in range(c.d):
        h[i] += e[i]
    if ndim == 2:
        copy(c.d, c.x, c.y)
        add_Lz(c.d, scale, L, h, c.y)
    elif ndim == SQUARE:
        copy(c.d, c.x, c.y)
        add_Rz(c.d, scale, L, h, c.y)
    else:
        for i in range(c.d):
            c.y[i] = c.x[i] + scale * L[i if ndim else 0] * h[i]

cdef inline double langevin_log_q(Chain *c, double scale, int ndim, const double *L,
                                  const double *e, const double *h, double *h_y) noexcept nogil:
    """Return the log ratio of the proposal densities; h_y <- 1/2 (scale L)' grad log pi(y)."""
    cdef double total
    scaled_gradient(c, scale, ndim, L, c.grad_y, h_y)
    total = square(c.d, e) - square(c.d, h) - square(c.d, h_y)
    return 0.5 * total - dot(c.d, h, h_y)
