"""Adaptive random walk with a safe component.

    y ~ (1 - b) N(x, (2.38^2 / d) Sigma) + b N(x, (s^2 / d) I),     N(x, (s^2 / d) I) while t < 2 d

with Sigma = L L' the covariance of the chain so far, by the recursion of adaptive Metropolis with
g = 1 / (1 + n). The paper has b = 0.05 and s = 0.1.

Roberts, G. O. and Rosenthal, J. S. (2009). Examples of adaptive MCMC. Journal of Computational and
Graphical Statistics 18, 349-367. Eq. (2.1).
"""
from libc.math cimport sqrt

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.linalg.dense cimport add_Lz, copy
from fastkam._core.linalg.moments cimport learn_moments
from fastkam._core.engine.rng cimport normals, random_standard_uniform

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros
from fastkam._core.samplers.optimal import OPTIMAL

import numpy as np

cdef double STEP = OPTIMAL      # 2.38


cdef class AdaptiveRandomWalk(Kernel):
    FIELDS = {
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor of the learned covariance", ("d", "d"), shared=True,
                   learned=True),
    }
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef double[::1] e
    cdef double safe_weight
    cdef double safe_scale

    def __init__(self, mean, double safe_weight, double safe_scale):
        self.allocate(d=len(mean))
        np.asarray(self.mu)[...] = mean
        np.asarray(self.L)[...] = np.eye(self.d) * (safe_scale / np.sqrt(self.d))
        self.e = zeros(self.d)
        self.safe_weight, self.safe_scale = safe_weight, safe_scale

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef Py_ssize_t i
        cdef double s = self.safe_scale / sqrt(c.d)
        # the component is drawn first, and also while there is only one
        cdef bint safe = random_standard_uniform(c.rng) < self.safe_weight or self.t < 2 * c.d
        normals(c.rng, c.d, &self.e[0])
        if safe:
            for i in range(c.d):
                c.y[i] = c.x[i] + s * self.e[i]
        else:
            copy(c.d, c.x, c.y)
            add_Lz(c.d, STEP / sqrt(c.d), &self.L[0, 0], &self.e[0], c.y)
        return 0

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        learn_moments(c.d, gain, c.y if c.accepted else c.x, &self.mu[0], &self.L[0, 0],
                      &self.e[0])
        return 0
