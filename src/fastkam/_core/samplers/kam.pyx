"""Kernel adaptive Metropolis.

    R(x) = gamma^2 I + nu^2 M H M',     M = 2 [grad_x k(x, z_1), ..., grad_x k(x, z_n)],
    y    = x + L e,                     e ~ N(0, I),   L L' = R(x),   H = I - 1 1' / n
    accept with  pi(y) N(x; y, R(y)) / pi(x) N(y; x, R(x)),  both R from the same z and nu
    log nu <- log nu + g (alpha - alpha*)
    z      <- n states drawn from the history without replacement, with probability p_t

Sejdinovic, D., Strathmann, H., Lomeli Garcia, M., Andrieu, C. and Gretton, A. (2014). Kernel
adaptive Metropolis-Hastings. Proceedings of Machine Learning Research 32, 1665-1673. Proposition 2
and Algorithm 1; there is no 1/n in R, so the natural size of nu depends on n. Until the history
holds n states, z is all of it.

The n-th adaptation has the n-th gamma and p_t; the steps before it have the n-th gamma too. It puts
x, the state before the decision, into the history; when that is full, see `remember`. Where x has
entered and z is full, one uniform variate decides on a new z, which is the first n places of a
shuffle (Fisher and Yates) of a permutation that is kept: n more variates. A median length is that
of some 500 pairs (`learn_length`), taken when z is renewed or, while z grows, when it has 1, 2, 4,
8, ... or all of its points.

The kernel pass at x gives Q and s (kernel_pass.h); what was y's is x's after an acceptance, so that
there is one pass a step, and a new nu costs one small factorisation.

With few points for the dimensions (`few`) the same law comes from n x n matrices (low_rank.h):

    y = x + gamma e + nu M H f,         e ~ N(0, I_d), then f ~ N(0, I_n)
    B = I_n + (nu / gamma)^2 H M'M H = C C',          log det R = 2 d log gamma + log det B
    v'R^-1 v = (|v|^2 - (nu / gamma)^2 |C^-1 H M'v|^2) / gamma^2

The gamma are the same in both directions and leave the ratio, and so does |v|^2. M'v comes from
distances that are there: (z_i - x)'(y - x) = (|z_i - x|^2 + |y - x|^2 - |z_i - y|^2) / 2.
"""
from libc.math cimport INFINITY, exp, pow, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from fastkam._core.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.kernel_gradient cimport (
    KernelFunction, kernel_pass, low_rank, pass_work, proposal_factor,
)
from fastkam._core.linalg cimport add_Lz, cholesky, copy, log_det_L, solve_L, square
from fastkam._core.rng cimport integer, normals, random_standard_uniform

from fastkam._core.kernel import zeros

import numpy as np

cdef extern from "select.h" nogil:
    double fk_select(Py_ssize_t n, Py_ssize_t k, double *a)

cdef enum:
    N_DISTANCES = 500           # pairs behind a median, about


cdef double decay(const Decay *p, int64_t n) noexcept nogil:
    """The n-th term, n = 1, 2, ... of a Power."""
    cdef double value = p.c
    if p.k != 0:
        value *= pow(p.offset + n, -p.k)
    return min(p.cap, value)


