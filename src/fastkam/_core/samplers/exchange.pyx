"""Replica exchange: chains at several inverse temperatures that swap their states.

    rung r samples  pi_r = pi^beta_r q^(1 - beta_r),   1 = beta_0 > beta_1 > ... >= 0

A step begins with swaps (swaps.pyx); then each replica is moved by its own kernel (replicas.pyx).
The state of rung 0 is that of the chain. In warm-up, the reference q (reference.pyx) is fitted to
the states of all rungs and the ladder (ladder.pxd) is tuned, in rounds that end after 1/32, 1/16,
... 1/2 of it. Then the normalizing constant is estimated (evidence.pyx). If pi is estimated, swaps
exchange x and its noise; for 0 < beta < 1, x alone does not have the distribution pi_r.

Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible parallel
tempering. Journal of the Royal Statistical Society B 84, 321-350.
"""
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDED, FATAL, Chain, Kernel
from fastkam._core.samplers.evidence cimport Evidence
from fastkam._core.samplers.ladder cimport MOST_RUNGS, tune_ladder
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.samplers.replicas cimport Replicas
from fastkam._core.samplers.swaps cimport Swaps

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField

import numpy as np

cdef enum:
    ROUNDS = 5      # of tuning the ladder in warm-up, each twice as long as the one before


cdef class Exchange(Kernel):
    SEVERAL = True
    LARGEST = MOST_RUNGS
    FIELDS = {
        "ladder": Field("inverse temperatures", ("rungs",), learned=True, least=0, most=1),
        "begun": Field("whether the rungs have states", dtype="i8", least=0, most=1),
        "moved": Field("whether another kernel has moved the chain", dtype="i8", least=0, most=1),
        "frozen": Field("whether adaptation has ended", dtype="i8", least=0, most=1),
        "rounds": Field("rounds of tuning made", dtype="i8", least=0, most=ROUNDS),
    }

    def __init__(self, kernels, ladder, *, scheme, int64_t every, reference, double widening, fits,
                 tunes):
        self.rungs, self.tunes = len(kernels), tunes
        if not 1 <= self.rungs <= MOST_RUNGS:
            raise ValueError(f"replica exchange takes 1 to {MOST_RUNGS} kernels, not {self.rungs}")
        self.allocate(d=kernels[0].d, rungs=self.rungs)
        self.reference = Reference(self.d, reference, widening=widening, fits=fits)
        self.replicas = Replicas(kernels, self.reference)
        self.width, self.gradient = self.replicas.width, self.replicas.gradient
        self.swaps = Swaps(self.rungs, scheme=scheme, every=every)
        self.evidence, self.rejections = Evidence(self.rungs), np.zeros(self.rungs)
        np.asarray(self.ladder)[...] = ladder
        self.replicas.set_ladder(&self.ladder[0])

    def parts(self):
        return {"reference": self.reference, "swaps": self.swaps, "evidence": self.evidence} | {
            f"rung{r}": replica for r, replica in enumerate(self.replicas.members)}

    def stat_names(self):
        return self.replicas.members[0].kernel.stat_names()

    def check_relations(self, state, step):
        ladder = state["ladder"]
        if not (np.diff(ladder) <= 0).all():
            raise BadField("ladder", f"must decrease, not {ladder}")

    def restored(self):
        self.replicas.set_ladder(&self.ladder[0])

    cdef const double *state_at(self, int r) noexcept nogil:
        """Return the state (d,) of a rung."""
        return self.replicas.chain(r).x

    cdef void connect(self, Chain *c) noexcept:
        self.replicas.connect(c)

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        self.end_of_adaptation = end_of_adaptation
        self.replicas.plan(end_of_adaptation)

    # ---- a step: move, swap, propose; then every rung decides ----

    cdef int propose(self, Chain *c) except -1 nogil:
        if not self.begun:
            self.replicas.begin(c)
            self.begun = True
        else:
            self.replicas.move(c, self.moved)
            self.moved = False
            if self.frozen:
                self.evidence.add(self.replicas.pointers)
            if self.swaps.due(self.t):
                self.swaps.exchange(c.rng, self.t, self.replicas.pointers)
                self.replicas.lead(c)
        self.replicas.propose(c, self.t)
        c.keep = self.replicas.chain(0).keep
        return 0

    cdef void displaced(self) noexcept nogil:
        self.moved = True

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef const Chain *cold = self.replicas.chain(0)
        cdef int waiting = self.replicas.consider(c, self.t)
        if waiting == -FATAL:
            return FATAL
        c.logp_x = cold.parts.log_pi_x      # its kernel may have moved the noise
        if waiting:
            return AGAIN
        c.accepted, c.alpha, c.logp_y = cold.accepted, cold.alpha, cold.parts.log_pi_y
        return DECIDED

    # ---- adaptation ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.replicas.adapt(gain, self.t)
        if (self.reference.fits or self.tunes) and self.end_of_adaptation != INT64_MAX:
            if (self.rounds < ROUNDS
                    and (self.t + 1) << (ROUNDS - self.rounds) >= self.end_of_adaptation):
                self.end_round()
        return 0

    cdef void end_round(self) noexcept nogil:
        """Fit a new reference and tune the ladder."""
        self.rounds += 1
        self.replicas.fit_reference()
        if self.tunes:
            self.swaps.find_rejections(&self.rejections[0])
            tune_ladder(self.rungs, &self.rejections[0], &self.ladder[0])
            self.replicas.set_ladder(&self.ladder[0])
        self.forget()

    cdef void forget(self) noexcept nogil:
        """Reset all averages."""
        self.swaps.forget()
        self.evidence.forget()
        self.reference.forget()

    cdef int freeze(self, Chain *c) except -1 nogil:
        self.replicas.freeze(self.t)
        self.forget()
        self.frozen = True
        return 0

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        self.replicas.record(self.t, row)
