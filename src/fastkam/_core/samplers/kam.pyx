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

The n-th adaptation has the n-th gamma and p_t; the steps before it have the n-th gamma too. It adds
x, the state before the decision, to the history, which is thinned when full (`remember`). If x has
entered and z is full, one uniform variate decides on a new z, given by the first n places of a
shuffle (Fisher and Yates) of a stored permutation: n more variates. A median length is computed
from some 500 pairs (`learn_length`) when z is renewed or, while z grows, when it has 1, 2, 4, 8,
... or all of its points.

In the paper gamma and the length of the kernel are the same in all directions. Here, unless the
metric is "identity", they are relative to a running covariance: all of this is in the coordinates
u = A^-1 x, and y = x + A (y_u - x_u), which is

    R(x) = gamma^2 Sigma + nu^2 Sigma M H M' Sigma,    Sigma = A A',   |x - z| = |A^-1 (x - z)|

in terms of x. The n-th adaptation updates the mean and covariance of the chain as in adaptive
Metropolis (am.pyx), with the gain (1 + 5 d + n)^(-0.8). Sigma becomes that covariance whenever z is
renewed or, while z grows, when the length is learned; in between, and after adaptation, it is
fixed.

If there are few points for the dimensions, the same distribution is drawn as
y = x + gamma e + nu M H f, with f ~ N(0, I_n) drawn after e: see local_normal.pyx for both forms.
"""
from libc.math cimport INFINITY, exp, log, pow, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.kam.kernel_gradient cimport KernelFunction
from fastkam._core.linalg.dense cimport copy
from fastkam._core.linalg.moments cimport learn_moments
from fastkam._core.engine.rng cimport integer, random_standard_uniform
from fastkam._core.samplers.local_normal cimport LocalNormal
from fastkam._core.engine.step cimport keep_every_second
from fastkam._core.engine.sums cimport Power, term

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField
from fastkam._core.samplers.local_normal import LocalNormal as Base
from fastkam._core.engine.state import zeros

import numpy as np


cdef extern from "select.h" nogil:
    double fk_select(Py_ssize_t n, Py_ssize_t k, double *a)

cdef enum:
    N_DISTANCES = 500           # approximate number of pairs for a median
    WEIGHT = 5                  # of the first covariance, in units of d

cdef double SAME = 1e-20        # squared distance of equal points in a metric


cdef class KernelAdaptiveMetropolis(LocalNormal):
    FIELDS = Base.FIELDS | {
        "nu": Field("step size of the last step", stat="step_size", least=0),
        "age": Field("adaptations made: the index of gamma and p", dtype="i8", shared=True,
                     least=0),
        "history": Field("states of the chain, thinned by two when full", ("capacity", "d"),
                         shared=True, finite=True),
        "order": Field("a permutation of the history's rows", ("capacity",), "i8", shared=True,
                       least=0, below="capacity"),
        "kept": Field("rows of the history in use", dtype="i8", shared=True,
                      least=0, most="capacity"),
        "stride": Field("every stride-th state enters the history", dtype="i8", shared=True,
                        least=1),
        "passed": Field("states since the last one that entered", dtype="i8", shared=True,
                        least=0, below="stride"),
        "n_learned": Field("states used for mu and L", dtype="i8", shared=True, least=0),
        "mu": Field("learned mean; empty if the metric is I", ("moments",), shared=True,
                    learned=True),
        "L": Field("lower-triangular factor of the learned covariance; empty if the metric is I",
                   ("factor",), shared=True, learned=True),
    }

    def __init__(self, Py_ssize_t d, KernelFunction function, *, length, Py_ssize_t subsample,
                 double step_size, double target_acceptance, noise, renewal, capacity, bint few,
                 mean):
        """Begin with the metric I and the mean `mean` (d,); with None the metric is always I."""
        self.allocate(d=d, blocks=max(1, (subsample + 7) // 8), lanes=8, capacity=capacity,
                      subsample=subsample, moments=d if mean is not None else 0,
                      factor=d * d if mean is not None else 0)
        super().__init__(d, function, subsample, few)
        self.median = length is None
        self.length = 1.0 if length is None else length
        self.subsample = subsample
        self.log_nu = log(step_size)
        self.target_acceptance = target_acceptance
        self.noise = Power(noise.c, noise.k, noise.offset, noise.cap)
        self.renewal = Power(renewal.c, renewal.k, renewal.offset, renewal.cap)
        self.distances = zeros(2 * max(N_DISTANCES, subsample))
        if self.metric:
            np.asarray(self.mu)[:] = mean
            np.asarray(self.L)[:] = np.eye(d).ravel()
        self.clear_history()

    def check_relations(self, state, step):
        order = state["order"][:state["kept"]]
        if not np.array_equal(np.sort(order), np.arange(len(order))):
            raise BadField("order", f"must begin with a permutation of 0 to {len(order) - 1}, the "
                                    "rows kept")
        if state["stride"] > 1 and state["kept"] < self.subsample:
            raise BadField("kept", f"must be at least {self.subsample} where states are thinned, "
                                   f"not {state['kept']}")
        self.check_points(state)

    def check_points(self, state):
        if state["n"] > state["kept"]:
            raise BadField("n", f"must be at most {state['kept']} (kept), not {state['n']}")

    # ---- propose ----

    cdef int propose(self, Chain *c) except -1 nogil:
        if c.accepted and self.at_y.seen:
            self.at_x, self.at_y = self.at_y, self.at_x
        self.at_y.seen = False
        self.nu = exp(self.log_nu)
        return self.move(c)

    cdef int move(self, Chain *c) noexcept nogil:
        self.draw(c, c.x, 1.0)
        return 0

    cdef double gamma(self) noexcept nogil:
        return term(&self.noise, self.age + 1)

    # ---- consider ----

    cdef int consider(self, Chain *c) except -1 nogil:
        c.log_q = self.reverse_log_q(c) if c.logp_y > -INFINITY else 0.0
        return DECIDE

    # ---- adapt ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.learn_subsample(c)
        self.log_nu += gain * (c.alpha - self.target_acceptance)
        self.age += 1
        self.at_x.factored = self.at_y.factored = False
        return 0

    cdef int learn_subsample(self, Chain *c) except -1 nogil:
        """Add x to the history, and renew z from it."""
        cdef int64_t i, j
        self.learn_metric(c)
        if not self.remember(c.x):
            return 0
        if self.stride == 1 and self.kept <= self.subsample:
            self.set_point(self.kept - 1, c.x)
            self.n = self.kept
            # the median changes little between these
            if self.kept & (self.kept - 1) == 0 or self.kept == self.subsample:
                self.take_metric()
                if self.metric:
                    for i in range(self.n):
                        self.set_point(i, &self.history[i, 0])
                self.learn_length()
        elif random_standard_uniform(c.rng) < term(&self.renewal, self.age + 1):
            self.take_metric()
            for i in range(self.subsample):     # the first places of a shuffle
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

    cdef void learn_metric(self, Chain *c) noexcept nogil:
        """Add the state after the decision to the mean and covariance of the chain."""
        if not self.metric:
            return
        self.n_learned += 1
        learn_moments(c.d, pow(1.0 + WEIGHT * c.d + self.n_learned, -0.8),
                      c.y if c.accepted else c.x, &self.mu[0], &self.L[0], &self.v[0])

    cdef void take_metric(self) noexcept nogil:
        """Set Sigma to the learned covariance; z must be set again."""
        if self.metric:
            copy(self.d * self.d, &self.L[0], &self.A[0])

    cdef bint remember(self, const double *x) noexcept nogil:
        """Add x to the history; return True if it has entered.

        When the history is full, every second state is removed, and from then on half as many
        enter, so that the states are equally spaced over the whole chain.
        """
        cdef int64_t i
        self.passed += 1
        if self.passed < self.stride:
            return False
        self.passed = 0
        if self.kept == self.history.shape[0]:
            self.kept = keep_every_second(self.kept, self.d, 1, &self.history[0, 0])
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

    cdef void take(self, Kernel other) noexcept nogil:
        cdef int64_t renewals = (<KernelAdaptiveMetropolis>other).renewals
        self.copy_shared_numbers(other)
        self.at_x.factored = self.at_y.factored = False
        if self.renewals != renewals:
            self.renewals = renewals
            self.forget_points()

    cdef void displaced(self) noexcept nogil:
        self.forget()

    cdef int learn_length(self) except -1 nogil:
        """Set length = (median of |z_i - z_j| over some 500 pairs, i != j, z_i != z_j) / sqrt 2.

        j - i runs over max(1, 500 // n) shifts, at most n // 2, spread evenly over half the circle
        of indices; for an even number of distances it is the upper median. In a learned metric,
        where distances are of order 1, points closer than 1e-10 differ by rounding only.
        """
        cdef int64_t i, j, k, shift, pairs = 0
        cdef int64_t shifts = min(max(1, N_DISTANCES // max(self.n, 1)), self.n // 2)
        cdef double r2, D, least = SAME if self.metric else 0.0
        if not self.median:
            return 0
        for shift in range(shifts):
            for i in range(self.n):
                j = (i + 1 + (2 * shift + 1) * self.n // (4 * shifts)) % self.n
                r2 = 0
                for k in range(self.d):
                    D = self.z[i // 8, k, i % 8] - self.z[j // 8, k, j % 8]
                    r2 += D * D
                if r2 > least:
                    self.distances[pairs] = sqrt(r2)
                    pairs += 1
        if pairs > 0:
            self.length = fk_select(pairs, pairs // 2, &self.distances[0]) / sqrt(2.0)
        return 0
