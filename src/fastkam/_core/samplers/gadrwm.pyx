"""Gradient-based adaptive random walk.

    y = x + L e,   e ~ N(0, I)
    g = beta diag(1 / L_ii) + [pi(y) < pi(x)] lower(grad log pi(y) e')

g changes L, and beta follows the acceptance rate, as in gad.pyx. L is kept if y has no gradient.

Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
Advances in Neural Information Processing Systems 32. Section 3.1.
"""
from libc.math cimport INFINITY

from fastkam._core.engine.kernel cimport Chain
from fastkam._core.linalg.dense cimport add_Lz, copy
from fastkam._core.engine.rng cimport normals
from fastkam._core.samplers.gad cimport GradientAdaptive

from fastkam._core.samplers.gad import GradientAdaptive as Base


cdef class GradientAdaptiveRandomWalk(GradientAdaptive):
    FIELDS = Base.FIELDS

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef Py_ssize_t i
        normals(c.rng, c.d, &self.e[0])
        if self.diagonal:
            for i in range(c.d):
                c.y[i] = c.x[i] + self.L[i, 0] * self.e[i]
        else:
            copy(c.d, c.x, c.y)
            add_Lz(c.d, 1.0, &self.L[0, 0], &self.e[0], c.y)
        return 0

    cdef int adapt(self, Chain *c, double rho) except -1 nogil:
        if c.logp_y >= c.logp_x:
            self.ascend(rho, NULL, NULL, NULL, NULL, NULL, NULL)
        elif c.logp_y > -INFINITY:
            self.ascend(rho, c.grad_y, &self.e[0], NULL, NULL, NULL, NULL)
        self.follow_acceptance(c.accepted)
        return 0
