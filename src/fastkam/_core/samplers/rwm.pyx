"""Random-walk Metropolis.

    y = x + L e,   e ~ N(0, I),   L L' = Sigma, the covariance of the proposal

Metropolis, N., Rosenbluth, A. W., Rosenbluth, M. N., Teller, A. H. and Teller, E. (1953). Equation
of state calculations by fast computing machines. Journal of Chemical Physics 21, 1087-1092.
"""

from fastkam._core.kernel cimport Chain, Kernel
from fastkam._core.linalg cimport add_Lz, copy
from fastkam._core.rng cimport normal, normals

from fastkam._core.kernel import zeros

import numpy as np


cdef class RandomWalk(Kernel):
    """The proposal's factor is fixed: there is no state.

    Parameters
    ----------
    d : int
    factor : ndarray
        L: a scalar array for an isotropic walk, (d,) for a diagonal, (d, d) for a full factor.
    """
    FIELDS = {}

    def __init__(self, d, factor):
        self.allocate(d=d)
        self.ndim = factor.ndim
        self.L = np.array(factor, dtype=float).ravel(order="F")
        self.e = zeros(d)

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef Py_ssize_t i
        if self.ndim == 2:
            normals(c.rng, c.d, &self.e[0])
            copy(c.d, c.x, c.y)
            add_Lz(c.d, 1.0, &self.L[0], &self.e[0], c.y)
            return 0
        for i in range(c.d):        # one pass: a vector load of normals just stored would wait
            c.y[i] = c.x[i] + self.L[i if self.ndim else 0] * normal(c.rng)
        return 0
