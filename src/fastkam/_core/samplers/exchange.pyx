"""Replica exchange: chains at several inverse temperatures that swap their states.

    rung r samples  pi_r = pi^beta_r q^(1 - beta_r),   1 = beta_0 > beta_1 > ... >= 0

A step moves each replica by its own kernel (replica.pyx), and begins with swaps (swaps.pyx). The
state of rung 0 is the chain's. While it adapts, the reference q (reference.pyx) is fitted to the
states of all rungs, and the ladder (ladder.pxd) tuned, in rounds, each as long as all before it:
they end after 1/32, 1/16, ... 1/2 of warm-up. Afterwards the normalizing constant is estimated
(evidence.pyx).

Where pi is estimated, all this holds of (x, u), u the noise, and a swap exchanges both. The x of a
rung alone then has another distribution than pi_r, except at beta = 1, which is the one asked for,
and at 0.

Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible parallel
tempering. Journal of the Royal Statistical Society B 84, 321-350.
"""
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free

from fastkam._core.engine.kernel cimport AGAIN, DECIDED, FATAL, Chain, Kernel
from fastkam._core.linalg.dense cimport copy
from fastkam._core.samplers.evidence cimport Evidence
from fastkam._core.samplers.ladder cimport MOST_RUNGS, tune_ladder
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.samplers.replica cimport Replica
from fastkam._core.samplers.swaps cimport Swaps

from fastkam._core.engine.fields import Field

import numpy as np

cdef enum:
    ROUNDS = 5      # of tuning


