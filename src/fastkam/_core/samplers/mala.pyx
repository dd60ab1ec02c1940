"""The Metropolis-adjusted Langevin algorithm.

    y = x + (s^2 / 2) C grad log pi(x) + s L e,   e ~ N(0, I),   L L' = C
    log s <- log s + g (alpha - alpha*)

C, the preconditioner, is fixed; the step size s is learned.

Roberts, G. O. and Tweedie, R. L. (1996). Exponential convergence of Langevin distributions and
their discrete approximations. Bernoulli 2, 341-363. Acceptance 0.574: Roberts, G. O. and Rosenthal,
J. S. (1998). Optimal scaling of discrete approximations to Langevin diffusions. Journal of the
Royal Statistical Society B 60, 255-268.
"""
from libc.math cimport INFINITY, exp, log

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.engine.rng cimport jittered
from fastkam._core.samplers.langevin cimport langevin_log_q, langevin_move

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef class MALA(Kernel):
    GRADIENT = True
    LANES = True
    FIELDS = {
        "log_s": Field("log of the step size", shared=True, learned=True),
        "s": Field("the last step size, jitter included", stat="step_size", least=0),
        "e": Field("the last standard normal draw", ("d",)),
        "h": Field("the last move, L^-1 (y - x) / s", ("d",)),
    }
    cdef public double log_s
    cdef public double s
    cdef public double[::1] e
    cdef public double[::1] h
    cdef double[::1] h_y
    cdef double[::1] L
    cdef int ndim
    cdef double target_acceptance
    cdef double jitter

    def __init__(self, Py_ssize_t d, factor, *, double step_size, double target_acceptance,
                 double jitter):
        self.allocate(d=d)
        self.ndim = factor.ndim
        self.L = np.array(factor, dtype=float).ravel(order="F")
        self.h_y = zeros(d)
        self.log_s = log(step_size)
        self.target_acceptance, self.jitter = target_acceptance, jitter
        self.normals_first = jitter == 0

    cdef int propose(self, Chain *c) except -1 nogil:
        self.s = exp(self.log_s) * jittered(c.rng, self.jitter)
        langevin_move(c, self.s, self.ndim, &self.L[0], &self.e[0], &self.h[0])
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        if c.logp_y > -INFINITY:
            c.log_q = langevin_log_q(c, self.s, self.ndim, &self.L[0], &self.e[0],
                                     &self.h[0], &self.h_y[0])
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.log_s += gain * (c.alpha - self.target_acceptance)
        return 0
