"""The loop over chains that step side by side: shared conditions are tested once per step.

With one object per chain, the data for a step of thousands of chains would be scattered over more
places than a cache holds. During a run they are in arrays instead, one for each number of all
chains (`Lanes` of kernel.pxd): `load` copies them there and `store` copies them back. Between two
runs each chain has its own state, and the draws are those of chains run one by one.
"""
from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from fastkam._core.engine.chain cimport ChainState, Trace
from fastkam._core.engine.chain_step cimport (
    Schedule, adaptation_after, adapts_at, gain_of, has_extras, is_fatal, judge, tally_point,
)
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.held cimport room_in
from fastkam._core.engine.kernel cimport (
    AGAIN, DECIDE, DECIDED, Chain, Kernel, Lanes, blank, enter,
)
from fastkam._core.engine.step cimport probability
from fastkam._core.linalg.dense cimport are_finite
from fastkam._core.engine.rng cimport Tables, bitgen_t, exponential, tables
from fastkam._core.engine.watch cimport Watch, is_over

import numpy as np

cdef extern from "together.h" nogil:
    bint all_good "fk_all_good" (Py_ssize_t n, const int *codes, const double *values)
    void decide "fk_decide" (
        Py_ssize_t n, const double *logp_x, const double *logp_y, const double *log_q,
        const double *E, double *log_ratio, signed char *accepted)
    void add_to_counts "fk_count" (Py_ssize_t n, const signed char *accepted, int64_t *counts)
    void move "fk_move" (
        Py_ssize_t n, Py_ssize_t d, const signed char *accepted, const double *source, double *to)

cdef extern from "stream_draws.h" nogil:
    void stream_normals "fk_stream_normals" (
        Streams *g, const Tables *tables, Py_ssize_t m, double *out)
    void stream_exponentials "fk_stream_exponentials" (
        Streams *g, const Tables *tables, double *out)

cdef extern from "streams.h" nogil:
    void load_stream "fk_load_stream" (Streams *g, Py_ssize_t k, const bitgen_t *rng)
    void store_stream "fk_store_stream" (const Streams *g, Py_ssize_t k, bitgen_t *rng)
    void make_stream "fk_make_stream" (Streams *g, Py_ssize_t k)


