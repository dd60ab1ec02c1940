"""Recursive mean and covariance, as the adaptive Metropolis family learns them."""
from libc.math cimport sqrt

from fastkam._core.linalg.dense cimport rank_one


cdef inline int learn_moments(Py_ssize_t d, double g, const double *x, double *mu, double *L,
                              double *work) noexcept nogil:
    """D = x - mu;  L L' <- (1 - g) L L' + g D D';  mu <- mu + g D.  0 <= g < 1."""
    cdef Py_ssize_t i
    for i in range(d):
        work[i] = x[i] - mu[i]
        mu[i] += g * work[i]
    return rank_one(d, L, 1.0 - g, g, work)


cdef inline void learn_scales(Py_ssize_t d, double g, const double *x, double *mu,
                              double *s) noexcept nogil:
    """The diagonal of the same: D = x - mu;  s^2 <- (1 - g) s^2 + g D^2;  mu <- mu + g D."""
    cdef Py_ssize_t i
    cdef double D
    for i in range(d):
        D = x[i] - mu[i]
        mu[i] += g * D
        s[i] = sqrt((1.0 - g) * s[i] * s[i] + g * D * D)
