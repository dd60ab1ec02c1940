"""Proposals of the walkers of a search (fastkam.search.population).

    a difference    y = x + g (a - b) + e,   a, b walkers of the other half; g = 2.38 / sqrt(2 d),
                    or 1 in one of ten
    a walk          y = x + s L z,           L L' the mean covariance within q's components
    an independent  y ~ q,                   q the mixture fitted to the last window
    a scout         y = x + r h z,           r log-uniform from 0.3 to 1000, h the scales; z normal,
                                             or along one coordinate

ter Braak, C. J. F. (2006). A Markov chain Monte Carlo version of the genetic algorithm Differential
Evolution. Statistics and Computing 16, 239-249: differences. Giordani, P. and Kohn, R. (2010).
Adaptive independent Metropolis-Hastings by fast estimation of mixtures of normals. Journal of
Computational and Graphical Statistics 19, 243-259: adaptive independent proposals.

The random numbers are those that methods of a numpy Generator draw for all walkers of a kind.
"""
from libc.math cimport exp, fma, log, sqrt
from libc.stdint cimport uint64_t

from fastkam._core.engine.numpy_random cimport (
    bitgen_t, random_bounded_uint64_fill, random_chisquare, random_standard_uniform, random_uniform)
from fastkam._core.engine.rng cimport bits_of, normals
from fastkam._core.numerics.mixture cimport (
    FK_DEGREES, FK_TAIL, FK_TAIL_SCALE, Mixture, nearest_component)

import numpy as np

cdef enum:
    OF_DIFFERENCE = 0   # kinds of proposals
    OF_MIXTURE = 1
    OF_WALK = 2
    OF_SCOUT = 3

INDEPENDENT, WALK, SCOUT = OF_MIXTURE, OF_WALK, OF_SCOUT
cdef double FARTHEST = 1000.0           # longest step of a scout, in units of the scales
cdef double LOG_SHORTEST = log(0.3)     # shortest one
cdef double LOG_RANGE = log(FARTHEST) - LOG_SHORTEST
cdef double ONE_COORDINATE = 0.5        # share of scouts that move along one coordinate
cdef double WHOLE = 0.1                 # share of differences with g = 1
cdef double VARIED = 0.05               # relative standard deviation of g
cdef double NOISE = 1e-3                # standard deviation of e, in units of the scales


