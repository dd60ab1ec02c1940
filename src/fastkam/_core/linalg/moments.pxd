"""The recursive mean and covariance of the adaptive Metropolis family."""
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastkam._core.linalg.dense cimport rank_one

cdef extern from *:
    """
    #define FK_FAR 1e100    /* in units of the diagonal of a factor: beyond it squares overflow */
    """
    const double FAR "FK_FAR"


cdef inline bint is_certain(Py_ssize_t d, double s, const double *L,
                            const double *v) noexcept nogil:
    """Return whether L L' <- a L L' + s v v' does not overflow, so that the update succeeds."""
    cdef Py_ssize_t i
    cdef bint near = fabs(s) < FAR
    for i in range(d):
        near &= fabs(v[i]) <= FAR * L[i * (d + 1)]
        near &= L[i * (d + 1)] > 1.0 / FAR
    return near


cdef inline int update_twice(Py_ssize_t d, double *L, double a, double s, double *v, double b,
                             double *w) noexcept nogil:
    """Set L L' <- a L L' + s v v' + b w w', the last if b > 0; or return 1, with L unchanged.

    v and w are overwritten. An update can fail after some columns; L is copied only if a test
    beforehand cannot exclude this, which is rare.
    """
    cdef size_t size = d * d * sizeof(double)
    cdef double *copy = NULL
    cdef int failed
    if not is_certain(d, s, L, v) or (b > 0 and not is_certain(d, b, L, w)):
        copy = <double *>malloc(size)
        if copy == NULL:
            return 1
        memcpy(copy, L, size)
    failed = rank_one(d, L, a, s, v)
    if not failed and b > 0:
        failed = rank_one(d, L, 1.0, b, w)
    if failed and copy != NULL:
        memcpy(L, copy, size)
    free(copy)
    return failed


cdef inline int update(Py_ssize_t d, double *L, double a, double s, double *v) noexcept nogil:
    """Set L L' <- a L L' + s v v', or return 1, with L unchanged. v is overwritten."""
    return update_twice(d, L, a, s, v, 0.0, NULL)


cdef inline int learn_moments(Py_ssize_t d, double g, const double *x, double *mu, double *L,
                              double *work) noexcept nogil:
    """Set L L' <- (1 - g) L L' + g D D',  mu <- mu + g D,  with D = x - mu, 0 <= g < 1.

    Return 1, without an update, if x is so far away that squares overflow.
    """
    cdef Py_ssize_t i
    for i in range(d):
        work[i] = x[i] - mu[i]
    if update(d, L, 1.0 - g, g, work):
        return 1
    for i in range(d):
        mu[i] += g * (x[i] - mu[i])
    return 0


cdef inline void add_to_moments(Py_ssize_t d, double n, const double *x, double *mean,
                                double *scatter, double *D) noexcept nogil:
    """Add the n-th x to the mean and to the lower triangle of sum (x - mean)(x - mean)', (d, d).

    D (d,) is workspace. Welford, B. P. (1962). Technometrics 4, 419-420.
    """
    cdef Py_ssize_t i, j
    cdef double shift = 1.0 - 1.0 / n
    for i in range(d):
        D[i] = x[i] - mean[i]
        mean[i] += D[i] / n
    for j in range(d):
        for i in range(j, d):
            scatter[i + d * j] += shift * D[i] * D[j]


cdef inline void add_to_variances(Py_ssize_t d, double n, const double *x,
                                  double *moments) noexcept nogil:
    """Add the n-th x to a mean (d,) and the sums of squared deviations (d,) that follow it."""
    cdef Py_ssize_t i
    cdef double D
    for i in range(d):
        D = x[i] - moments[i]
        moments[i] += D / n
        moments[d + i] += D * (x[i] - moments[i])


cdef inline void learn_scales(Py_ssize_t d, double g, const double *x, double *mu,
                              double *s) noexcept nogil:
    """Update the diagonal alone: D = x - mu;  s^2 <- (1 - g) s^2 + g D^2;  mu <- mu + g D.

    A coordinate whose square overflows changes nothing.
    """
    cdef Py_ssize_t i
    cdef double D, variance
    for i in range(d):
        D = x[i] - mu[i]
        variance = (1.0 - g) * s[i] * s[i] + g * D * D
        if variance < INFINITY:
            mu[i] += g * D
            s[i] = sqrt(variance)
