"""Cyclical kernel adaptive Metropolis.

Cycles of T steps; within a cycle, i = 0, ..., T - 1, and T_e = floor(beta T):

    i < T_e    Exploration: a KAM step with a history, nu and gamma that restart in each cycle,
               log nu <- log nu + g_i (alpha - alpha*),   g_i = (1 + i)^-eps by default
    i = T_e    Sigma = R(x_e) / nu_exp^2,   x_e = x,   nu_exp the last nu of Exploration
    i >= T_e   Sampling: y ~ N(x, nu_i^2 Sigma),   nu_i = nu_0 / 2 (cos(pi i / T) + 1),
               nu_0 = 2 nu_exp / (cos(beta pi) + 1)

so that nu_i^2 Sigma = r_i^2 R with r_i = (cos(pi i / T) + 1) / (cos(beta pi) + 1).

Li, C. et al., Cyclical kernel adaptive Metropolis. Algorithm 2. As published, Sigma depends on the
state at which Sampling begins, and z on the states of the same cycle: over whole cycles the target
is not invariant, and the end of adaptation does not change this. Hence in warm-up each cycle stores
its (z, nu_exp, length, x_e) in a bank; once adaptation has ended, each cycle draws an entry of
the bank, independently of the state, and uses it throughout: every step is then a Metropolis step
with a kernel that is fixed beforehand. A frozen cycle begins with the uniform variate that draws
its entry; Sigma has gamma of the last step of Exploration. R is recomputed from x_e in each cycle,
which is one step in T, so that the bank stores no matrices. The metric of kam.pyx is learned in
all steps that adapt, and is not reset in each cycle. The bank has the points z themselves, which a
frozen cycle transforms by the last metric, in which it learns their median length.
"""
from libc.math cimport INFINITY, M_PI, cos, exp
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport DECIDE, Chain
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.rng cimport integer
from fastkam._core.samplers.kam cimport KernelAdaptiveMetropolis
from fastkam._core.engine.sums cimport Power, term

from fastkam._core.samplers import kam

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField


