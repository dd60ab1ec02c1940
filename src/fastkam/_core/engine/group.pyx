"""The loop: a group of chains that propose, are evaluated, decide, adapt, move and record.

A step that cannot be finished, because the target failed or was interrupted, is left pending: the
proposal is kept, and the next run begins with its evaluation. So a chain can be stopped at any
evaluation and go on bit for bit as if it had not been. Chains of a group that have decided while
another still waits keep their decision.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, ceil, isfinite, isnan, log, pow
from libc.limits cimport INT_MIN
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from fastkam._core.engine.chain cimport N_KEPT, ChainMemory, Trace
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.kernel cimport (
    AGAIN, DECIDED, FATAL, FRESH, FURTHER, HELD, MOVED, SAME, SPENT, Chain, Kernel,
)
from fastkam._core.linalg.dense cimport all_finite, copy
from fastkam._core.engine.noise cimport refresh_noise
from fastkam._core.engine.rng cimport normals, random_standard_exponential
from fastkam._core.engine.step cimport accept, accepts, log_target_ratio, probability
from fastkam._core.engine.sums cimport Power, term
from fastkam._core.density.target cimport Target
from fastkam.target cimport fk_target

from fastkam._core.engine.kernel import uninterrupted

import numpy as np

N_SEARCH = 100                              # points tried where x0 has no finite density
INFINITE = INT_MIN                          # the code of a log density of +inf

cdef enum:
    GOOD = -1


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


cdef class ChainState(ChainMemory):
    """A chain that steps."""

    cdef int64_t advance(self, int64_t n, Schedule *schedule, int64_t most_evaluations,
                         double *gradient, bint *faulty) except -1 nogil:
        """Make up to n steps of a chain on its own; return the number made.

        Stops early if the trace is full, the budget of evaluations is spent, or an evaluation fails
        (sets *faulty). The gradient (d,) is evaluated too unless it is NULL.
        """
        cdef int64_t done
        for done in range(n):
            self.begin(schedule)
            faulty[0] = self.settle(gradient)
            if faulty[0]:
                return done
            self.finish(schedule)
            self.freeze(schedule)
            if self.is_full(most_evaluations):
                return done + 1
        return n

    cdef int settle(self, double *gradient) except -1 nogil:
        """Evaluate until the chain can decide; 1 if the run must stop."""
        cdef const fk_target *target = self.c.target
        cdef double logp = 0
        cdef int rc
        while self.answer == AGAIN:
            if self.c.wanted[0]:
                if gradient != NULL:
                    rc = target.logp_grad(target.dim, self.c.y, gradient, &logp, target.data)
                else:
                    rc = target.logp(target.dim, self.c.y, &logp, target.data)
                if self.judge(0, rc, logp):
                    return 1
                self.tally_point(0)
            if self.consider():
                return 1
        return 0

    # ---- the parts of a step ----

    cdef int begin(self, Schedule *schedule) except -1 nogil:
        """Propose, unless a proposal is pending, and draw E = -log U for the decision.

        E is drawn whatever the density turns out to be, so that the stream does not depend on it;
        and before the density is evaluated, since many of them load y as vectors, which would
        otherwise wait for the elements just stored (20 ns a step).
        """
        if not self.pending:
            self.answer = AGAIN
            self.c.adapting = schedule.start <= self.t < schedule.stop and (
                schedule.rarity <= 0 or self.t >= self.next_adaptation)
            if self.c.n_aux:
                memset(self.c.noise, MOVED, self.kernel.width)
            self.kernel.propose(&self.c)
            self.c.E = random_standard_exponential(self.c.rng)
            if self.c.n_aux:
                self.draw_noise()
            self.pending = True
        return 0

    cdef int draw_noise(self) except -1 nogil:
        """Make the noise of the evaluations to come."""
        cdef Chain *c = &self.c
        cdef Py_ssize_t k = c.n_aux, row
        for row in range(self.kernel.width):
            if not c.wanted[row]:
                continue
            if c.noise[row] == MOVED:
                refresh_noise(&self.refresh, c.rng, k, c.u + row * k, c.v + row * k)
            elif c.noise[row] == FURTHER:
                refresh_noise(&self.refresh, c.rng, k, c.v + row * k, c.v + row * k)
            elif c.noise[row] == FRESH:
                normals(c.rng, k, c.v + row * k)
            elif c.noise[row] == SPENT:
                with gil:
                    raise TypeError(f"{type(self.kernel).__name__} makes several evaluations a "
                                    "step and does not say which noise each takes")
            if c.noise[row] != HELD:
                c.noise[row] = SPENT
        return 0

    cdef int judge(self, int row, int rc, double logp) noexcept nogil:
        """Classify the density at a row of y, good or rejected (status); 1 if fatal, in c.code."""
        self.c.logps[row] = -INFINITY
        if rc < 0:
            self.c.code = rc
            return 1
        if rc > 0:
            self.status[row] = 2
        elif isnan(logp):
            self.status[row] = 0
        elif logp == -INFINITY:
            self.status[row] = 1
        elif logp == INFINITY:
            self.c.code = INT_MIN
            return 1
        elif self.c.grad_y != NULL and not all_finite(self.c.d, self.c.grad_y + row * self.c.d):
            self.status[row] = 3
        else:
            self.status[row] = GOOD
            self.c.logps[row] = logp
        return 0

    cdef int consider(self) except -1 nogil:
        """Let the kernel consider the density at y, if it waits for it; 1 if fatal, in c.code."""
        cdef int answer
        if self.answer == AGAIN:
            answer = self.kernel.consider(&self.c)
            if answer == FATAL:     # the same evaluation is made again when the run goes on
                return 1
            self.answer = answer
            if answer == AGAIN:
                if not self.kernel.several:
                    with gil:
                        raise TypeError(f"{type(self.kernel).__name__} makes several evaluations "
                                        "a step: its class must say SEVERAL = True")
                if self.c.n_aux:
                    self.draw_noise()
        return 0

    cdef void publish(self) noexcept nogil:
        """Write the number of filled rows to the trace; until then it is kept in the chain."""
        if self.trace.filled != NULL:
            self.trace.filled[0] = self.trace.count

    cdef bint is_full(self, int64_t most_evaluations) noexcept nogil:
        return (self.trace.count >= self.trace.capacity > 0
                or self.n_evaluations >= most_evaluations)

    cdef int finish(self, Schedule *schedule) except -1 nogil:
        """Decide, adapt, move, record."""
        cdef Chain *c = &self.c
        if self.answer == DECIDED:
            self.log_ratio = log(c.alpha)
        else:
            self.log_ratio = log_target_ratio(c) + c.log_q
            c.accepted = accepts(c.E, &self.log_ratio)
        if c.adapting:
            self.adapt(schedule)
        if c.accepted:
            accept(c)
            self.n_accepted += 1
        self.t += 1
        self.kernel.t = self.t
        self.pending = False
        self.record()
        return 0

    cdef int adapt(self, Schedule *schedule) except -1 nogil:
        """Let the kernel learn, with the gain of the schedule.

        K chains that share what they learn make one sequence of adaptations, in which the j-th of
        chain k = 0, ..., K - 1 is the (K (j - 1) + k + 1)-th.
        """
        cdef int64_t n
        if schedule.rarity > 0:
            self.next_adaptation = schedule.start - 1 + <int64_t>ceil(
                pow(self.n_adapted + 2.0, 1.0 + schedule.rarity))
        self.n_adapted += 1
        if self.answer != DECIDED:
            self.c.alpha = probability(self.log_ratio)
        n = self.kernel.sharers * (self.n_adapted - 1) + self.turn + 1
        if n != schedule.n:
            schedule.n, schedule.term = n, term(&schedule.gain, n)
        return self.kernel.adapt(&self.c, schedule.term)

    cdef int freeze(self, Schedule *schedule) except -1 nogil:
        """Freeze the kernel if adaptation has just ended, for all that it may share with."""
        if self.t == schedule.stop and not self.frozen:
            self.frozen = True
            self.kernel.freeze(&self.c)
        return 0

    cdef void tally(self) noexcept nogil:
        """Count the evaluations just made."""
        cdef int row
        if not self.pending or self.answer != AGAIN:
            return
        for row in range(self.kernel.width):
            if self.c.wanted[row]:
                self.tally_point(row)

    cdef void tally_point(self, int row) noexcept nogil:
        """Count an evaluation, and a point without a density: the first of a kind are kept."""
        cdef int status = self.status[row]
        cdef int64_t n
        self.n_evaluations += 1
        if status != GOOD:
            n = self.n_rejected[status]
            if n < N_KEPT:
                memcpy(&self.offending[status, n, 0], self.c.y + row * self.c.d,
                       self.c.d * sizeof(double))
            self.n_rejected[status] += 1

    cdef void record(self) noexcept nogil:
        cdef Trace *trace = &self.trace
        cdef Chain *c = &self.c
        cdef int64_t row = trace.count
        if not c.keep or row >= trace.capacity or (trace.thin > 1 and self.t % trace.thin):
            return
        copy(c.d, c.x, trace.x + row * c.d)
        if trace.logp != NULL:
            trace.logp[row] = c.logp_x
            trace.log_ratio[row] = self.log_ratio
            trace.accepted[row] = c.accepted
        if trace.n_extra:
            self.kernel.record(c, trace.extra + row * trace.n_extra)
        if self.noting and self.source.extras != NULL and self.source.extras[0]:
            self.note(row)
        trace.count = row + 1

    cdef void note(self, int64_t row) noexcept with gil:
        """Note the extras of the state, kept since its evaluation or made again.

        A KeyboardInterrupt meanwhile is deferred; after any other error they are missing.
        """
        try:
            uninterrupted(self.note_extras, row)
        except BaseException as error:
            self.note_error = error

    def note_extras(self, row):
        self.notes[row] = self.source.extras_at(
            np.array(self.x), np.array(self.u[0]) if self.c.n_aux else None)


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
    """

    def __cinit__(self, Target target, list chains, schedule, *, bint share=False):
        cdef ChainState s
        cdef int i
        self.target = target
        self.chains = chains
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
        before = []
        for s in self.chains:
            before.append((s.bit_generator.state, np.array(s.x), s.c.logp_x))
        try:
            self.search()
        except BaseException:
            for s, (bits, x, logp) in zip(self.chains, before, strict=True):
                s.bit_generator.state = bits
                np.asarray(s.x)[:] = x
                s.c.logp_x = logp
            raise
        for s in self.chains:
            s.freeze(&self.schedule)

    def search(self):
        cdef ChainState s
        cdef int fault
        origins = np.array([s.x for s in self.chains])
        d = origins.shape[1]
        for attempt in range(N_SEARCH + 1):
            todo = False
            for k, s in enumerate(self.chains):
                if not isfinite(s.c.logp_x):
                    todo = True
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
        takes long enough; they exist only during this call.
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
                (<ChainState>self.pointers[k]).publish()
        if fault:
            raise self.error()
        return self.done

    def error(self):
        x = np.asarray(self.evaluation.points)[self.failed * self.width + self.failed_row].copy()
        cdef int code = (<ChainState>self.pointers[self.failed]).c.code
        return Fault(self.failed, x, code, self.target.fault(code, x))

    cdef int advance(self, int64_t n) except -1 nogil:
        cdef int k
        cdef bint full, faulty = False
        if self.alone:
            self.done = (<ChainState>self.pointers[0]).advance(
                n, &self.schedule, self.most_evaluations,
                &self.evaluation.gradients[0, 0] if self.evaluation.gradient else NULL, &faulty)
            self.failed = self.failed_row = 0
            return faulty
        self.done = 0
        while self.done < n:
            for k in range(self.K):
                (<ChainState>self.pointers[k]).begin(&self.schedule)
            if self.settle():
                return 1
            full = True
            for k in range(self.K):
                if self.shares and k > 0:
                    self.hand_on(k - 1, k)
                (<ChainState>self.pointers[k]).finish(&self.schedule)
                full = full and (<ChainState>self.pointers[k]).is_full(self.most_evaluations)
            if self.shares:
                for k in range(self.K - 1):
                    self.hand_on(self.K - 1, k)
            for k in range(self.K):
                (<ChainState>self.pointers[k]).freeze(&self.schedule)
            self.done += 1
            if full:
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
                if (<ChainState>self.pointers[k]).consider():
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
                if (<ChainState>self.pointers[k]).judge(
                        row, self.evaluation.codes[i], self.evaluation.values[i]):
                    self.failed, self.failed_row = k, row
                    return 1
            if self.width > 1:
                (<ChainState>self.pointers[k]).c.logp_y = (<ChainState>self.pointers[k]).c.logps[0]
        for k in range(self.K):
            (<ChainState>self.pointers[k]).tally()
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
