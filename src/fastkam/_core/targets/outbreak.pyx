"""The posterior of an SIR model of an outbreak, with a solver of its differential equations.

    S' = -beta S I / N,   I' = beta S I / N - gamma I,   S(0) = N - i0,   I(0) = i0
    y_k ~ negative binomial with mean I(t_k) and variance I(t_k) + I(t_k)^2 / phi
    x = (log beta, log gamma, log i0, log phi),   x_j ~ N(m_j, 1)

The solver is the pair of orders 5 and 4 of Dormand, J. R. and Prince, P. J. (1980), A family of
embedded Runge-Kutta formulae, Journal of Computational and Applied Mathematics 6, 19-26; the result
of order 5 is used. Its unknowns are s = S / N and u = log I, so that a small I keeps its relative
accuracy. The density is 0 for phi above 10^10, some 21 standard deviations from its prior mean.
"""
from libc.math cimport INFINITY, exp, fabs, isfinite, log, pow, sqrt

from fastkam._core.density.target cimport Target

import numpy as np

cdef enum:
    MOST_STEPS = 5000           # of one solution: some 40 where the model fits
    MOST_DAYS = 64

cdef double RTOL = 1e-6, ATOL = 1e-8, LEAST_INFECTED = 1e-6
cdef double MOST_PHI = 1e10     # above it the log gamma functions lose their difference to rounding

cdef struct Outbreak:
    Py_ssize_t n
    const double *days          # (n,) increasing, above 0
    const double *counts        # (n,)
    double population
    double constant             # -sum log y_k!
    const double *prior_mean    # (4,)


cdef class OutbreakDensity(Target):
    cdef Outbreak outbreak
    cdef const double[::1] days, counts, prior_mean

    def set_up(self, days, counts, population, prior_mean):
        """Take arrays (n,), (n,) and (4,)."""
        if not 1 <= len(days) <= MOST_DAYS:
            raise ValueError(f"days must be 1 to {MOST_DAYS}, not {len(days)}")
        self.days, self.counts, self.prior_mean = days, counts, prior_mean
        self.outbreak = Outbreak(len(days), &self.days[0], &self.counts[0], population, 0,
                                 &self.prior_mean[0])
        for y in counts:
            self.outbreak.constant -= log_gamma(y + 1)
        self.kind = "built-in"
        self.c.dim = 4
        self.c.logp = outbreak_logp
        self.c.data = &self.outbreak

    def solve(self, double beta, double gamma, double i0, days):
        """Return the infected on increasing days (k,) above 0, or None if the solver fails."""
        cdef const double[::1] at = np.ascontiguousarray(days, dtype=float)
        cdef double[::1] infected = np.empty(len(days))
        cdef Outbreak o = self.outbreak
        if not o.population > i0:
            return None
        if solution(o.population, beta, gamma, i0, len(at), &at[0], &infected[0]):
            return None
        return np.asarray(infected)


cdef double log_gamma(double x) noexcept nogil:
    """Return log Gamma(x) for x > 0, to some 1e-14, by Stirling's series at 8 and above.

    The C library's function writes to a variable that threads share.
    """
    cdef double product = 1, z, w
    while x < 8:
        product *= x
        x += 1
    z = 1 / x
    w = z * z
    return ((x - 0.5) * log(x) - x + 0.91893853320467274178 - log(product)
            + z * (1 / 12.0 - w * (1 / 360.0 - w * (1 / 1260.0 - w * (1 / 1680.0 - w * (
                1 / 1188.0 - w * 691 / 360360.0))))))


cdef inline void slope(double over_n, double beta, double gamma, double s, double u,
                       double *k) noexcept nogil:
    """Compute (s', u')."""
    k[0] = -beta * s * exp(u) * over_n
    k[1] = beta * s - gamma


