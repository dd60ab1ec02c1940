"""Space: how the sampler's unconstrained point z becomes the point x of the user.

With e = exp(z), s = 1 / (1 + exp(-z)), w = high - low:

    kind        x                               log |dx/dz|
    identity    z, outside of [low, high] none  0
    log         low + e                         z
    upper       high - 1 / e                    -z
    interval    low + w s                       log w + log s + log(1 - s)
    periodic    z wrapped into [low, high)      0
    reflect     z reflected into [low, high]    0

All increase (reflect apart), so that an ordered vector is one of these maps of each element of

    u_0 = z_0,  u_k = u_{k-1} + exp(z_k)        sum of z_k, k > 0

A simplex of n coordinates breaks a stick, s_k = s(z_k - log(n - 1 - k)), k < n - 1, so that z = 0
is its middle:

    x_k = s_k r_k,  r_k = prod_{j<k} (1 - s_j)  sum of log s_k + log(1 - s_k) + log r_k

The Cholesky factor L (n, n) of a correlation matrix has a row of canonical partial correlations
y_j = tanh(z_j), j < i, and its log Jacobian is that of its elements below the diagonal:

    L_ij = y_j r_j,  r_j^2 = prod_{k<j} (1 - y_k^2),  L_ii = r_i
                                                sum of (1 + (i - 1 - j) / 2) log(1 - y_j^2)

Besides x come the logarithms of x - low and high - x, which in the tails x itself cannot hold: a
prior that depends on them is exact there.

Stan Development Team, Stan Reference Manual, "Constraint transforms". Lewandowski, D., Kurowicka,
D. and Joe, H. (2009). Generating random correlation matrices based on vines and extended onion
method. Journal of Multivariate Analysis 100, 1989-2001.
"""
from libc.math cimport (
    INFINITY, NAN, asinh, exp, fabs, floor, isfinite, log, log1p, nextafter, sqrt, tanh,
)
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

cdef enum:
    IDENTITY, LOG, UPPER, INTERVAL, PERIODIC, REFLECT, SIMPLEX, ORDERED, CORRELATION, PYTHON

KINDS = {"identity": IDENTITY, "log": LOG, "upper": UPPER, "interval": INTERVAL,
         "periodic": PERIODIC, "reflect": REFLECT, "simplex": SIMPLEX, "ordered": ORDERED,
         "cholesky_corr": CORRELATION, "python": PYTHON}
cdef double SUM_ERROR = 1e-8        # of a simplex or of a row's squares, given by a user


cdef class Callback:
    """An object in Python that C calls, and what it has raised."""

    def __init__(self, object):
        self.object = object

    def fault(self):
        error, self.error = self.error, None
        return error


