"""Rao-Blackwellized adaptive Metropolis.

    y     = x + sqrt(lambda) L e,      e ~ N(0, I),   Sigma = L L'
    D, E  = x - mu, y - mu
    mu    <- mu + g (alpha E + (1 - alpha) D)
    Sigma <- Sigma + g (alpha E E' + (1 - alpha) D D' - Sigma)

with alpha the acceptance probability: the expectation of the update of adaptive Metropolis over the
decision, and so the sum of two outer products, not the outer product of the average.

Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18, 343-373.
Algorithm 3.
"""
from libc.math cimport sqrt

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.linalg.moments cimport update_twice
from fastkam._core.engine.rng cimport jittered
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef class RaoBlackwellizedAdaptiveMetropolis(Kernel):
    FIELDS = {
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor of the learned covariance", ("d", "d"), shared=True,
                   learned=True),
    }
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef double[::1] D
    cdef double[::1] E
    cdef double scale
    cdef double jitter

    def __init__(self, mean, factor, double scale, *, double jitter):
        self.allocate(d=len(mean))
        np.asarray(self.mu)[...] = mean
        np.asarray(self.L)[...] = factor
        self.D = zeros(self.d)
        self.E = zeros(self.d)
        self.scale, self.jitter = scale, jitter

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef double scale = sqrt(self.scale) * jittered(c.rng, self.jitter)
        normal_step(c, scale, &self.L[0, 0], &self.D[0])
        return 0

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef Py_ssize_t i
        cdef double a = c.alpha
        for i in range(c.d):
            self.D[i] = c.x[i] - self.mu[i]
            self.E[i] = c.y[i] - self.mu[i]
        if update_twice(c.d, &self.L[0, 0], 1 - gain, gain * (1 - a), &self.D[0], gain * a,
                        &self.E[0]):
            return 0                # not representable in doubles: there is no update
        for i in range(c.d):
            self.mu[i] += gain * (a * (c.y[i] - self.mu[i]) + (1 - a) * (c.x[i] - self.mu[i]))
        return 0
