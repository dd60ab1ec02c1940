"""Prior: the log density of a point x, as a sum over its coordinates and blocks of them.

With y = (x - loc) / scale, p = log(x - low), q = log(high - x) and r = p - log scale, where low and
high are the ends of the support, and up to constants that make each a density:

    normal      -y^2 / 2                        also halved and truncated
    flat        0
    exponential -y
    gamma       (a - 1) p - y
    invgamma    -(a + 1) p - exp(-r)
    beta        (a - 1) p + (b - 1) q
    cauchy      -log(1 + y^2)                   also halved
    student     -(a + 1) / 2 log(1 + y^2 / a)
    lognormal   -p - (r / a)^2 / 2
    laplace     -|y|
    logistic    -|y| - 2 log(1 + exp(-|y|))
    loguniform  -log y
    weibull     (a - 1) p - exp(a r)
    pareto      -(a + 1) log y
    rayleigh    p - y^2 / 2
    gumbel      -a y - exp(-a y),  a = 1 or -1
    vonmises    a (cos y - 1)

Blocks of n coordinates: with v = W (x - m), W' W the inverse of the scale matrix,

    multinormal     -|v|^2 / 2
    multistudent    -(a + n) / 2 log(1 + |v|^2 / a)
    dirichlet       sum of (alpha_k - 1) log x_k, where log x_k is given
    powers          sum of a_k log x_k over a_k that are not 0

p and q are given, not computed from x, which is too coarse in the tails of a transformed
coordinate. Hence the derivatives with respect to p, q and x are separate.
"""
from libc.math cimport INFINITY, exp, fabs, isfinite, log, log1p, sin
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from fastkam._core.density.space cimport BROKEN, Callback

from fastkam._core.density.space import Callback as PythonCallback

import numpy as np

cdef enum:
    NORMAL, FLAT, EXPONENTIAL, GAMMA, INVGAMMA, BETA, CAUCHY, STUDENT, LOGNORMAL, LAPLACE
    LOGISTIC, LOGUNIFORM, WEIBULL, PARETO, RAYLEIGH, GUMBEL, VONMISES
    MULTINORMAL, MULTISTUDENT, DIRICHLET, POWERS, PYTHON

KINDS = {"normal": NORMAL, "flat": FLAT, "exponential": EXPONENTIAL, "gamma": GAMMA,
         "invgamma": INVGAMMA, "beta": BETA, "cauchy": CAUCHY, "student": STUDENT,
         "lognormal": LOGNORMAL, "laplace": LAPLACE, "logistic": LOGISTIC,
         "loguniform": LOGUNIFORM, "weibull": WEIBULL, "pareto": PARETO, "rayleigh": RAYLEIGH,
         "gumbel": GUMBEL, "vonmises": VONMISES, "multinormal": MULTINORMAL,
         "multistudent": MULTISTUDENT, "dirichlet": DIRICHLET, "powers": POWERS, "python": PYTHON}


cdef class Prior:
    """The factors of a prior.

    Parameters
    ----------
    rows : list of tuple
        (kind, n, loc, scale, a, b, constant, vector, matrix, object) of each factor, in the order
        in which they stand in x; `object` is a distribution in Python, or None.
    """

    def __cinit__(self, list rows):
        cdef Factor *f
        cdef const double[::1] vector
        cdef const double[:, ::1] matrix
        self.rows, self.callbacks, self.arrays, self.c.n = rows, [], [], len(rows)
        self.c.factors = <Factor *>calloc(max(len(rows), 1), sizeof(Factor))
        if self.c.factors == NULL:
            raise MemoryError
        for i, (kind, n, loc, scale, a, b, constant, v, m, distribution) in enumerate(rows):
            f = &self.c.factors[i]
            f.kind, f.x, f.n = KINDS[kind], self.c.n_x, n
            f.loc, f.inverse, f.log_scale = loc, 1 / scale, log(scale)
            f.a, f.b, f.constant = a, b, constant
            if v is not None:
                vector = np.ascontiguousarray(v, dtype=float)
                f.vector = &vector[0]
                self.arrays.append(np.asarray(vector))
            if m is not None:
                matrix = np.ascontiguousarray(m, dtype=float)
                f.matrix = &matrix[0, 0]
                self.arrays.append(np.asarray(matrix))
            if distribution is not None:
                callback = PythonCallback(distribution)
                self.callbacks.append(callback)
                f.callback = <void *>callback
            self.c.n_x += n

    def __dealloc__(self):
        free(self.c.factors)

    @property
    def n_x(self):
        """Number of coordinates of x."""
        return self.c.n_x

    @property
    def needs_gil(self):
        """Whether a distribution is evaluated in Python."""
        return bool(self.callbacks)

    def add_python(self, X, values):
        """Add to values (k,) the log densities at X (k, n_x) of the distributions in Python."""
        cdef Py_ssize_t i, start
        for i in range(self.c.n):
            if self.c.factors[i].kind == PYTHON:
                start = self.c.factors[i].x
                some = X[:, start : start + self.c.factors[i].n]
                values += (<Callback>self.c.factors[i].callback).object.logps(some)

    def fault(self):
        """Return the exception that a distribution in Python has raised, or None."""
        for callback in self.callbacks:
            error = callback.fault()
            if error is not None:
                return error
        return None


