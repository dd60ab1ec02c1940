"""Delayed acceptance: a surrogate s screens the proposals of samplers with one evaluation a step.

    y ~ q(. | x), as the sampler proposes it
    alpha_1 = min(1, s(y) q(x|y) / (s(x) q(y|x)))           otherwise rejected without pi(y)
    alpha_2 = min(1, pi(y) s(x) / (pi(x) s(y)))             accepted after both stages

The sampler learns from alpha_2 if y reaches the second stage, and from 0 otherwise. The mean of
this is alpha_1 alpha_2, the acceptance probability, which is unknown if s rejects y.
pi may be an estimate, whose noise is drawn for the second stage only.

With m > 1 steps the proposal is the end of a chain of the sampler on s,

    x = z_0, z_1, ..., z_m = y,            each z_k accepted with s(z') q(z|z') / (s(z) q(z'|z))
    alpha_2 as above                       pi(y) is not evaluated if y = x

which is reversible with respect to s, so that its proposal density contributes s(x) / s(y) to the
ratio. The sampler learns from the last of these steps, as in a chain on s.

Christen, J. A. and Fox, C. (2005). Markov chain Monte Carlo using an approximation. Journal of
Computational and Graphical Statistics 14, 795-810. With several steps: Liu, J. S. (2001). Monte
Carlo Strategies in Scientific Computing, 9.4.3; Lykkegaard, M. B., Dodwell, T. J., Fox, C.,
Mingas, G. and Scheichl, R. (2023). Multilevel delayed acceptance MCMC. SIAM/ASA Journal on
Uncertainty Quantification 11, 1-30.
"""
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, DECIDED, FATAL, Chain, Kernel
from fastkam._core.engine.rng cimport exponential
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.step cimport accepts, log_target_ratio, probability
from fastkam._core.density.target cimport NO_SURROGATE
from fastkam.target cimport FK_NEEDS_GIL, fk_target

from fastkam._core.engine.fields import Field

import numpy as np


cdef class DelayedAcceptance(Kernel):
    """A kernel that applies the two stages to the proposals of another kernel."""
    SEVERAL = True
    FIELDS = {
        "log_s_x": Field("log s(x); NaN if not known"),
        "log_s_y": Field("log s(y)"),
        "passed": Field("whether the surrogate let the proposal pass", dtype="i8", stat="passed",
                        least=0, most=1),
        "n_nan": Field("number of proposals at which s was NaN", dtype="i8", least=0),
    }
    cdef public double log_s_x
    cdef public double log_s_y
    cdef public int64_t passed
    cdef public int64_t n_nan
    cdef readonly Kernel inner
    cdef double[::1] slope
    cdef Py_ssize_t n_stats

    def __init__(self, Kernel inner):
        if inner.gradient or inner.several or inner.width != 1:
            raise TypeError("inner must be a kernel with one evaluation a step and without "
                            f"gradients, which {type(inner).__name__} is not")
        self.inner = inner
        self.allocate(d=inner.d)
        self.slope = np.zeros(self.d)
        self.n_stats = len(inner.stat_names())
        self.log_s_x = NAN

    def parts(self):
        return {"inner": self.inner}

    def stat_names(self):
        return [*self.inner.stat_names(), *self.statistics()]

    def learned(self):
        return self.inner.learned()

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
        if not self.passed:         # if the surrogate fails, and the run continues, it is repeated
            return self.first_stage(c)
        log_ratio = log_target_ratio(c) - (self.log_s_y - self.log_s_x)
        return self.decide(c, log_ratio)

    cdef int first_stage(self, Chain *c) except -1 nogil:
        cdef double log_ratio
        if self.know_here(c):
            return FATAL
        if self.ask(c, c.y, &self.log_s_y):
            return FATAL
        c.logp_y = self.log_s_y     # for the inner kernel
        self.inner.t = self.t
        self.consider_inner(c)
        log_ratio = self.log_s_y - self.log_s_x + c.log_q
        if not accepts(c.E, &log_ratio):
            c.logp_y = -INFINITY
            return self.decide(c, -INFINITY)
        self.passed, c.wanted[0] = True, 1
        c.E = exponential(c.rng)
        return AGAIN

    cdef int know_here(self, Chain *c) except -1 nogil:
        """Evaluate log s(x) unless it is known; return 0, or 1 if it is not finite."""
        cdef int64_t n_nan = self.n_nan
        if c.surrogate == NULL:
            with gil:
                raise ValueError("the target of DelayedAcceptance must have a surrogate")
        if isnan(self.log_s_x) and (self.ask(c, c.x, &self.log_s_x) or self.log_s_x == -INFINITY):
            self.log_s_x, self.n_nan = NAN, n_nan
            c.code = c.code or NO_SURROGATE
            return 1
        return 0

    cdef int consider_inner(self, Chain *c) except -1 nogil:
        """Complete the proposal density of the sampler."""
        if self.inner.consider(c) != DECIDE:
            with gil:
                raise TypeError("surrogate= needs a sampler with one evaluation per step; "
                                f"{type(self.inner).__name__} makes several")
        return 0

    cdef int decide(self, Chain *c, double log_ratio) noexcept nogil:
        c.accepted = accepts(c.E, &log_ratio)
        c.alpha = probability(log_ratio)
        if c.accepted:
            self.log_s_x = self.log_s_y
        return DECIDED

    cdef int ask(self, Chain *c, const double *x, double *log_s) noexcept nogil:
        """Write log s(x), or -inf; return 0, or the fatal code, which is also in c.code."""
        cdef int rc
        c.code = 0
        if c.surrogate.flags & FK_NEEDS_GIL:
            with gil:
                rc = self.evaluate(c.surrogate, x, log_s)
        else:
            rc = self.evaluate(c.surrogate, x, log_s)
        self.n_nan += rc == 0 and isnan(log_s[0])
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


