"""Delayed acceptance: any sampler of one evaluation a step, behind a surrogate s of the density.

    y ~ q(. | x), as the sampler proposes it
    alpha_1 = min(1, s(y) q(x|y) / (s(x) q(y|x)))           else rejected, pi(y) not asked for
    alpha_2 = min(1, pi(y) s(x) / (pi(x) s(y)))             accepted with both

The sampler learns from alpha_2 where y has come so far, and from 0 where it has not: the mean of
that is alpha_1 alpha_2, the probability of acceptance, which is not known where y is rejected by s.
pi may be an estimate, whose noise is drawn for the second stage only.

Christen, J. A. and Fox, C. (2005). Markov chain Monte Carlo using an approximation. Journal of
Computational and Graphical Statistics 14, 795-810.
"""
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, DECIDED, FATAL, Chain, Kernel
from fastkam._core.engine.rng cimport exponential
from fastkam._core.engine.step cimport accepts, log_target_ratio, probability
from fastkam._core.density.target cimport NO_SURROGATE
from fastkam.target cimport FK_NEEDS_GIL, fk_target

from fastkam._core.engine.fields import Field

import numpy as np


cdef class DelayedAcceptance(Kernel):
    """The two stages round a kernel."""
    SEVERAL = True
    FIELDS = {
        "log_s_x": Field("log s(x); NaN where it is not known"),
        "log_s_y": Field("log s(y)"),
        "passed": Field("whether the surrogate let the proposal pass", dtype="i8", stat="passed",
                        least=0, most=1),
    }

    def __init__(self, Kernel inner):
        self.inner = inner
        self.allocate(d=inner.d)
        self.slope = np.zeros(self.d)
        self.n_stats = len(inner.stat_names())
        self.log_s_x = NAN

    def parts(self):
        return {"inner": self.inner}

    def stat_names(self):
        return [*self.inner.stat_names(), *self.statistics()]

    def learnt(self):
        return self.inner.learnt()

    cdef void connect(self, Chain *c) noexcept:
        self.inner.connect(c)

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        self.inner.plan(end_of_adaptation)

    cdef int propose(self, Chain *c) except -1 nogil:
        self.passed, c.log_q = False, 0
        self.inner.t = self.t
        self.inner.propose(c)
        c.wanted[0] = 0
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef double log_ratio
        if not self.passed:
            return self.first_stage(c)
        log_ratio = log_target_ratio(c) - (self.log_s_y - self.log_s_x)
        return self.decide(c, log_ratio)

    cdef int first_stage(self, Chain *c) except -1 nogil:
        cdef double log_ratio
        if c.surrogate == NULL:
            with gil:
                raise ValueError("the target of DelayedAcceptance must have a surrogate")
        if isnan(self.log_s_x) and (self.ask(c, c.x, &self.log_s_x) or self.log_s_x == -INFINITY):
            self.log_s_x = NAN
            c.code = c.code or NO_SURROGATE
            return FATAL
        if self.ask(c, c.y, &self.log_s_y):
            return FATAL
        c.logp_y = self.log_s_y     # for the inner kernel
        self.inner.t = self.t
        if self.inner.consider(c) != DECIDE:
            with gil:
                raise TypeError(f"{type(self.inner).__name__} makes several evaluations a step, "
                                "which a surrogate cannot stand before")
        log_ratio = self.log_s_y - self.log_s_x + c.log_q
        if not accepts(c.E, &log_ratio):
            c.logp_y = -INFINITY
            return self.decide(c, -INFINITY)
        self.passed, c.wanted[0] = True, 1
        c.E = exponential(c.rng)
        return AGAIN

    cdef int decide(self, Chain *c, double log_ratio) noexcept nogil:
        c.accepted = accepts(c.E, &log_ratio)
        c.alpha = probability(log_ratio)
        if c.accepted:
            self.log_s_x = self.log_s_y
        return DECIDED

    cdef int ask(self, Chain *c, const double *x, double *log_s) noexcept nogil:
        """log s(x), -inf where it has none; 0, or the fatal code, which c.code has too."""
        cdef int rc
        c.code = 0
        if c.surrogate.flags & FK_NEEDS_GIL:
            with gil:
                rc = self.evaluate(c.surrogate, x, log_s)
        else:
            rc = self.evaluate(c.surrogate, x, log_s)
        if rc > 0 or isnan(log_s[0]):
            log_s[0] = -INFINITY
        if rc < 0:
            c.code = NO_SURROGATE + max(rc, NO_SURROGATE + 1)
        elif log_s[0] == INFINITY:
            c.code = NO_SURROGATE
        return c.code

    cdef int evaluate(self, const fk_target *s, const double *x, double *log_s) noexcept nogil:
        if s.logp != NULL:
            return s.logp(s.dim, x, log_s, s.data)
        if s.logp_grad != NULL:
            return s.logp_grad(s.dim, x, &self.slope[0], log_s, s.data)
        return s.batch(1, s.dim, x, NULL, log_s, s.data)

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.inner.t = self.t
        return self.inner.adapt(c, gain)

    cdef int freeze(self, Chain *c) except -1 nogil:
        self.inner.t = self.t
        return self.inner.freeze(c)

    cdef void displaced(self) noexcept nogil:
        self.log_s_x = NAN
        self.inner.displaced()

    cdef void take(self, Kernel other) noexcept nogil:
        self.inner.take((<DelayedAcceptance>other).inner)

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        self.inner.t = self.t
        self.inner.record(c, row)
        self.record_numbers(row + self.n_stats)