cdef int solution(double population, double beta, double gamma, double i0, Py_ssize_t n,
                  const double *days, double *infected) noexcept nogil:
    """Compute I at the days (n,), at least LEAST_INFECTED; return 1 after too many steps."""
    cdef double over_n = 1 / population, t = 0, h, size, error, s, u, s_new, u_new
    cdef double e0, e1
    cdef double[7][2] k
    cdef Py_ssize_t day = 0, steps = 0
    cdef bint last                  # whether the step ends at the next day
    s, u = 1 - i0 * over_n, log(i0)
    slope(over_n, beta, gamma, s, u, k[0])
    if not (isfinite(k[0][0]) and isfinite(k[0][1])):
        return 1
    h = 0.1 / (1 + fabs(k[0][0]) + fabs(k[0][1]))
    while day < n:
        if steps == MOST_STEPS:
            return 1
        steps += 1
        last = t + h >= days[day]
        size = days[day] - t if last else h
        slope(over_n, beta, gamma, s + size * (1 / 5.0) * k[0][0],
              u + size * (1 / 5.0) * k[0][1], k[1])
        slope(over_n, beta, gamma, s + size * (3 / 40.0 * k[0][0] + 9 / 40.0 * k[1][0]),
              u + size * (3 / 40.0 * k[0][1] + 9 / 40.0 * k[1][1]), k[2])
        slope(over_n, beta, gamma,
              s + size * (44 / 45.0 * k[0][0] - 56 / 15.0 * k[1][0] + 32 / 9.0 * k[2][0]),
              u + size * (44 / 45.0 * k[0][1] - 56 / 15.0 * k[1][1] + 32 / 9.0 * k[2][1]), k[3])
        slope(over_n, beta, gamma,
              s + size * (19372 / 6561.0 * k[0][0] - 25360 / 2187.0 * k[1][0]
                          + 64448 / 6561.0 * k[2][0] - 212 / 729.0 * k[3][0]),
              u + size * (19372 / 6561.0 * k[0][1] - 25360 / 2187.0 * k[1][1]
                          + 64448 / 6561.0 * k[2][1] - 212 / 729.0 * k[3][1]), k[4])
        slope(over_n, beta, gamma,
              s + size * (9017 / 3168.0 * k[0][0] - 355 / 33.0 * k[1][0] + 46732 / 5247.0 * k[2][0]
                          + 49 / 176.0 * k[3][0] - 5103 / 18656.0 * k[4][0]),
              u + size * (9017 / 3168.0 * k[0][1] - 355 / 33.0 * k[1][1] + 46732 / 5247.0 * k[2][1]
                          + 49 / 176.0 * k[3][1] - 5103 / 18656.0 * k[4][1]), k[5])
        s_new = s + size * (35 / 384.0 * k[0][0] + 500 / 1113.0 * k[2][0] + 125 / 192.0 * k[3][0]
                            - 2187 / 6784.0 * k[4][0] + 11 / 84.0 * k[5][0])
        u_new = u + size * (35 / 384.0 * k[0][1] + 500 / 1113.0 * k[2][1] + 125 / 192.0 * k[3][1]
                            - 2187 / 6784.0 * k[4][1] + 11 / 84.0 * k[5][1])
        slope(over_n, beta, gamma, s_new, u_new, k[6])
        e0 = (71 / 57600.0 * k[0][0] - 71 / 16695.0 * k[2][0] + 71 / 1920.0 * k[3][0]
              - 17253 / 339200.0 * k[4][0] + 22 / 525.0 * k[5][0] - 1 / 40.0 * k[6][0])
        e1 = (71 / 57600.0 * k[0][1] - 71 / 16695.0 * k[2][1] + 71 / 1920.0 * k[3][1]
              - 17253 / 339200.0 * k[4][1] + 22 / 525.0 * k[5][1] - 1 / 40.0 * k[6][1])
        e0 = size * e0 / (ATOL + RTOL * max(fabs(s), fabs(s_new)))
        e1 = size * e1 / (ATOL + RTOL * max(fabs(u), fabs(u_new)))
        error = sqrt(0.5 * (e0 * e0 + e1 * e1))
        if not isfinite(error):     # the step is far too long
            h = 0.1 * size
            continue
        if error <= 1:
            t += size
            s, u = s_new, u_new
            k[0] = k[6]             # the slope at the new state
            if last:
                infected[day] = max(exp(u), LEAST_INFECTED)
                t = days[day]
                day += 1
                continue            # a short step is no guide to the length of the next
        h = size * min(5.0, max(0.2, 0.9 * pow(max(error, 1e-10), -0.2)))
    return 0


cdef int outbreak_logp(size_t d, const double *x, double *logp, void *data) noexcept nogil:
    cdef const Outbreak *o = <const Outbreak *>data
    cdef double beta = exp(x[0]), gamma = exp(x[1]), i0 = exp(x[2]), phi = exp(x[3])
    cdef double value = o.constant, mean, y, z
    cdef double[MOST_DAYS] infected
    cdef Py_ssize_t k
    logp[0] = -INFINITY
    if not (i0 < o.population and i0 > 0 and 0 < phi < MOST_PHI and isfinite(beta + gamma)):
        return 0
    if solution(o.population, beta, gamma, i0, o.n, o.days, infected):
        return 0                # infections within minutes, which no data support
    for k in range(o.n):
        mean, y = infected[k], o.counts[k]
        value += (log_gamma(y + phi) + y * log(mean / (mean + phi)) + phi * log(phi / (mean + phi)))
    value -= o.n * log_gamma(phi)
    for k in range(4):
        z = x[k] - o.prior_mean[k]
        value -= 0.5 * z * z
    logp[0] = value
    return 0
