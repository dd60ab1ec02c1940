"""The loop: a group of chains that are evaluated together, and where a run of them begins and ends.

A run may end at any evaluation, with which the next one begins (chain_step.pxd). Chains of the
group that have decided while another still waits keep their decision.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.limits cimport INT_MIN
from libc.math cimport isfinite
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free

from fastkam._core.density.target cimport Target
from fastkam._core.engine.chain cimport ChainState
from fastkam._core.engine.chain_step cimport (
    GOOD, advance_alone, begin, consider, finish, freeze, is_full, judge, publish, tally,
)
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.kernel cimport AGAIN, HELD, SAME, Chain, Kernel
from fastkam._core.engine.rng cimport normals
from fastkam._core.engine.sums cimport Power
from fastkam._core.linalg.dense cimport copy

from fastkam._core.engine.kernel import take_interrupt, uninterrupted

import numpy as np

N_SEARCH = 100                              # points tried where x0 has no finite density
INFINITE = INT_MIN                          # the code of a log density of +inf
NO_STEPS = np.zeros(0, np.int64)


class Fault(Exception):
    """A run that cannot go on: which chain of the group, at which point, with which code."""

    def __init__(self, chain, x, code, cause=None):
        self.chain, self.x, self.code, self.cause = chain, x, code, cause
        super().__init__(f"chain {chain}, code {code}, x = {x}")

    def __reduce__(self):
        return Fault, (self.chain, self.x, self.code, self.cause)


def check_fit(Kernel kernel, Target target):
    """Refuse a kernel that needs what the target does not have."""
    if kernel.gradient and not target.has_gradient:
        raise TypeError(f"{type(kernel).__name__} needs the gradient, and {target!r} has none")


cdef class Group:
    """K chains that step together: propose all, evaluate once, finish each.

    Parameters
    ----------
    target : Target
        Bound to this group.
    chains : list of ChainState
    schedule : tuple
        (c, k, offset, cap, start, stop, rarity); a stop of None means never.
    share : bool
        The chains learn as one, chain 0 first in every step: see `Kernel.join`. Their kernels have
        the same parameters, and the same state as far as it is shared.
    snapshot_steps : array of int64 (n,)
        After which steps each chain keeps a snapshot of what it has learnt, increasing.
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

    def run(self, int64_t n, int64_t most_evaluations=INT64_MAX, int threads=1):
        """Make up to n steps; return the number made. Raises Fault.

        Stops early if every chain's trace is full or its evaluations reach most_evaluations. With
        more than one thread, helpers share in the evaluation of the points of a step if a point
        takes long enough; they exist only during this call. A KeyboardInterrupt that an adaptation
        or a snapshot has deferred is raised at the end.
        """
        cdef int fault, k
        self.most_evaluations = most_evaluations
        self.evaluation.call_helpers(threads)
        try:
            if self.target.needs_gil:
                fault = self.advance(n)
            else:
                with nogil:
                    fault = self.advance(n)
        finally:            # compiled: no signal comes between a step and its count
            self.evaluation.dismiss_helpers()
            for k in range(self.K):
                publish(<ChainState>self.pointers[k])
            interrupted = take_interrupt()
        if fault:
            raise self.error()
        if interrupted:
            raise KeyboardInterrupt
        return self.done

    def error(self):
        x = np.asarray(self.evaluation.points)[self.failed * self.width + self.failed_row].copy()
        cdef int code = (<ChainState>self.pointers[self.failed]).c.code
        return Fault(self.failed, x, code, self.target.fault(code, x))

    cdef int advance(self, int64_t n) except -1 nogil:
        """Make up to n steps, in segments that end where snapshots are due."""
        cdef int64_t due, t
        cdef bint full = False
        self.done = 0
        self.take_snapshots()       # here too: a run may be resumed where one is due
        while self.done < n and not full:
            t = (<ChainState>self.pointers[0]).t
            due = self.next_snapshot(t)
            if self.advance_segment(min(n - self.done, due - t), &full):
                return 1
            self.take_snapshots()
        return 0

    cdef int64_t next_snapshot(self, int64_t t) noexcept nogil:
        """Return the first step after t at which a snapshot is due; INT64_MAX if there is none."""
        cdef Py_ssize_t i
        for i in range(self.snapshot_steps.shape[0]):
            if self.snapshot_steps[i] > t:
                return self.snapshot_steps[i]
        return INT64_MAX

    cdef int take_snapshots(self) except -1 nogil:
        """Keep what every chain has learnt, if a snapshot is due at this step."""
        cdef int64_t t = (<ChainState>self.pointers[0]).t
        cdef Py_ssize_t i
        for i in range(self.snapshot_steps.shape[0]):
            if self.snapshot_steps[i] == t:
                with gil:
                    uninterrupted(self.snapshot, i)
        return 0

    def snapshot(self, Py_ssize_t i):
        cdef ChainState s
        for s in self.chains:
            s.snapshot(i)

    cdef int advance_segment(self, int64_t n, bint *full) except -1 nogil:
        """Make up to n steps, fewer where no chain may make more (full); 1 if the run must stop."""
        cdef int64_t last = self.done + n
        cdef int k
        cdef bint faulty = False
        if self.alone:
            self.failed = self.failed_row = 0
            self.done += advance_alone(
                <ChainState>self.pointers[0], n, &self.schedule, self.most_evaluations,
                &self.evaluation.gradients[0, 0] if self.evaluation.gradient else NULL, &faulty)
            full[0] = self.done < last or is_full(<ChainState>self.pointers[0],
                                                  self.most_evaluations)
            return faulty
        while self.done < last:
            for k in range(self.K):
                begin(<ChainState>self.pointers[k], &self.schedule)
            if self.settle():
                return 1
            full[0] = True
            for k in range(self.K):
                if self.shares and k > 0:
                    self.hand_on(k - 1, k)
                finish(<ChainState>self.pointers[k], &self.schedule)
                full[0] = full[0] and is_full(<ChainState>self.pointers[k], self.most_evaluations)
            if self.shares:
                for k in range(self.K - 1):
                    self.hand_on(self.K - 1, k)
            for k in range(self.K):
                freeze(<ChainState>self.pointers[k], &self.schedule)
            self.done += 1
            if full[0]:
                break
        return 0

    cdef void hand_on(self, int k, int to) noexcept nogil:
        """Hand on what chain k, the last to learn, has learnt to chain `to`."""
        if (<ChainState>self.pointers[k]).c.adapting:
            (<ChainState>self.pointers[to]).kernel.take((<ChainState>self.pointers[k]).kernel)

    cdef int settle(self) except -1 nogil:
        """Evaluate until every chain can decide; 1 if the run must stop."""
        cdef int k, waiting = 1
        while waiting:
            if self.evaluate():
                return 1
            waiting = 0
            for k in range(self.K):
                if consider(<ChainState>self.pointers[k]):
                    self.failed, self.failed_row = k, 0
                    return 1
                waiting += (<ChainState>self.pointers[k]).answer == AGAIN
        return 0

    cdef int evaluate(self) noexcept nogil:
        """Evaluate log pi at the points that chains wait for; 1 if the run must stop."""
        cdef int k, row, i
        self.evaluation.at(self.gather())
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
