"""A step of a chain: propose, evaluate, decide, adapt, move, record.

A step that cannot be finished, because the target failed or was interrupted, is left pending: the
proposal is kept, and the next run begins with its evaluation. Thus a chain can be stopped at any
evaluation and continue bit for bit as if it had not been.

These are inline functions, not methods: they are compiled into the loop over a group (group.pyx).
"""
from libc.math cimport INFINITY, ceil, isnan, log, pow
from libc.limits cimport INT_MIN
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.chain cimport N_KEPT, ChainState, Trace
from fastkam._core.engine.kernel cimport (
    AGAIN, DECIDED, FATAL, FRESH, FURTHER, HELD, MOVED, SPENT, Chain,
)
from fastkam._core.linalg.dense cimport are_finite, copy
from fastkam._core.engine.noise cimport refresh_noise
from fastkam._core.engine.rng cimport exponential, normals
from fastkam._core.engine.step cimport accept, accepts, log_target_ratio, probability
from fastkam._core.engine.sums cimport Power, term
from fastkam._core.engine.watch cimport Watch, is_over
from fastkam.target cimport fk_target

cdef enum:
    GOOD = -1               # the status of a point that has a density, see REJECTED

# adapt at the steps start <= t < stop
cdef struct Schedule:
    Power gain
    int64_t start
    int64_t stop
    double rarity           # > 0: only at start - 1 + ceil(j^(1 + rarity)), j = 1, 2, ...
    int64_t n               # index of the term last computed, shared by chains that step together
    double term


cdef inline int64_t advance_alone(ChainState s, int64_t n, Schedule *schedule,
                                  int64_t most_evaluations, Watch *watch, double *gradient,
                                  bint *faulty) except -1 nogil:
    """Make up to n steps of a chain on its own; return the number made.

    Stops early if the trace is full, the budget of evaluations or the time is spent, or an
    evaluation fails (sets *faulty). The gradient (d,) is evaluated too unless it is NULL.
    """
    cdef int64_t done
    for done in range(n):
        begin(s, schedule)
        faulty[0] = settle(s, gradient)
        if faulty[0]:
            return done
        finish(s, schedule)
        freeze(s, schedule)
        if is_full(s, most_evaluations) or is_over(watch):
            return done + 1
    return n


cdef inline int settle(ChainState s, double *gradient) except -1 nogil:
    """Evaluate until the chain can decide; 1 if the run must stop."""
    cdef const fk_target *target = s.c.target
    cdef double logp = 0
    cdef int rc
    while s.answer == AGAIN:
        if s.c.wanted[0]:
            if gradient != NULL:
                rc = target.logp_grad(target.dim, s.c.y, gradient, &logp, target.data)
            else:
                rc = target.logp(target.dim, s.c.y, &logp, target.data)
            if judge(s, 0, rc, logp):
                return 1
            tally_point(s, 0)
        if consider(s):
            return 1
    return 0


# ---- the parts of a step ----


cdef inline int begin(ChainState s, Schedule *schedule) except -1 nogil:
    """Propose, unless a proposal is pending, and draw E = -log U for the decision.

    E is drawn whatever the density turns out to be, so that the stream does not depend on it, and
    before the density is evaluated: many densities load y as vectors, which would otherwise wait
    for the elements just stored (20 ns a step).
    """
    if not s.pending:
        s.answer = AGAIN
        s.c.adapting = adapts_at(schedule, s.t, s.next_adaptation)
        if s.c.n_aux:
            memset(s.c.noise, MOVED, s.kernel.width)
        s.kernel.propose(&s.c)
        s.c.E = exponential(s.c.rng)
        if s.c.n_aux:
            draw_noise(s)
        s.pending = True
    return 0


cdef inline int draw_noise(ChainState s) except -1 nogil:
    """Draw the noise of the next evaluations."""
    cdef Chain *c = &s.c
    cdef Py_ssize_t k = c.n_aux, row
    for row in range(s.kernel.width):
        if not c.wanted[row]:
            continue
        if c.noise[row] == MOVED:
            refresh_noise(&s.refresh, c.rng, k, c.u + row * k, c.v + row * k)
        elif c.noise[row] == FURTHER:
            refresh_noise(&s.refresh, c.rng, k, c.v + row * k, c.v + row * k)
        elif c.noise[row] == FRESH:
            normals(c.rng, k, c.v + row * k)
        elif c.noise[row] == SPENT:
            with gil:
                raise TypeError(f"{type(s.kernel).__name__} makes several evaluations a "
                                "step and does not say which noise each takes")
        if c.noise[row] != HELD:
            c.noise[row] = SPENT
    return 0


cdef inline bint is_fatal(int rc, double logp) noexcept nogil:
    """Return whether a return code, or a log density of +inf, stops the run: see `judge`."""
    return rc < 0 or (rc == 0 and logp == INFINITY)


cdef inline int judge(ChainState s, int row, int rc, double logp) noexcept nogil:
    """Set the status of a row of y, good or rejected; return 1 if fatal (c.code)."""
    s.c.logps[row] = -INFINITY
    if rc < 0:
        s.c.code = rc
        return 1
    if rc > 0:
        s.status[row] = 2
    elif isnan(logp):
        s.status[row] = 0
    elif logp == -INFINITY:
        s.status[row] = 1
    elif logp == INFINITY:
        s.c.code = INT_MIN
        return 1
    elif s.c.grad_y != NULL and not are_finite(s.c.d, s.c.grad_y + row * s.c.d):
        s.status[row] = 3
    else:
        s.status[row] = GOOD
        s.c.logps[row] = logp
    return 0


