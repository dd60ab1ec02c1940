"""The state of a chain, which is saved and restored."""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport NAN, isfinite
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcmp, memcpy, memset
from numpy cimport (
    NPY_DOUBLE, NPY_INT64, NPY_INT8, PyArray_SimpleNewFromData, import_array, ndarray,
    npy_intp, set_array_base,
)

from fastkam._core.engine.kernel cimport DECIDE, DECIDED, MOVED, SPENT, Chain, Kernel, Parts
from fastkam._core.engine.rng cimport bitgen_t
from fastkam._core.engine.state cimport State, integer_view, real_view
from fastkam._core.linalg.dense cimport copy

from fastkam._core.engine.fields import Field
from fastkam._core.engine.kernel import uninterrupted
from fastkam._core.engine.ranges import BadField, Step, check_form, check_range
from fastkam._core.engine.state import zeros

import numpy as np

import_array()

# log density NaN, -inf; target's code > 0; an element of the gradient that is not finite
REJECTED = ("nan", "outside", "failed", "gradient")

# numbers of the struct that kernels see
NUMBERS = {
    "logp_x": Field("log density at x"),
    "logp_y": Field("log density at y"),
    "log_q": Field("log ratio of the proposal densities"),
    "E": Field("-log U of the decision", least=0),
    "alpha": Field("acceptance probability", least=0, most=1),
    "accepted": Field("whether the last proposal was accepted", dtype="i8", least=0, most=1),
    "keep": Field("whether the state after this step is a draw", dtype="i8", least=0, most=1),
    "adapting": Field("whether this step ends with an adaptation", dtype="i8", least=0, most=1),
}


cdef inline Py_ssize_t lines(Py_ssize_t n) noexcept nogil:
    """Return n rounded up to a multiple of 8, the doubles in a cache line."""
    return (n + 7) // 8 * 8


cdef dict numbers_of(Chain *c):
    """Return the stored numbers of the struct, {name: view}."""
    return {
        "logp_x": real_view(&c.logp_x), "logp_y": real_view(&c.logp_y),
        "log_q": real_view(&c.log_q), "E": real_view(&c.E), "alpha": real_view(&c.alpha),
        "accepted": integer_view(&c.accepted), "keep": integer_view(&c.keep),
        "adapting": integer_view(&c.adapting),
    }


cdef dict numbers_of_parts(Parts *parts):
    """Return the parts of a tempered density at x and y, {name: view}."""
    return {
        "log_pi_x": real_view(&parts.log_pi_x), "log_ref_x": real_view(&parts.log_ref_x),
        "log_pi_y": real_view(&parts.log_pi_y), "log_ref_y": real_view(&parts.log_ref_y),
    }


cdef void take_rows(Chain *c, const Chain *outer, int64_t first) noexcept nogil:
    """Give a chain within another its generator, and its rows of y and noise from `first` on."""
    c.rng, c.bit_generator, c.n_aux = outer.rng, outer.bit_generator, outer.n_aux
    c.y, c.wanted = outer.y + first * outer.d, outer.wanted + first
    c.noise = outer.noise + first
    if outer.n_aux:
        c.u, c.v = outer.u + first * outer.n_aux, outer.v + first * outer.n_aux


