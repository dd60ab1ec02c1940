"""Chains whose points are evaluated together, and the points where they begin.

What the chains of a group have in small arrays stands in arrays of them all here, so that one call
of the density sees the points of all.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport isfinite
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free

from fastkam._core.density.target cimport Target
from fastkam._core.engine.chain cimport ChainState
from fastkam._core.engine.chain_step cimport GOOD, freeze, judge, tally
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.kernel cimport AGAIN, HELD, SAME, Chain, Kernel
from fastkam._core.engine.rng cimport normals
from fastkam._core.engine.sums cimport Power
from fastkam._core.linalg.dense cimport copy

from fastkam._core.engine.fault import Fault
from fastkam._core.engine.state import zeros

import numpy as np

N_SEARCH = 100                              # points tried where x0 has no finite density
NO_STEPS = np.zeros(0, np.int64)


def check_fit(Kernel kernel, Target target):
    """Refuse a kernel that needs what the target does not have."""
    if kernel.gradient and not target.has_gradient:
        raise TypeError(f"{type(kernel).__name__} needs the gradient, and {target!r} has none")


cdef class Members:
    """K chains of one target and one schedule: see Group.

    Parameters
    ----------
    target, chains, schedule, share, snapshot_steps
        As of a Group.
    """

    def __cinit__(self, Target target, list chains, schedule, *, bint share=False,
                  const int64_t[:] snapshot_steps=NO_STEPS):
        cdef ChainState s
        cdef int i
        self.target = target
        self.chains = chains
        self.snapshot_steps = snapshot_steps
        self.K = len(chains)
        self.shares = share and self.K > 1
        c, k, offset, cap, self.schedule.start, stop, self.schedule.rarity = schedule
        self.schedule.gain = Power(c, k, offset, cap)
        self.schedule.stop = INT64_MAX if stop is None else stop
        self.width = chains[0].kernel.width
        self.noisy = target.is_estimate
        check_fit(chains[0].kernel, target)
        self.evaluation = Evaluation(target, self.K * self.width, chains[0].kernel.gradient)
        n, d = self.K * self.width, chains[0].kernel.d
        self.xs = zeros((self.K, d))
        self.grad_xs = zeros((self.K, d)) if chains[0].kernel.gradient else None
        self.wanteds, self.statuses = zeros(n, np.int8), zeros(n, np.int8)
        self.alone = self.K * self.width == 1 and not (target.batched or self.noisy)
        self.pointers = <void **>calloc(self.K, sizeof(void *))
        if self.pointers == NULL:
            raise MemoryError
        for i in range(self.K):
            s = chains[i]
            self.pointers[i] = <void *>s
            s.c.target = &target.c
            s.source = target
            s.c.surrogate = NULL if target.surrogate is None else &target.surrogate.c
            s.refresh = target.refresh
            if s.c.n_aux != target.n_aux:
                raise ValueError(f"the chain has room for {s.c.n_aux} numbers of noise, and "
                                 f"{target!r} takes {target.n_aux}")
            if self.K > 1:
                self.place_together(i)
            # proposals stand together, for the batch call
            mine = slice(i * self.width, (i + 1) * self.width)
            ours = np.asarray(self.evaluation.points)[mine].reshape(-1)
            ours[:] = s.y
            s.y = ours
            s.c.y = &self.evaluation.points[i * self.width, 0]
            if s.kernel.gradient:
                ours = np.asarray(self.evaluation.gradients)[mine].reshape(-1)
                ours[:] = s.grad_y
                s.grad_y = ours
                s.c.grad_y = &self.evaluation.gradients[i * self.width, 0]
            s.kernel.plan(self.schedule.stop)
            s.kernel.connect(&s.c)
            if self.shares:
                s.kernel.join(chains[0].kernel, self.K)
                s.turn = i

    cdef int place_together(self, Py_ssize_t i) except -1:
        """Move what chain i keeps in small arrays to arrays of all chains, which take fewer lines.
        """
        cdef ChainState s = self.chains[i]
        mine = slice(i * self.width, (i + 1) * self.width)
        x, wanted, status = self.xs[i], self.wanteds[mine], self.statuses[mine]
        x[:], wanted[:], status[:] = s.x, s.wanted, s.status
        s.x, s.wanted, s.status = x, wanted, status
        s.c.x, s.c.wanted = &s.x[0], &s.wanted[0]
        if s.kernel.gradient:
            grad = self.grad_xs[i]
            grad[:] = s.grad_x
            s.grad_x = grad
            s.c.grad_x = &s.grad_x[0]
        return 0

    def __dealloc__(self):
        free(self.pointers)

    def start(self):
        """Evaluate the starting points; where one has no finite density, search around it.

        The k-th try adds N(0, s^2) to each coordinate, s growing from 0.01 (1 + |x0|) to 10 times
        (1 + |x0|) by the last try. Raises Fault where none of 100 tries has a density. After any
        Fault the chains are as they were, so that the search can be made again, point by point.
        """
        cdef ChainState s
        x = np.array([s.x for s in self.chains])
        logps = [s.c.logp_x for s in self.chains]
        generators = {}
        try:
            self.search(x, generators)
        except BaseException:
            for k, s in enumerate(self.chains):
                np.asarray(s.x)[:] = x[k]
                s.c.logp_x = logps[k]
                if k in generators:
                    s.bit_generator.state = generators[k]
            raise
        for s in self.chains:
            freeze(s, &self.schedule)

    def search(self, origins, generators):
        """Search around the points (K, d); keep the states of generators that are used, {k: state}.
        """
        cdef ChainState s
        cdef int fault
        d = origins.shape[1]
        for attempt in range(N_SEARCH + 1):
            todo = False
            for k, s in enumerate(self.chains):
                if not isfinite(s.c.logp_x):
                    todo = True
                    if (attempt or self.noisy) and k not in generators:
                        generators[k] = s.bit_generator.state
                    if attempt:
                        normals(s.c.rng, s.c.d, s.c.y)
                        width = 0.01 * 1000 ** (attempt / N_SEARCH) * (1 + np.abs(origins[k]))
                        np.asarray(s.y)[:d] = origins[k] + width * np.asarray(s.y)[:d]
                    else:
                        np.asarray(s.y)[:d] = s.x
                    s.answer = AGAIN
                    if self.noisy:
                        normals(s.c.rng, s.c.n_aux, s.c.v)
                        s.c.noise[0] = SAME
                    np.asarray(s.wanted)[:] = [1] + [0] * (self.width - 1)
            if not todo:
                return
            PyErr_CheckSignals()    # a hundred evaluations may take long
            if self.target.needs_gil:
                fault = self.evaluate()
            else:
                with nogil:
                    fault = self.evaluate()
            if fault:
                raise self.error()
            for s in self.chains:
                if not isfinite(s.c.logp_x) and s.status[0] == GOOD:
                    s.c.logp_x = s.c.logps[0]
                    np.asarray(s.x)[:] = np.asarray(s.y)[:d]
                    copy(s.c.n_aux, s.c.v, s.c.u)
                    if s.kernel.gradient:
                        np.asarray(s.grad_x)[:] = np.asarray(s.grad_y)[:d]
        for k, s in enumerate(self.chains):
            if not isfinite(s.c.logp_x):
                raise Fault(k, origins[k], 0)

    # ---- the density at the points that chains wait for ----

    def error(self):
        """Return what has stopped the run."""
        x = np.asarray(self.evaluation.points)[self.failed * self.width + self.failed_row].copy()
        cdef int code = (<ChainState>self.pointers[self.failed]).c.code
        return Fault(self.failed, x, code, self.target.fault(code, x))

    cdef int evaluate(self) noexcept nogil:
        """Evaluate log pi at the points that chains wait for; 1 if the run must stop."""
        self.evaluation.at(self.gather())
        return self.judge_all()

    cdef int judge_all(self) noexcept nogil:
        """Judge the points just evaluated, and count them; 1 if the run must stop."""
        cdef int k, row, i
        for k in range(self.K):
            if (<ChainState>self.pointers[k]).answer != AGAIN:
                continue
            for row in range(self.width):
                if not (<ChainState>self.pointers[k]).c.wanted[row]:
                    continue
                i = k * self.width + row
                if judge(<ChainState>self.pointers[k], row, self.evaluation.codes[i],
                         self.evaluation.values[i]):
                    self.failed, self.failed_row = k, row
                    return 1
            if self.width > 1:
                (<ChainState>self.pointers[k]).c.logp_y = (<ChainState>self.pointers[k]).c.logps[0]
        for k in range(self.K):
            tally(<ChainState>self.pointers[k])
        return 0

    cdef int gather(self) noexcept nogil:
        """List the points to be evaluated, and their noise; return their number."""
        cdef const Chain *c
        cdef int k, row, i, m = 0
        for k in range(self.K):
            if (<ChainState>self.pointers[k]).answer != AGAIN:
                continue
            c = &(<ChainState>self.pointers[k]).c
            for row in range(self.width):
                if c.wanted[row]:
                    i = k * self.width + row
                    self.evaluation.waiting[m] = i
                    if self.noisy:
                        self.evaluation.noises[i] = (
                            c.u if c.noise[row] == HELD else c.v) + row * c.n_aux
                    m += 1
        return m