cdef inline double times(double a, double p) noexcept nogil:
    """Return a p; 0 if a = 0 and p is infinite."""
    return a * p if a != 0 else 0.0


cdef inline double spherical(double a, double squares, double n, double *slope) noexcept nogil:
    """Return -(a + n) / 2 log(1 + squares / a); write its derivative in `squares`."""
    slope[0] = -0.5 * (a + n) / (a + squares)
    return -0.5 * (a + n) * log1p(squares / a)


cdef inline double long_tail(double a, double y, double *slope) noexcept nogil:
    """Return -(a + 1) / 2 log(1 + y^2 / a), where y^2 may overflow; write its derivative."""
    if fabs(y) < 1e100:
        slope[0] = -(a + 1) * y / (a + y * y)
        return -0.5 * (a + 1) * log1p(y * y / a)
    slope[0] = -(a + 1) / y
    return -(a + 1) * (log(fabs(y)) - 0.5 * log(a))


cdef inline double univariate(const Factor *f, double x, double p, double q, double *dx,
                              double *dp, double *dq) noexcept nogil:
    """Return log p(x) of one coordinate, and write its partial derivatives; few depend on q."""
    cdef double y = (x - f.loc) * f.inverse, slope = 0     # d/dy
    cdef double r, e, value
    cdef int kind = f.kind
    dp[0] = dq[0] = 0
    if kind == NORMAL:
        value, slope = -0.5 * y * y, -y
    elif kind == FLAT:
        value = 0
    elif kind == EXPONENTIAL:
        value, slope = -y, -1
    elif kind == GAMMA:
        value, slope, dp[0] = times(f.a - 1, p) - y, -1, f.a - 1
    elif kind == INVGAMMA:
        e = exp(f.log_scale - p)
        value, dp[0] = (-(f.a + 1) * p - e if e < INFINITY else -INFINITY), e - f.a - 1
    elif kind == BETA:
        value, dp[0], dq[0] = times(f.a - 1, p) + times(f.b - 1, q), f.a - 1, f.b - 1
    elif kind == CAUCHY:
        value = long_tail(1, y, &slope)
    elif kind == STUDENT:
        value = long_tail(f.a, y, &slope)
    elif kind == LOGNORMAL:
        r = (p - f.log_scale) / f.a
        value, dp[0] = (-p - 0.5 * r * r if isfinite(p) else -INFINITY), -1 - r / f.a
    elif kind == LAPLACE:
        value, slope = -fabs(y), (-1.0 if y > 0 else 1.0)
    elif kind == LOGISTIC:
        e = exp(-fabs(y))
        value, slope = -fabs(y) - 2 * log1p(e), (e - 1) / (1 + e)
        if y < 0:
            slope = -slope
    elif kind == LOGUNIFORM:
        value, slope = -log(y), -1 / y
    elif kind == WEIBULL:
        e = exp(f.a * (p - f.log_scale))
        value, dp[0] = times(f.a - 1, p) - e, f.a - 1 - f.a * e
    elif kind == PARETO:
        value, slope = -(f.a + 1) * log(y), -(f.a + 1) / y
    elif kind == RAYLEIGH:
        value, slope, dp[0] = p - 0.5 * y * y, -y, 1
    elif kind == GUMBEL:
        e = exp(-f.a * y)
        value, slope = -f.a * y - e, f.a * (e - 1)
    else:
        value, slope = -2 * f.a * sin(0.5 * y) ** 2, -f.a * sin(y)
    dx[0] = slope * f.inverse
    return f.constant + value


