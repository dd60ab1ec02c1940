"""Densities with bent level sets: bananas, flowers, Neal's funnel."""
from libc.math cimport INFINITY, exp, sqrt
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastkam._core.engine.sums cimport ZERO, LogSum, add_term, log_total
from fastkam._core.density.target cimport Target

from fastkam._core.numerics import elementary

import numpy as np

cdef extern from "linalg.h" nogil:
    double weighted_square "fk_weighted_square" (
        Py_ssize_t d, const double *h, const double *m, const double *x)

LOG_2PI = elementary.log(2 * np.pi)


# ---- bananas -----------------------------------------------------------------------------------

cdef struct Banana:
    Py_ssize_t bent             # x_bent = shift + curvature x_along^2 + e
    Py_ssize_t along
    double shift
    double curvature
    double h_bent               # 1 / variance of e
    double constant             # log of weight times normalization
    const double *h             # (d,) 1 / variances of the other coordinates, 0 at bent

cdef struct Bananas:
    Py_ssize_t K
    Banana *each
    const double *zero          # (d,)


cdef class BananaMixtureDensity(Target):
    """log pi(x) = log sum_k w_k phi(x_bent - shift - curvature x_along^2) prod_other phi(x_j).

    A component is a Gaussian of independent coordinates, one of which is shifted by a parabola in
    another; the map has unit Jacobian.
    """
    cdef Bananas bananas
    cdef double[:, ::1] h
    cdef double[::1] zero

    def set_up(self, weights, bent, along, shift, curvature, variances):
        """Take arrays (K,), and variances (K, d)."""
        cdef Banana *one
        cdef Py_ssize_t k
        K, d = variances.shape
        constants = (elementary.log(weights)
                     - 0.5 * (d * LOG_2PI + elementary.log(variances).sum(axis=1)))
        self.h = 1 / variances
        self.zero = np.zeros(d)
        self.bananas.each = <Banana *>calloc(K, sizeof(Banana))
        if self.bananas.each == NULL:
            raise MemoryError
        for k in range(K):
            one = &self.bananas.each[k]
            one.bent, one.along = bent[k], along[k]
            one.shift, one.curvature = shift[k], curvature[k]
            one.h_bent = self.h[k, one.bent]
            self.h[k, one.bent] = 0
            one.h = &self.h[k, 0]
            one.constant = constants[k]
        self.bananas.K = K
        self.bananas.zero = &self.zero[0]
        self.kind = "built-in"
        self.c.dim = d
        self.c.logp = bananas_logp
        self.c.logp_grad = bananas_logp_grad
        self.c.data = &self.bananas

    def __dealloc__(self):
        free(self.bananas.each)


cdef inline double banana_term(const Bananas *f, Py_ssize_t k, size_t n,
                               const double *x) noexcept nogil:
    cdef const Banana *one = &f.each[k]
    cdef double along = x[one.along]
    cdef double e = x[one.bent] - one.shift - one.curvature * (along * along)
    cdef Py_ssize_t after = one.bent + 1    # past the bent one: 0 times an overflow would be NaN
    return one.constant - 0.5 * (
        one.h_bent * (e * e) + weighted_square(one.bent, one.h, f.zero, x)
        + weighted_square(n - after, one.h + after, f.zero, x + after))


cdef int bananas_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    """Compute log sum_k e^t_k, as for the Gaussian mixture."""
    cdef const Bananas *f = <const Bananas *>data
    cdef LogSum total = LogSum(-INFINITY, 0)
    cdef double t
    cdef Py_ssize_t k
    for k in range(f.K):
        t = banana_term(f, k, n, x)
        if not add_term(&total, t):
            logp[0] = t         # NaN
            return 0
    logp[0] = log_total(&total)
    return 0


cdef int bananas_logp_grad(size_t n, const double *x, double *grad, double *logp,
                           void *data) noexcept nogil:
    cdef const Bananas *f = <const Bananas *>data
    cdef const Banana *one
    cdef double share, e
    cdef Py_ssize_t k
    cdef size_t j
    bananas_logp(n, x, logp, data)
    memset(grad, 0, n * sizeof(double))
    for k in range(f.K):
        one = &f.each[k]
        share = 0 if f.K == 1 else banana_term(f, k, n, x) - logp[0]
        if share < ZERO:
            continue
        share = exp(share)
        e = x[one.bent] - one.shift - one.curvature * (x[one.along] * x[one.along])
        for j in range(n):
            grad[j] -= share * one.h[j] * x[j]
        grad[one.bent] -= share * one.h_bent * e
        grad[one.along] += share * one.h_bent * e * 2 * one.curvature * x[one.along]
    return 0