cdef class Exchange(Kernel):
    SEVERAL = True
    LARGEST = MOST_RUNGS
    FIELDS = {
        "ladder": Field("inverse temperatures", ("rungs",), learnt=True),
        "begun": Field("whether the rungs have states", dtype="i8"),
        "moved": Field("whether another kernel has moved the chain since", dtype="i8"),
        "frozen": Field("whether adaptation has ended", dtype="i8"),
        "rounds": Field("rounds of tuning made", dtype="i8"),
    }

    def __cinit__(self, *args, **options):
        self.pointers = NULL

    def __dealloc__(self):
        free(self.pointers)

    def __init__(self, kernels, ladder, *, scheme, int64_t every, reference, double widening, fits,
                 tunes):
        cdef int r
        self.rungs, self.tunes = len(kernels), tunes
        if not 1 <= self.rungs <= MOST_RUNGS:
            raise ValueError(f"replica exchange takes 1 to {MOST_RUNGS} kernels, not {self.rungs}")
        first = np.cumsum([0] + [kernel.width for kernel in kernels])
        self.allocate(d=kernels[0].d, rungs=self.rungs)
        self.width = first[self.rungs]
        self.gradient = any(kernel.gradient for kernel in kernels)
        self.reference = Reference(self.d, reference, widening=widening, fits=fits)
        self.replicas = [Replica(kernel, self.reference, row)
                         for kernel, row in zip(kernels, first, strict=False)]
        self.swaps = Swaps(self.rungs, scheme=scheme, every=every)
        self.evidence = Evidence(self.rungs)
        self.rejections = np.zeros(self.rungs)
        self.pointers = <void **>calloc(self.rungs, sizeof(void *))
        if self.pointers == NULL:
            raise MemoryError
        for r in range(self.rungs):
            self.pointers[r] = <void *>self.replicas[r]
        np.asarray(self.ladder)[...] = ladder
        self.set_ladder()

    @property
    def kernels(self):
        return [replica.kernel for replica in self.replicas]

    def parts(self):
        return {"reference": self.reference, "swaps": self.swaps, "evidence": self.evidence} | {
            f"rung{r}": replica for r, replica in enumerate(self.replicas)}

    def stat_names(self):
        return self.kernels[0].stat_names()

    def restore(self, state):
        super().restore(state)
        self.set_ladder()

    cdef const double *state_at(self, int r) noexcept nogil:
        """Return the state (d,) of a rung."""
        return (<Replica>self.pointers[r]).c.x

    cdef void set_ladder(self) noexcept nogil:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).beta = self.ladder[r]

    cdef void connect(self, Chain *c) noexcept:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).connect(c, self.gradient)

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        cdef int r
        self.end_of_adaptation = end_of_adaptation
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).kernel.plan(end_of_adaptation)

    # ---- a step: move, swap, propose; then every rung decides ----

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef int r
        if not self.begun:
            self.begin(c)
        else:
            self.move(c)
            if self.frozen:
                self.evidence.add(self.pointers)
            if self.swaps.due(self.t):
                self.exchange(c)
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).propose(c, self.t)
        c.keep = (<Replica>self.pointers[0]).c.keep
        return 0

    cdef void begin(self, Chain *c) noexcept nogil:
        """All rungs begin where the chain does."""
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).begin(c)
        self.begun = True

    cdef void move(self, Chain *c) noexcept nogil:
        """Take the decisions of the last step; the chain itself has been moved."""
        cdef int r
        (<Replica>self.pointers[0]).follow(c, self.moved)
        if self.moved:
            (<Replica>self.pointers[0]).kernel.displaced()
            self.moved = False
        for r in range(1, self.rungs):
            (<Replica>self.pointers[r]).move()

    cdef void displaced(self) noexcept nogil:
        self.moved = True

    cdef void exchange(self, Chain *c) noexcept nogil:
        """Swap states; the chain is where rung 0 is."""
        cdef const Chain *cold = &(<Replica>self.pointers[0]).c
        self.swaps.exchange(c.rng, self.t, self.pointers)
        copy(c.d, cold.x, c.x)
        c.logp_x = cold.parts.log_pi_x
        if c.grad_x != NULL:
            copy(c.d, cold.parts.grad_pi_x, c.grad_x)

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef const Chain *cold = &(<Replica>self.pointers[0]).c
        cdef int r, answer, waiting = 0
        for r in range(self.rungs):
            if (<Replica>self.pointers[r]).waits:
                answer = (<Replica>self.pointers[r]).consider(c, self.t)
                if answer == FATAL:
                    return FATAL
                waiting += answer == AGAIN
        c.logp_x = cold.parts.log_pi_x      # its kernel may have moved the noise
        if waiting:
            return AGAIN
        c.accepted, c.alpha, c.logp_y = cold.accepted, cold.alpha, cold.parts.log_pi_y
        return DECIDED

    # ---- adaptation ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).adapt(gain, self.t)
        if self.reference.fits:
            for r in range(self.rungs):
                if not (<Replica>self.pointers[r]).is_reference():
                    self.reference.learn((<Replica>self.pointers[r]).c.x)
        if (self.reference.fits or self.tunes) and self.end_of_adaptation != INT64_MAX:
            if (self.rounds < ROUNDS
                    and (self.t + 1) << (ROUNDS - self.rounds) >= self.end_of_adaptation):
                self.end_round()
        return 0

    cdef void end_round(self) noexcept nogil:
        """A new reference, a new ladder."""
        cdef int r
        self.rounds += 1
        if self.reference.fit():
            for r in range(self.rungs):
                (<Replica>self.pointers[r]).refer()
        if self.tunes:
            for r in range(self.rungs - 1):
                self.rejections[r] = self.swaps.rejection(r)
            tune_ladder(self.rungs, &self.rejections[0], &self.ladder[0])
            self.set_ladder()
        self.forget()

    cdef void forget(self) noexcept nogil:
        """Begin all averages again."""
        self.swaps.forget()
        self.evidence.forget()
        self.reference.forget()

    cdef int freeze(self, Chain *c) except -1 nogil:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).kernel.t = self.t
            (<Replica>self.pointers[r]).kernel.freeze(&(<Replica>self.pointers[r]).c)
        self.forget()
        self.frozen = True
        return 0

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        (<Replica>self.pointers[0]).kernel.t = self.t
        (<Replica>self.pointers[0]).kernel.record(&(<Replica>self.pointers[0]).c, row)
