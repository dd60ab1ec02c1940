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
    is_fatal, tally_point,
)
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.fetch cimport fetch_decision, fetch_step
from fastkam._core.engine.kernel cimport AGAIN, FATAL, HELD, SAME, Chain, Kernel
from fastkam._core.engine.lockstep cimport Lockstep
from fastkam._core.engine.rng cimport normals
from fastkam._core.engine.sums cimport Power
from fastkam._core.linalg.dense cimport copy

from fastkam._core.engine.kernel import take_interrupt, uninterrupted
from fastkam._core.engine.state import zeros

import numpy as np

N_SEARCH = 100                              # points tried where x0 has no finite density
INFINITE = INT_MIN                          # the code of a log density of +inf
NO_STEPS = np.zeros(0, np.int64)


class Fault(Exception):
    """A run that cannot go on: which chain of the group, at which point, with which code."""

    def __init__(self, chain, x, code, cause=None):
        self.chain, self.x, self.code, self.cause = chain, x, code, cause
        super().__init__(chain, x, code)

    def __str__(self):
        return f"chain {self.chain}, code {self.code}, x = {self.x}"

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
        if self.may_step_side_by_side():
            self.lockstep = Lockstep(self.evaluation, chains)

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

    def may_step_side_by_side(self):
        """Return whether all kernels are of one class that steps in lanes; none may share."""
        cls = type(self.chains[0].kernel)
        return (self.K > 1 and self.width == 1 and not (self.noisy or self.shares)
                and all(s.kernel.in_lanes and type(s.kernel) is cls for s in self.chains))

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
            if self.lockstep is not None:
                self.lockstep.store()
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
        # here too: a run may be resumed where one is due; where a proposal is pending it was taken
        # before that was made, which may have changed what is kept
        if not (<ChainState>self.pointers[0]).pending:
            self.take_snapshots()
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
        if self.lockstep is not None:
            return self.advance_side_by_side(last, full)
        if self.width == 1 and not (self.noisy or self.shares):
            return self.advance_in_step(last, full)
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

    cdef int advance_side_by_side(self, int64_t last, bint *full) except -1 nogil:
        """As `advance_segment`, of kernels that step in lanes; chains apart from others catch up.
        """
        cdef int fault
        while self.done < last and not full[0]:
            if not self.lockstep.load():
                if self.advance_in_step(self.done + 1, full):
                    return 1
                continue
            fault = self.lockstep.advance(last - self.done, &self.schedule, self.most_evaluations,
                                          &self.done, full)
            self.lockstep.store()
            if fault:
                return self.judge_all()
        return 0

    cdef int advance_in_step(self, int64_t last, bint *full) except -1 nogil:
        """As `advance_segment`, of chains of one point each that share nothing.

        The same is done with every chain in the same order, with fewer passes over all of them: a
        chain proposes as soon as it has finished the step before, unless that may be the last.
        Thousands of chains exceed the caches, so that what comes next is fetched ahead.
        """
        cdef int k, waiting, m = self.begin_all()
        cdef bint ahead
        while True:
            self.evaluation.at(m)
            if self.failure_among(m):
                return self.judge_all()
            waiting = self.consider_all()
            if waiting == -FATAL or (waiting and self.settle()):
                return 1
            self.done += 1
            ahead, m = self.done < last, 0
            full[0] = True
            for k in range(self.K):
                fetch_step(self.pointers, k, self.K)
                finish(<ChainState>self.pointers[k], &self.schedule)
                full[0] = full[0] and is_full(<ChainState>self.pointers[k], self.most_evaluations)
                freeze(<ChainState>self.pointers[k], &self.schedule)
                if ahead and not full[0]:       # not all chains are full, as one is not
                    begin(<ChainState>self.pointers[k], &self.schedule)
                    m = self.wait_for(k, m)
                else:
                    ahead = False
            if full[0] or self.done == last:
                return 0
            if not ahead:
                m = self.begin_all()

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

    # ---- all chains at once, of one point each ----

    cdef int begin_all(self) except -1 nogil:
        """Let every chain propose; list the points to be evaluated and return their number."""
        cdef int k, m = 0
        for k in range(self.K):
            fetch_step(self.pointers, k, self.K)
            begin(<ChainState>self.pointers[k], &self.schedule)
            m = self.wait_for(k, m)
        return m

    cdef int wait_for(self, int k, int m) noexcept nogil:
        """Add the point of chain k to the m that are to be evaluated, if it is; return how many."""
        if (<ChainState>self.pointers[k]).answer != AGAIN or not (
                <ChainState>self.pointers[k]).c.wanted[0]:
            return m
        self.evaluation.waiting[m] = k
        return m + 1

    cdef bint failure_among(self, int m) noexcept nogil:
        """Return whether `judge` will stop the run at one of the m points just evaluated."""
        cdef int j, i
        for j in range(m):
            i = self.evaluation.waiting[j]
            if is_fatal(self.evaluation.codes[i], self.evaluation.values[i]):
                return True
        return False

    cdef int consider_all(self) except -99 nogil:
        """Judge points none of which stops the run, and let kernels consider them.

        Return how many wait for another evaluation, or -FATAL where the run must stop.
        """
        cdef int k, waiting = 0
        cdef bint fatal = False
        for k in range(self.K):
            fetch_decision(self.pointers, k, self.K)
            if (<ChainState>self.pointers[k]).answer != AGAIN:
                continue
            if (<ChainState>self.pointers[k]).c.wanted[0]:
                judge(<ChainState>self.pointers[k], 0, self.evaluation.codes[k],
                      self.evaluation.values[k])
                tally_point(<ChainState>self.pointers[k], 0)
            if not fatal and consider(<ChainState>self.pointers[k]):
                self.failed, self.failed_row, fatal = k, 0, True
            waiting += (<ChainState>self.pointers[k]).answer == AGAIN
        return -FATAL if fatal else waiting

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