cdef class KernelAdaptiveMetropolis(Kernel):
    FIELDS = {
        "z": (("blocks", "d", "lanes"), "subsample of the history, in blocks of 8 points"),
        "n": ((), "points of the subsample", "i8"),
        "length": ((), "length of the kernel"),
        "log_nu": ((), "log step size"),
        "age": ((), "adaptations made: the index of gamma and p", "i8"),
        "history": (("capacity", "d"), "states of the chain, thinned by two when full"),
        "order": (("capacity",), "a permutation of the history's rows", "i8"),
        "kept": ((), "rows of the history in use", "i8"),
        "stride": ((), "one state in so many enters the history", "i8"),
        "passed": ((), "states since the last that entered", "i8"),
        "e": (("d",), "the last standard normal draw"),
    }
    LEARNT = ("log_nu", "length")
    SHARED = ("z", "n", "length", "log_nu", "age", "history", "order", "kept", "stride", "passed")
    STATS = {"log_step_size": "log nu, after the step"}

    def __init__(self, Py_ssize_t d, KernelFunction function, *, length, Py_ssize_t subsample,
                 double step_size, double target_acceptance, noise, renewal, capacity, bint few):
        cdef Py_ssize_t i, blocks = max(1, (subsample + 7) // 8)
        cdef Py_ssize_t m = subsample if few else d, padded = 8 * blocks
        self.allocate(d=d, blocks=blocks, lanes=8, capacity=capacity)
        self.function = function
        self.median = length is None
        self.length = 1.0 if length is None else length
        self.subsample = subsample
        self.log_nu = np.log(step_size)
        self.target_acceptance = target_acceptance
        self.noise = Decay(noise.c, noise.k, noise.offset, noise.cap)
        self.renewal = Decay(renewal.c, renewal.k, renewal.offset, renewal.cap)
        self.considers = True
        self.few = few
        self.work = zeros(max(d, padded) if few else pass_work(d))
        self.f, self.u = zeros(padded), zeros(padded)
        self.T = zeros((subsample if few else 0, padded))
        self.distances = zeros(2 * max(N_DISTANCES, subsample))
        self.buffers = zeros((2, 2 * m * m + d + 2 * padded + 8))
        for i, p in enumerate("xy"):
            set_pass(&self.at_x if p == "x" else &self.at_y, m, d, padded, &self.buffers[i, 0])
        self.clear_history()

    def restore(self, state):
        super().restore(state)
        self.forget_points()

    # ---- propose ----

    cdef int propose(self, Chain *c) except -1 nogil:
        if c.accepted and self.at_y.seen:
            self.at_x, self.at_y = self.at_y, self.at_x
        self.at_y.seen = False
        return self.move(c)

    cdef int move(self, Chain *c) noexcept nogil:
        self.draw(c, c.x, 1.0)
        return 0

    cdef void draw(self, Chain *c, const double *centre, double scale) noexcept nogil:
        """y ~ N(x, scale^2 R) with R at `centre`, whose pass is at_x"""
        cdef Py_ssize_t i
        cdef double gamma = scale * self.gamma(), nu = scale * exp(self.log_nu), mean = 0
        normals(c.rng, c.d, &self.e[0])
        copy(c.d, c.x, c.y)
        if not self.few:
            self.factor(centre, &self.at_x)
            add_Lz(c.d, scale, self.at_x.L, &self.e[0], c.y)
            return
        normals(c.rng, self.n, &self.f[0])
        for i in range(c.d):
            c.y[i] += gamma * self.e[i]
        if self.n > 0:
            self.see(centre, &self.at_x)
            for i in range(self.n):
                mean += self.f[i] / self.n
            for i in range((self.n + 7) // 8 * 8):      # w is 0 in the padding
                self.u[i] = nu * self.at_x.w[i] * (self.f[i] - mean)
            low_rank.spread(self.n, c.d, &self.z[0, 0, 0], centre, &self.u[0], c.y)

    cdef double gamma(self) noexcept nogil:
        return decay(&self.noise, self.age + 1)

    cdef void see(self, const double *point, Pass *p) noexcept nogil:
        """The kernel pass at a point, where it has not been made."""
        if p.seen:
            return
        p.seen, p.factored = True, False
        if self.n == 0:
            return
        self.function.k.length = self.length
        if not self.few:
            kernel_pass(&self.function.k, self.n, self.d, &self.z[0, 0, 0], point, &self.work[0],
                        p.Q, p.s)
            return
        self.measure()
        low_rank.distances(self.n, self.d, &self.z[0, 0, 0], point, p.r)
        low_rank.gram(&self.function.k, self.n, self.T.shape[1], &self.T[0, 0], p.r,
                      &self.work[0], p.w, p.Q)

    cdef int factor(self, const double *point, Pass *p) noexcept nogil:
        """Bring a pass up to date; 1 where R overflows."""
        cdef double gamma = self.gamma(), nu = exp(self.log_nu)
        self.see(point, p)
        if p.factored:
            return 0
        if self.few:
            low_rank.shift(self.n, (nu / gamma) ** 2, p.Q, p.L)
            if cholesky(self.n, p.L, NULL):
                return 1
        elif proposal_factor(self.d, self.n, gamma, nu, p.Q, p.s, p.L):
            return 1
        p.log_det = log_det_L(self.n if self.few else self.d, p.L)
        p.factored = True
        return 0

    cdef void measure(self) noexcept nogil:
        """T_ij = |z_i - z_j|^2 of points that have changed, with the same bits as all anew"""
        cdef int64_t i, j
        for i in range(self.measured, self.n):
            for j in range(self.d):
                self.work[j] = self.z[i // 8, j, i % 8]
            low_rank.distances(self.n, self.d, &self.z[0, 0, 0], &self.work[0], &self.T[i, 0])
            for j in range(i):
                self.T[j, i] = self.T[i, j]
        self.measured = self.n

    # ---- consider ----

    cdef int consider(self, Chain *c) except -1 nogil:
        c.log_q = self.reverse_log_q(c) if c.logp_y > -INFINITY else 0.0
        return DECIDE

    cdef double reverse_log_q(self, Chain *c) noexcept nogil:
        """log N(x; y, R(y)) - log N(y; x, R(x))"""
        cdef Py_ssize_t i
        cdef double a, v2
        cdef double *v = &self.work[0]
        if self.factor(c.x, &self.at_x) or self.factor(c.y, &self.at_y):
            return -INFINITY
        for i in range(c.d):
            v[i] = c.x[i] - c.y[i]
        if self.few:
            a, v2 = exp(self.log_nu) / self.gamma() ** 2, square(c.d, v)
            a *= a * (self.along(&self.at_y, &self.at_x, v2)
                      - self.along(&self.at_x, &self.at_y, v2))
        else:
            solve_L(c.d, self.at_y.L, v)
            a = square(c.d, &self.e[0]) - square(c.d, v)
        return self.at_x.log_det - self.at_y.log_det + 0.5 * a

    cdef double along(self, const Pass *p, const Pass *q, double v2) noexcept nogil:
        """|C^-1 H M'v|^2 at the point of p, v from there to that of q, |v|^2 = v2"""
        cdef int64_t i
        cdef double mean = 0
        cdef double *b = &self.work[0]
        for i in range(self.n):
            b[i] = 0.5 * p.w[i] * (p.r[i] + v2 - q.r[i])
            mean += b[i] / self.n
        for i in range(self.n):
            b[i] -= mean
        solve_L(self.n, p.L, b)
        return square(self.n, b)

    def log_q(self, double[::1] x, double[::1] y):
        """log q(x|y) - log q(y|x) with the state as it is, for tests."""
        cdef Py_ssize_t i
        cdef Chain c
        c.d, c.x, c.y = self.d, &x[0], &y[0]
        self.forget()
        if not (self.few or self.factor(c.x, &self.at_x)):
            for i in range(self.d):
                self.e[i] = y[i] - x[i]
            solve_L(self.d, self.at_x.L, &self.e[0])
        log_q = self.reverse_log_q(&c)
        self.forget()
        return log_q

    # ---- adapt ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.learn_subsample(c)
        self.log_nu += gain * (c.alpha - self.target_acceptance)
        self.age += 1
        self.at_x.factored = self.at_y.factored = False
        return 0

    cdef int learn_subsample(self, Chain *c) except -1 nogil:
        """Put x into the history, and renew z from it."""
        cdef int64_t i, j
        if not self.remember(c.x):
            return 0
        if self.stride == 1 and self.kept <= self.subsample:
            self.set_point(self.kept - 1, c.x)
            self.n = self.kept
            # the median moves little between these
            if self.kept & (self.kept - 1) == 0 or self.kept == self.subsample:
                self.learn_length()
        elif random_standard_uniform(c.rng) < decay(&self.renewal, self.age + 1):
            for i in range(self.subsample):     # Fisher and Yates, as far as it is needed
                j = i + integer(c.rng, self.kept - i)
                self.order[i], self.order[j] = self.order[j], self.order[i]
                self.set_point(i, &self.history[self.order[i], 0])
            self.n = self.subsample
            self.learn_length()
        else:
            return 0
        self.renewals += 1
        self.forget()
        return 0

    cdef bint remember(self, const double *x) noexcept nogil:
        """Put x into the history; True where it has entered.

        When the history is full, every second state leaves it, and from then on half as many
        enter: what stays is spread evenly over the whole chain.
        """
        cdef int64_t i
        self.passed += 1
        if self.passed < self.stride:
            return False
        self.passed = 0
        if self.kept == self.history.shape[0]:
            self.kept = 0
            for i in range(1, self.history.shape[0], 2):
                if i != self.kept:
                    memcpy(&self.history[self.kept, 0], &self.history[i, 0],
                           self.d * sizeof(double))
                self.kept += 1
            for i in range(self.kept):
                self.order[i] = i
            self.stride *= 2
            self.passed = self.stride // 2
            return False
        memcpy(&self.history[self.kept, 0], x, self.d * sizeof(double))
        self.order[self.kept] = self.kept
        self.kept += 1
        return True

    cdef void clear_history(self) noexcept nogil:
        self.kept = self.passed = self.n = 0
        self.stride = 1
        self.forget()

    cdef void set_point(self, int64_t i, const double *x) noexcept nogil:
        """z_i = x"""
        cdef Py_ssize_t j
        for j in range(self.d):
            self.z[i // 8, j, i % 8] = x[j]
        self.measured = min(self.measured, i)

    cdef void take(self, Kernel other) noexcept nogil:
        cdef int64_t renewals = (<KernelAdaptiveMetropolis>other).renewals
        self.n = (<KernelAdaptiveMetropolis>other).n
        self.length = (<KernelAdaptiveMetropolis>other).length
        self.log_nu = (<KernelAdaptiveMetropolis>other).log_nu
        self.age = (<KernelAdaptiveMetropolis>other).age
        self.kept = (<KernelAdaptiveMetropolis>other).kept
        self.stride = (<KernelAdaptiveMetropolis>other).stride
        self.passed = (<KernelAdaptiveMetropolis>other).passed
        self.at_x.factored = self.at_y.factored = False
        if self.renewals != renewals:
            self.renewals = renewals
            self.forget_points()

    cdef void displaced(self) noexcept nogil:
        self.forget()

    cdef void forget(self) noexcept nogil:
        """x or z has changed: both passes are void."""
        self.at_x.seen = self.at_y.seen = False

    cdef void forget_points(self) noexcept nogil:
        """z has been replaced, not by `set_point`."""
        self.measured = 0
        self.forget()

    cdef int learn_length(self) except -1 nogil:
        """length = (median of |z_i - z_j| over some 500 pairs with i != j, z_i != z_j) / sqrt 2

        j - i runs over max(1, 500 // n) shifts, at most n // 2, spread evenly over half the circle
        of indices; of an even number of distances it is the upper median.
        """
        cdef int64_t i, j, k, shift, pairs = 0
        cdef int64_t shifts = min(max(1, N_DISTANCES // max(self.n, 1)), self.n // 2)
        cdef double r2, D
        if not self.median:
            return 0
        for shift in range(shifts):
            for i in range(self.n):
                j = (i + 1 + (2 * shift + 1) * self.n // (4 * shifts)) % self.n
                r2 = 0
                for k in range(self.d):
                    D = self.z[i // 8, k, i % 8] - self.z[j // 8, k, j % 8]
                    r2 += D * D
                if r2 > 0:
                    self.distances[pairs] = sqrt(r2)
                    pairs += 1
        if pairs > 0:
            self.length = fk_select(pairs, pairs // 2, &self.distances[0]) / sqrt(2.0)
        return 0

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        row[0] = self.log_nu


cdef void set_pass(
        Pass *p, Py_ssize_t m, Py_ssize_t d, Py_ssize_t padded, double *buffer) noexcept nogil:
    """Q and L are (m, m)."""
    p.seen = p.factored = False
    p.L, p.Q = buffer, buffer + m * m
    p.s = p.Q + m * m + 8               # Q may spill, see low_rank.h
    p.r, p.w = p.s + d, p.s + d + padded
    p.log_det = 0