cdef class SubchainAcceptance(DelayedAcceptance):
    """Several steps on the surrogate, then the second stage."""
    FIELDS = DelayedAcceptance.FIELDS | {
        "z": Field("start of the last step on the surrogate", ("d",)),
        "last_y": Field("proposal of that step", ("d",)),
        "last_log_s_x": Field("log s at its start"),
        "last_log_s_y": Field("log s at its proposal"),
        "last_log_q": Field("log of the ratio of its proposal densities"),
        "last_alpha": Field("its acceptance probability", least=0, most=1),
        "last_accepted": Field("whether it was accepted", dtype="i8", least=0, most=1),
        "done": Field("number of steps on the surrogate that are complete", dtype="i8", least=0),
        "failed": Field("whether it has failed at the proposal of the next one", dtype="i8",
                        least=0, most=1),
        "moved": Field("whether one of them was accepted", dtype="i8", least=0, most=1),
    }
    cdef public double last_log_s_x
    cdef public double last_log_s_y
    cdef public double last_log_q
    cdef public double last_alpha
    cdef public int64_t last_accepted
    cdef public int64_t done
    cdef public int64_t failed
    cdef public int64_t moved
    cdef public double[::1] z
    cdef public double[::1] last_y
    cdef int64_t steps

    def __init__(self, Kernel inner, int64_t steps):
        DelayedAcceptance.__init__(self, inner)
        self.steps = steps

    def check(self, state, step):
        super().check(state, step._replace(moves=self.steps))

    cdef int propose(self, Chain *c) except -1 nogil:
        self.passed, self.failed, c.log_q = False, False, 0
        copy(c.d, c.x, c.y)
        c.wanted[0] = 0
        return 0

    cdef int first_stage(self, Chain *c) except -1 nogil:
        cdef Chain sub = self.on_surrogate(c)
        cdef double log_ratio
        if self.know_here(c):
            return FATAL
        if not self.failed:
            copy(c.d, c.x, sub.x)
            sub.logp_x, sub.accepted = self.log_s_x, False
            self.done = self.moved = 0
            self.inner.displaced()      # the last chain may have ended elsewhere
        while self.done < self.steps:
            if not self.failed:
                if sub.accepted:
                    copy(c.d, sub.y, sub.x)
                    sub.logp_x = sub.logp_y
                self.inner.t, sub.log_q = self.t, 0
                self.inner.propose(&sub)
            self.failed = self.ask(c, sub.y, &sub.logp_y) != 0
            if self.failed:
                self.keep(&sub)
                c.wanted[0] = 0         # what the sampler wants is evaluated by the surrogate
                return FATAL
            self.consider_inner(&sub)
            sub.E = exponential(c.rng)
            log_ratio = sub.logp_y - sub.logp_x + sub.log_q
            sub.accepted = accepts(sub.E, &log_ratio)
            sub.alpha = probability(log_ratio)
            self.moved = self.moved or sub.accepted
            self.done += 1
        self.keep(&sub)
        if not self.moved:
            c.logp_y = -INFINITY
            return self.decide(c, -INFINITY)
        copy(c.d, sub.y if sub.accepted else sub.x, c.y)
        self.log_s_y = sub.logp_y if sub.accepted else sub.logp_x
        self.passed, c.wanted[0] = True, 1
        c.E = exponential(c.rng)
        return AGAIN

    cdef void keep(self, const Chain *sub) noexcept nogil:
        """Store the chain on the surrogate."""
        self.last_log_s_x, self.last_log_s_y, self.last_log_q = sub.logp_x, sub.logp_y, sub.log_q
        self.last_alpha, self.last_accepted = sub.alpha, sub.accepted

    cdef Chain on_surrogate(self, Chain *c) noexcept nogil:
        """Restore the chain on the surrogate after its last step."""
        cdef Chain sub = c[0]
        sub.x, sub.y, sub.logps = &self.z[0], &self.last_y[0], &self.last_log_s_y
        sub.logp_x, sub.logp_y, sub.log_q = self.last_log_s_x, self.last_log_s_y, self.last_log_q
        sub.alpha, sub.accepted = self.last_alpha, self.last_accepted
        return sub

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef Chain sub = self.on_surrogate(c)
        self.inner.t = self.t
        return self.inner.adapt(&sub, gain)
