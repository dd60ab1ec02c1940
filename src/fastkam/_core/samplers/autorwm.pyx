"""A random walk with a step size chosen at every step.

    p ~ N(0, I),   y = x + eps S p,   q = p,   r = log pi(y) - log pi(x),   S = diag(s)

with eps as the search of autostep.pyx chooses it.

Liu, T., Surjanovic, N., Biron-Lattes, M., Bouchard-Cote, A. and Campbell, T. (2024). AutoStep:
Locally adaptive involutive MCMC. arXiv:2410.18929.
"""
from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport copy
from fastkam._core.samplers.autostep cimport AutoStep


cdef class AutoStepRandomWalk(AutoStep):
    cdef void shoot(self, Chain *c, const double *x, const double *grad) noexcept nogil:
        cdef Py_ssize_t i
        cdef double eps = self.eps(self.k)
        for i in range(c.d):
            c.y[i] = x[i] + eps * self.s[i] * self.p[i]

    cdef double log_ratio(self, Chain *c, double logp_x) noexcept nogil:
        copy(c.d, &self.p[0], &self.q[0])
        return c.logp_y - logp_x
