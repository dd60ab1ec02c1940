"""A random walk with a step size chosen at every step.

    p ~ N(0, I),   y = x + eps F p,   q = p,   r = log pi(y) - log pi(x)

with eps chosen by the search of autostep.pyx, where F is learned.

Liu, T., Surjanovic, N., Biron-Lattes, M., Bouchard-Cote, A. and Campbell, T. (2024). AutoStep:
Locally adaptive involutive MCMC. arXiv:2410.18929.
"""
from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport copy
from fastkam._core.samplers.autostep cimport AutoStep


cdef class AutoStepRandomWalk(AutoStep):
    cdef void shoot(self, Chain *c, const double *x, const double *grad) noexcept nogil:
        copy(c.d, x, c.y)
        self.add_F(c.d, self.eps(self.k), &self.p[0], c.y)

    cdef double log_ratio(self, Chain *c, double logp_x) noexcept nogil:
        copy(c.d, &self.p[0], &self.q[0])
        return c.logp_y - logp_x
