"""What a chain keeps from step to step: the chain's state, saved and restored."""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport isfinite
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.engine.kernel cimport DECIDE, DECIDED, MOVED, SPENT, Chain, Kernel, Parts
from fastkam._core.engine.rng cimport bitgen_t
from fastkam._core.engine.state cimport State, integer_view, real_view

from fastkam._core.engine.fields import Field
from fastkam._core.engine.kernel import uninterrupted
from fastkam._core.engine.ranges import BadField, Step, check_form, check_range
from fastkam._core.engine.state import zeros

import numpy as np

# log density NaN, -inf; target's code > 0; an element of the gradient that is not finite
REJECTED = ("nan", "outside", "failed", "gradient")

# of the struct that kernels see
NUMBERS = {
    "logp_x": Field("log density at x"),
    "logp_y": Field("log density at y"),
    "log_q": Field("log ratio of the proposal densities"),
    "E": Field("-log U of the decision"),
    "alpha": Field("acceptance probability"),
    "accepted": Field("whether the last proposal was accepted", dtype="i8", least=0, most=1),
    "keep": Field("whether the state after this step is a draw", dtype="i8", least=0, most=1),
    "adapting": Field("whether this step ends with an adaptation", dtype="i8", least=0, most=1),
}


cdef dict numbers_of(Chain *c):
    """Return the numbers of the struct that are kept, {name: view}."""
    return {
        "logp_x": real_view(&c.logp_x), "logp_y": real_view(&c.logp_y),
        "log_q": real_view(&c.log_q), "E": real_view(&c.E), "alpha": real_view(&c.alpha),
        "accepted": integer_view(&c.accepted), "keep": integer_view(&c.keep),
        "adapting": integer_view(&c.adapting),
    }


cdef dict numbers_of_parts(Parts *parts):
    """Return what is known of a tempered density at x and y, {name: view}."""
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
    """Everything one chain needs to go on: position, kernel, generator, counters."""
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
        self.history, self.notes = {}, {}
        self.c.d = d
        self.c.rng = <bitgen_t *>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
        self.c.bit_generator = <void *>bit_generator
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
    def count(self):
        """Rows of the trace that are filled."""
        return self.trace.count

    @property
    def rejected(self):
        """Number of points without a density, by kind."""
        return dict(zip(REJECTED, np.asarray(self.n_rejected).tolist(), strict=True))

    def attach(self, arrays, int64_t capacity=0, int64_t thin=1, *, bint noting=False):
        """Record into x, logp, log_ratio, accepted, extra from row counts[0] to `capacity`.

        The arrays begin with the row `first`, 0 unless it is given, and record no more rows than
        they have. Where logp is empty, into x alone. States are multiplied by `scales`, where there
        are any.
        `publish` writes the number of rows filled back to counts[0]. With `noting` the extras of
        each row are noted, where the target has any.
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
        self.trace.capacity = capacity  # full, where it is not 0, and recorded into no more
        if count >= capacity:
            return
        x, extra = arrays["x"], arrays["extra"]
        logp, log_ratio = arrays["logp"], arrays["log_ratio"]
        accepted = arrays["accepted"]
        # of the row 0, which need not be there: rows before the first are not touched
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

    def take_notes(self):
        """The extras noted since the last call, {row: extras}."""
        notes, self.notes = self.notes, {}
        return notes

    def take_note_error(self):
        """What the making of extras has raised since the last call, or None."""
        error, self.note_error = self.note_error, None
        return error

    def keep_history(self, int n):
        """Make room for n snapshots of what the kernel learns."""
        self.history = {name: np.full((n, *value.shape), np.nan)
                        for name, value in self.kernel.learnt().items()}
        self.learnt = None

    def snapshot(self, Py_ssize_t i):
        """Take the i-th of them."""
        if not self.history:
            return
        learnt = self.learnt
        if learnt is None:
            learnt = [(self.history[name], value) for name, value in self.kernel.learnt().items()]
            if type(self.kernel).learnt is State.learnt:    # others may not keep their arrays
                self.learnt = learnt
        for snapshots, value in learnt:
            snapshots[i] = value

    def place(self, x, noise=None, double logp=np.nan):
        """Move to x (d,) as a new chain, with the kernel as it is.

        Where the density is estimated: with the noise (n_aux,), or that of each of the kernel's
        states (width, n_aux), and the estimate made with it.
        """
        np.asarray(self.x)[:] = x
        if noise is not None:
            np.asarray(self.u)[:] = noise
        self.c.logp_x = logp
        self.t = self.kernel.t = self.c.accepted = 0
        self.pending = self.frozen = False
        self.kernel.displaced()

    # ---- the state as plain arrays; that of the generator apart, as numpy gives it ----

    def parts(self):
        return {"kernel": self.kernel}

    def table(self):
        table = self.FIELDS | self.STEP
        if self.c.grad_x != NULL:
            table |= self.GRADIENTS
        return table | self.NOISE if self.c.n_aux else table

    def views(self):
        views = {name: np.asarray(getattr(self, name)) for name, field in self.table().items()
                 if field.shape}
        return views | self.numbers() | numbers_of(&self.c)

    def check(self, state, step=None):
        own = dict(state)
        for name, snapshots in self.history.items():
            name = f"adaptation.{name}"
            if name not in own:
                raise BadField(name, "is missing")
            check_form(name, own.pop(name), snapshots.shape, snapshots.dtype)
        for name in ("t", "pending"):   # on which the ranges of others depend
            check_form(name, own.get(name), (), np.int64)
            check_range(name, self.FIELDS[name], own[name], {})
        super().check(own, Step(int(own["t"]), bool(own["pending"]),
                                type(self.bit_generator).__name__))

    def check_relations(self, state, step):
        if not state["keep"] and not self.kernel.skips():   # no draw would ever be made
            raise BadField("keep", f"must be 1 for {type(self.kernel).__name__}, not 0")
        if step.t > 0 and not isfinite(state["logp_x"]):
            raise BadField("logp_x", f"must be finite after a step, not {state['logp_x']}")

    def state(self):
        return super().state() | {f"adaptation.{name}": value.copy()
                                  for name, value in self.history.items()}

    def restore(self, state):
        """Set the state from what `state` has returned; the caller restores the generator."""
        super().restore(state)
        self.kernel.t = self.t
        self.history = {name: np.array(state[f"adaptation.{name}"]) for name in self.history}
        self.learnt = None
