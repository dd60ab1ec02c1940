"""A step size that is chosen in every step by doubling or halving, reversibly.

    (y, q) = T_eps(x, p),   an involution up to the sign of q,   p ~ N(0, I)
    r(eps) = log of the ratio of the densities of (y, q) and (x, p)
    eps = 2^k eps_0,  0 < a < b < 1 uniform:  k = 0, 1, ... while |r| < |log b|, the last such; or
                                              k = 0, -1, ... while |r| > |log a|, the first other

The search ends at k = j. The same search from (y, -q) must also end there, or the step is rejected:
so a move and its reverse use the same T_eps, and the ratio is exp(r). Since |r| at k = j is the
same from both ends, the searches agree if their comparisons agree at every other k of the first
one. These start with the longest step, which is the likeliest to differ. For an estimated
density, noise would not decrease with eps and the search would not end: a step begins with a
Metropolis step of the noise, from u to v, and then keeps the noise fixed.

    log eps_0 <- log eps_0 + g j log 2
    mu, Sigma  the mean and the covariance of the chain, full or diagonal, as in adaptive
               Metropolis, with the same gain;  Sigma = F F'

Biron-Lattes, M., Surjanovic, N., Syed, S., Campbell, T. and Bouchard-Cote, A. (2024). autoMALA:
Locally adaptive Metropolis-adjusted Langevin algorithm. AISTATS. With |r| for r, as in Liu, T.,
Surjanovic, N., Biron-Lattes, M., Bouchard-Cote, A. and Campbell, T. (2024). AutoStep: Locally
adaptive involutive MCMC. arXiv:2410.18929.
"""
from libc.math cimport INFINITY, exp, fabs, ldexp, log
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, HELD, Chain, Kernel
from fastkam._core.linalg.dense cimport add, add_Lz, copy, times_Lt
from fastkam._core.linalg.moments cimport learn_moments, learn_scales
from fastkam._core.engine.rng cimport normals, exponential, random_standard_uniform
from fastkam._core.engine.step cimport (
    KEPT, accept_noise, accepts, grad_of, keep_point, log_target_ratio, own_of, point_size,
    recall_point,
)

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np

cdef enum:
    MOST = 60           # doublings or halvings, after which a search has failed

cdef double LOG_2 = log(2.0)


