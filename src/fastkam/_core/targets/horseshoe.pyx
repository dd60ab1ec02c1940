"""The posterior of a linear regression with horseshoe prior, all scales as logarithms.

    x = (beta, log sigma^2, log l, log tau),   p + 1 + p + 1 coordinates
    log pi = -(n/2) s - e^-s (RSS + |R (beta - b)|^2)/2
             - sum_j (beta_j^2 e^(-2 a_j - 2 t)/2 + t + log(1 + e^(2 a_j))) + t - log(1 + e^(2 t))

with s = log sigma^2, a_j = log l_j, t = log tau, R'R = X'X, b the least-squares estimate and RSS
its sum of squares.
"""
from libc.math cimport exp

from fastkam._core.engine.sums cimport softplus

from fastkam._core.linalg.dense cimport add_Lz, dot
from fastkam._core.density.target cimport Target

import numpy as np

cdef struct Horseshoe:
    Py_ssize_t n
    Py_ssize_t p
    const double *L             # (p, p) lower, column-major: R'
    const double *Rb            # (p,)
    double rss


cdef class HorseshoeDensity(Target):
    cdef Horseshoe horseshoe
    cdef const double[::1, :] L
    cdef const double[::1] Rb

    def set_up(self, n, R, b, rss):
        self.L, self.Rb = np.asfortranarray(R.T), R @ b
        self.horseshoe = Horseshoe(n, len(b), &self.L[0, 0], &self.Rb[0], rss)
        self.kind = "built-in"
        self.c.dim = 2 * len(b) + 2
        self.c.logp = horseshoe_logp
        self.c.logp_grad = horseshoe_logp_grad
        self.c.data = &self.horseshoe


cdef int horseshoe_logp(size_t d, const double *x, double *logp, void *data) noexcept nogil:
    return evaluate(<const Horseshoe *>data, d, x, NULL, logp)


cdef int horseshoe_logp_grad(size_t d, const double *x, double *grad, double *logp,
                             void *data) noexcept nogil:
    return evaluate(<const Horseshoe *>data, d, x, grad, logp)


cdef inline int evaluate(const Horseshoe *f, size_t d, const double *x, double *grad,
                         double *logp) noexcept nogil:
    """Compute the density, and its gradient unless that is NULL."""
    cdef Py_ssize_t p = f.p, j
    cdef const double *a = x + p + 1
    cdef double *grad_a = grad + p + 1 if grad != NULL else NULL
    cdef double s = x[p], t = x[d - 1], q = f.rss, v, w, value, penalties = 0
    for j in range(p):
        v = dot(p - j, f.L + j * p + j, x + j) - f.Rb[j]
        q += v * v
        if grad != NULL:
            grad_a[j] = v           # for add_Lz
            grad[j] = 0
    q *= exp(-s)
    value = -0.5 * (f.n * s + q)
    if grad != NULL:
        add_Lz(p, -exp(-s), f.L, grad_a, grad)
        grad[p] = 0.5 * (q - f.n)
    for j in range(p):
        w = x[j] * exp(-2 * (a[j] + t))
        if grad != NULL:
            grad[j] -= w
            grad_a[j] = w * x[j] - 2 / (1 + exp(-2 * a[j]))
        penalties += w * x[j]
        value -= 0.5 * w * x[j] + t + softplus(2 * a[j])
    if grad != NULL:
        grad[d - 1] = penalties - p + 1 - 2 / (1 + exp(-2 * t))
    logp[0] = value + t - softplus(2 * t)
    return 0