cdef class Space:
    """The transforms of all coordinates.

    Parameters
    ----------
    rows : list of tuple
        (kind, inner, logs, n_z, n_x, low, high, object) of each segment, in the order in which
        they stand in z and in x; `object` is a transform in Python, or None. Coordinates that
        are alike make one segment.
    """

    def __cinit__(self, list rows):
        cdef Segment *s
        self.rows, self.callbacks, self.c.n = rows, [], len(rows)
        self.c.segments = <Segment *>calloc(max(len(rows), 1), sizeof(Segment))
        if self.c.segments == NULL:
            raise MemoryError
        for i, (kind, inner, logs, n_z, n_x, low, high, transform) in enumerate(rows):
            s = &self.c.segments[i]
            s.kind, s.inner, s.logs = KINDS[kind], KINDS[inner], logs
            s.z, s.x, s.n_z, s.n_x = self.c.n_z, self.c.n_x, n_z, n_x
            s.low, s.high, s.width = low, high, high - low
            s.log_width = log(s.width)
            if transform is not None:
                callback = Callback(transform)
                self.callbacks.append(callback)
                s.transform = <void *>callback
            self.c.n_z += n_z
            self.c.n_x += n_x

    def __dealloc__(self):
        free(self.c.segments)

    @property
    def n_z(self):
        """How many coordinates z has."""
        return self.c.n_z

    @property
    def n_x(self):
        """How many coordinates x has."""
        return self.c.n_x

    @property
    def needs_gil(self):
        """Whether a transform is written in Python."""
        return bool(self.callbacks)

    def fault(self):
        """What a transform in Python has raised, or None."""
        for callback in self.callbacks:
            error = callback.fault()
            if error is not None:
                return error
        return None

    def constrain(self, Z):
        """The points x (k, n_x) of Z (k, n_z), and the log Jacobians (k,).

        Where x would be beyond the bounds, or not finite, the log Jacobian is -inf.
        """
        cdef const double[:, ::1] z = Z
        cdef Py_ssize_t i, k = z.shape[0]
        cdef double[:, ::1] x = np.full((k, self.c.n_x), np.nan)
        cdef double[:, ::1] near = np.empty((2, self.c.n_x))
        cdef double[::1] log_jacobian = np.zeros(k)
        cdef int rc
        for i in range(k):
            rc = constrain(&self.c, &z[i, 0], &x[i, 0], &near[0, 0], &near[1, 0], &log_jacobian[i])
            if rc < 0:
                raise self.fault()
            if rc:
                log_jacobian[i] = -INFINITY
        return np.asarray(x), np.asarray(log_jacobian)

    def unconstrain(self, X):
        """The points z (k, n_z) of X (k, n_x), and the segment of each row that is invalid, or -1.
        """
        cdef const double[:, ::1] x = X
        cdef Py_ssize_t i, k = x.shape[0]
        cdef double[:, ::1] z = np.empty((k, self.c.n_z))
        cdef Py_ssize_t[::1] invalid = np.full(k, -1, np.intp)
        for i in range(k):
            invalid[i] = unconstrain(&self.c, &x[i, 0], &z[i, 0])
            if invalid[i] == BROKEN:
                raise self.fault()
        return np.asarray(z), np.asarray(invalid)

    def pull_back(self, z, dx):
        """The gradient (n_z,) of f(x(z)) + log |dx/dz| at z, of a gradient dx (n_x,) of f."""
        cdef const double[::1] point = z
        cdef const double[::1] slope = dx
        cdef double[:, ::1] room = np.zeros((5, self.c.n_x))
        cdef double[::1] dz = np.zeros(self.c.n_z)
        cdef double log_jacobian = 0
        cdef int rc = constrain(&self.c, &point[0], &room[0, 0], &room[1, 0], &room[2, 0],
                                &log_jacobian)
        if rc == 0:
            rc = pull_back(&self.c, &point[0], &room[0, 0], &slope[0], &room[3, 0], &room[4, 0],
                           &dz[0])
        if rc < 0:
            raise self.fault()
        return np.asarray(dz)


# ---- one coordinate ----------------------------------------------------------------------------

cdef inline double within(double x, double low, double high) noexcept nogil:
    """x, moved by one rounding error where rounding has put it on a finite edge of (low, high)."""
    if x <= low > -INFINITY:
        return nextafter(low, INFINITY)
    if x >= high < INFINITY:
        return nextafter(high, -INFINITY)
    return x


cdef inline double folded(const Segment *s, double z, double *sign) noexcept nogil:
    """z reflected into [low, high]; the sign of the slope there."""
    cdef double t = z - s.low
    sign[0] = 1.0
    if not isfinite(z):
        return NAN
    t -= 2 * s.width * floor(t / (2 * s.width))
    if t > s.width:
        t = 2 * s.width - t
        sign[0] = -1.0
    return min(max(s.low + t, s.low), s.high)


cdef inline double wrapped(const Segment *s, double z) noexcept nogil:
    """z wrapped into [low, high)."""
    cdef double x
    if s.low <= z < s.high:
        return z
    if not isfinite(z):
        return NAN
    x = s.low + (z - s.low - s.width * floor((z - s.low) / s.width))
    return x if s.low <= x < s.high else s.low


cdef inline void distances(const Segment *s, double x, double *below, double *above) noexcept nogil:
    """log(x - low) and log(high - x), as far as a prior reads them."""
    if s.logs & BELOW:
        below[0] = log(x - s.low)
    if s.logs & ABOVE:
        above[0] = log(s.high - x)


