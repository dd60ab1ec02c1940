"""Recursive mean and covariance, as the adaptive Metropolis family learns them."""
from fastkam._core.linalg cimport rank_one


cdef inline int learn_moments(Py_ssize_t d, double g, const double *x, double *mu, double *L,
                              double *work) noexcept nogil:
    """D = x - mu;  L L' <- (1 - g) L L' + g D D';  mu <- mu + g D.  0 <= g < 1."""
    cdef Py_ssize_t i
    for i in range(d):
        work[i] = x[i] - mu[i]
        mu[i] += g * work[i]
    return rank_one(d, L, 1.0 - g, g, work)
