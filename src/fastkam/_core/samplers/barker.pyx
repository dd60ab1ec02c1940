"""The Barker proposal.

    z_i  = s e_i,   e ~ N(0, I),   w_i = z_i with probability 1 / (1 + exp(-g_i(x) z_i)), else -z_i
    y    = x + F w,                  g(x) = F' grad log pi(x),   F F' = Sigma
    q(x|y) / q(y|x) = prod_i (1 + exp(-g_i(x) w_i)) / (1 + exp(g_i(y) w_i))
    log s <- log s + g (alpha - alpha*)
    mu, Sigma  as in adaptive Metropolis, with the same gain, Sigma full or diagonal

The gradient determines the sign of a step, not its length: where the drift of MALA would be far too
long, this proposal is a random walk in the right direction.

Livingstone, S. and Zanella, G. (2022). The Barker proposal: combining robustness and efficiency in
gradient-based MCMC. Journal of the Royal Statistical Society B 84, 496-523. Algorithms 1 and 2,
adaptation as in Section 6.
"""
from libc.math cimport INFINITY, exp, log

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.linalg.dense cimport add_Lz, copy, times_Lt
from fastkam._core.linalg.moments cimport learn_moments, learn_scales
from fastkam._core.engine.rng cimport jittered, normals, random_standard_uniform

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef extern from "softplus.h" nogil:
    void logistic "fk_logistic" (Py_ssize_t d, const double *g, const double *w, double *p)
    double sum_softplus "fk_sum_softplus" (Py_ssize_t d, double a, const double *g,
                                           const double *w)


cdef class BarkerProposal(Kernel):
    GRADIENT = True
    FIELDS = {
        "log_s": Field("log of the step size", shared=True, learned=True),
        "s": Field("step size of the last step, jitter included", stat="step_size", least=0),
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "F": Field("factor of the preconditioner: its diagonal, or its columns in turn", ("size",),
                   shared=True, learned=True),
        "w": Field("the last step, F^-1 (y - x)", ("d",)),
        "log_forward": Field("-log of the probability of the signs of w"),
    }
    cdef public double log_s
    cdef public double s
    cdef public double[::1] mu
    cdef public double[::1] F
    cdef public double[::1] w
    cdef public double log_forward
    cdef double[::1] g
    cdef double[::1] p
    cdef double target_acceptance
    cdef double jitter
    cdef bint dense
    cdef bint learns

    def __init__(self, mean, factor, *, double step_size, double target_acceptance, double jitter,
                 bint learns):
        d = len(mean)
        self.dense = factor.ndim == 2
        self.allocate(d=d, size=d * d if self.dense else d)
        np.asarray(self.mu)[...] = mean
        np.asarray(self.F)[...] = factor.ravel(order="F")
        self.g = zeros(d)
        self.p = zeros(d)
        self.log_s = log(step_size)
        self.target_acceptance, self.jitter, self.learns = target_acceptance, jitter, learns

    cdef void gradient_along(self, Chain *c, const double *grad) noexcept nogil:
        """g = F' grad"""
        cdef Py_ssize_t i
        if self.dense:
            times_Lt(c.d, 1.0, &self.F[0], grad, &self.g[0])
        else:
            for i in range(c.d):
                self.g[i] = self.F[i] * grad[i]

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef Py_ssize_t i
        cdef double *w = &self.w[0]
        self.s = exp(self.log_s) * jittered(c.rng, self.jitter)
        self.gradient_along(c, c.grad_x)
        normals(c.rng, c.d, w)
        for i in range(c.d):
            w[i] *= self.s
        logistic(c.d, &self.g[0], w, &self.p[0])
        for i in range(c.d):        # not a branch, which could not be predicted
            w[i] *= 1 - 2 * <int>(random_standard_uniform(c.rng) >= self.p[i])
        self.log_forward = sum_softplus(c.d, -1.0, &self.g[0], w)
        if self.dense:
            copy(c.d, c.x, c.y)
            add_Lz(c.d, 1.0, &self.F[0], w, c.y)
        else:
            for i in range(c.d):
                c.y[i] = c.x[i] + self.F[i] * w[i]
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        if c.logp_y > -INFINITY:
            self.gradient_along(c, c.grad_y)
            c.log_q = self.log_forward - sum_softplus(c.d, 1.0, &self.g[0], &self.w[0])
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef const double *x = c.y if c.accepted else c.x
        self.log_s += gain * (c.alpha - self.target_acceptance)
        if self.learns and self.dense:
            learn_moments(c.d, gain, x, &self.mu[0], &self.F[0], &self.g[0])
        elif self.learns:
            learn_scales(c.d, gain, x, &self.mu[0], &self.F[0])
        return 0