cdef inline int forward(int kind, const Segment *s, double z, double *x, double *below,
                        double *above, double *log_jacobian) noexcept nogil:
    """x and its log distances; adds log |dx/dz|. OUTSIDE where there is no density."""
    cdef double e, p, q, log_p, log_q
    if kind == IDENTITY:
        x[0] = z
        if not s.low <= z <= s.high:
            return OUTSIDE
        distances(s, z, below, above)
    elif kind == LOG:
        x[0] = within(s.low + exp(z), s.low, INFINITY)
        below[0] = z
        log_jacobian[0] += z
    elif kind == UPPER:
        x[0] = within(s.high - exp(-z), -INFINITY, s.high)
        above[0] = -z
        log_jacobian[0] -= z
    elif kind == INTERVAL:
        e = exp(-fabs(z))
        p = 1 / (1 + e)
        q = e * p                               # the smaller of s and 1 - s
        log_p = -log1p(e)
        log_q = log_p - fabs(z)
        if z >= 0:
            x[0] = s.high - s.width * q
            below[0], above[0] = s.log_width + log_p, s.log_width + log_q
        else:
            x[0] = s.low + s.width * q
            below[0], above[0] = s.log_width + log_q, s.log_width + log_p
        x[0] = within(x[0], s.low, s.high)
        log_jacobian[0] += s.log_width + log_p + log_q
    elif kind == PERIODIC:
        x[0] = wrapped(s, z)
        distances(s, x[0], below, above)
    else:
        x[0] = folded(s, z, &e)
        distances(s, x[0], below, above)
    return 0 if isfinite(x[0]) else OUTSIDE


cdef inline double near_slope(const Segment *s, double x, double dx, double dbelow,
                              double dabove) noexcept nogil:
    """df/dx of f(x, below, above)."""
    if dbelow != 0:
        dx += dbelow / (x - s.low)
    if dabove != 0:
        dx -= dabove / (s.high - x)
    return dx


cdef inline double backward(int kind, const Segment *s, double z, double x, double dx,
                            double dbelow, double dabove) noexcept nogil:
    """d/dz of f(x, below, above) + log |dx/dz|."""
    cdef double e, p, q
    if kind == IDENTITY or kind == PERIODIC:
        return near_slope(s, x, dx, dbelow, dabove)
    if kind == LOG:
        return dx * exp(z) + dbelow + 1
    if kind == UPPER:
        return dx * exp(-z) - dabove - 1
    if kind == INTERVAL:
        e = exp(-fabs(z))
        p = 1 / (1 + e)
        q = e * p
        if z < 0:
            p, q = q, p                         # s and 1 - s
        return dx * s.width * p * q + dbelow * q - dabove * p + q - p
    folded(s, z, &e)
    return e * near_slope(s, x, dx, dbelow, dabove)


cdef inline int inverse(int kind, const Segment *s, double x, double *z) noexcept nogil:
    """z of x; OUTSIDE where x is none."""
    if not (s.low <= x <= s.high and isfinite(x)):
        return OUTSIDE
    if kind == LOG:
        z[0] = log(x - s.low)
    elif kind == UPPER:
        z[0] = -log(s.high - x)
    elif kind == INTERVAL:
        z[0] = log(x - s.low) - log(s.high - x)
    else:
        z[0] = x
    return 0 if isfinite(z[0]) else OUTSIDE


# ---- vectors -----------------------------------------------------------------------------------

cdef inline double log_sigmoid(double z) noexcept nogil:
    return -log1p(exp(-z)) if z > 0 else z - log1p(exp(z))


cdef inline double sigmoid(double z) noexcept nogil:
    return 1 / (1 + exp(-z))


cdef void simplex(Py_ssize_t n, const double *z, double *x, double *below,
                  double *log_jacobian) noexcept nogil:
    """The n coordinates of a simplex, of n - 1; below = log x."""
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


cdef void simplex_back(Py_ssize_t n, const double *z, const double *x, const double *dx,
                       const double *dbelow, double *dz) noexcept nogil:
    """dlog x_j / dz_k = 1 - s_k where j = k, -s_k where j > k; each log x_j, j < n - 1, is in the
    log Jacobian too, and log(1 - s_j)."""
    cdef double after = x[n - 1] * dx[n - 1] + dbelow[n - 1]    # sum over j > k
    cdef double s, mine
    cdef Py_ssize_t k
    for k in range(n - 2, -1, -1):
        s = sigmoid(z[k] - log(<double>(n - 1 - k)))
        mine = x[k] * dx[k] + dbelow[k] + 1
        dz[k] = (1 - s) * mine - s * after - s
        after += mine


cdef int simplex_inverse(Py_ssize_t n, const double *x, double *z) noexcept nogil:
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
    return 0 if fabs(rest - 1) <= SUM_ERROR else OUTSIDE


