"""Robust adaptive Metropolis.

    y     = x + S u,                  u ~ N(0, I)
    S S' <- S (I + g (alpha - alpha*) u u' / |u|^2) S'

and S is halved whenever ten proposals in a row have had alpha < 0.01 in the first half of a finite
warm-up: otherwise thousands of steps would pass if the first S is a hundred times too wide.

The update changes the shape with a decaying gain and one direction at a time, which takes very long
if the target is much longer in one direction than in another. With `windows`, a finite warm-up also
has windows of states, each 1.5 times as long as the one before. At the end of a window with n
states of covariance C,

    Sigma = (n C + w (d / 2.38^2) S S') / (n + w),        w = 5 d
    S S' <- (tr(Sigma^-1 S S') / d) Sigma

The step keeps its mean square length in the metric of Sigma, and so roughly its acceptance rate;
S S' determines the directions in which the window has too few states. Within a window the update
also has a scale, with the gain h_m = 2 m^(-2/3) at the m-th state of the window:

    S S' <- exp(h_m (alpha - alpha*)) S (I + g (alpha - alpha*) u u' / |u|^2) S'

The first window has 3 (d + 2) steps, the last ends at nine tenths of warm-up; then h_m decays until
the end of warm-up. After that S is fixed, so that the draws are those of an ordinary Markov chain.
Schedules without an end have no windows: h_m, which begins again with each window, would not
diminish.

Vihola, M. (2012). Robust adaptive Metropolis algorithm with coerced acceptance rate. Statistics
and Computing 22, 997-1008. Eq. (1), whose gain is min(1, d n^(-2/3)).
"""
from libc.math cimport exp, pow, sqrt
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memset

from fastkam._core.engine.kernel cimport Chain, Kernel, Lanes
from fastkam._core.linalg.dense cimport add_Lz, cholesky, copy, solve_L, square
from fastkam._core.linalg.moments cimport add_to_moments, update
from fastkam._core.engine.rng cimport jittered
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField
from fastkam._core.engine.state import zeros
from fastkam._core.samplers.optimal import OPTIMAL

import numpy as np


# the first steps: S is halved after ROW proposals in succession with alpha < REFUSED
cdef enum:
    ROW = 10
    EARLY = 2                   # 1 / part of warm-up in which it is
cdef double REFUSED = 0.01

# windows, whose effect `python -m bench.units` measures
cdef enum:
    FIRST = 3                   # length of the first, in units of d + 2
    WEIGHT = 5                  # of S S', in units of d states of a window
cdef double GROWTH = 1.5        # of their length, as of those of `nuts`
cdef double LAST = 0.9          # part of warm-up after which there is none
cdef double STEP = OPTIMAL      # 2.38


