"""A replica: a chain at an inverse temperature, moved by a kernel of its own.

    log pi_beta = beta log pi + (1 - beta) log q,        W = log pi - log q

with q the reference. Replicas live within the chain of the kernel that couples them: their rows of
y stand among its rows, where log pi and its gradient are evaluated. Beside the tempered density
each keeps log pi, log q and the gradient of log pi, so that a state can go to another temperature.
At beta = 0 a replica is drawn from q, where that is a distribution.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.chain cimport numbers_of
from fastkam._core.engine.kernel cimport AGAIN, DECIDE, DECIDED, FATAL, FRESH, Chain, Kernel
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.rng cimport random_standard_exponential
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.engine.state cimport State, real_view
from fastkam._core.engine.step cimport accept, accepts, log_target_ratio, probability

from fastkam._core.engine.fields import Field


cdef class Replica(State):
    FIELDS = {
        "x": Field("state", ("d",)),
        "grad_x": Field("gradient of the tempered density at x", ("d",)),
        "grad_y": Field("the same at the points of the step", ("rows", "d")),
        "logps": Field("tempered log density at the points of the step", ("rows",)),
        "grad_pi_x": Field("gradient of log pi at x", ("d",)),
        "waits": Field("whether it has yet to decide", dtype="i8"),
    }

    def __init__(self, Kernel kernel, Reference reference, int64_t first):
        self.kernel, self.reference, self.first = kernel, reference, first
        self.allocate(d=kernel.d, rows=kernel.width)
        self.c.d, self.c.x, self.c.logps = kernel.d, &self.x[0], &self.logps[0]
        self.c.parts = &self.parts_of

    def parts(self):
        return {"kernel": self.kernel}

    def numbers(self):
        return State.numbers(self) | numbers_of(&self.c) | {
            "log_pi_x": real_view(&self.parts_of.log_pi_x),
            "log_ref_x": real_view(&self.parts_of.log_ref_x),
            "log_pi_y": real_view(&self.parts_of.log_pi_y),
            "log_ref_y": real_view(&self.parts_of.log_ref_y),
        }

    cdef bint is_reference(self) noexcept nogil:
        return self.beta == 0 and self.reference.proper

    # ---- the outer chain ----

    cdef void connect(self, Chain *outer, bint gradient) noexcept:
        """Take its rows of the outer chain."""
        self.target = outer.target[0]
        self.target.hvp = NULL      # of log pi, not of the tempered density
        self.c.rng, self.c.bit_generator = outer.rng, outer.bit_generator
        self.c.target, self.c.n_aux = &self.target, outer.n_aux
        self.c.y, self.c.wanted = outer.y + self.first * outer.d, outer.wanted + self.first
        self.c.noise = outer.noise + self.first
        if outer.n_aux:
            self.c.u = outer.u + self.first * outer.n_aux
            self.c.v = outer.v + self.first * outer.n_aux
        if gradient:
            self.c.grad_x, self.c.grad_y = &self.grad_x[0], &self.grad_y[0, 0]
            self.parts_of.grad_pi_x = &self.grad_pi_x[0]
            self.parts_of.grad_pi_y = outer.grad_y + self.first * outer.d
        self.kernel.connect(&self.c)

    cdef void begin(self, const Chain *outer) noexcept nogil:
        """Start where the outer chain is, with its noise."""
        copy(outer.n_aux, outer.u, self.c.u)
        self.follow(outer, True)

    cdef void follow(self, const Chain *outer, bint displaced) noexcept nogil:
        """Go where the outer chain is; by its own decision, or `displaced` by another kernel."""
        copy(outer.d, outer.x, self.c.x)
        self.parts_of.log_pi_x = outer.logp_x
        if self.c.grad_x != NULL:
            copy(outer.d, outer.grad_x, self.parts_of.grad_pi_x)
        if displaced:
            self.parts_of.log_ref_x = self.reference.log_density(self.c.x, NULL)
        elif self.c.accepted:
            self.parts_of.log_ref_x = self.parts_of.log_ref_y

    cdef void move(self) noexcept nogil:
        """Take the last step's decision."""
        if self.c.accepted:
            accept(&self.c)

    # ---- the tempered density ----

    cdef double W(self) noexcept nogil:
        return self.parts_of.log_pi_x - self.parts_of.log_ref_x

    cdef double log_density(self, double log_pi, double log_ref) noexcept nogil:
        if log_pi == -INFINITY:
            return log_ref if self.beta == 0 else -INFINITY
        return self.beta * log_pi + (1 - self.beta) * log_ref

    cdef void gradient(self, const double *x, const double *grad_pi, double *grad) noexcept nogil:
        cdef Py_ssize_t i
        self.reference.log_density(x, grad)
        for i in range(self.c.d):
            grad[i] = self.beta * grad_pi[i] + (1 - self.beta) * grad[i]

    cdef void refer(self) noexcept nogil:
        """The reference is another one: evaluate it again."""
        self.parts_of.log_ref_x = self.reference.log_density(self.c.x, NULL)
        self.parts_of.log_ref_y = self.reference.log_density(self.c.y, NULL)

    # ---- a step ----

    cdef int propose(self, const Chain *outer, int64_t t) except -1 nogil:
        cdef Chain *c = &self.c
        self.kernel.t = t
        c.keep, c.log_q, c.adapting, self.waits = True, 0, outer.adapting, True
        memset(c.wanted, 0, self.kernel.width)
        c.wanted[0] = True
        # of this temperature, whichever it was before
        c.logp_x = self.log_density(self.parts_of.log_pi_x, self.parts_of.log_ref_x)
        if c.grad_x != NULL:
            self.gradient(c.x, self.parts_of.grad_pi_x, c.grad_x)
        if self.is_reference():
            self.reference.draw(c.rng, c.y)
            c.noise[0] = FRESH
        else:
            self.kernel.propose(c)
        c.E = random_standard_exponential(c.rng)
        return 0

    cdef int consider(self, Chain *outer, int64_t t) except -1 nogil:
        """Evaluate, and let the kernel consider: what it returns. The decision is made here."""
        cdef int answer = DECIDE
        self.kernel.t = t
        self.evaluate(outer)
        if not self.is_reference():
            answer = self.kernel.consider(&self.c)
        if answer == FATAL:
            outer.code = self.c.code
        elif answer != AGAIN:
            self.decide(answer)
        return answer

    cdef void evaluate(self, const Chain *outer) noexcept nogil:
        """Temper the densities and gradients at the points of the step that were evaluated."""
        cdef Chain *c = &self.c
        cdef int64_t row = self.kernel.width, at
        cdef double *y
        while row > 0:              # the proposal last
            row -= 1
            if c.wanted[row]:
                y, at = c.y + row * c.d, self.first + row
                self.parts_of.log_ref_y = self.reference.log_density(y, NULL)
                c.logps[row] = self.log_density(outer.logps[at], self.parts_of.log_ref_y)
                if c.grad_x != NULL:
                    self.gradient(y, outer.grad_y + at * c.d, c.grad_y + row * c.d)
        c.logp_y = c.logps[0]
        self.parts_of.log_pi_y = outer.logps[self.first]

    cdef void decide(self, int answer) noexcept nogil:
        cdef Chain *c = &self.c
        cdef double log_ratio = log_target_ratio(c) + c.log_q
        if self.is_reference():
            c.accepted, c.alpha = True, 1.0
        elif answer != DECIDED:
            c.accepted = accepts(c.E, &log_ratio)
            c.alpha = probability(log_ratio)
        self.waits = False
        memset(c.wanted, 0, self.kernel.width)

    cdef int adapt(self, double gain, int64_t t) except -1 nogil:
        self.kernel.t = t
        if not self.is_reference():
            self.kernel.adapt(&self.c, gain)
        return 0


cdef inline void swap_arrays(Py_ssize_t n, double *a, double *b) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        a[i], b[i] = b[i], a[i]


cdef void swap_states(Replica a, Replica b) noexcept nogil:
    """Exchange the states of two replicas, and all that is known of log pi and log q there."""
    swap_arrays(a.c.d, a.c.x, b.c.x)
    swap_arrays(a.c.n_aux, a.c.u, b.c.u)
    if a.c.grad_x != NULL:
        swap_arrays(a.c.d, a.parts_of.grad_pi_x, b.parts_of.grad_pi_x)
    swap_arrays(1, &a.parts_of.log_pi_x, &b.parts_of.log_pi_x)
    swap_arrays(1, &a.parts_of.log_ref_x, &b.parts_of.log_ref_x)
    a.kernel.displaced()
    b.kernel.displaced()
