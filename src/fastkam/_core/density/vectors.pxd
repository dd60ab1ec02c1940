"""Vectors of z and x: simplexes, ordered values, Cholesky factors of correlations; see space.pyx.

A user's point may sum to 1 with an error of 1e-8.
"""
from libc.math cimport asinh, exp, fabs, isfinite, log, log1p, sqrt, tanh

from fastkam._core.density.coordinate cimport OUTSIDE, Segment, backward, forward, inverse
from fastkam._core.engine.sums cimport softplus


cdef inline double log_sigmoid(double z) noexcept nogil:
    return -softplus(-z)


cdef inline double sigmoid(double z) noexcept nogil:
    return 1 / (1 + exp(-z))


cdef inline void simplex(Py_ssize_t n, const double *z, double *x, double *below,
                         double *log_jacobian) noexcept nogil:
    """Compute the n coordinates of a simplex from n - 1; below = log x."""
    cdef double rest = 0, shifted           # rest = log r_k
    cdef Py_ssize_t k
    for k in range(n - 1):
        shifted = z[k] - log(<double>(n - 1 - k))
        below[k] = rest + log_sigmoid(shifted)
        x[k] = exp(below[k])
        log_jacobian[0] += below[k]
        rest += log_sigmoid(-shifted)
        log_jacobian[0] += log_sigmoid(-shifted)
    below[n - 1] = rest
    x[n - 1] = exp(rest)


cdef inline void simplex_back(Py_ssize_t n, const double *z, const double *x, const double *dx,
                              const double *dbelow, double *dz) noexcept nogil:
    """Pull back the slopes: dlog x_j / dz_k = 1 - s_k if j = k, -s_k if j > k; the log Jacobian
    also contains log x_j, j < n - 1, and log(1 - s_j)."""
    cdef double after = x[n - 1] * dx[n - 1] + dbelow[n - 1]    # sum over j > k
    cdef double s, mine
    cdef Py_ssize_t k
    for k in range(n - 2, -1, -1):
        s = sigmoid(z[k] - log(<double>(n - 1 - k)))
        mine = x[k] * dx[k] + dbelow[k] + 1
        dz[k] = (1 - s) * mine - s * after - s
        after += mine


cdef inline int simplex_inverse(Py_ssize_t n, const double *x, double *z) noexcept nogil:
    cdef double rest = x[n - 1]
    cdef Py_ssize_t k
    if not x[n - 1] > 0:
        return OUTSIDE
    for k in range(n - 2, -1, -1):
        if not (x[k] > 0 and isfinite(x[k])):
            return OUTSIDE
        z[k] = log(x[k]) - log(rest) + log(<double>(n - 1 - k))
        if not isfinite(z[k]):
            return OUTSIDE
        rest += x[k]
    return 0 if fabs(rest - 1) <= 1e-8 else OUTSIDE


cdef inline int ordered(const Segment *s, const double *z, double *x, double *below, double *above,
                        double *log_jacobian) noexcept nogil:
    cdef double u = z[0]
    cdef int outside = 0
    cdef Py_ssize_t k
    for k in range(s.n_z):
        if k > 0:
            u += exp(z[k])
            log_jacobian[0] += z[k]
        outside |= forward(s.inner, s, u, x + k, below + k, above + k, log_jacobian)
    return outside


cdef inline void ordered_back(const Segment *s, const double *z, const double *x, const double *dx,
                              const double *dbelow, const double *dabove,
                              double *dz) noexcept nogil:
    cdef double u = z[0], after = 0
    cdef Py_ssize_t k
    dz[0] = backward(s.inner, s, u, x[0], dx[0], dbelow[0], dabove[0])
    for k in range(1, s.n_z):
        u += exp(z[k])
        dz[k] = backward(s.inner, s, u, x[k], dx[k], dbelow[k], dabove[k])
    for k in range(s.n_z - 1, 0, -1):
        after += dz[k]
        dz[k] = exp(z[k]) * after + 1
    dz[0] += after


cdef inline int ordered_inverse(const Segment *s, const double *x, double *z) noexcept nogil:
    cdef double u = 0, before = 0
    cdef Py_ssize_t k
    for k in range(s.n_x):
        if inverse(s.inner, s, x[k], &u) or (k > 0 and not u > before):
            return OUTSIDE
        z[k] = u if k == 0 else log(u - before)
        before = u
    return 0


cdef inline double log_one_minus_square(double z) noexcept nogil:
    """Return log(1 - tanh(z)^2)."""
    z = fabs(z)
    return 2 * (0.6931471805599453 - z - log1p(exp(-2 * z)))


cdef inline Py_ssize_t order_of(const Segment *s) noexcept nogil:
    """Return n for a matrix (n, n)."""
    return <Py_ssize_t>(sqrt(<double>s.n_x) + 0.5)


cdef inline void correlation(const Segment *s, const double *z, double *L,
                             double *log_jacobian) noexcept nogil:
    cdef Py_ssize_t n = order_of(s), i, j
    cdef double half, part                  # log r_j; log(1 - y_j^2)
    for i in range(n):
        half = 0
        for j in range(i):
            part = log_one_minus_square(z[0])
            L[i * n + j] = tanh(z[0]) * exp(half)
            log_jacobian[0] += part * (1 + 0.5 * (i - 1 - j))
            half += 0.5 * part
            z += 1
        L[i * n + i] = exp(half)
        for j in range(i + 1, n):
            L[i * n + j] = 0


cdef inline void correlation_back(const Segment *s, const double *z, const double *L,
                                  const double *dL, double *dz) noexcept nogil:
    cdef Py_ssize_t n = order_of(s), i, j
    cdef double after, half, part, y
    for i in range(1, n):
        half = 0
        for j in range(i):
            half += 0.5 * log_one_minus_square(z[j])
        after = dL[i * n + i] * L[i * n + i]        # sum over all elements to the right
        for j in range(i - 1, -1, -1):
            y, part = tanh(z[j]), log_one_minus_square(z[j])
            half -= 0.5 * part                      # log r_j
            dz[j] = (dL[i * n + j] * exp(half + part) - y * after
                     - 2 * y * (1 + 0.5 * (i - 1 - j)))
            after += dL[i * n + j] * L[i * n + j]
        z += i
        dz += i


cdef inline int correlation_inverse(const Segment *s, const double *L, double *z) noexcept nogil:
    cdef Py_ssize_t n = order_of(s), i, j, start
    cdef double rest
    for i in range(n):
        start = i * (i - 1) // 2
        if not L[i * n + i] > 0:
            return OUTSIDE
        for j in range(i + 1, n):
            if L[i * n + j] != 0:
                return OUTSIDE
        rest = L[i * n + i] * L[i * n + i]      # sum of the squares to the right
        for j in range(i - 1, -1, -1):
            z[start + j] = asinh(L[i * n + j] / sqrt(rest))
            if not isfinite(z[start + j]):
                return OUTSIDE
            rest += L[i * n + j] * L[i * n + j]
        if not fabs(rest - 1) <= 1e-8:
            return OUTSIDE
    return 0