cdef double whitened(const Factor *f, const double *x, double *v) noexcept nogil:
    """Write v = W (x - m), (n,), and return |v|^2."""
    cdef double total = 0, sum
    cdef Py_ssize_t i, j
    for i in range(f.n):
        sum = 0
        for j in range(f.n):
            sum += f.matrix[i * f.n + j] * (x[j] - f.vector[j])
        v[i] = sum
        total += sum * sum
    return total


cdef int elliptic(const Factor *f, const double *x, double *value, double *dx) noexcept nogil:
    """Add the normal or Student's t log density of a block; return BROKEN if out of memory."""
    cdef double room[32]
    cdef double *v = &room[0]
    cdef double squares, slope = -0.5
    cdef Py_ssize_t i, j
    if f.n > 32:
        v = <double *>malloc(f.n * sizeof(double))
        if v == NULL:
            return BROKEN
    squares = whitened(f, x, v)
    if f.kind == MULTINORMAL:
        value[0] += f.constant - 0.5 * squares
    else:
        value[0] += f.constant + spherical(f.a, squares, f.n, &slope)
    if dx != NULL:
        memset(dx, 0, f.n * sizeof(double))
        for i in range(f.n):
            for j in range(f.n):
                dx[j] += 2 * slope * v[i] * f.matrix[i * f.n + j]
    if f.n > 32:
        free(v)
    return 0


cdef int call_python(const Factor *f, const double *x, double *value,
                     double *dx) noexcept with gil:
    """Call a distribution in Python: ``logp(x)``, ``logp_grad(x)``."""
    cdef Callback callback = <Callback>f.callback
    cdef double[::1] slope
    cdef double[::1] copy
    try:
        copy = np.empty(f.n)
        memcpy(&copy[0], x, f.n * sizeof(double))
        if dx == NULL:
            value[0] += callback.object.logp(np.asarray(copy))
        else:
            number, slope = callback.object.logp_grad(np.asarray(copy))
            value[0] += number
            memcpy(dx, &slope[0], f.n * sizeof(double))
        return 0
    except BaseException as error:
        callback.error = error
        return BROKEN


cdef int evaluate(const Product *c, const double *x, const double *below, const double *above,
                  double *value, double *dx, double *dbelow, double *dabove,
                  bint compiled) noexcept nogil:
    cdef const Factor *f
    cdef double slope = 0, dp = 0, dq = 0
    cdef Py_ssize_t i, k
    cdef int rc
    if dx != NULL:
        memset(dx, 0, c.n_x * sizeof(double))
        memset(dbelow, 0, c.n_x * sizeof(double))
        memset(dabove, 0, c.n_x * sizeof(double))
    for i in range(c.n):
        f = &c.factors[i]
        if f.kind < MULTINORMAL:
            for k in range(f.x, f.x + f.n):     # several if they are alike
                value[0] += univariate(f, x[k], below[k], above[k], &slope, &dp, &dq)
                if dx != NULL:
                    dx[k], dbelow[k], dabove[k] = slope, dp, dq
        elif f.kind == DIRICHLET:
            value[0] += f.constant
            for k in range(f.n):
                value[0] += times(f.vector[k] - 1, below[f.x + k])
                if dx != NULL:
                    dbelow[f.x + k] = f.vector[k] - 1
        elif f.kind == POWERS:
            value[0] += f.constant
            for k in range(f.n):
                if f.vector[k] != 0:
                    value[0] += f.vector[k] * log(x[f.x + k])
                    if dx != NULL:
                        dx[f.x + k] = f.vector[k] / x[f.x + k]
        else:
            if f.kind == PYTHON:
                if compiled:
                    continue
                rc = call_python(f, x + f.x, value, NULL if dx == NULL else dx + f.x)
            else:
                rc = elliptic(f, x + f.x, value, NULL if dx == NULL else dx + f.x)
            if rc:
                return rc
    return 0
