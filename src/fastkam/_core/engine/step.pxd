"""The parts of a step that kernels and the engine share: propose, decide, move, keep a point."""
from libc.math cimport exp
from libc.stdint cimport int64_t
from libc.string cimport memmove

from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport add_Lz, copy
from fastkam._core.engine.rng cimport normals

cdef extern from "decide.h" nogil:
    double fk_valid(double log_ratio)
    bint fk_accepts(double E, double log_ratio)

cdef enum:
    KEPT = 4        # numbers of a kept point before its coordinates


cdef inline void draw_normals(Chain *c, Py_ssize_t n, double *out) noexcept nogil:
    """Set out ~ N(0, I_n): normals drawn ahead, which are used once, or new ones."""
    if c.drawn != NULL:
        copy(n, c.drawn, out)
        c.drawn = NULL
    else:
        normals(c.rng, n, out)


cdef inline void normal_step(Chain *c, double scale, const double *L, double *e) noexcept nogil:
    """Draw e ~ N(0, I) and set y = x + scale L e."""
    draw_normals(c, c.d, e)
    copy(c.d, c.x, c.y)
    add_Lz(c.d, scale, L, e, c.y)


cdef inline bint accepts(double E, double *log_ratio) noexcept nogil:
    """Return whether y is accepted; a ratio that is not a number becomes 0."""
    log_ratio[0] = fk_valid(log_ratio[0])
    return fk_accepts(E, log_ratio[0])


cdef inline double probability(double log_ratio) noexcept nogil:
    """Return min(1, ratio)."""
    return 1.0 if log_ratio >= 0 else exp(log_ratio)


cdef inline double log_target_ratio(const Chain *c) noexcept nogil:
    """Return log pi(y) - log pi(x)."""
    return c.logp_y - c.logp_x


cdef inline void accept_parts(Chain *c) noexcept nogil:
    """Replace log pi, the reference and the gradient of log pi at x by those at y."""
    c.parts.log_pi_x, c.parts.log_ref_x = c.parts.log_pi_y, c.parts.log_ref_y
    if c.parts.grad_pi_x != NULL:
        copy(c.d, c.parts.grad_pi_y, c.parts.grad_pi_x)


cdef inline void accept(Chain *c) noexcept nogil:
    """Replace x by y, with all that is known there."""
    copy(c.d, c.y, c.x)
    copy(c.n_aux, c.v, c.u)
    c.logp_x = c.logp_y
    if c.grad_x != NULL:
        copy(c.d, c.grad_y, c.grad_x)
    if c.parts != NULL:
        accept_parts(c)


cdef inline void accept_noise(Chain *c) noexcept nogil:
    """Replace the noise u by v, at the same x; y is x."""
    copy(c.n_aux, c.v, c.u)
    c.logp_x = c.logp_y
    if c.parts != NULL:
        accept_parts(c)


cdef inline Py_ssize_t point_size(Py_ssize_t d) noexcept nogil:
    """Return the length of a kept point: four numbers, y, and two gradients there."""
    return KEPT + 3 * d


cdef inline void keep_point(const Chain *c, double own, double *point) noexcept nogil:
    """Keep y, all that is known there, and a number of the kernel's own in `point`."""
    cdef double *rest = point + KEPT + c.d
    point[0], point[3] = c.logp_y, own
    copy(c.d, c.y, point + KEPT)
    if c.grad_x != NULL:
        copy(c.d, c.grad_y, rest)
    if c.parts != NULL:
        point[1], point[2] = c.parts.log_pi_y, c.parts.log_ref_y
        if c.grad_x != NULL:
            copy(c.d, c.parts.grad_pi_y, rest + c.d)


cdef inline void recall_point(Chain *c, const double *point) noexcept nogil:
    """Restore y from a kept point."""
    cdef const double *rest = point + KEPT + c.d
    c.logp_y = point[0]
    copy(c.d, point + KEPT, c.y)
    if c.grad_x != NULL:
        copy(c.d, rest, c.grad_y)
    if c.parts != NULL:
        c.parts.log_pi_y, c.parts.log_ref_y = point[1], point[2]
        if c.grad_x != NULL:
            copy(c.d, rest + c.d, c.parts.grad_pi_y)


cdef inline double own_of(const double *point) noexcept nogil:
    """Return the kernel's own number of a kept point."""
    return point[3]


cdef inline const double *grad_of(const Chain *c, const double *point) noexcept nogil:
    """Return the gradient at a kept point (d,)."""
    return point + KEPT + c.d


cdef inline void copy_point(const Chain *c, const double *point, double *to) noexcept nogil:
    """Copy a kept point."""
    copy(KEPT + c.d * (1 + (c.grad_x != NULL) + (c.grad_x != NULL and c.parts != NULL)), point, to)


cdef inline int64_t keep_every_second(int64_t n, Py_ssize_t d, int64_t first,
                                      double *rows) noexcept nogil:
    """Move the rows first, first + 2, ... of n rows (n, d) to the front; return their number."""
    cdef int64_t i, kept = 0
    for i in range(first, n, 2):
        memmove(rows + kept * d, rows + i * d, d * sizeof(double))
        kept += 1
    return kept