cdef class Lockstep:
    """K chains with kernels of one class, which step side by side.

    Parameters
    ----------
    evaluation : Evaluation
        Of K points.
    chains : list of ChainState
        Their x, and gradients there, are rows of one array each, which this keeps alive.
    """

    def __cinit__(self, Evaluation evaluation, list chains):
        cdef ChainState s = chains[0]
        cdef Lanes *g = &self.g
        cdef Py_ssize_t k, K = len(chains)
        self.evaluation, self.arrays = evaluation, {}
        g.K, g.d = K, s.c.d
        self.chains = <void **>room_in(self.arrays, "chains", K, np.intp)
        g.kernels = <void **>room_in(self.arrays, "kernels", K, np.intp)
        g.rng = <bitgen_t **>room_in(self.arrays, "rng", K, np.intp)
        for k in range(K):
            s = chains[k]
            self.chains[k], g.kernels[k], g.rng[k] = <void *>s, <void *>s.kernel, s.c.rng
        s = chains[0]
        g.x, g.grad_x = s.c.x, s.c.grad_x
        g.y, g.grad_y = s.c.y, s.c.grad_y
        if all(self.has_stream(s) for s in chains):
            self.make_streams()
        g.logp_x = <double *>room_in(self.arrays, "logp_x", K)
        g.logp_y = <double *>room_in(self.arrays, "logp_y", K)
        g.log_q = <double *>room_in(self.arrays, "log_q", K)
        g.E = <double *>room_in(self.arrays, "E", K)
        g.alpha = <double *>room_in(self.arrays, "alpha", K)
        g.log_ratio = <double *>room_in(self.arrays, "log_ratio", K)
        g.accepted = <signed char *>room_in(self.arrays, "accepted", K, np.int8)
        g.answer = <signed char *>room_in(self.arrays, "answer", K, np.int8)
        self.n_accepted = <int64_t *>room_in(self.arrays, "n_accepted", K, np.int64)
        g.own = <double *>room_in(self.arrays, "own", K)
        self.rows = HeldRows(chains)

    def has_stream(self, ChainState s):
        """Return whether the normals of this chain can be drawn ahead, with those of others."""
        return s.kernel.normals_first and <void *>s.c.rng.next_uint64 == tables.pcg64

    cdef int make_streams(self) except -1:
        """Let every chain draw from a copy of its generator, stored side by side with others."""
        cdef Streams *streams = &self.streams
        cdef Py_ssize_t k, K = self.g.K
        self.in_streams = True
        streams.n = K
        streams.low = <uint64_t *>room_in(self.arrays, "low", K, np.uint64)
        streams.high = <uint64_t *>room_in(self.arrays, "high", K, np.uint64)
        streams.c_low = <uint64_t *>room_in(self.arrays, "c_low", K, np.uint64)
        streams.c_high = <uint64_t *>room_in(self.arrays, "c_high", K, np.uint64)
        streams.each = <bitgen_t *>room_in(self.arrays, "each", K * sizeof(bitgen_t), np.int8)
        streams.lanes = <Lane *>room_in(self.arrays, "lanes", K * sizeof(Lane), np.int8)
        self.drawn = <double *>room_in(self.arrays, "drawn", K * self.g.d)
        for k in range(K):
            make_stream(streams, k)
            self.g.rng[k] = &streams.each[k]
        return 0

    # ---- the states of the chains, before and after steps ----

    cdef bint load(self) noexcept nogil:
        """Take over the states of all chains; return False if they are not in step."""
        cdef Lanes *g = &self.g
        cdef int k
        g.t, self.n_adapted = (<ChainState>self.chains[0]).t, (<ChainState>self.chains[0]).n_adapted
        self.next_adaptation = (<ChainState>self.chains[0]).next_adaptation
        self.frozen, self.noting = (
            (<ChainState>self.chains[0]).frozen, (<ChainState>self.chains[0]).noting)
        for k in range(g.K):
            if not self.is_like_the_first(k):
                return False
        for k in range(g.K):
            take_over(<ChainState>self.chains[k], g, k)
        memset(self.n_accepted, 0, g.K * sizeof(int64_t))
        g.adapting = (<ChainState>self.chains[0]).c.adapting
        if self.in_streams:
            for k in range(g.K):
                load_stream(&self.streams, k, (<ChainState>self.chains[k]).c.rng)
        self.rounds = self.listed = 0
        self.made = 0
        for k in range(g.K):
            self.made += (<ChainState>self.chains[k]).n_evaluations
        self.pending, self.loaded = False, True
        self.rows.begin()
        (<Kernel>g.kernels[0]).lay_out(g)
        return True

    cdef bint is_like_the_first(self, int k) noexcept nogil:
        """Return whether the k-th chain is between two steps, in step with the first one."""
        return (
            not (<ChainState>self.chains[k]).pending
            and (<ChainState>self.chains[k]).c.keep
            and (<ChainState>self.chains[k]).t == self.g.t
            and (<ChainState>self.chains[k]).n_adapted == self.n_adapted
            and (<ChainState>self.chains[k]).next_adaptation == self.next_adaptation
            and (<ChainState>self.chains[k]).frozen == self.frozen
            and (<ChainState>self.chains[k]).noting == self.noting
            and self.rows.is_like_the_first(&(<ChainState>self.chains[k]).trace))

    cdef void store(self) noexcept nogil:
        """Give each chain its state back, if it has been taken over."""
        cdef const Lanes *g = &self.g
        cdef int k
        if not self.loaded:
            return
        self.rows.end()
        if self.in_streams:
            for k in range(g.K):
                store_stream(&self.streams, k, (<ChainState>self.chains[k]).c.rng)
        for k in range(g.K):
            self.give_back(<ChainState>self.chains[k], k)
        self.loaded = False

    cdef void give_back(self, ChainState s, Py_ssize_t k) noexcept nogil:
        """Give the k-th chain its state."""
        cdef const Lanes *g = &self.g
        s.c.logp_x, s.c.logp_y, s.c.log_q = g.logp_x[k], g.logp_y[k], g.log_q[k]
        s.c.alpha, s.c.accepted, s.c.E = g.alpha[k], g.accepted[k], g.E[k]
        s.c.adapting, s.log_ratio = g.adapting, g.log_ratio[k]
        # a class whose chains all decide leaves g.answer as it is
        s.answer = DECIDE if g.answer[k] == AGAIN and not self.pending else g.answer[k]
        s.pending, s.frozen = self.pending, self.frozen
        s.t = s.kernel.t = g.t
        s.n_adapted, s.next_adaptation = self.n_adapted, self.next_adaptation
        s.n_accepted += self.n_accepted[k]
        s.n_evaluations += self.rounds

    # ---- steps ----

    cdef int advance(self, int64_t n, Schedule *schedule, int64_t most_evaluations, Watch *watch,
                     int64_t *done, bint *full) except -1 nogil:
        """Make up to n steps after `load`, fewer if no chain may make more (full) or the time is
        over; add to `done`.

        Return 1 if the run must stop because a density fails. Then, and after an exception, the
        step is left pending for `store`.
        """
        cdef Lanes *g = &self.g
        cdef int64_t _i
        for _i in range(n):
            g.adapting = adapts_at(schedule, g.t, self.next_adaptation)
            self.propose()
            if self.settle():
                return 1
            self.finish(schedule)
            done[0] += 1
            full[0] = self.is_full(most_evaluations)
            if full[0] or is_over(watch):
                break
        return 0

    cdef int propose(self) except -1 nogil:
        """Let every chain propose, and draw E for its decision: see `begin` of chain_step.pxd."""
        cdef Lanes *g = &self.g
        cdef int k
        if self.in_streams:
            stream_normals(&self.streams, &tables, g.d, self.drawn)
            g.drawn = self.drawn
        (<Kernel>g.kernels[0]).propose_lanes(g)
        g.drawn = NULL
        if self.in_streams:
            stream_exponentials(&self.streams, &tables, g.E)
        else:
            for k in range(g.K):
                g.E[k] = exponential(g.rng[k])
        self.pending = True
        return 0

    cdef int settle(self) except -1 nogil:
        """Evaluate until every chain can decide; return 1, without judging, if a density fails."""
        cdef Lanes *g = &self.g
        cdef int waiting = g.K
        memset(g.answer, AGAIN, g.K)
        g.decided = False
        while waiting:
            self.wait_for(waiting)
            self.evaluation.at(waiting)
            if self.are_good(waiting):
                memcpy(g.logp_y, self.evaluation.values, g.K * sizeof(double))
                self.rounds += 1
            elif self.judge_each(waiting):
                return 1
            self.made += waiting
            waiting = (<Kernel>g.kernels[0]).consider_lanes(g)
        return 0

    cdef void wait_for(self, int waiting) noexcept nogil:
        """List the points to be evaluated, `waiting` in number."""
        cdef int k, m = 0
        if waiting == self.g.K == self.listed:
            return
        for k in range(self.g.K):
            self.evaluation.waiting[m] = k
            m += self.g.answer[k] == AGAIN
        self.listed = waiting

    cdef bint are_good(self, int m) noexcept nogil:
        """Return whether all chains have been evaluated, and all have a density."""
        return m == self.g.K and all_good(
            m, self.evaluation.codes, self.evaluation.values) and (
            self.g.grad_y == NULL or are_finite(m * self.g.d, self.g.grad_y))

    cdef bint judge_each(self, int m) noexcept nogil:
        """Judge and count the m points just evaluated, unless one stops the run (True)."""
        cdef int j, k
        for j in range(m):
            k = self.evaluation.waiting[j]
            if is_fatal(self.evaluation.codes[k], self.evaluation.values[k]):
                return True
        for j in range(m):
            k = self.evaluation.waiting[j]
            judge(<ChainState>self.chains[k], 0, self.evaluation.codes[k],
                  self.evaluation.values[k])
            tally_point(<ChainState>self.chains[k], 0)
            self.g.logp_y[k] = (<ChainState>self.chains[k]).c.logp_y
        return False

    cdef int finish(self, Schedule *schedule) except -1 nogil:
        """Decide, adapt, move, record."""
        cdef Lanes *g = &self.g
        cdef int k
        if not g.decided:
            decide(g.K, g.logp_x, g.logp_y, g.log_q, g.E, g.log_ratio, g.accepted)
        else:
            for k in range(g.K):
                if g.answer[k] == DECIDED:
                    g.log_ratio[k] = log(g.alpha[k])
                else:
                    decide(1, g.logp_x + k, g.logp_y + k, g.log_q + k, g.E + k, g.log_ratio + k,
                           g.accepted + k)
        if g.adapting:
            self.adapt(schedule)
        add_to_counts(g.K, g.accepted, self.n_accepted)
        move(g.K, g.d, g.accepted, g.y, g.x)
        move(g.K, 1, g.accepted, g.logp_y, g.logp_x)
        if g.grad_x != NULL:
            move(g.K, g.d, g.accepted, g.grad_y, g.grad_x)
        g.t += 1
        self.pending = False
        self.record()
        if g.t == schedule.stop and not self.frozen:
            self.freeze()
        return 0

    cdef int adapt(self, Schedule *schedule) except -1 nogil:
        """Let the kernels learn."""
        cdef Lanes *g = &self.g
        cdef int k
        self.next_adaptation = adaptation_after(schedule, self.n_adapted, self.next_adaptation)
        self.n_adapted += 1
        for k in range(g.K):
            if g.answer[k] != DECIDED:
                g.alpha[k] = probability(g.log_ratio[k])
        (<Kernel>g.kernels[0]).adapt_lanes(g, gain_of(schedule, self.n_adapted))
        (<Kernel>g.kernels[0]).lay_out(g)
        return 0

    cdef int freeze(self) except -1 nogil:
        """Freeze all kernels: adaptation has just ended."""
        cdef Lanes *g = &self.g
        cdef Chain c
        cdef int k
        self.frozen = True
        blank(g, &c)
        for k in range(g.K):
            enter(g, k, &c)
            (<Kernel>g.kernels[k]).t = g.t
            (<Kernel>g.kernels[k]).freeze(&c)
        (<Kernel>g.kernels[0]).lay_out(g)
        return 0

    cdef bint is_full(self, int64_t most_evaluations) noexcept nogil:
        """Return whether no chain may make more steps."""
        return self.rows.is_full() or self.made // self.g.K >= most_evaluations

    cdef void record(self) noexcept nogil:
        """Record the states of all chains, if they become rows of the traces."""
        cdef Lanes *g = &self.g
        cdef const Trace *trace = &self.rows.trace
        cdef Chain c
        cdef int k
        if not self.rows.wants(g.t):
            return
        if trace.n_extra:
            blank(g, &c)
            for k in range(g.K):
                enter(g, k, &c)
                (<Kernel>g.kernels[k]).record(&c, (<ChainState>self.chains[k]).trace.extra
                                              + trace.count * trace.n_extra)
        if self.noting:
            for k in range(g.K):
                if has_extras(<ChainState>self.chains[k]):
                    (<ChainState>self.chains[k]).note(trace.count)
        self.rows.hold(g)


cdef inline void take_over(ChainState s, Lanes *g, Py_ssize_t k) noexcept nogil:
    """Copy the numbers of a chain to the arrays of all chains."""
    g.logp_x[k], g.logp_y[k], g.log_q[k] = s.c.logp_x, s.c.logp_y, s.c.log_q
    g.alpha[k], g.accepted[k], g.E[k] = s.c.alpha, s.c.accepted, s.c.E
    g.answer[k], g.log_ratio[k] = s.answer, s.log_ratio
