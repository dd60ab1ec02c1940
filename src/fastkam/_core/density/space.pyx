"""Space: the transform of the sampler's unconstrained point z to the user's point x.

With e = exp(z), s = 1 / (1 + exp(-z)), w = high - low:

    kind        x                               log |dx/dz|
    identity    z; none outside [low, high]     0
    log         low + e                         z
    upper       high - 1 / e                    -z
    interval    low + w s                       log w + log s + log(1 - s)
    periodic    z wrapped into [low, high)      log(w g(z))
    reflect     z reflected into [low, high]    log(w g(z))

The last two are periodic (period w, or 2 w if z is reflected), and chains would drift along the
periods without end. So each period has a weight: g is the normal density of mean (low + high) / 2
and standard deviation 1.35 periods. By Poisson's summation formula the sum of w g(z) over all z
with the same x is 1, within 5e-16: the distribution of x is unchanged.

The others are increasing, so that an ordered vector is one of these maps of each element of

    u_0 = z_0,  u_k = u_{k-1} + exp(z_k)        sum of z_k, k > 0

A simplex of n coordinates breaks a stick, s_k = s(z_k - log(n - 1 - k)), k < n - 1, so that z = 0
is its middle:

    x_k = s_k r_k,  r_k = prod_{j<k} (1 - s_j)  sum of log s_k + log(1 - s_k) + log r_k

The Cholesky factor L (n, n) of a correlation matrix has a row of canonical partial correlations
y_j = tanh(z_j), j < i, and its log Jacobian is that of its elements below the diagonal:

    L_ij = y_j r_j,  r_j^2 = prod_{k<j} (1 - y_k^2),  L_ii = r_i
                                                sum of (1 + (i - 1 - j) / 2) log(1 - y_j^2)

The logarithms of x - low and high - x are computed along with x, whose rounding would lose them in
the tails: priors that depend on them are exact there.

Stan Development Team, Stan Reference Manual, "Constraint transforms". Lewandowski, D., Kurowicka,
D. and Joe, H. (2009). Generating random correlation matrices based on vines and extended onion
method. Journal of Multivariate Analysis 100, 1989-2001.
"""
from libc.math cimport INFINITY, M_PI as pi, NAN, isfinite, isnan, log, sqrt
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from fastkam._core.density.coordinate cimport (
    CORRELATION, IDENTITY, INTERVAL, LOG, ORDERED, OUTSIDE, PERIODIC, PYTHON, REFLECT, SIMPLEX,
    UPPER, Segment, backward, distances, forward, inverse, near_slope,
)
from fastkam._core.density.vectors cimport (
    correlation, correlation_back, correlation_inverse, ordered, ordered_back, ordered_inverse,
    simplex, simplex_back, simplex_inverse,
)

import numpy as np

SPREAD = 1.35       # in periods; the sum of 1 is off by 2 exp(-2 pi^2 SPREAD^2) at most

OF_TRANSFORM = "raised by a transform: "        # begins a note of an exception; its method follows

KINDS = {"identity": IDENTITY, "log": LOG, "upper": UPPER, "interval": INTERVAL,
         "periodic": PERIODIC, "reflect": REFLECT, "simplex": SIMPLEX, "ordered": ORDERED,
         "cholesky_corr": CORRELATION, "python": PYTHON}


cdef class Callback:
    """An object in Python that C calls, and the exception that it has raised."""

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
            s.spread = SPREAD * s.width * (2 if s.kind == REFLECT else 1)
            s.log_height = s.log_width - log(s.spread * sqrt(2 * pi))
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
        """Number of coordinates of z."""
        return self.c.n_z

    @property
    def n_x(self):
        """Number of coordinates of x."""
        return self.c.n_x

    @property
    def needs_gil(self):
        """Whether a transform is written in Python."""
        return bool(self.callbacks)

    def fault(self):
        """Return the exception that a transform in Python has raised, or None."""
        for callback in self.callbacks:
            error = callback.fault()
            if error is not None:
                return error
        return None

    def constrain(self, Z):
        """Return the points x (k, n_x) of Z (k, n_z), and the log Jacobians (k,).

        The log Jacobian is -inf if x would be beyond the bounds or not finite.
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
        """Return the points z (k, n_z) of X (k, n_x), and the invalid segment of each row, or -1.
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
        """Return the gradient (n_z,) of f(x(z)) + log |dx/dz| at z, given that of f, dx (n_x,)."""
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


# ---- transforms in Python ----------------------------------------------------------------------

cdef object vector(Py_ssize_t n, const double *values):
    """Return a copy as an array (n,)."""
    cdef double[::1] copy = np.empty(n)
    memcpy(&copy[0], values, n * sizeof(double))
    return np.asarray(copy)


cdef int put(values, Py_ssize_t n, what, double *out) except -1:
    """Copy the n numbers that a transform has returned."""
    cdef double[::1] array = np.ascontiguousarray(values, dtype=float).reshape(-1)
    if array.shape[0] != n:
        raise TypeError(f"{what} must return {n} numbers, not an array of shape "
                        f"{np.shape(values)}")
    memcpy(out, &array[0], n * sizeof(double))
    return 0


cdef int broken(Callback callback, error, str method):
    """Store the exception that a method has raised, with a note that tells it from the target's."""
    if isinstance(error, Exception):
        error.add_note(f"{OF_TRANSFORM}{method} of the transform {type(callback.object).__name__}")
    callback.error = error
    return BROKEN


cdef double number(value) except? -1:
    """Return the log Jacobian that a transform has returned, as a float."""
    try:
        if np.ndim(value) == 0:
            return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"log_jacobian must return a number, not {value!r:.200}") from None
    raise TypeError(f"log_jacobian must return a number, not an array of shape {np.shape(value)}")


cdef int call_constrain(const Segment *s, const double *z, double *x, double *below,
                        double *above, double *log_jacobian) noexcept with gil:
    cdef Callback callback = <Callback>s.transform
    cdef Py_ssize_t k
    cdef bint outside = False, no_number = False
    method = "constrain"
    try:
        point = vector(s.n_z, z)
        put(callback.object.constrain(point), s.n_x, "constrain", x)
        for k in range(s.n_x):
            no_number |= isnan(x[k])
            outside |= not (isfinite(x[k]) and s.low <= x[k] <= s.high)
        if no_number:  # the density is then NaN, and not 0
            log_jacobian[0] = NAN
        if outside:
            return OUTSIDE
        method = "log_jacobian"
        log_jacobian[0] += number(callback.object.log_jacobian(point))
    except BaseException as error:
        return broken(callback, error, method)
    for k in range(s.n_x):
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
        return broken(callback, error, "pull_back")


cdef int call_inverse(const Segment *s, const double *x, double *z) noexcept with gil:
    cdef Callback callback = <Callback>s.transform
    cdef Py_ssize_t k
    try:
        put(callback.object.unconstrain(vector(s.n_x, x)), s.n_z, "unconstrain", z)
    except BaseException as error:
        return broken(callback, error, "unconstrain")
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
    """Compute z from x; return the index of the invalid segment, or -1."""
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
