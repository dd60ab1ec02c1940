"""The loop: a group of chains that propose, are evaluated, decide, adapt, move and record.

A step that cannot be finished, because the target failed or was interrupted, is left pending: the
proposal is kept, and the next run begins with its evaluation. So a chain can be stopped at any
evaluation and go on bit for bit as if it had not been. Chains of a group that have been answered
while another still waits keep their answer.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, ceil, exp, isfinite, isnan, log, pow
from libc.limits cimport INT_MIN
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from fastkam._core.kernel cimport (
    AGAIN, DECIDED, FATAL, FRESH, FURTHER, HELD, MOVED, SAME, SPENT, Chain, Kernel,
)
from fastkam._core.linalg cimport all_finite, copy
from fastkam._core.noise cimport refresh_noise
from fastkam._core.rng cimport bitgen_t, normals, random_standard_exponential
from fastkam._core.target cimport Target
from fastkam.target cimport fk_target

from fastkam._core.kernel import zeros

import numpy as np

cdef extern from "crew.h" nogil:
    int prepare_crew "fk_prepare_crew" (Crew *crew, int helpers)
    void start_crew "fk_start_crew" (Crew *crew, int helpers)
    void run_errands "fk_run_errands" (
        Crew *crew, int m, void (*errand)(int, void *) noexcept nogil, void *data)
    void end_crew "fk_end_crew" (Crew *crew)
    void free_crew "fk_free_crew" (Crew *crew)
    double now "fk_now" ()

# log density NaN, -inf; target's code > 0; an element of the gradient that is not finite
REJECTED = ("nan", "outside", "failed", "gradient")
N_SEARCH = 100                              # points tried where x0 has no finite density
N_TIMED = 8                                 # evaluations that tell whether helpers are worth it
cdef double SLOW = 20e-6                    # seconds a point, from which on they are

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


cdef class ChainState:
    """Everything one chain needs to go on: position, kernel, generator, counters."""
    def __init__(self, Kernel kernel, bit_generator, x0, double beta=1.0, *, Py_ssize_t n_aux=0):
        cdef Py_ssize_t d = kernel.d
        self.kernel = kernel
        self.bit_generator = bit_generator
        self.x = zeros(d)
        self.y = zeros(kernel.width * d)
        self.status = np.zeros(kernel.width, np.int8)
        self.wanted = np.ones(kernel.width, np.int8)
        self.noise = np.zeros(kernel.width, np.int8)
        self.logps = np.zeros(kernel.width)
        np.asarray(self.x)[:] = x0
        self.n_rejected = np.zeros(len(REJECTED), np.int64)
        self.offending = np.full((len(REJECTED), N_KEPT, d), np.nan)
        self.history = {}
        self.c.d = d
        self.c.rng = <bitgen_t *>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
        self.c.beta = beta
        self.c.x = &self.x[0]
        self.c.y = &self.y[0]
        if kernel.gradient:
            self.grad_x = zeros(d)
            self.grad_y = zeros(kernel.width * d)
            self.c.grad_x = &self.grad_x[0]
            self.c.grad_y = &self.grad_y[0]
        self.c.logps = &self.logps[0] if kernel.width > 1 else &self.c.logp_y
        self.c.wanted = &self.wanted[0]
        self.c.noise = &self.noise[0]
        if n_aux:
            self.u, self.v = zeros((kernel.width, n_aux)), zeros((kernel.width, n_aux))
            self.c.u, self.c.v, self.c.n_aux = &self.u[0, 0], &self.v[0, 0], n_aux
        self.c.logp_x = np.nan
        self.c.keep = 1

    @property
    def position(self):
        """A copy of x."""
        return np.array(self.x)

    @property
    def noise_at_x(self):
        """A copy of the noise (n_aux,) of the estimate at x."""
        return np.array(self.u[0])

    @property
    def t(self):
        """Steps made."""
        return self.c.t

    @property
    def count(self):
        """Rows of the trace that are filled."""
        return self.trace.count

    @property
    def n_accepted(self):
        return self.n_accepted

    @property
    def n_evaluations(self):
        """Evaluations of the density in the steps made."""
        return self.n_evaluations

    @property
    def rejected(self):
        """How many points had no density, by kind."""
        return dict(zip(REJECTED, np.asarray(self.n_rejected).tolist(), strict=True))

    @property
    def offenders(self):
        """The first such points, {kind: (up to 5, d)}."""
        points = np.array(self.offending)
        return {kind: points[i, :min(N_KEPT, n)]
                for i, (kind, n) in enumerate(self.rejected.items())}

    def attach(self, arrays, int64_t capacity=0, int64_t thin=1):
        """Record into x, logp, log_ratio, accepted, extra from row counts[0] to `capacity`.

        Where logp is empty, into x alone.
        `publish` writes the number of rows filled back to counts[0].
        """
        cdef double[:, ::1] x
        cdef double[:, ::1] extra
        cdef double[::1] logp
        cdef double[::1] log_ratio
        cdef signed char[::1] accepted
        cdef int64_t[::1] counts = arrays["counts"]
        cdef int64_t count = counts[0]
        self.arrays = arrays
        self.trace.filled = &counts[0]
        self.trace.count = count
        self.trace.capacity = 0
        if count >= capacity:
            return
        x, extra = arrays["x"], arrays["extra"]
        logp, log_ratio = arrays["logp"], arrays["log_ratio"]
        accepted = arrays["accepted"]
        self.trace.x = &x[0, 0]
        self.trace.logp = NULL
        if logp.shape[0]:
            self.trace.logp = &logp[0]
            self.trace.log_ratio = &log_ratio[0]
            self.trace.accepted = &accepted[0]
        self.trace.n_extra = extra.shape[1]
        self.trace.extra = &extra[0, 0] if extra.shape[1] else NULL
        self.trace.capacity = min(capacity, x.shape[0])
        self.trace.thin = thin

    def keep_history(self, int n):
        """Make room for n snapshots of what the kernel learns."""
        self.history = {name: np.full((n, *np.shape(getattr(self.kernel, name))), np.nan)
                        for name in self.kernel.LEARNT}

    def snapshot(self, int i):
        """Take the i-th of them."""
        for name, array in self.history.items():
            array[i] = getattr(self.kernel, name)

    def place(self, x, noise=None, double logp=np.nan):
        """Stand at x (d,) as a new chain does, with the kernel as it is.

        Where the density is estimated: with the noise (n_aux,), or that of each of the kernel's
        states (width, n_aux), and the estimate made with it.
        """
        np.asarray(self.x)[:] = x
        if noise is not None:
            np.asarray(self.u)[:] = noise
        self.c.logp_x = logp
        self.c.t = self.c.accepted = 0
        self.pending = self.frozen = False
        self.kernel.displaced()

    def state(self):
        """All of it as plain arrays; the generator's state apart, as numpy gives it."""
        state = {
            "x": np.array(self.x), "y": np.array(self.y),
            "n_rejected": np.array(self.n_rejected), "offending": np.array(self.offending),
            "wanted": np.array(self.wanted),
            "logp_x": self.c.logp_x, "logp_y": self.c.logp_y, "log_q": self.c.log_q,
            "E": self.c.E, "alpha": self.c.alpha, "accepted": self.c.accepted,
            "keep": self.c.keep, "adapting": self.c.adapting, "t": self.c.t,
            "pending": self.pending, "answer": self.answer, "frozen": self.frozen,
            "n_adapted": self.n_adapted, "next_adaptation": self.next_adaptation,
            "n_accepted": self.n_accepted, "n_evaluations": self.n_evaluations,
        }
        if self.c.n_aux:
            state |= {"u": np.array(self.u), "v": np.array(self.v), "noise": np.array(self.noise)}
        if self.kernel.gradient:
            state |= {"grad_x": np.array(self.grad_x), "grad_y": np.array(self.grad_y)}
        state |= {f"kernel.{name}": value for name, value in self.kernel.state().items()}
        state |= {f"adaptation.{name}": value.copy() for name, value in self.history.items()}
        return {name: np.asarray(value) for name, value in state.items()}

    def restore(self, state):
        """Take up a state of `state`; the generator's is set by its owner."""
        np.asarray(self.x)[:] = state["x"]
        np.asarray(self.y)[:] = state["y"]
        np.asarray(self.n_rejected)[:] = state["n_rejected"]
        np.asarray(self.offending)[:] = state["offending"]
        np.asarray(self.wanted)[:] = state["wanted"]
        self.c.logp_x, self.c.logp_y, self.c.log_q = (
            state["logp_x"], state["logp_y"], state["log_q"])
        self.c.E, self.c.alpha = state["E"], state["alpha"]
        self.c.accepted, self.c.keep = state["accepted"], state["keep"]
        self.c.t, self.c.adapting = state["t"], state["adapting"]
        self.pending, self.answer = state["pending"], state["answer"]
        self.frozen = state["frozen"]
        if self.c.n_aux:
            np.asarray(self.u)[:], np.asarray(self.v)[:] = state["u"], state["v"]
            np.asarray(self.noise)[:] = state["noise"]
        if self.kernel.gradient:
            np.asarray(self.grad_x)[:] = state["grad_x"]
            np.asarray(self.grad_y)[:] = state["grad_y"]
        self.n_adapted, self.next_adaptation = state["n_adapted"], state["next_adaptation"]
        self.n_accepted = state["n_accepted"]
        self.n_evaluations = state["n_evaluations"]
        self.history = {name: np.array(state[f"adaptation.{name}"]) for name in self.history}
        self.kernel.restore({name[len("kernel."):]: value for name, value in state.items()
                             if name.startswith("kernel.")})

    cdef int64_t advance(self, int64_t n, Schedule *schedule, int64_t most_evaluations,
                         double *gradient, int *code) except -1 nogil:
        """At most n steps of a chain for itself, one evaluation each; the number made.

        Fewer where the trace is full, the evaluations are used up, or one failed: then with its
        code. The gradient (d,) is evaluated too where there is room for it.
        """
        cdef const fk_target *target = self.c.target
        cdef int64_t done
        cdef double logp = 0
        cdef int rc
        code[0] = 0
        for done in range(n):
            self.begin(schedule)
            if gradient != NULL:
                rc = target.logp_grad(target.dim, self.c.y, gradient, &logp, target.data)
            else:
                rc = target.logp(target.dim, self.c.y, &logp, target.data)
            code[0] = self.judge(0, rc, logp)
            if code[0]:
                return done
            self.tally()
            self.finish(schedule)
            self.freeze(schedule)
            if self.is_full(most_evaluations):
                return done + 1
        return n

    # ---- the parts of a step ----

    cdef int begin(self, Schedule *schedule) except -1 nogil:
        """Propose, unless a proposal is pending, and draw E = -log U for the decision.

        E is drawn whatever the density turns out to be, so that the stream does not depend on it;
        and before the density is evaluated, since many of them load y as vectors, which would
        otherwise wait for the elements just stored (20 ns a step).
        """
        if not self.pending:
            self.answer = AGAIN
            self.c.adapting = schedule.start <= self.c.t < schedule.stop and (
                schedule.rarity <= 0 or self.c.t >= self.next_adaptation)
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
        """Sort the density at a row of y into good and rejected (status); a fatal one's code."""
        self.c.logps[row] = -INFINITY
        if rc < 0:
            return rc
        if rc > 0:
            self.status[row] = 2
        elif isnan(logp):
            self.status[row] = 0
        elif logp == -INFINITY:
            self.status[row] = 1
        elif logp == INFINITY:
            return INT_MIN
        elif self.c.grad_y != NULL and not all_finite(self.c.d, self.c.grad_y + row * self.c.d):
            self.status[row] = 3
        else:
            self.status[row] = GOOD
            self.c.logps[row] = logp
        return 0

    cdef int consider(self) except -1 nogil:
        """Let the kernel see the density at y, if it waits for it; a fatal code, or 0."""
        cdef int answer
        if self.answer == AGAIN:
            answer = self.kernel.consider(&self.c)
            if answer == FATAL:     # the same evaluation is made again when the run goes on
                return self.c.code
            self.answer = answer
            if answer == AGAIN and self.c.n_aux:
                self.draw_noise()
        return 0

    cdef void publish(self) noexcept nogil:
        """Tell the trace how many rows are filled; kept local until then, a cache line a chain."""
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
            self.log_ratio = c.beta * (c.logp_y - c.logp_x) + c.log_q
            if isnan(self.log_ratio):       # a proposal density overflowed
                self.log_ratio = -INFINITY
            c.accepted = c.E > -self.log_ratio
        if c.adapting:
            self.adapt(schedule)
        if c.accepted:
            copy(c.d, c.y, c.x)
            copy(c.n_aux, c.v, c.u)
            c.logp_x = c.logp_y
            if c.grad_x != NULL:
                copy(c.d, c.grad_y, c.grad_x)
            self.n_accepted += 1
        c.t += 1
        self.pending = False
        self.record()
        return 0

    cdef int adapt(self, Schedule *schedule) except -1 nogil:
        """Let the kernel learn, with the gain of the schedule.

        K chains that share what they learn make one sequence of adaptations, in which the j-th of
        chain k = 0, ..., K - 1 is the (K (j - 1) + k + 1)-th.
        """
        cdef int64_t n
        cdef double gain
        if schedule.rarity > 0:
            self.next_adaptation = schedule.start - 1 + <int64_t>ceil(
                pow(self.n_adapted + 2.0, 1.0 + schedule.rarity))
        self.n_adapted += 1
        if self.answer != DECIDED:
            self.c.alpha = 1.0 if self.log_ratio >= 0 else exp(self.log_ratio)
        gain = schedule.c
        if schedule.k != 0:
            n = self.kernel.sharers * (self.n_adapted - 1) + self.turn + 1
            if n != schedule.n:
                schedule.n, schedule.power = n, pow(schedule.offset + n, -schedule.k)
            gain *= schedule.power
        return self.kernel.adapt(&self.c, min(gain, schedule.cap))

    cdef int freeze(self, Schedule *schedule) except -1 nogil:
        """Freeze the kernel if adaptation has just ended, for all that it may share with."""
        if self.c.t == schedule.stop and not self.frozen:
            self.frozen = True
            self.kernel.freeze(&self.c)
        return 0

    cdef void tally(self) noexcept nogil:
        """Count evaluations and points without a density, of which the first of a kind are kept."""
        cdef int64_t n
        cdef int row, status
        if not self.pending or self.answer != AGAIN:
            return
        for row in range(self.kernel.width):
            if not self.c.wanted[row]:
                continue
            self.n_evaluations += 1
            status = self.status[row]
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
        if not c.keep or row >= trace.capacity or (trace.thin > 1 and c.t % trace.thin):
            return
        copy(c.d, c.x, trace.x + row * c.d)
        if trace.logp != NULL:
            trace.logp[row] = c.logp_x
            trace.log_ratio[row] = self.log_ratio
            trace.accepted[row] = c.accepted
        if trace.n_extra:
            self.kernel.record(c, trace.extra + row * trace.n_extra)
        trace.count = row + 1


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
        The chains learn as one, each in its turn: see `Kernel.join`. Their kernels have the same
        parameters, and the same state as far as it is shared.
    """

    def __cinit__(self, Target target, list chains, schedule, *, bint share=False):
        cdef ChainState s
        cdef int i
        self.target = target
        self.chains = chains
        self.K = len(chains)
        self.shares = share and self.K > 1
        (self.schedule.c, self.schedule.k, self.schedule.offset, self.schedule.cap,
         self.schedule.start, stop, self.schedule.rarity) = schedule
        self.schedule.stop = INT64_MAX if stop is None else stop
        self.width = chains[0].kernel.width
        rows = self.K * self.width
        self.points = zeros((rows, target.c.dim))
        self.values = zeros(rows)
        self.pointers = <void **>calloc(self.K, sizeof(void *))
        if self.pointers == NULL:
            raise MemoryError
        self.errands = np.zeros(rows, np.intc)
        self.codes = np.zeros(rows, np.intc)
        self.untimed, self.fastest = N_TIMED, INFINITY
        self.considers = chains[0].kernel.considers
        self.noisy, self.batched = target.is_estimate, target.batched
        self.alone = rows == 1 and not (self.batched or self.noisy or self.considers)
        self.gradient = chains[0].kernel.gradient or (
            target.c.logp == NULL and target.c.batch == NULL and not self.noisy)
        self.gradients = zeros((rows, target.c.dim))
        if self.considers or self.width > 1:
            self.some_points = zeros((rows, target.c.dim))
            self.some_gradients = zeros((rows, target.c.dim))
            self.some_values = zeros(rows)
        if self.noisy and self.batched:
            self.some_noise = zeros((rows, target.n_aux))
        for i in range(self.K):
            s = chains[i]
            self.pointers[i] = <void *>s
            s.c.target = &target.c
            s.c.surrogate = NULL if target.surrogate is None else &target.surrogate.c
            s.refresh = target.refresh
            if s.c.n_aux != target.n_aux:
                raise ValueError(f"the chain has room for {s.c.n_aux} numbers of noise, and "
                                 f"{target!r} takes {target.n_aux}")
            # proposals stand together, for the batch call
            mine = slice(i * self.width, (i + 1) * self.width)
            ours = np.asarray(self.points)[mine].reshape(-1)
            ours[:] = s.y
            s.y = ours
            s.c.y = &self.points[i * self.width, 0]
            if s.kernel.gradient:
                ours = np.asarray(self.gradients)[mine].reshape(-1)
                ours[:] = s.grad_y
                s.grad_y = ours
                s.c.grad_y = &self.gradients[i * self.width, 0]
            s.c.end_of_adaptation = self.schedule.stop
            if self.shares:
                s.kernel.join(chains[0].kernel, self.K)
                s.turn = i

    def __dealloc__(self):
        free(self.pointers)
        if self.crew != NULL:
            free_crew(self.crew)
            free(self.crew)

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
        """At most n steps; the number made. Raises Fault.

        Fewer where every chain's trace is full or its evaluations, in all, are so many. With more
        than one thread others help to evaluate the points that wait, if a point takes long enough;
        none of them is there before or after.
        """
        cdef int fault, k
        self.most_evaluations = most_evaluations
        self.call_helpers(threads)
        try:
            if self.target.needs_gil:
                fault = self.advance(n)
            else:
                with nogil:
                    fault = self.advance(n)
        finally:            # compiled: no signal comes between a step and its count
            if self.crew != NULL:
                end_crew(self.crew)
            for k in range(self.K):
                (<ChainState>self.pointers[k]).publish()
        if fault:
            raise self.error()
        return self.done

    def call_helpers(self, int threads):
        """Start the threads that help in this run; time the first evaluations, without them."""
        cdef int rows = self.K * self.width
        cdef int helpers = min(threads, rows, FK_HELPERS + 1) - 1
        if helpers < 1 or self.target.needs_gil or self.target.serial or self.batched:
            self.untimed = 0
        elif self.untimed == 0 and self.fastest > SLOW:
            if self.crew == NULL:
                self.crew = <Crew *>calloc(1, sizeof(Crew))
            if self.crew == NULL or prepare_crew(self.crew, helpers):
                raise MemoryError
            start_crew(self.crew, helpers)

    def error(self):
        x = np.asarray(self.points)[self.failed * self.width + self.failed_row].copy()
        return Fault(self.failed, x, self.code, self.target.fault(self.code, x))

    cdef int advance(self, int64_t n) except -1 nogil:
        cdef int k
        cdef bint full
        if self.alone:
            self.done = (<ChainState>self.pointers[0]).advance(
                n, &self.schedule, self.most_evaluations,
                &self.gradients[0, 0] if self.gradient else NULL, &self.code)
            self.failed = self.failed_row = 0
            return self.code != 0
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
        """Let chain `to` know what chain k has learnt, the last to learn."""
        if (<ChainState>self.pointers[k]).c.adapting:
            (<ChainState>self.pointers[to]).kernel.take((<ChainState>self.pointers[k]).kernel)

    cdef int settle(self) except -1 nogil:
        """Evaluate until every chain can decide; 1 where the run must stop."""
        cdef int k, waiting = 1
        if not self.considers:
            return self.evaluate()
        while waiting:
            if self.evaluate():
                return 1
            waiting = 0
            for k in range(self.K):
                self.code = (<ChainState>self.pointers[k]).consider()
                if self.code:
                    self.failed, self.failed_row = k, 0
                    return 1
                waiting += (<ChainState>self.pointers[k]).answer == AGAIN
        return 0

    cdef int evaluate(self) noexcept nogil:
        """log pi at the points that chains wait for; 1 where the run must stop."""
        cdef int k, row, i, rc = 0
        cdef bint together = self.crew != NULL and self.crew.helpers > 0
        if self.untimed:
            return self.evaluate_timed()
        if self.batched:
            rc = self.evaluate_batch()
        elif together:
            self.evaluate_together()
        for k in range(self.K):
            if (<ChainState>self.pointers[k]).answer != AGAIN:
                continue
            for row in range(self.width):
                if not (<ChainState>self.pointers[k]).c.wanted[row]:
                    continue
                i = k * self.width + row
                if together:
                    rc = self.codes[i]
                elif not self.batched:
                    rc = self.evaluate_point(i)
                self.code = (<ChainState>self.pointers[k]).judge(row, rc, self.values[i])
                if self.code:
                    self.failed, self.failed_row = k, row
                    return 1
            if self.width > 1:
                (<ChainState>self.pointers[k]).c.logp_y = (<ChainState>self.pointers[k]).c.logps[0]
        for k in range(self.K):
            (<ChainState>self.pointers[k]).tally()
        return 0

    cdef int evaluate_point(self, int i) noexcept nogil:
        """The density, its estimate or its gradient too, at the i-th of all points; its code."""
        cdef const fk_target *target = &self.target.c
        if self.noisy:
            return target.noisy(target.dim, &self.points[i, 0], target.n_aux, self.noise_of(i),
                                &self.values[i], target.data)
        if self.gradient:
            return target.logp_grad(target.dim, &self.points[i, 0], &self.gradients[i, 0],
                                    &self.values[i], target.data)
        return target.logp(target.dim, &self.points[i, 0], &self.values[i], target.data)

    cdef const double *noise_of(self, int i) noexcept nogil:
        """That of the estimate at the i-th of all points, (n_aux,)."""
        cdef const Chain *c = &(<ChainState>self.pointers[i // self.width]).c
        cdef int row = i % self.width
        return (c.u if c.noise[row] == HELD else c.v) + row * c.n_aux

    cdef void evaluate_together(self) noexcept nogil:
        """All points that wait, with the helpers."""
        run_errands(self.crew, self.gather(), run_errand, <void *>self)

    cdef int evaluate_timed(self) noexcept nogil:
        cdef int answer, untimed = self.untimed, m = self.gather()
        cdef double begun
        self.untimed = 0
        begun = now()
        answer = self.evaluate()
        if m > 0:
            self.fastest = min(self.fastest, (now() - begun) / m)
        self.untimed = untimed - 1
        return answer

    cdef int gather(self) noexcept nogil:
        """Which of all points are to be evaluated, as errands; how many."""
        cdef int k, row, m = 0
        for k in range(self.K):
            if (<ChainState>self.pointers[k]).answer == AGAIN:
                for row in range(self.width):
                    if (<ChainState>self.pointers[k]).c.wanted[row]:
                        self.errands[m] = k * self.width + row
                        m += 1
        return m

    cdef int evaluate_batch(self) noexcept nogil:
        """Values, or estimates, and gradients of all points that wait, in one call."""
        cdef size_t d = self.target.c.dim
        cdef int i, rc, m = self.gather()
        if m == 0:
            return 0
        if self.noisy:
            for i in range(m):
                copy(self.target.c.n_aux, self.noise_of(self.errands[i]), &self.some_noise[i, 0])
        if m == self.K * self.width:
            return self.call_batch(m, &self.points[0, 0], &self.gradients[0, 0], &self.values[0])
        for i in range(m):
            copy(d, &self.points[self.errands[i], 0], &self.some_points[i, 0])
        rc = self.call_batch(m, &self.some_points[0, 0], &self.some_gradients[0, 0],
                             &self.some_values[0])
        for i in range(m):
            copy(d, &self.some_gradients[i, 0], &self.gradients[self.errands[i], 0])
            self.values[self.errands[i]] = self.some_values[i]
        return rc

    cdef int call_batch(self, size_t m, const double *X, double *gradients,
                        double *values) noexcept nogil:
        """One call for m points (m, d): values (m,), and gradients (m, d) where wanted."""
        cdef const fk_target *target = &self.target.c
        if self.noisy:
            return self.target.noisy_batch(m, target.dim, X, target.n_aux, &self.some_noise[0, 0],
                                           values, target.data)
        return target.batch(m, target.dim, X, gradients if self.gradient else NULL, values,
                            target.data)


cdef void run_errand(int i, void *group) noexcept nogil:
    """One evaluation, in any thread."""
    cdef int row = (<Group>group).errands[i]
    (<Group>group).codes[row] = (<Group>group).evaluate_point(row)