cdef int ordered(const Segment *s, const double *z, double *x, double *below, double *above,
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


cdef void ordered_back(const Segment *s, const double *z, const double *x, const double *dx,
                       const double *dbelow, const double *dabove, double *dz) noexcept nogil:
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


cdef int ordered_inverse(const Segment *s, const double *x, double *z) noexcept nogil:
    cdef double u = 0, before = 0
    cdef Py_ssize_t k
    for k in range(s.n_x):
        if inverse(s.inner, s, x[k], &u) or (k > 0 and not u > before):
            return OUTSIDE
        z[k] = u if k == 0 else log(u - before)
        before = u
    return 0


cdef inline double log_one_minus_square(double z) noexcept nogil:
    """log(1 - tanh(z)^2)"""
    z = fabs(z)
    return 2 * (0.6931471805599453 - z - log1p(exp(-2 * z)))


cdef Py_ssize_t order_of(const Segment *s) noexcept nogil:
    """n of a matrix (n, n)."""
    return <Py_ssize_t>(sqrt(<double>s.n_x) + 0.5)


cdef void correlation(const Segment *s, const double *z, double *L,
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


cdef void correlation_back(const Segment *s, const double *z, const double *L, const double *dL,
                           double *dz) noexcept nogil:
    cdef Py_ssize_t n = order_of(s), i, j
    cdef double after, half, part, y
    for i in range(1, n):
        half = 0
        for j in range(i):
            half += 0.5 * log_one_minus_square(z[j])
        after = dL[i * n + i] * L[i * n + i]        # of all elements to the right
        for j in range(i - 1, -1, -1):
            y, part = tanh(z[j]), log_one_minus_square(z[j])
            half -= 0.5 * part                      # log r_j
            dz[j] = (dL[i * n + j] * exp(half + part) - y * after
                     - 2 * y * (1 + 0.5 * (i - 1 - j)))
            after += dL[i * n + j] * L[i * n + j]
        z += i
        dz += i


cdef int correlation_inverse(const Segment *s, const double *L, double *z) noexcept nogil:
    cdef Py_ssize_t n = order_of(s), i, j, start
    cdef double rest
    for i in range(n):
        start = i * (i - 1) // 2
        if not L[i * n + i] > 0:
            return OUTSIDE
        for j in range(i + 1, n):
            if L[i * n + j] != 0:
                return OUTSIDE
        rest = L[i * n + i] * L[i * n + i]      # of the squares to the right
        for j in range(i - 1, -1, -1):
            z[start + j] = asinh(L[i * n + j] / sqrt(rest))
            if not isfinite(z[start + j]):
                return OUTSIDE
            rest += L[i * n + j] * L[i * n + j]
        if not fabs(rest - 1) <= SUM_ERROR:
            return OUTSIDE
    return 0


# ---- transforms in Python ----------------------------------------------------------------------

cdef object vector(Py_ssize_t n, const double *values):
    """A copy as an array (n,)."""
    cdef double[::1] copy = np.empty(n)
    memcpy(&copy[0], values, n * sizeof(double))
    return np.asarray(copy)


cdef int put(values, Py_ssize_t n, what, double *out) except -1:
    """Copy what a transform has returned, n numbers."""
    cdef double[::1] array = np.ascontiguousarray(values, dtype=float).reshape(-1)
    if array.shape[0] != n:
        raise TypeError(f"{what} must return {n} numbers, not an array of shape "
                        f"{np.shape(values)}")
    memcpy(out, &array[0], n * sizeof(double))
    return 0


cdef int call_constrain(const Segment *s, const double *z, double *x, double *below,
                        double *above, double *log_jacobian) noexcept with gil:
    cdef Callback callback = <Callback>s.transform
    cdef Py_ssize_t k
    try:
        point = vector(s.n_z, z)
        put(callback.object.constrain(point), s.n_x, "constrain", x)
        log_jacobian[0] += callback.object.log_jacobian(point)
    except BaseException as error:
        callback.error = error
        return BROKEN
    for k in range(s.n_x):
        if not (isfinite(x[k]) and s.low <= x[k] <= s.high):
            return OUTSIDE
        distances(s, x[k], below + k, above + k)
    return 0


cdef int call_pull_back(const Segment *s, const double *z, const double *x, const double *dx,
                        const double *dbelow, const double *dabove, double *dz) noexcept with gil:
    cdef Callback callback = <Callback>s.transform
    cdef double[::1] slope
    cdef Py_ssize_t k
    try:
        slope = np.empty(s.n_x)
        for k in range(s.n_x):
            slope[k] = near_slope(s, x[k], dx[k], dbelow[k], dabove[k])
        put(callback.object.pull_back(vector(s.n_z, z), np.asarray(slope)), s.n_z, "pull_back", dz)
        return 0
    except BaseException as error:
        callback.error = error
        return BROKEN


cdef int call_inverse(const Segment *s, const double *x, double *z) noexcept with gil:
    cdef Callback callback = <Callback>s.transform
    cdef Py_ssize_t k
    try:
        put(callback.object.unconstrain(vector(s.n_x, x)), s.n_z, "unconstrain", z)
    except BaseException as error:
        callback.error = error
        return BROKEN
    for k in range(s.n_z):
        if not isfinite(z[k]):
            return OUTSIDE
    return 0


# ---- a point -----------------------------------------------------------------------------------

cdef int constrain(const Transforms *c, const double *z, double *x, double *below, double *above,
                   double *log_jacobian) noexcept nogil:
    cdef const Segment *s
    cdef Py_ssize_t i, k
    cdef int rc, outside = 0
    for i in range(c.n):
        s = &c.segments[i]
        if s.kind <= REFLECT:
            rc = 0
            for k in range(s.n_x):
                rc |= forward(s.kind, s, z[s.z + k], x + s.x + k, below + s.x + k,
                              above + s.x + k, log_jacobian)
        elif s.kind == SIMPLEX:
            simplex(s.n_x, z + s.z, x + s.x, below + s.x, log_jacobian)
            rc = 0 if isfinite(log_jacobian[0]) else OUTSIDE
        elif s.kind == ORDERED:
            rc = ordered(s, z + s.z, x + s.x, below + s.x, above + s.x, log_jacobian)
        elif s.kind == CORRELATION:
            correlation(s, z + s.z, x + s.x, log_jacobian)
            rc = 0 if isfinite(log_jacobian[0]) else OUTSIDE
        else:
            rc = call_constrain(s, z + s.z, x + s.x, below + s.x, above + s.x, log_jacobian)
        if rc < 0:
            return rc
        outside |= rc
    return outside


cdef int pull_back(const Transforms *c, const double *z, const double *x, const double *dx,
                   const double *dbelow, const double *dabove, double *dz) noexcept nogil:
    cdef const Segment *s
    cdef Py_ssize_t i, j, k
    cdef int rc
    for i in range(c.n):
        s = &c.segments[i]
        k = s.x
        if s.kind <= REFLECT:
            for j in range(s.n_x):
                dz[s.z + j] = backward(s.kind, s, z[s.z + j], x[k + j], dx[k + j], dbelow[k + j],
                                       dabove[k + j])
        elif s.kind == SIMPLEX:
            simplex_back(s.n_x, z + s.z, x + k, dx + k, dbelow + k, dz + s.z)
        elif s.kind == ORDERED:
            ordered_back(s, z + s.z, x + k, dx + k, dbelow + k, dabove + k, dz + s.z)
        elif s.kind == CORRELATION:
            correlation_back(s, z + s.z, x + k, dx + k, dz + s.z)
        else:
            rc = call_pull_back(s, z + s.z, x + k, dx + k, dbelow + k, dabove + k, dz + s.z)
            if rc:
                return rc
    return 0


cdef Py_ssize_t unconstrain(const Transforms *c, const double *x, double *z) noexcept nogil:
    """z of x; the number of the segment that is invalid, or -1."""
    cdef const Segment *s
    cdef Py_ssize_t i, k
    cdef int rc
    for i in range(c.n):
        s = &c.segments[i]
        if s.kind <= REFLECT:
            rc = 0
            for k in range(s.n_x):
                rc |= inverse(s.kind, s, x[s.x + k], z + s.z + k)
        elif s.kind == SIMPLEX:
            rc = simplex_inverse(s.n_x, x + s.x, z + s.z)
        elif s.kind == ORDERED:
            rc = ordered_inverse(s, x + s.x, z + s.z)
        elif s.kind == CORRELATION:
            rc = correlation_inverse(s, x + s.x, z + s.z)
        else:
            rc = call_inverse(s, x + s.x, z + s.z)
        if rc < 0:
            return rc
        if rc:
            return i
    return -1


cdef int locate(const Transforms *c, const double *x, double *below, double *above) noexcept nogil:
    cdef const Segment *s
    cdef Py_ssize_t i, k
    for i in range(c.n):
        s = &c.segments[i]
        for k in range(s.x, s.x + s.n_x):
            if not s.low <= x[k] <= s.high:
                return OUTSIDE
            below[k], above[k] = log(x[k] - s.low), log(s.high - x[k])
    return 0
