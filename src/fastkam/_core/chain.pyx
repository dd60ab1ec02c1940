"""What a chain keeps from step to step, and how it is stored and taken up again."""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Kernel
from fastkam._core.rng cimport bitgen_t

from fastkam._core.kernel import zeros

import numpy as np

# log density NaN, -inf; target's code > 0; an element of the gradient that is not finite
REJECTED = ("nan", "outside", "failed", "gradient")


cdef class ChainMemory:
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