cdef class ChainState(State):
    """The complete state of one chain: position, kernel, generator, counters."""
    STEP = NUMBERS
    FIELDS = {
        "x": Field("position", ("d",), finite=True),
        "y": Field("proposals", ("rows",)),
        "wanted": Field("whether each of them is to be evaluated", ("width",), "i1",
                        least=0, most=1),
        "n_rejected": Field("points without a density, by kind", ("kinds",), "i8", least=0),
        "offending": Field("the first of these", ("kinds", "kept", "d")),
        "t": Field("steps made", dtype="i8", least=0),
        "pending": Field("whether y is proposed and not yet decided", dtype="i8", least=0, most=1),
        "answer": Field("what the kernel's last consider returned", dtype="i8",
                        least=DECIDE, most=DECIDED),
        "frozen": Field("whether adaptation has ended", dtype="i8", least=0, most=1),
        "n_adapted": Field("adaptations made", dtype="i8", least=0),
        "next_adaptation": Field("the step of the next one, where they are rare", dtype="i8",
                                 least=0, most=INT64_MAX),
        "n_accepted": Field("proposals accepted", dtype="i8", least=0),
        "n_evaluations": Field("evaluations of the density", dtype="i8", least=0),
    }
    GRADIENTS = {
        "grad_x": Field("gradient at x", ("d",)),
        "grad_y": Field("gradients at the proposals", ("rows",)),
    }
    NOISE = {
        "u": Field("noise of the estimate at x", ("width", "n_aux"), finite=True),
        "v": Field("noise of the proposals", ("width", "n_aux")),
        "noise": Field("which noise each evaluation takes", ("width",), "i1",
                       least=MOVED, most=SPENT),
    }

    def __init__(self, Kernel kernel, bit_generator, x0, *, Py_ssize_t n_aux=0):
        self.kernel = kernel
        self.bit_generator = bit_generator
        self.history, self.notes = {}, {}
        self.c.d = kernel.d
        self.c.rng = <bitgen_t *>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
        self.c.bit_generator = <void *>bit_generator
        self.lay_out(np.asarray(x0, dtype=float), n_aux)
        self.c.logp_x = np.nan
        self.c.keep = 1

    cdef int lay_out(self, const double[::1] x0, Py_ssize_t n_aux) except -1:
        """Allocate all arrays at once: with thousands of chains, each object counts."""
        cdef Chain *c = &self.c
        cdef Py_ssize_t i, d = c.d, w = self.kernel.width, kept = N_KINDS * N_KEPT * d
        cdef Py_ssize_t gradients = self.kernel.gradient
        cdef double[::1] numbers
        cdef double *start
        if x0.shape[0] != d:
            raise ValueError(f"x0 must have shape {(d,)}, not {(x0.shape[0],)}")
        self.memory = zeros((1 + gradients) * (lines(d) + lines(w * d)) + 2 * lines(w * n_aux)
                            + lines(w) + lines(N_KINDS) + lines(kept) + lines((3 * w + 7) // 8))
        numbers = self.memory
        start = &numbers[0]
        c.x, start = start, start + lines(d)
        c.y, start = start, start + lines(w * d)
        if gradients:
            c.grad_x, start = start, start + lines(d)
            c.grad_y, start = start, start + lines(w * d)
        if n_aux:
            c.u, start = start, start + lines(w * n_aux)
            c.v, start = start, start + lines(w * n_aux)
            c.n_aux = n_aux
        c.logps, start = start if w > 1 else &c.logp_y, start + lines(w)
        self.n_rejected, start = <int64_t *>start, start + lines(N_KINDS)
        self.offending, start = start, start + lines(kept)
        c.wanted = <signed char *>start
        c.noise, self.status = c.wanted + w, c.wanted + 2 * w
        memset(c.wanted, 1, w)
        copy(d, &x0[0], c.x)
        for i in range(kept):
            self.offending[i] = NAN
        return 0

    cdef object view(self, int kind, const void *start, tuple shape):
        """Return an array that shares this chain's memory and keeps it alive."""
        cdef npy_intp lengths[3]
        cdef Py_ssize_t i, n = len(shape)
        cdef ndarray view
        for i in range(n):
            lengths[i] = shape[i]
        view = PyArray_SimpleNewFromData(<int>n, lengths, kind, <void *>start)
        set_array_base(     # which keeps a reference, as PyArray_SetBaseObject does not
            view, self.memory if self.common is None else (self.memory, self.common))
        return view

    cdef object reals(self, const double *start, tuple shape):
        """Return a view of doubles."""
        return self.view(NPY_DOUBLE, start, shape)

    cdef int move_to(self, double *x, double *grad_x, double *y, double *grad_y,
                     signed char *wanted, signed char *status, object common) except -1:
        """Move arrays to the memory of a group, owned by `common`; those given as NULL stay."""
        cdef Chain *c = &self.c
        cdef Py_ssize_t d = c.d, w = self.kernel.width
        if x != NULL:
            copy(d, c.x, x)
            memcpy(wanted, c.wanted, w)
            memcpy(status, self.status, w)
            c.x, c.wanted, self.status = x, wanted, status
        copy(w * d, c.y, y)
        c.y = y
        if c.grad_x != NULL:
            if x != NULL:
                copy(d, c.grad_x, grad_x)
                c.grad_x = grad_x
            copy(w * d, c.grad_y, grad_y)
            c.grad_y = grad_y
        self.common = common
        return 0

    @property
    def position(self):
        """A copy of x."""
        return self.reals(self.c.x, (self.c.d,)).copy()

    @property
    def gradient_at_x(self):
        """A copy of the gradient (d,) at x; AttributeError where the kernel needs none."""
        if self.c.grad_x == NULL:
            raise AttributeError(f"{type(self.kernel).__name__} keeps no gradient")
        return self.reals(self.c.grad_x, (self.c.d,)).copy()

    @property
    def noise_at_x(self):
        """A copy of the noise (n_aux,) of the estimate at x."""
        return self.reals(self.c.u, (self.c.n_aux,)).copy()

    @property
    def count(self):
        """Number of rows of the trace that are filled."""
        return self.trace.count

    @property
    def rejected(self):
        """Number of points without a density, by kind."""
        return dict(zip(REJECTED, [self.n_rejected[i] for i in range(N_KINDS)], strict=True))

    def attach(self, arrays, int64_t capacity=0, int64_t thin=1, *, bint noting=False):
        """Record into x, logp, log_ratio, accepted, extra from row counts[0] to `capacity`.

        The first row of the arrays is row `first` of the trace, 0 by default. If logp is empty,
        only x is recorded. States are multiplied by `scales`, if given. `publish` writes the number
        of filled rows back to counts[0]. With `noting` the extras of each row are noted, if the
        target has any.
        """
        cdef double[:, ::1] x
        cdef double[:, ::1] extra
        cdef double[::1] logp
        cdef double[::1] log_ratio
        cdef const double[::1] scales
        cdef signed char[::1] accepted
        cdef int64_t[::1] counts = arrays["counts"]
        cdef int64_t count = counts[0], first = arrays.get("first", 0)
        self.arrays, self.noting = arrays, noting
        self.trace.filled = &counts[0]
        self.trace.count = count
        self.trace.capacity = capacity  # remains if the trace is full, or nothing is recorded (0)
        if count >= capacity:
            return
        x, extra = arrays["x"], arrays["extra"]
        logp, log_ratio = arrays["logp"], arrays["log_ratio"]
        accepted = arrays["accepted"]
        # pointers to row 0, which need not exist: rows before `first` are not accessed
        self.trace.x = &x[0, 0] - first * self.c.d
        self.trace.scales = NULL
        if "scales" in arrays:
            scales = arrays["scales"]
            self.trace.scales = &scales[0]
        self.trace.logp = NULL
        if logp.shape[0]:
            self.trace.logp = &logp[0] - first
            self.trace.log_ratio = &log_ratio[0] - first
            self.trace.accepted = &accepted[0] - first
        self.trace.n_extra = extra.shape[1]
        self.trace.extra = &extra[0, 0] - first * extra.shape[1] if extra.shape[1] else NULL
        self.trace.capacity = min(capacity, first + x.shape[0])
        self.trace.thin = thin

    cdef void note(self, int64_t row) noexcept with gil:
        """Note the extras of the state, stored since its evaluation or computed again.

        A KeyboardInterrupt is deferred until then; after any other error the extras are missing.
        """
        cdef size_t size = self.c.d * sizeof(double)
        try:
            if self.noted_at is None or self.c.n_aux or memcmp(
                    <const char *>self.noted_at, self.c.x, size):
                uninterrupted(self.note_extras)
                self.noted_at = (<const char *>self.c.x)[:size]
            self.notes[row] = self.noted
        except BaseException as error:
            self.note_error = error

    def note_extras(self):
        self.noted = self.source.extras_at(
            self.position, self.noise_at_x if self.c.n_aux else None)

    def take_notes(self):
        """Return the extras noted since the last call, {row: extras}."""
        notes, self.notes = self.notes, {}
        return notes

    def take_note_error(self):
        """Return the error raised by the computation of extras since the last call, or None."""
        error, self.note_error = self.note_error, None
        return error

    def keep_history(self, int n):
        """Make room for n snapshots of what the kernel learns."""
        self.history = {name: np.empty((n, *value.shape))
                        for name, value in self.kernel.learned().items()}
        for snapshots in self.history.values():
            snapshots.fill(np.nan)
        self.learned = None

    def snapshot(self, Py_ssize_t i):
        """Take the i-th snapshot."""
        if not self.history:
            return
        learned = self.learned
        if learned is None:
            learned = [(self.history[name], value) for name, value in self.kernel.learned().items()]
            if type(self.kernel).learned is State.learned:    # overrides may return new arrays
                self.learned = learned
        for snapshots, value in learned:
            snapshots[i] = value

    def place(self, x, noise=None, double logp=np.nan):
        """Move to x (d,) as a new chain, with the kernel as it is.

        For an estimated density, the noise (n_aux,), or that of each of the kernel's states
        (width, n_aux), and the estimate made with it are given.
        """
        self.reals(self.c.x, (self.c.d,))[:] = x
        if noise is not None:
            self.reals(self.c.u, (self.kernel.width, self.c.n_aux))[:] = noise
        self.c.logp_x = logp
        self.t = self.kernel.t = self.c.accepted = 0
        self.pending = self.frozen = False
        self.kernel.displaced()

    # ---- the state as plain arrays, without that of the generator ----

    def parts(self):
        return {"kernel": self.kernel}

    def table(self):
        table = self.FIELDS | self.STEP
        if self.c.grad_x != NULL:
            table |= self.GRADIENTS
        return table | self.NOISE if self.c.n_aux else table

    def views(self):
        cdef Chain *c = &self.c
        cdef Py_ssize_t d = c.d, w = self.kernel.width
        views = {"x": self.reals(c.x, (d,)), "y": self.reals(c.y, (w * d,)),
                 "wanted": self.view(NPY_INT8, c.wanted, (w,)),
                 "n_rejected": self.view(NPY_INT64, self.n_rejected, (N_KINDS,)),
                 "offending": self.reals(self.offending, (N_KINDS, N_KEPT, d))}
        if c.grad_x != NULL:
            views["grad_x"] = self.reals(c.grad_x, (d,))
            views["grad_y"] = self.reals(c.grad_y, (w * d,))
        if c.n_aux:
            views["u"] = self.reals(c.u, (w, c.n_aux))
            views["v"] = self.reals(c.v, (w, c.n_aux))
            views["noise"] = self.view(NPY_INT8, c.noise, (w,))
        views.update(self.numbers(), **numbers_of(c))
        return views

    def check(self, state, step=None):
        own = dict(state)
        for name, snapshots in self.history.items():
            name = f"adaptation.{name}"
            if name not in own:
                raise BadField(name, "is missing")
            check_form(name, own.pop(name), snapshots.shape, snapshots.dtype)
        for name in ("t", "pending"):   # the ranges of others depend on these
            check_form(name, own.get(name), (), np.int64)
            check_range(name, self.FIELDS[name], own[name], {})
        super().check(own, Step(int(own["t"]), bool(own["pending"]),
                                type(self.bit_generator).__name__))

    def check_relations(self, state, step):
        if not state["keep"] and not self.kernel.skips():   # there would never be a draw
            raise BadField("keep", f"must be 1 for {type(self.kernel).__name__}, not 0")
        if step.t > 0 and not isfinite(state["logp_x"]):
            raise BadField("logp_x", f"must be finite after a step, not {state['logp_x']}")

    def state(self):
        state = super().state()
        for name, value in self.history.items():
            state[f"adaptation.{name}"] = value.copy()
        return state

    def restore(self, state, within=""):
        """Restore the state returned by `state`; the caller restores the generator."""
        super().restore(state, within)
        self.kernel.t = self.t
        self.history = {name: np.array(state[f"{within}adaptation.{name}"])
                        for name in self.history}
        self.learned = None
