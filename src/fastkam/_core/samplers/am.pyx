"""Adaptive Metropolis.

    y     = x + sqrt(lambda) L e,       e ~ N(0, I),   Sigma = L L'
    D     = X' - mu                     X' the state after the decision
    mu    <- mu + g D
    Sigma <- Sigma + g (D D' - Sigma)

Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18, 343-373.
Algorithm 2. The factor L is updated, not recomputed: O(d^2) a step.
"""
from libc.math cimport sqrt

from fastkam._core.engine.kernel cimport Chain, Kernel, Lanes
from fastkam._core.linalg.moments cimport learn_moments
from fastkam._core.engine.rng cimport jittered
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef class AdaptiveMetropolis(Kernel):
    LANES = True
    FIELDS = {
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor of the learned covariance", ("d", "d"), shared=True,
                   learned=True),
    }
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef double[::1] work
    cdef double scale
    cdef double jitter

    def __init__(self, mean, factor, double scale, *, double jitter):
        self.allocate(d=len(mean))
        np.asarray(self.mu)[...] = mean
        np.asarray(self.L)[...] = factor
        self.work = zeros(self.d)
        self.scale, self.jitter = scale, jitter
        self.normals_first = jitter == 0

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef double scale = sqrt(self.scale) * jittered(c.rng, self.jitter)
        normal_step(c, scale, &self.L[0, 0], &self.work[0])
        return 0

    cdef int consider_lanes(self, Lanes *g) except -1 nogil:
        return 0        # all decide

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        learn_moments(c.d, gain, c.y if c.accepted else c.x, &self.mu[0], &self.L[0, 0],
                      &self.work[0])
        return 0