cdef void uniforms(bitgen_t *rng, Py_ssize_t n, double *out) noexcept nogil:
    """Draw as Generator.random(n)."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = random_standard_uniform(rng)


cdef void integers(bitgen_t *rng, Py_ssize_t below, Py_ssize_t n, uint64_t *out) noexcept nogil:
    """Draw as Generator.integers(below, size=n)."""
    random_bounded_uint64_fill(rng, 0, below - 1, n, False, out)


cdef void add_shaped(Py_ssize_t d, double scale, const double *L, const double *z,
                     double *y) noexcept nogil:
    """y += scale L z, where L (d, d) is lower triangular, with the rounding of `product`."""
    cdef Py_ssize_t i, j
    cdef double s
    for i in range(d):
        s = 0
        for j in range(i + 1):
            s = fma(L[i * d + j], z[j], s)
        y[i] += scale * s


cdef class Walkers:
    """Proposals for up to n walkers in d dimensions.

    Parameters
    ----------
    generator : Generator
    scales : array (d,)
    n : int
    optimal : float
        The factor by which proposals are best scaled in one dimension.
    scouts : float
        Share of scouts.
    """
    cdef object generator                   # the owner of rng
    cdef bitgen_t *rng
    cdef const double[::1] scales
    cdef Py_ssize_t d
    cdef double optimal, share
    cdef double[::1] u, v, z                # random numbers
    cdef double[::1] w                      # space for a point
    cdef uint64_t[::1] a, b
    cdef Py_ssize_t[::1] rows               # walkers of a kind

    def __init__(self, generator, scales, Py_ssize_t n, double optimal, double scouts):
        self.generator, self.rng = generator, bits_of(generator.bit_generator)
        self.scales = np.array(scales, dtype=float)
        self.d = self.scales.shape[0]
        self.optimal, self.share = optimal, scouts
        self.u, self.v, self.z = np.empty(n), np.empty(n), np.empty(n * self.d)
        self.w = np.empty(self.d)
        self.a, self.b = np.empty(n, np.uint64), np.empty(n, np.uint64)
        self.rows = np.empty(n, np.intp)

    def alone(self, const double[:, ::1] x, const double[::1] lengths):
        """Return steps from x (n, d) of walkers that climb alone, and the kinds (n,)."""
        cdef Py_ssize_t i, j, n = x.shape[0], d = self.d, some = 0
        points, kinds = np.empty((n, d)), np.full(n, OF_WALK, np.intp)
        cdef double[:, ::1] y = points
        cdef Py_ssize_t[::1] kind = kinds
        if n > self.rows.shape[0] or x.shape[1] != d or lengths.shape[0] != n:
            raise ValueError("x (n, d) and lengths (n,) must fit each other and the walkers")
        with nogil:
            normals(self.rng, n * d, &self.z[0])
            uniforms(self.rng, n, &self.u[0])
            for i in range(n):
                if self.u[i] < self.share:
                    kind[i] = OF_SCOUT
                    self.rows[some] = i
                    some += 1
                    continue
                for j in range(d):
                    y[i, j] = x[i, j] + lengths[i] * self.scales[j] * self.z[i * d + j]
            self.scout(some, x, y)
        return points, kinds

    def propose(self, const double[:, ::1] x, const double[:, ::1] others,
                const double[::1] lengths, double independent, double walks, mixture):
        """Return proposals at x (n, d): points (n, d), log ratios of densities (n,), kinds (n,).

        Parameters
        ----------
        x, others : array (n, d)
            The walkers that move, and those whose differences are steps.
        lengths : array (n,)
            Factors of the steps of walks.
        independent, walks : float
            A uniform number below the former makes an independent proposal, else one below the
            latter a walk.
        mixture : fastkam.search.mixture.Mixture or None
        """
        cdef Py_ssize_t i, n = x.shape[0], d = self.d, some
        points, ratios, kinds = np.empty((n, d)), np.zeros(n), np.empty(n, np.intp)
        cdef double[:, ::1] y = points
        cdef double[::1] log_ratio = ratios
        cdef Py_ssize_t[::1] kind = kinds
        cdef Mixture q = None
        cdef const double[::1] cumulated = None
        cdef const double[:, ::1] means = None
        cdef const double[:, :, ::1] factors = None
        if (n > self.rows.shape[0] or not d == x.shape[1] == others.shape[1]
                or not n == others.shape[0] == lengths.shape[0]):
            raise ValueError("x, others (n, d), lengths (n,) must fit each other and the walkers")
        if mixture is not None:
            q, cumulated = mixture.packed, mixture.cumulated
            means = np.ascontiguousarray(mixture.means)
            factors = np.ascontiguousarray(mixture.factors)
        with nogil:
            uniforms(self.rng, n, &self.u[0])
            for i in range(n):
                kind[i] = (OF_SCOUT if self.u[i] >= 1 - self.share
                           else OF_MIXTURE if self.u[i] < independent
                           else OF_WALK if self.u[i] < walks else OF_DIFFERENCE)
            self.difference(x, others, y)
            some = self.of_kind(OF_MIXTURE, kind)
            if q is not None and some:
                self.independent(some, x, q, cumulated, means, factors, y, log_ratio)
            self.walk(self.of_kind(OF_WALK, kind), x, lengths, means, factors, y)
            self.scout(self.of_kind(OF_SCOUT, kind), x, y)
        return points, ratios, kinds

    cdef Py_ssize_t of_kind(self, Py_ssize_t wanted, const Py_ssize_t[::1] kind) noexcept nogil:
        """Write the walkers of a kind to `rows`; return their number."""
        cdef Py_ssize_t i, n = 0
        for i in range(kind.shape[0]):
            if kind[i] == wanted:
                self.rows[n] = i
                n += 1
        return n

    cdef void difference(self, const double[:, ::1] x, const double[:, ::1] others,
                         double[:, ::1] y) noexcept nogil:
        """Set y = x + g (a - b) + e for all walkers."""
        cdef Py_ssize_t i, j, n = x.shape[0], d = self.d, a, b
        cdef double g
        integers(self.rng, n, n, &self.a[0])
        integers(self.rng, n - 1, n, &self.b[0])
        uniforms(self.rng, n, &self.u[0])
        normals(self.rng, n, &self.v[0])
        normals(self.rng, n * d, &self.z[0])
        for i in range(n):
            a = <Py_ssize_t>self.a[i]
            b = (a + 1 + <Py_ssize_t>self.b[i]) % n
            g = 1 if self.u[i] < WHOLE else self.optimal / sqrt(2.0 * d)
            g *= 1 + VARIED * self.v[i]
            for j in range(d):
                y[i, j] = (x[i, j] + g * (others[a, j] - others[b, j])
                           + NOISE * self.scales[j] * self.z[i * d + j])

    cdef void independent(self, Py_ssize_t n, const double[:, ::1] x, Mixture q,
                          const double[::1] cumulated, const double[:, ::1] means,
                          const double[:, :, ::1] factors, double[:, ::1] y,
                          double[::1] log_ratio) noexcept nogil:
        """Set y to draws of q for the n walkers in `rows`, and log q(x) - log q(y)."""
        cdef Py_ssize_t i, j, k, row, d = self.d
        uniforms(self.rng, n, &self.u[0])
        for i in range(n):
            k = 0
            while k < cumulated.shape[0] - 1 and self.u[i] >= cumulated[k]:
                k += 1
            self.a[i] = k
        for i in range(n):
            self.v[i] = random_chisquare(self.rng, FK_DEGREES)
        uniforms(self.rng, n, &self.u[0])
        normals(self.rng, n * d, &self.z[0])
        for i in range(n):
            k, row = <Py_ssize_t>self.a[i], self.rows[i]
            for j in range(d):
                y[row, j] = means[k, j]
            add_shaped(d, sqrt(FK_DEGREES / self.v[i]) if k == 0
                       else FK_TAIL_SCALE if self.u[i] < FK_TAIL else 1,
                       &factors[k, 0, 0], &self.z[i * d], &y[row, 0])
            log_ratio[row] = q.log_density(&x[row, 0]) - q.log_density(&y[row, 0])

    cdef void walk(self, Py_ssize_t n, const double[:, ::1] x, const double[::1] lengths,
                   const double[:, ::1] means, const double[:, :, ::1] factors,
                   double[:, ::1] y) noexcept nogil:
        """Set y = x + s L z for the n walkers in `rows`; L is that of the nearest component."""
        cdef Py_ssize_t i, j, k, row, d = self.d
        cdef double square
        normals(self.rng, n * d, &self.z[0])
        for i in range(n):
            row = self.rows[i]
            for j in range(d):
                y[row, j] = x[row, j]
            if factors is None:
                for j in range(d):
                    y[row, j] += lengths[row] * (self.z[i * d + j] * self.scales[j])
                continue
            k = 1       # component 0 is the wide one
            if means.shape[0] > 2:
                k += nearest_component(d, means.shape[0] - 1, &x[row, 0], &means[1, 0],
                                       &factors[1, 0, 0], &self.w[0], &square)
            add_shaped(d, lengths[row], &factors[k, 0, 0], &self.z[i * d], &y[row, 0])

    cdef void scout(self, Py_ssize_t n, const double[:, ::1] x, double[:, ::1] y) noexcept nogil:
        """Set y to steps of many lengths from x for the n walkers in `rows`."""
        cdef Py_ssize_t i, j, row, d = self.d, some = 0
        cdef bint one
        for i in range(n):
            self.u[i] = exp(random_uniform(self.rng, LOG_SHORTEST, LOG_RANGE))
        normals(self.rng, n * d, &self.z[0])
        uniforms(self.rng, n, &self.v[0])
        for i in range(n):
            some += self.v[i] < ONE_COORDINATE
        if some:
            integers(self.rng, d, some, &self.a[0])
        some = 0
        for i in range(n):
            row, one = self.rows[i], self.v[i] < ONE_COORDINATE
            for j in range(d):
                y[row, j] = x[row, j]
                if not one or j == <Py_ssize_t>self.a[some]:
                    y[row, j] += self.u[i] * self.scales[j] * self.z[i * d + j]
            some += one
