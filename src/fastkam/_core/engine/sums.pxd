"""Logarithms of sums of exponentials, and the power sequence of gains."""
from libc.math cimport INFINITY, exp, fabs, log, log1p, pow
from libc.stdint cimport int64_t


cdef inline double log_add(double a, double b) noexcept nogil:
    """Return log(e^a + e^b)."""
    cdef double high = max(a, b)
    return high + log1p(exp(-fabs(a - b))) if high > -INFINITY else high


cdef inline double log_sum_over(double divisor, Py_ssize_t n, const double *a) noexcept nogil:
    """Return log((e^a_1 + ... + e^a_n) / divisor)."""
    cdef Py_ssize_t i
    cdef double high = -INFINITY, total = 0
    for i in range(n):
        high = max(high, a[i])
    if high == -INFINITY:
        return high
    for i in range(n):
        total += exp(a[i] - high)
    return high + log(total / divisor)


cdef inline double log_sum(Py_ssize_t n, const double *a) noexcept nogil:
    """Return log(e^a_1 + ... + e^a_n)."""
    return log_sum_over(1, n, a)


cdef inline double softplus(double v) noexcept nogil:
    """Return log(1 + e^v)."""
    return max(v, 0.0) + log1p(exp(-fabs(v)))


cdef enum:
    NEGLIGIBLE = -38            # e^-38 is below half a unit in the last place of any sum >= 1
    ZERO = -745                 # e^-745 is the smallest positive double

cdef struct LogSum:             # a running sum: {-INFINITY, 0} at first
    double high                 # the largest term so far
    double total                # the sum, relative to e^high


cdef inline bint add_term(LogSum *s, double t) noexcept nogil:
    """Add e^t; return False if t is NaN."""
    if t <= s.high:
        if t - s.high > NEGLIGIBLE:
            s.total += exp(t - s.high)
    elif t > s.high:
        s.total = s.total * exp(s.high - t) + 1 if s.high - t > NEGLIGIBLE else 1
        s.high = t
    else:
        return False
    return True


cdef inline double log_total(const LogSum *s) noexcept nogil:
    """Return the logarithm of the sum."""
    return s.high if s.total == 1 else s.high + log(s.total)


cdef struct Power:              # min(cap, c (offset + n)^-k), n = 1, 2, ...
    double c
    double k
    double offset
    double cap


cdef inline double term(const Power *p, int64_t n) noexcept nogil:
    """Return the n-th term."""
    return min(p.cap, p.c * pow(p.offset + n, -p.k) if p.k != 0 else p.c)