# ---- flowers -----------------------------------------------------------------------------------

cdef struct Flower:
    double r0
    double A
    double h                    # 1 / s2
    double constant
    int w
    bint full_norm


cdef class FlowerDensity(Target):
    """log pi(x) = c - (rho - r0 - A cos(w phi))^2 / (2 s2) - sum_{j > 2} x_j^2 / 2.

    (rho, phi) are the polar coordinates of (x_1, x_2); with `full_norm`, rho is the norm of all
    coordinates.
    """
    cdef Flower flower

    def set_up(self, d, r0, A, w, s2, full_norm, constant):
        self.flower.r0, self.flower.A, self.flower.w = r0, A, w
        self.flower.h = 1 / s2
        self.flower.constant = constant
        self.flower.full_norm = full_norm
        self.kind = "built-in"
        self.c.dim = d
        self.c.logp = flower_logp
        self.c.logp_grad = flower_logp_grad
        self.c.data = &self.flower


cdef inline void power(double c, double s, int w, double *C, double *S) noexcept nogil:
    """Compute C + iS = (c + is)^w by squaring: cos(w phi) and sin(w phi) without an angle."""
    cdef double t
    C[0] = 1
    S[0] = 0
    while True:
        if w & 1:
            t = C[0] * c - S[0] * s
            S[0] = C[0] * s + S[0] * c
            C[0] = t
        w >>= 1
        if w == 0:
            return
        t = (c - s) * (c + s)
        s = 2 * c * s
        c = t


cdef inline double flower_any(const Flower *f, size_t n, const double *x,
                              double *grad) noexcept nogil:
    cdef double plane = x[0] * x[0] + x[1] * x[1], tail = 0
    cdef double rho = sqrt(plane), c = 1, s = 0, C, S, R, e, turn
    cdef size_t j
    if rho != 0:                # at the origin the angle is 0, as for atan2
        c = x[0] / rho
        s = x[1] / rho
    power(c, s, f.w, &C, &S)
    for j in range(2, n):
        tail += x[j] * x[j]
    R = sqrt(plane + tail) if f.full_norm else rho
    e = f.h * (R - f.r0 - f.A * C)
    if grad != NULL:
        # d cos(w phi) = -w sin(w phi) (-x_2, x_1) / rho^2
        turn = -e * f.A * f.w * S / rho if rho != 0 else 0
        grad[0] = -turn * s
        grad[1] = turn * c
        for j in range(2, n):
            grad[j] = -x[j]
        if R != 0:
            for j in range(n if f.full_norm else 2):
                grad[j] -= e * (x[j] / R)
    return f.constant - 0.5 * ((R - f.r0 - f.A * C) * e + tail)


cdef int flower_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    logp[0] = flower_any(<const Flower *>data, n, x, NULL)
    return 0


cdef int flower_logp_grad(size_t n, const double *x, double *grad, double *logp,
                          void *data) noexcept nogil:
    logp[0] = flower_any(<const Flower *>data, n, x, grad)
    return 0


# ---- funnel ------------------------------------------------------------------------------------

cdef struct Funnel:
    double h                    # 1 / variance of x_1
    double constant


cdef class FunnelDensity(Target):
    """log pi(x) = c - x_1^2/(2 s2) - (d-1) x_1/2 - exp(-x_1) sum_{j > 1} x_j^2 / 2."""
    cdef Funnel funnel

    def set_up(self, d, variance):
        self.funnel.h = 1 / variance
        self.funnel.constant = -0.5 * (d * LOG_2PI + elementary.log(variance))
        self.kind = "built-in"
        self.c.dim = d
        self.c.logp = funnel_logp
        self.c.logp_grad = funnel_logp_grad
        self.c.data = &self.funnel


cdef int funnel_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef const Funnel *f = <const Funnel *>data
    cdef double tail = 0
    cdef size_t j
    for j in range(1, n):
        tail += x[j] * x[j]
    if tail != 0:               # at 0 an overflow of exp(-x_1) has no effect; a NaN remains
        tail *= exp(-x[0])
    logp[0] = f.constant - 0.5 * (f.h * x[0] * x[0] + (n - 1) * x[0] + tail)
    return 0


cdef int funnel_logp_grad(size_t n, const double *x, double *grad, double *logp,
                          void *data) noexcept nogil:
    cdef const Funnel *f = <const Funnel *>data
    cdef double precision = exp(-x[0]), tail = 0
    cdef size_t j
    for j in range(1, n):
        tail += x[j] * x[j]
        grad[j] = -precision * x[j]
    grad[0] = 0.5 * (precision * tail - (n - 1)) - f.h * x[0]
    return funnel_logp(n, x, logp, data)
