"""autoMALA: Metropolis-adjusted Langevin with a step size chosen at every step.

    p ~ N(0, I),   one leapfrog step of the size that the search chooses (autostep.pyx):

    h = p + eps/2 S grad log pi(x),   y = x + eps S h,   q = h + eps/2 S grad log pi(y)
    r = log pi(y) - log pi(x) + (|p|^2 - |q|^2) / 2,     S = diag(s)

Biron-Lattes, M., Surjanovic, N., Syed, S., Campbell, T. and Bouchard-Cote, A. (2024). autoMALA:
Locally adaptive Metropolis-adjusted Langevin algorithm. AISTATS. S is the learnt diagonal, without
the random mixture with the identity there.
"""
from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport square
from fastkam._core.samplers.autostep cimport AutoStep


cdef class AutoMALA(AutoStep):
    GRADIENT = True

    cdef void shoot(self, Chain *c, const double *x, const double *grad) noexcept nogil:
        cdef Py_ssize_t i
        cdef double eps = self.eps(self.k)
        for i in range(c.d):
            self.q[i] = self.p[i] + 0.5 * eps * self.s[i] * grad[i]
            c.y[i] = x[i] + eps * self.s[i] * self.q[i]

    cdef double log_ratio(self, Chain *c, double logp_x) noexcept nogil:
        cdef Py_ssize_t i
        cdef double eps = self.eps(self.k)
        for i in range(c.d):
            self.q[i] += 0.5 * eps * self.s[i] * c.grad_y[i]
        return (c.logp_y - logp_x
                + 0.5 * (square(c.d, &self.p[0]) - square(c.d, &self.q[0])))
