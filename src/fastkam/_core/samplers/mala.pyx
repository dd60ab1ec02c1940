"""The Metropolis-adjusted Langevin algorithm.

    y = x + (s^2 / 2) C grad log pi(x) + s L e,   e ~ N(0, I),   L L' = C
    log s <- log s + g (alpha - alpha*)

C, the preconditioner, is fixed; the step size s is learnt.

Roberts, G. O. and Tweedie, R. L. (1996). Exponential convergence of Langevin distributions and
their discrete approximations. Bernoulli 2, 341-363. Acceptance 0.574: Roberts, G. O. and Rosenthal,
J. S. (1998). Optimal scaling of discrete approximations to Langevin diffusions. Journal of the
Royal Statistical Society B 60, 255-268.
"""
from libc.math cimport INFINITY, exp

from fastkam._core.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.rng cimport jittered
from fastkam._core.samplers.langevin cimport langevin_log_q, langevin_move

from fastkam._core.kernel import zeros

import numpy as np


cdef class MALA(Kernel):
    FIELDS = {
        "log_s": ((), "log of the step size"),
        "s": ((), "the last step size, jitter included"),
        "e": (("d",), "the last standard normal draw"),
        "h": (("d",), "the last move, L^-1 (y - x) / s"),
    }
    SHARED = LEARNT = ("log_s",)
    STATS = {"log_step_size": "log s, after the step"}

    def __init__(self, Py_ssize_t d, factor, *, double step_size, double target_acceptance,
                 double jitter):
        self.allocate(d=d)
        self.ndim = factor.ndim
        self.L = np.array(factor, dtype=float).ravel(order="F")
        self.h_y = zeros(d)
        self.log_s = np.log(step_size)
        self.target_acceptance, self.jitter = target_acceptance, jitter
        self.gradient = self.considers = True

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

    cdef void take(self, Kernel other) noexcept nogil:
        self.log_s = (<MALA>other).log_s

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        row[0] = self.log_s
