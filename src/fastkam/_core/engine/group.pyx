"""The loop over the steps of a group of chains that are evaluated together.

A run may end at any evaluation, and the next run begins with it (chain_step.pxd). Chains of the
group that have decided keep their decision while others still wait.
"""
cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.density.target cimport Target
from fastkam._core.engine.chain cimport ChainState
from fastkam._core.engine.chain_step cimport (
    advance_alone, begin, consider, finish, freeze, is_fatal, is_full, judge, publish, tally_point,
)
from fastkam._core.engine.fetch cimport fetch_decision, fetch_step
from fastkam._core.engine.kernel cimport AGAIN, FATAL
from fastkam._core.engine.lockstep cimport Lockstep
from fastkam._core.engine.members cimport Members
from fastkam._core.engine.watch cimport Watch, begin_watch, is_over

from fastkam._core.engine.kernel import take_interrupt, uninterrupted


@cython.final
cdef class Group(Members):
    """K chains that step together: propose all, evaluate once, finish each.

    Parameters
    ----------
    target : Target
        Bound to this group.
    chains : list of ChainState
    schedule : tuple
        (c, k, offset, cap, start, stop, rarity); a stop of None means never.
    share : bool
        Whether the chains share their adaptation, chain 0 first in every step: see `Kernel.join`.
        Their kernels have the same parameters and the same shared state.
    snapshot_steps : array of int64 (n,)
        Increasing steps after which each chain stores a snapshot of its learned quantities.
    """
    cdef Lockstep lockstep                  # None if the chains cannot step side by side
    cdef int64_t most_evaluations           # per chain, on average
    cdef int64_t done                       # steps made by the last call of run
    cdef Watch watch

    def __cinit__(self, Target target, list chains, schedule, **options):
        if self.may_step_side_by_side():
            self.lockstep = Lockstep(self.evaluation, chains)

    def may_step_side_by_side(self):
        """Return whether all kernels are of one class that steps in lanes, and none share."""
        cls = type(self.chains[0].kernel)
        return (self.K > 1 and self.width == 1 and not (self.noisy or self.shares)
                and all(s.kernel.in_lanes and type(s.kernel) is cls for s in self.chains))

    def run(self, int64_t n, int64_t most_evaluations=INT64_MAX, int threads=1,
            double seconds=INFINITY):
        """Make up to n steps; return the number made. Raises Fault.

        Stops early if every chain's trace is full, if the chains have made most_evaluations each on
        average, and once more than `seconds` have passed, which is looked at every n // 512 + 1
        steps. With more than one thread, helpers share in the evaluation of the points of a step if
        a point takes long enough; they exist only during this call. A KeyboardInterrupt that an
        adaptation or a snapshot has deferred is raised at the end.
        """
        cdef int fault, k
        self.most_evaluations = most_evaluations
        begin_watch(&self.watch, n, seconds)
        self.evaluation.call_helpers(threads)
        try:
            if self.target.needs_gil:
                fault = self.advance(n)
            else:
                with nogil:
                    fault = self.advance(n)
        finally:            # compiled code: no signal comes between a step and its count
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

    cdef int advance(self, int64_t n) except -1 nogil:
        """Make up to n steps, in segments that end where snapshots are due."""
        cdef int64_t due, t
        cdef bint full = False
        self.done = 0
        # a resumed run may start at a snapshot step; with a proposal pending the snapshot was
        # already taken, before proposing may have changed what it stores
        if not (<ChainState>self.pointers[0]).pending:
            self.take_snapshots()
        while self.done < n and not (full or self.watch.over):
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
        """Store a snapshot of every chain's learned quantities, if one is due at this step."""
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
        """Make up to n steps, fewer if all chains are full, or if they have together made as many
        evaluations as all may make; return 1 if the run must stop.
        """
        cdef int64_t last = self.done + n
        cdef int k
        cdef bint faulty = False
        if self.alone:
            self.failed = self.failed_row = 0
            self.done += advance_alone(
                <ChainState>self.pointers[0], n, &self.schedule, self.most_evaluations, &self.watch,
                self.evaluation.gradients if self.evaluation.gradient else NULL, &faulty)
            full[0] = is_full(<ChainState>self.pointers[0], self.most_evaluations)
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
                full[0] = full[0] and is_full(<ChainState>self.pointers[k], INT64_MAX)
            full[0] = full[0] or self.is_spent(self.n_evaluations())
            if self.shares:
                for k in range(self.K - 1):
                    self.hand_on(self.K - 1, k)
            for k in range(self.K):
                freeze(<ChainState>self.pointers[k], &self.schedule)
            self.done += 1
            if full[0] or is_over(&self.watch):
                break
        return 0

    cdef int advance_side_by_side(self, int64_t last, bint *full) except -1 nogil:
        """Do as `advance_segment`, for kernels that step in lanes; chains out of step catch up."""
        cdef int fault
        while self.done < last and not (full[0] or self.watch.over):
            if not self.lockstep.load():
                if self.advance_in_step(self.done + 1, full):
                    return 1
                continue
            fault = self.lockstep.advance(last - self.done, &self.schedule, self.most_evaluations,
                                          &self.watch, &self.done, full)
            self.lockstep.store()
            if fault:
                return self.judge_all()
        return 0

    cdef int advance_in_step(self, int64_t last, bint *full) except -1 nogil:
        """Do as `advance_segment`, for chains of one point each that share nothing.

        Each chain does the same in the same order, with fewer passes over all of them: a chain
        proposes as soon as it has finished the step before, unless that may be the last. Thousands
        of chains exceed the caches, so the data needed next are fetched ahead.
        """
        cdef int k, waiting, m = self.begin_all()
        cdef int64_t made = self.n_evaluations()
        cdef bint ahead, spent
        while True:
            self.evaluation.at(m)
            if self.failure_among(m):
                return self.judge_all()
            made += m
            waiting = self.consider_all()
            if waiting == -FATAL or (waiting and self.settle()):
                return 1
            if waiting:
                made = self.n_evaluations()
            self.done += 1
            spent = self.is_spent(made)
            ahead, m = self.done < last and not (spent or is_over(&self.watch)), 0
            full[0] = True
            for k in range(self.K):
                fetch_step(self.pointers, k, self.K)
                finish(<ChainState>self.pointers[k], &self.schedule)
                full[0] = full[0] and is_full(<ChainState>self.pointers[k], INT64_MAX)
                freeze(<ChainState>self.pointers[k], &self.schedule)
                if ahead and not full[0]:       # some chain is not full
                    begin(<ChainState>self.pointers[k], &self.schedule)
                    m = self.wait_for(k, m)
                else:
                    ahead = False
            full[0] = full[0] or spent
            if full[0] or self.done == last or self.watch.over:
                return 0
            if not ahead:
                m = self.begin_all()

    cdef int64_t n_evaluations(self) noexcept nogil:
        """Return the number of evaluations of all chains."""
        cdef int64_t made = 0
        cdef int k
        for k in range(self.K):
            made += (<ChainState>self.pointers[k]).n_evaluations
        return made

    cdef bint is_spent(self, int64_t made) noexcept nogil:
        """Return whether all chains together have made as many evaluations as all may make."""
        return made // self.K >= self.most_evaluations

    cdef void hand_on(self, int k, int to) noexcept nogil:
        """Copy the learned numbers of chain k, the last to adapt, to chain `to`."""
        if (<ChainState>self.pointers[k]).c.adapting:
            (<ChainState>self.pointers[to]).kernel.take((<ChainState>self.pointers[k]).kernel)

    cdef int settle(self) except -1 nogil:
        """Evaluate until every chain can decide; return 1 if the run must stop."""
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
        """Add the point of chain k, if wanted, to the m to be evaluated; return their number."""
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
        """Judge points that do not stop the run, and let kernels consider them.

        Return the number that wait for another evaluation, or -FATAL if the run must stop.
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
