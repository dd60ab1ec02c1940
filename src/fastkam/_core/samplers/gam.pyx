"""Adaptive Metropolis with global adaptive scaling.

    y           = x + sqrt(lambda) L e,         e ~ N(0, I),   Sigma = L L'
    log lambda <- log lambda + g (alpha - alpha*)
    mu, Sigma  as in adaptive Metropolis, with the same gain

Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18, 343-373.
Algorithm 4.
"""
from libc.math cimport exp, log

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.linalg.moments cimport learn_moments
from fastkam._core.engine.rng cimport jittered
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef class GlobalAdaptiveMetropolis(Kernel):
    FIELDS = {
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor of the learned covariance", ("d", "d"), shared=True,
                   learned=True),
        "log_scale": Field("log of the scale lambda", shared=True, learned=True, stat="log_scale"),
    }
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef public double log_scale
    cdef double[::1] work
    cdef double target_acceptance
    cdef double jitter

    def __init__(self, mean, factor, double scale, double target_acceptance, *,
                 double jitter):
        self.allocate(d=len(mean))
        np.asarray(self.mu)[...] = mean
        np.asarray(self.L)[...] = factor
        self.log_scale = log(scale)
        self.work = zeros(self.d)
        self.target_acceptance, self.jitter = target_acceptance, jitter

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef double scale = exp(0.5 * self.log_scale) * jittered(c.rng, self.jitter)
        normal_step(c, scale, &self.L[0, 0], &self.work[0])
        return 0

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.log_scale += gain * (c.alpha - self.target_acceptance)
        learn_moments(c.d, gain, c.y if c.accepted else c.x, &self.mu[0], &self.L[0, 0],
                      &self.work[0])
        return 0