cdef class CyclicalKernelAdaptiveMetropolis(KernelAdaptiveMetropolis):
    SKIPS = True
    # a cycle learns from its own states alone: nothing is shared
    FIELDS = {name: field._replace(shared=False)
              for name, field in kam.KernelAdaptiveMetropolis.FIELDS.items()} | {
        "origin": Field("the step at which cycles began to be counted", dtype="i8", least=0),
        "x_e": Field("the state at which Sampling began, where R is evaluated", ("d",)),
        "exploring": Field("1 in Exploration, 0 in Sampling", dtype="i8", stat="exploring",
                           least=0, most=1),
        "frozen": Field("whether adaptation has ended", dtype="i8", least=0, most=1),
        "banked": Field("cycles that have left an entry in the bank", dtype="i8", least=0),
        "bank_z": Field("subsamples", ("bank", "subsample", "d"), finite=True),
        "bank_n": Field("their numbers of points", ("bank",), "i8", least=0, most="subsample"),
        "bank_log_nu": Field("log nu_exp", ("bank",)),
        "bank_length": Field("lengths of the kernel", ("bank",), least=0),
        "bank_x_e": Field("states at which Sampling began", ("bank", "d")),
    }
    cdef public int64_t origin
    cdef public double[::1] x_e
    cdef public int64_t exploring
    cdef public int64_t frozen
    cdef public int64_t banked
    cdef public double[:, :, ::1] bank_z
    cdef public int64_t[::1] bank_n
    cdef public double[::1] bank_log_nu
    cdef public double[::1] bank_length
    cdef public double[:, ::1] bank_x_e
    cdef int64_t T
    cdef int64_t T_e
    cdef double cos_beta
    cdef double first_log_nu
    cdef double first_length
    cdef Power gain
    cdef Py_ssize_t bank

    def __init__(self, d, function, *, cycle, beta, gain, bank, subsample, **options):
        self.bank = bank
        super().__init__(d, function, subsample=subsample, **options)
        self.T, self.T_e = cycle, int(beta * cycle)
        self.cos_beta = cos(M_PI * beta)
        self.first_log_nu, self.first_length = self.log_nu, self.length
        self.gain = Power(gain.c, gain.k, gain.offset, gain.cap)

    def allocate(self, **sizes):
        super().allocate(bank=self.bank, **sizes)

    def check_relations(self, state, step):
        super().check_relations(state, step)
        if state["origin"] > step.t:
            raise BadField("origin", f"must be at most {step.t}, the steps made, not "
                                     f"{state['origin']}")

    def check_points(self, state):
        if not state["frozen"]:     # otherwise they come from the bank
            super().check_points(state)

    cdef int64_t index(self, Chain *c) noexcept nogil:
        """Return i, the index of the step within its cycle."""
        return (self.t - self.origin) % self.T

    cdef double ratio(self, int64_t i) noexcept nogil:
        """r_i = nu_i / nu_exp"""
        return (cos(M_PI * i / self.T) + 1) / (self.cos_beta + 1)

    # ---- propose ----

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef int64_t i = self.index(c)
        if i == 0:
            self.begin_cycle(c)
        c.keep = i >= self.T_e
        self.exploring, self.nu = i < self.T_e, exp(self.log_nu)
        if self.exploring:
            self.age = i
            if c.accepted and self.at_y.seen:
                self.at_x, self.at_y = self.at_y, self.at_x
            self.at_y.seen = self.at_x.factored = False     # gamma changes at each step
            return self.move(c)
        if i == self.T_e:
            self.begin_sampling(c)
        self.nu *= self.ratio(i)
        self.draw(c, &self.x_e[0], self.ratio(i))
        return 0

    cdef int begin_cycle(self, Chain *c) except -1 nogil:
        cdef int64_t b, i
        if not self.frozen:
            self.clear_history()
            self.log_nu, self.length = self.first_log_nu, self.first_length
            return 0
        b = integer(c.rng, min(self.banked, self.bank_n.shape[0]))
        copy(self.d, &self.bank_x_e[b, 0], &self.x_e[0])
        self.n, self.log_nu, self.length = (
            self.bank_n[b], self.bank_log_nu[b], self.bank_length[b])
        for i in range(self.n):
            self.set_point(i, &self.bank_z[b, i, 0])
        if self.metric:
            self.learn_length()
        self.forget_points()
        return 0

    cdef void begin_sampling(self, Chain *c) noexcept nogil:
        """Begin Sampling, with at_x for x_e from now on; store a cycle that adapts in the bank."""
        self.forget()
        if not self.frozen:
            copy(self.d, c.x, &self.x_e[0])
            self.put_into_bank(c)

    cdef void put_into_bank(self, Chain *c) noexcept nogil:
        cdef int64_t i, b = self.banked % self.bank_n.shape[0]
        for i in range(self.n):
            copy(self.d, &self.history[self.order[i], 0], &self.bank_z[b, i, 0])
        copy(self.d, c.x, &self.bank_x_e[b, 0])
        self.bank_n[b], self.bank_log_nu[b], self.bank_length[b] = (
            self.n, self.log_nu, self.length)
        self.banked += 1

    # ---- consider, adapt, freeze ----

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef bint exploring = self.index(c) < self.T_e and c.logp_y > -INFINITY
        c.log_q = self.reverse_log_q(c) if exploring else 0.0
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef int64_t i = self.index(c)
        if i >= self.T_e:
            self.learn_metric(c)
        else:
            self.learn_subsample(c)
            self.log_nu += term(&self.gain, i + 1) * (c.alpha - self.target_acceptance)
        return 0

    cdef int freeze(self, Chain *c) except -1 nogil:
        self.frozen, self.origin = True, self.t
        self.forget()
        if self.banked == 0:        # as a part of another sampler, with few of its steps
            self.put_into_bank(c)
        return 0
