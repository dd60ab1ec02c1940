"""autoMALA: Metropolis-adjusted Langevin with a step size chosen at every step.

    p ~ N(0, I),   one leapfrog step of the size that the search chooses (autostep.pyx):

    h = p + eps/2 F' grad log pi(x),   y = x + eps F h,   q = h + eps/2 F' grad log pi(y)
    r = log pi(y) - log pi(x) + (|p|^2 - |q|^2) / 2

Biron-Lattes, M., Surjanovic, N., Syed, S., Campbell, T. and Bouchard-Cote, A. (2024). autoMALA:
Locally adaptive Metropolis-adjusted Langevin algorithm. AISTATS. F F' is the learned covariance,
full or diagonal, without the paper's random mixture with the identity.
"""
from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport copy, square
from fastkam._core.samplers.autostep cimport AutoStep


cdef class AutoMALA(AutoStep):
    GRADIENT = True

    cdef void shoot(self, Chain *c, const double *x, const double *grad) noexcept nogil:
        cdef double eps = self.eps(self.k)
        copy(c.d, &self.p[0], &self.q[0])
        self.add_Ft(c.d, 0.5 * eps, grad, &self.q[0])
        copy(c.d, x, c.y)
        self.add_F(c.d, eps, &self.q[0], c.y)

    cdef double log_ratio(self, Chain *c, double logp_x) noexcept nogil:
        self.add_Ft(c.d, 0.5 * self.eps(self.k), c.grad_y, &self.q[0])
        return (c.logp_y - logp_x
                + 0.5 * (square(c.d, &self.p[0]) - square(c.d, &self.q[0])))
