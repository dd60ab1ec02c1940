"""Adaptive Metropolis with delayed rejection.

    y1 = x + sqrt(lambda) L e,            accepted with a1 = min(1, pi(y1) / pi(x));   Sigma = L L'
    y2 = x + sqrt(shrink lambda) L f,     if y1 is rejected; accepted with

    a2 = min(1, pi(y2) q1(y1|y2) (1 - a1(y2, y1)) / (pi(x) q1(y1|x) (1 - a1(x, y1))))

    mu, Sigma  as in adaptive Metropolis

with q1 the density of the first proposal: |L^-1 (y1 - y2)|^2 / lambda = |e - sqrt(shrink) f|^2.
The noise of an estimated density moves from u to v1 to v2: the reverse order has the same
distribution, so that the noise does not enter the ratio.

Haario, H., Laine, M., Mira, A. and Saksman, E. (2006). DRAM: efficient adaptive MCMC. Statistics
and Computing 16, 339-354. Delayed rejection: Tierney, L. and Mira, A. (1999). Some adaptive Monte
Carlo methods for Bayesian inference. Statistics in Medicine 18, 2507-2515.
"""
from libc.math cimport INFINITY, expm1, log, sqrt
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, FURTHER, Chain, Kernel
from fastkam._core.linalg.moments cimport learn_moments
from fastkam._core.engine.rng cimport jittered, exponential
from fastkam._core.engine.step cimport accepts, log_target_ratio, normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef inline double log_rejection(double log_ratio) noexcept nogil:
    """log(1 - min(1, e^log_ratio))"""
    return log(-expm1(log_ratio)) if log_ratio < 0 else -INFINITY


cdef class DelayedRejectionAdaptiveMetropolis(Kernel):
    SEVERAL = True
    FIELDS = {
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor of the learned covariance", ("d", "d"), shared=True,
                   learned=True),
        "step": Field("sqrt(lambda) of the step, jitter included"),
        "e": Field("standard normal draw of the first try", ("d",)),
        "f": Field("standard normal draw of the second try", ("d",)),
        "logp_first": Field("log density of the first try"),
        "stage": Field("which try was decided on, 1 or 2", dtype="i8", stat="stage",
                       least=0, most=2),
    }
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef public double step
    cdef public double[::1] e
    cdef public double[::1] f
    cdef public double logp_first
    cdef public int64_t stage
    cdef double[::1] work
    cdef double scale
    cdef double shrink
    cdef double jitter

    def __init__(self, mean, factor, double scale, double shrink, *, double jitter):
        self.allocate(d=len(mean))
        np.asarray(self.mu)[...] = mean
        np.asarray(self.L)[...] = factor
        self.work = zeros(self.d)
        self.scale, self.shrink, self.jitter = scale, shrink, jitter

    cdef int propose(self, Chain *c) except -1 nogil:
        self.stage = 1
        self.step = sqrt(self.scale) * jittered(c.rng, self.jitter)
        normal_step(c, self.step, &self.L[0, 0], &self.e[0])
        c.log_q = 0
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef double log_ratio = log_target_ratio(c)
        if self.stage == 2:
            c.log_q = self.log_second_ratio(c) if c.logp_y > -INFINITY else 0
            return DECIDE
        if accepts(c.E, &log_ratio):
            return DECIDE
        self.stage, self.logp_first = 2, c.logp_y
        normal_step(c, sqrt(self.shrink) * self.step, &self.L[0, 0], &self.f[0])
        c.E = exponential(c.rng)
        c.noise[0] = FURTHER
        return AGAIN

    cdef double log_second_ratio(self, Chain *c) noexcept nogil:
        """log of q1(y1|y2) (1 - a1(y2, y1)) / (q1(y1|x) (1 - a1(x, y1)))"""
        cdef Py_ssize_t i
        cdef double h = sqrt(self.shrink)
        cdef double total = 0
        for i in range(c.d):        # |e|^2 - |e - h f|^2
            total += h * self.f[i] * (2 * self.e[i] - h * self.f[i])
        return (0.5 * total + log_rejection(self.logp_first - c.logp_y)
                - log_rejection(self.logp_first - c.logp_x))

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        learn_moments(c.d, gain, c.y if c.accepted else c.x, &self.mu[0], &self.L[0, 0],
                      &self.work[0])
        return 0