cdef class AutoStep(Kernel):
    """The search; `shoot` is T_eps, `log_ratio` completes q and returns r."""
    SEVERAL = True
    FIELDS = {
        "log_eps": Field("log of the step size eps_0, with which the search begins", shared=True,
                         learned=True),
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "F": Field("factor of the learned covariance: its diagonal, or its columns in turn",
                   ("size",), shared=True, learned=True),
        "p": Field("momentum where the search under way begins", ("d",)),
        "q": Field("momentum of the point considered", ("d",)),
        "low": Field("-log b"),
        "high": Field("-log a"),
        "chosen": Field("the step size chosen", stat="step_size", least=0),
        "refreshing": Field("whether the noise is being moved", dtype="i8", least=0, most=1),
        "k": Field("step size considered, in doublings of eps_0", dtype="i8",
                   least=-MOST, most=MOST),
        "j": Field("step size chosen, in doublings of eps_0", dtype="i8", least=-MOST, most=MOST),
        "direction": Field("of the search: 1 doubles, -1 halves, 0 keeps eps_0",
                           dtype="i8", least=-1, most=1),
        "backwards": Field("whether the search from the candidate is under way", dtype="i8",
                           least=0, most=1),
        "agreed": Field("whether the backward search agreed", dtype="i8",
                        stat="reversible", least=0, most=1),
        "candidate": Field("the candidate, with r as its own number", ("point",)),
        "q_y": Field("momentum of the candidate", ("d",)),
    }

    def __init__(self, mean, factor, *, double step_size, bint learns):
        d = len(mean)
        self.dense = factor.ndim == 2
        self.allocate(d=d, point=point_size(d), size=d * d if self.dense else d)
        np.asarray(self.mu)[...] = mean
        np.asarray(self.F)[...] = factor.ravel(order="F")
        self.work = zeros(d)
        self.log_eps = log(step_size)
        self.learns = learns

    cdef void shoot(self, Chain *c, const double *x, const double *grad) noexcept nogil:
        """Compute y, and the part of q that needs no evaluation, from x, p and the step size."""

    cdef double log_ratio(self, Chain *c, double logp_x) noexcept nogil:
        """Complete q, and return r at y."""
        return 0

    cdef void add_F(self, Py_ssize_t d, double a, const double *p, double *y) noexcept nogil:
        """y += a F p"""
        cdef Py_ssize_t i
        if self.dense:
            add_Lz(d, a, &self.F[0], p, y)
            return
        for i in range(d):
            y[i] += a * self.F[i] * p[i]

    cdef void add_Ft(self, Py_ssize_t d, double a, const double *grad, double *q) noexcept nogil:
        """q += a F' grad"""
        cdef Py_ssize_t i
        if self.dense:
            times_Lt(d, a, &self.F[0], grad, &self.work[0])
            add(d, 1.0, &self.work[0], q)
            return
        for i in range(d):
            q[i] += a * self.F[i] * grad[i]

    cdef double eps(self, int64_t k) noexcept nogil:
        """Return 2^k eps_0."""
        return ldexp(exp(self.log_eps), <int>k)

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef double u, v
        normals(c.rng, c.d, &self.p[0])
        u = 1 - random_standard_uniform(c.rng)
        v = 1 - random_standard_uniform(c.rng)
        self.low, self.high = -log(max(u, v)), -log(min(u, v))
        self.j = self.direction = 0
        self.backwards = self.agreed = False
        self.refreshing = c.n_aux > 0
        if self.refreshing:
            copy(c.d, c.x, c.y)
        else:
            self.look(c, 0)
        return 0

    cdef int move_noise(self, Chain *c) except -1 nogil:
        """Accept or reject v for u at x; then begin the search."""
        cdef double log_ratio = log_target_ratio(c)
        if accepts(exponential(c.rng), &log_ratio):
            accept_noise(c)
        copy(c.n_aux, c.u, c.v)         # the noise of the candidate, which becomes that of x
        self.refreshing = False
        return self.look(c, 0)

    cdef int look(self, Chain *c, int64_t k) noexcept nogil:
        """Request the density at the point for 2^k eps_0, from x or back from the candidate."""
        self.k = k
        c.noise[0] = HELD
        if self.backwards:
            self.shoot(c, &self.candidate[KEPT], grad_of(c, &self.candidate[0]))
        else:
            self.shoot(c, c.x, c.grad_x)
        return AGAIN

    cdef double size(self, Chain *c) noexcept nogil:
        """Return |r|; infinite if the density is zero, or r is not a number."""
        if c.logp_y == -INFINITY:
            return INFINITY
        self.r = self.log_ratio(c, self.candidate[0] if self.backwards else c.logp_x)
        return fabs(self.r) if fabs(self.r) < INFINITY else INFINITY

    cdef void keep(self, Chain *c) noexcept nogil:
        """Make the point under consideration the candidate."""
        keep_point(c, self.r, &self.candidate[0])
        copy(c.d, &self.q[0], &self.q_y[0])

    cdef int consider(self, Chain *c) except -1 nogil:
        if self.refreshing:
            return self.move_noise(c)
        return self.search_back(c) if self.backwards else self.search(c)

    cdef int search(self, Chain *c) noexcept nogil:
        """Continue the search or choose j; x is the point at which the search began."""
        cdef double r = self.size(c)
        if self.k == 0:
            self.direction = 1 if r < self.low else -1 if r > self.high else 0
        cdef bint goes_on = self.goes_on(r)
        if self.direction == 1 and not goes_on:         # the candidate is the point before
            return self.turn(c)
        self.j, self.chosen = self.k, self.eps(self.k)
        if r < INFINITY:
            self.keep(c)
        if not goes_on:
            return self.turn(c) if self.direction else self.decide(c)
        if self.k == self.direction * MOST:
            return self.reject(c)
        return self.look(c, self.k + self.direction)

    cdef bint goes_on(self, double r) noexcept nogil:
        """Return whether a search in this direction continues after r."""
        return self.direction == 1 and r < self.low or self.direction == -1 and r > self.high

    cdef int turn(self, Chain *c) noexcept nogil:
        """Begin the backward search, from (y, -q)."""
        cdef Py_ssize_t i
        for i in range(c.d):
            self.p[i] = -self.q_y[i]
        self.backwards = True
        return self.look(c, self.j + 1)

    cdef int search_back(self, Chain *c) noexcept nogil:
        """Compare with the search from x, which continued at all k except j + 1 if it doubled."""
        cdef bint went_on = self.direction == -1 or self.k < self.j
        if self.goes_on(self.size(c)) != went_on:
            return self.reject(c)
        if self.direction == -1:
            return self.look(c, self.k + 1) if self.k < 0 else self.decide(c)
        if self.k > self.j:
            self.k = self.j
        return self.look(c, self.k - 1) if self.k > 0 else self.decide(c)

    cdef int reject(self, Chain *c) noexcept nogil:
        c.log_q = -INFINITY
        return DECIDE

    cdef int decide(self, Chain *c) noexcept nogil:
        self.agreed = True
        recall_point(c, &self.candidate[0])
        c.log_q = own_of(&self.candidate[0]) - log_target_ratio(c)
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.log_eps += gain * self.j * LOG_2
        cdef const double *x = c.y if c.accepted else c.x
        if self.learns and self.dense:
            learn_moments(c.d, gain, x, &self.mu[0], &self.F[0], &self.work[0])
        elif self.learns:
            learn_scales(c.d, gain, x, &self.mu[0], &self.F[0])
        return 0
