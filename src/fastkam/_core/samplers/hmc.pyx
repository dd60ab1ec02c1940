"""Hamiltonian Monte Carlo with a fixed number of steps.

    p ~ N(0, I),  (y, q) = n leapfrog steps of size eps from (x, p),
    alpha = min(1, exp(H(x, p) - H(y, q))),   H = -log pi(x) + |p|^2 / 2

eps may be drawn for each trajectory, uniformly within a fraction `jitter` of its learned value. A
trajectory along which the range of H exceeds a limit is rejected before its end: this rule is the
same from both ends, so that reversibility holds.

Duane, S., Kennedy, A. D., Pendleton, B. J. and Roweth, D. (1987). Hybrid Monte Carlo. Physics
Letters B 195, 216-222. Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov
Chain Monte Carlo, chapter 5.
"""
from libc.math cimport INFINITY, exp
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, Chain
from fastkam._core.engine.rng cimport jittered
from fastkam._core.samplers.hamiltonian cimport NONE, Hamiltonian
from fastkam._core.engine.step cimport log_target_ratio

from fastkam._core.engine.fields import Field
from fastkam._core.samplers.hamiltonian import Hamiltonian as Base


cdef class HMC(Hamiltonian):
    LANES = True
    FIELDS = Base.FIELDS | {
        "step": Field("leapfrog steps made of the trajectory", dtype="i8", least=0, most="steps"),
        "lowest": Field("least H along the trajectory"),
        "highest": Field("largest H along the trajectory"),
        "H": Field("H where the trajectory ends"),
        "diverging": Field("whether H ranges over more than the limit", dtype="i8",
                           stat="diverging", least=0, most=1),
    }
    cdef public int64_t step
    cdef public double lowest
    cdef public double highest
    cdef public double H
    cdef public int64_t diverging
    cdef int64_t steps
    cdef double jitter
    cdef double range_limit

    def __init__(self, d, *, int64_t steps, double jitter, double divergence_threshold, **options):
        super().__init__(d, steps=steps, **options)
        self.steps, self.jitter, self.range_limit = steps, jitter, divergence_threshold

    cdef int launch(self, Chain *c) except -1 nogil:
        self.eps = exp(self.log_eps) * jittered(c.rng, self.jitter)
        self.step, self.diverging = 1, False
        self.lowest = self.highest = self.H0
        self.kick_and_drift(c, self.eps, c.x, c.grad_x)
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        if self.searching > NONE:
            return self.search(c)
        if c.logp_y == -INFINITY:       # the trajectory has left the support: it is rejected
            return DECIDE
        self.H = self.last_kick(c, self.eps)
        self.lowest, self.highest = min(self.lowest, self.H), max(self.highest, self.H)
        self.diverging = not self.highest - self.lowest <= self.range_limit
        if self.diverging:
            c.logp_y = -INFINITY
            return DECIDE
        if self.step == self.steps:
            c.log_q = self.H0 - self.H - log_target_ratio(c)
            return DECIDE
        self.step += 1
        self.kick_and_drift(c, self.eps, c.y, c.grad_y)
        return AGAIN

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        self.set_energies(self.H - self.H0 if c.accepted else 0,
                          max(self.highest - self.H0, self.H0 - self.lowest))
        self.record_numbers(row)