cdef inline int consider(ChainState s) except -1 nogil:
    """Let the kernel consider the density at y if it waits for it; return 1 if fatal (c.code)."""
    cdef int answer
    if s.answer == AGAIN:
        answer = s.kernel.consider(&s.c)
        if answer == FATAL:     # the evaluation is repeated when the run resumes
            return 1
        s.answer = answer
        if answer == AGAIN:
            if not s.kernel.several:
                with gil:
                    raise TypeError(f"{type(s.kernel).__name__} makes several evaluations a "
                                    "step: its class must set SEVERAL = True")
            if s.c.n_aux:
                draw_noise(s)
    return 0


cdef inline void publish(ChainState s) noexcept nogil:
    """Write the number of filled rows to the trace; until then it is kept in the chain."""
    if s.trace.filled != NULL:
        s.trace.filled[0] = s.trace.count


cdef inline bint is_full(ChainState s, int64_t most_evaluations) noexcept nogil:
    return s.trace.count >= s.trace.capacity > 0 or s.n_evaluations >= most_evaluations


cdef inline int finish(ChainState s, Schedule *schedule) except -1 nogil:
    """Decide, adapt, move, record."""
    cdef Chain *c = &s.c
    if s.answer == DECIDED:
        s.log_ratio = log(c.alpha)
    else:
        s.log_ratio = log_target_ratio(c) + c.log_q
        c.accepted = accepts(c.E, &s.log_ratio)
    if c.adapting:
        adapt(s, schedule)
    if c.accepted:
        accept(c)
        s.n_accepted += 1
    s.t += 1
    s.kernel.t = s.t
    s.pending = False
    record(s)
    return 0


cdef inline int adapt(ChainState s, Schedule *schedule) except -1 nogil:
    """Let the kernel learn, with the gain of the schedule.

    K chains that share what they learn make one sequence of adaptations, in which the j-th of
    chain k = 0, ..., K - 1 is the (K (j - 1) + k + 1)-th.
    """
    s.next_adaptation = adaptation_after(schedule, s.n_adapted, s.next_adaptation)
    s.n_adapted += 1
    if s.answer != DECIDED:
        s.c.alpha = probability(s.log_ratio)
    return s.kernel.adapt(
        &s.c, gain_of(schedule, s.kernel.sharers * (s.n_adapted - 1) + s.turn + 1))


cdef inline bint adapts_at(const Schedule *schedule, int64_t t, int64_t due) noexcept nogil:
    """Return whether the step after t adapts; under a rare schedule not before step `due`."""
    return schedule.start <= t < schedule.stop and (schedule.rarity <= 0 or t >= due)


cdef inline int64_t adaptation_after(const Schedule *schedule, int64_t n_adapted,
                                     int64_t due) noexcept nogil:
    """Return the step of adaptation n_adapted + 2 if they are rare, else `due`."""
    if schedule.rarity <= 0:
        return due
    return schedule.start - 1 + <int64_t>min(
        4e18, ceil(pow(n_adapted + 2.0, 1.0 + schedule.rarity)))     # no more than INT64_MAX


cdef inline double gain_of(Schedule *schedule, int64_t n) noexcept nogil:
    """Return the gain of the n-th adaptation."""
    if n != schedule.n:
        schedule.n, schedule.term = n, term(&schedule.gain, n)
    return schedule.term


cdef inline int freeze(ChainState s, Schedule *schedule) except -1 nogil:
    """Freeze the kernel if adaptation has just ended, for all kernels that may share with it."""
    if s.t == schedule.stop and not s.frozen:
        s.frozen = True
        s.kernel.freeze(&s.c)
    return 0


cdef inline void tally(ChainState s) noexcept nogil:
    """Count the evaluations just made."""
    cdef int row
    if not s.pending or s.answer != AGAIN:
        return
    for row in range(s.kernel.width):
        if s.c.wanted[row]:
            tally_point(s, row)


cdef inline void tally_point(ChainState s, int row) noexcept nogil:
    """Count an evaluation, and any point without a density; the first of each kind are kept."""
    cdef int status = s.status[row]
    cdef int64_t n
    s.n_evaluations += 1
    if status != GOOD:
        n = s.n_rejected[status]
        if n < N_KEPT:
            copy(s.c.d, s.c.y + row * s.c.d, s.offending + (status * N_KEPT + n) * s.c.d)
        s.n_rejected[status] += 1


cdef inline bint has_extras(ChainState s) noexcept nogil:
    """Return whether an evaluation has returned extras."""
    return s.source.extras != NULL and s.source.extras[0]


cdef inline void record(ChainState s) noexcept nogil:
    cdef Trace *trace = &s.trace
    cdef Chain *c = &s.c
    cdef int64_t row = trace.count
    cdef Py_ssize_t i
    if not c.keep or row >= trace.capacity or (trace.thin > 1 and s.t % trace.thin):
        return
    copy(c.d, c.x, trace.x + row * c.d)
    if trace.scales != NULL:
        for i in range(c.d):
            trace.x[row * c.d + i] *= trace.scales[i]
    if trace.logp != NULL:
        trace.logp[row] = c.logp_x
        trace.log_ratio[row] = s.log_ratio
        trace.accepted[row] = c.accepted
    if trace.n_extra:
        s.kernel.record(c, trace.extra + row * trace.n_extra)
    if s.noting and has_extras(s):
        s.note(row)
    trace.count = row + 1
