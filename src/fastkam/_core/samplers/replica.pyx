"""A replica: a chain at an inverse temperature, moved by a kernel of its own.

    log pi_beta = beta log pi + (1 - beta) log q,        W = log pi - log q

with q the reference. Replicas belong to the chain of the kernel that couples them: their rows of y
are rows of that chain, where log pi and its gradient are evaluated. Besides the tempered density,
each keeps log pi, log q and the gradient of log pi, so that a state can move to another
temperature. At beta = 0 a replica is drawn from q, if that is a proper distribution.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.chain cimport numbers_of, numbers_of_parts, take_rows
from fastkam._core.engine.kernel cimport AGAIN, DECIDE, DECIDED, FATAL, FRESH, Chain, Kernel
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.rng cimport exponential
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.engine.state cimport State
from fastkam._core.samplers.tempered cimport temper_gradient, tempered
from fastkam._core.engine.step cimport accepts, log_target_ratio, probability

from fastkam._core.engine.chain import NUMBERS as CHAIN
from fastkam._core.engine.fields import Field


cdef class Replica(State):
    FIELDS = {
        "x": Field("state", ("d",), finite=True),
        "grad_x": Field("gradient of the tempered density at x", ("d",)),
        "grad_y": Field("the same at the points of the step", ("rows", "d")),
        "logps": Field("tempered log density at the points of the step", ("rows",)),
        "grad_pi_x": Field("gradient of log pi at x", ("d",)),
        "waits": Field("whether it has yet to decide", dtype="i8", least=0, most=1),
    }

    def __init__(self, Kernel kernel, Reference reference, int64_t first):
        self.kernel, self.reference, self.first = kernel, reference, first
        self.allocate(d=kernel.d, rows=kernel.width)
        self.c.d, self.c.x, self.c.logps = kernel.d, &self.x[0], &self.logps[0]
        self.c.parts = &self.parts_of

    def parts(self):
        return {"kernel": self.kernel}

    def numbers(self):
        return State.numbers(self) | numbers_of(&self.c) | numbers_of_parts(&self.parts_of)

    def table(self):
        return self.FIELDS | CHAIN

    def check(self, state, step):
        # the kernel is not within a step if the replica has decided, or is drawn from the reference
        super().check(state, step._replace(under_way=False))

    cdef bint is_reference(self) noexcept nogil:
        return self.beta == 0 and self.reference.proper

    # ---- the outer chain ----

    cdef void connect(self, Chain *outer, bint gradient) noexcept:
        """Point to this replica's rows of the outer chain."""
        self.target = outer.target[0]
        self.target.hvp = NULL      # of log pi, not of the tempered density
        take_rows(&self.c, outer, self.first)
        self.c.target = &self.target
        if gradient:
            self.c.grad_x, self.c.grad_y = &self.grad_x[0], &self.grad_y[0, 0]
            self.parts_of.grad_pi_x = &self.grad_pi_x[0]
            self.parts_of.grad_pi_y = outer.grad_y + self.first * outer.d
        self.kernel.connect(&self.c)

    cdef void follow(self, const Chain *outer, bint displaced) noexcept nogil:
        """Copy the outer chain's state, decided on here or `displaced` by another kernel."""
        copy(outer.d, outer.x, self.c.x)
        self.parts_of.log_pi_x = outer.logp_x
        if self.c.grad_x != NULL:
            copy(outer.d, outer.grad_x, self.parts_of.grad_pi_x)
        if displaced:
            self.parts_of.log_ref_x = self.reference.log_density(self.c.x, NULL)
        elif self.c.accepted:
            self.parts_of.log_ref_x = self.parts_of.log_ref_y

    cdef double W(self) noexcept nogil:
        return self.parts_of.log_pi_x - self.parts_of.log_ref_x

    cdef void refer(self) noexcept nogil:
        """Evaluate a new reference at x and y."""
        self.parts_of.log_ref_x = self.reference.log_density(self.c.x, NULL)
        self.parts_of.log_ref_y = self.reference.log_density(self.c.y, NULL)

    # ---- a step ----

    cdef int propose(self, const Chain *outer, int64_t t) except -1 nogil:
        cdef Chain *c = &self.c
        self.kernel.t = t
        c.keep, c.log_q, c.adapting, self.waits = True, 0, outer.adapting, True
        memset(c.wanted, 0, self.kernel.width)
        c.wanted[0] = True
        # at this temperature; the state may come from another
        c.logp_x = tempered(self.beta, self.parts_of.log_pi_x, self.parts_of.log_ref_x)
        if c.grad_x != NULL:
            self.reference.log_density(c.x, c.grad_x)
            temper_gradient(c.d, self.beta, self.parts_of.grad_pi_x, c.grad_x)
        if self.is_reference():
            self.reference.draw(c.rng, c.y)
            c.noise[0] = FRESH
        else:
            self.kernel.propose(c)
        c.E = exponential(c.rng)
        return 0

    cdef int consider(self, Chain *outer, int64_t t) except -1 nogil:
        """Evaluate, let the kernel consider, and decide; return what the kernel returns."""
        cdef int answer
        self.kernel.t = t
        self.evaluate(outer)
        answer = DECIDE if self.is_reference() else self.kernel.consider(&self.c)
        if answer == FATAL:
            outer.code = self.c.code
        elif answer != AGAIN:
            self.decide(answer)
        return answer

    cdef void evaluate(self, const Chain *outer) noexcept nogil:
        """Temper the densities and gradients at the points that were evaluated in this step."""
        cdef Chain *c = &self.c
        cdef int64_t row = self.kernel.width, at
        cdef double *y, *grad
        while row > 0:              # the proposal last
            row -= 1
            if c.wanted[row]:
                y, at = c.y + row * c.d, self.first + row
                grad = NULL if c.grad_x == NULL else c.grad_y + row * c.d
                self.parts_of.log_ref_y = self.reference.log_density(y, grad)
                c.logps[row] = tempered(self.beta, outer.logps[at], self.parts_of.log_ref_y)
                if grad != NULL:
                    temper_gradient(c.d, self.beta, outer.grad_y + at * c.d, grad)
        c.logp_y, self.parts_of.log_pi_y = c.logps[0], outer.logps[self.first]

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