cdef class RobustAdaptiveMetropolis(Kernel):
    LANES = True
    FIELDS = {
        "S": Field("lower-triangular factor of the proposal covariance", ("d", "d"), shared=True,
                   learned=True),
        "u": Field("the last standard normal draw", ("d",)),
        "refused": Field("proposals in a row with alpha < 0.01", dtype="i8", shared=True,
                         least=0, below=ROW),
        "n": Field("states of the current window", dtype="i8", shared=True, least=0),
        "begin": Field("the step before which the window began", dtype="i8", shared=True, least=0),
        "end": Field("the step after which the window ends; 0 before the first", dtype="i8",
                     shared=True, least=0, most=INT64_MAX),
        "mean": Field("mean of the states of the window", ("d",), shared=True),
        "scatter": Field("sum of their squared deviations from it, lower triangle", ("d", "d"),
                         shared=True),
    }
    cdef public double[::1, :] S
    cdef public double[::1] u
    cdef public int64_t refused
    cdef public int64_t n
    cdef public int64_t begin
    cdef public int64_t end
    cdef public double[::1] mean
    cdef public double[::1, :] scatter
    cdef bint windows
    cdef double[::1] v
    cdef double[::1, :] L
    cdef double target_acceptance
    cdef double jitter

    def __init__(self, factor, double target_acceptance, *, bint windows, double jitter):
        self.allocate(d=len(factor))
        np.asarray(self.S)[...] = factor
        self.windows = windows
        self.v = zeros(self.d)
        self.L = zeros((self.d, self.d), order="F")
        self.target_acceptance, self.jitter = target_acceptance, jitter
        self.normals_first = jitter == 0

    def check_relations(self, state, step):
        if state["begin"] > step.t:
            raise BadField("begin", f"must be at most {step.t}, the steps made, not "
                                    f"{state['begin']}")

    cdef int propose(self, Chain *c) except -1 nogil:
        normal_step(c, jittered(c.rng, self.jitter), &self.S[0, 0], &self.u[0])
        return 0

    cdef int consider_lanes(self, Lanes *g) except -1 nogil:
        return 0        # all decide

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef double *v = &self.v[0]
        cdef double change = c.alpha - self.target_acceptance, growth = 1.0
        cdef bint finite = self.end_of_adaptation != INT64_MAX
        if finite and self.windows:
            growth = exp(change * 2.0 * pow(self.n + 1.0, -2.0 / 3.0))
        memset(v, 0, c.d * sizeof(double))
        add_Lz(c.d, 1.0, &self.S[0, 0], &self.u[0], v)
        # g <= 1 keeps the update above (1 - alpha*) S S', which is positive definite; if it fails
        # because S is too small for doubles, S is unchanged
        update(c.d, &self.S[0, 0], growth, growth * gain * change / square(c.d, &self.u[0]), v)
        if finite and EARLY * self.t < self.end_of_adaptation:
            self.refused = self.refused + 1 if c.alpha < REFUSED else 0
            if self.refused == ROW:
                self.refused = 0
                self.multiply(0.5)
        if finite and self.windows:
            self.see(c.y if c.accepted else c.x)
        return 0

    cdef void multiply(self, double a) noexcept nogil:
        """S <- a S"""
        cdef Py_ssize_t i, j
        for j in range(self.d):
            for i in range(j, self.d):
                self.S[i, j] *= a

    # ---- windows ----

    cdef void see(self, const double *x) noexcept nogil:
        """Add a state to the window, and end the window if it is complete."""
        if self.end == 0:
            self.begin = self.t
            self.plan_window(FIRST * (self.d + 2))
        self.n += 1
        add_to_moments(self.d, self.n, x, &self.mean[0], &self.scatter[0, 0], &self.v[0])
        if self.t >= self.end:
            self.learn_shape()
            self.begin_window()

    cdef void begin_window(self) noexcept nogil:
        cdef int64_t length = self.t - self.begin
        self.n, self.begin = 0, self.t
        self.mean[:] = 0
        self.scatter[:, :] = 0
        self.plan_window(<int64_t>(GROWTH * length))

    cdef void plan_window(self, int64_t length) noexcept nogil:
        """Begin a window of this length, or one up to the last end if none would fit after it."""
        cdef int64_t last = <int64_t>(LAST * self.end_of_adaptation)
        if self.t >= last - 1:
            self.end = INT64_MAX
        elif self.t + <int64_t>((1 + GROWTH) * length) > last:
            self.end = last
        else:
            self.end = self.t + length

    cdef void learn_shape(self) noexcept nogil:
        """S <- sqrt(tr(Sigma^-1 S S') / d) L,   Sigma = L L'"""
        cdef Py_ssize_t d = self.d, i, j, k
        cdef double w = WEIGHT * d * d / (STEP * STEP), trace = 0
        cdef double log_det
        for j in range(d):
            for i in range(j, d):
                self.L[i, j] = self.scatter[i, j]
        for k in range(d):
            for j in range(k, d):
                for i in range(j, d):
                    self.L[i, j] += w * self.S[i, k] * self.S[j, k]
        if cholesky(d, &self.L[0, 0], NULL, &log_det):
            return
        for j in range(d):
            memset(&self.v[0], 0, d * sizeof(double))
            copy(d - j, &self.S[j, j], &self.v[j])
            solve_L(d, &self.L[0, 0], &self.v[0])
            trace += square(d, &self.v[0])
        copy(d * d, &self.L[0, 0], &self.S[0, 0])
        self.multiply(sqrt(trace / d))
