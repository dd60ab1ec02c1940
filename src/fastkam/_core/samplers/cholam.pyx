"""Adaptive Metropolis that moves the Cholesky factor itself.

    y      = x + sqrt(delta) L e,                e ~ N(0, I)
    mu    <- mu + g (X' - mu)                    X' the state after the decision
    w      = L^-1 (X' - mu),                     A = w w' - I
    L     <- L + g L [A]_lower
    delta <- delta + h (accepted / alpha* - 1) delta

Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
Advances in Neural Information Processing Systems 32, supplement: delta = 1, h = 0. [.]_lower keeps
the lower triangle with its diagonal. The diagonal of L has a floor. With w from a forward solve,
v_0 = X' - mu and v_j+1 = v_j - w_j L_:j, column j of L [w w']_lower is w_j v_j: one pass, O(d^2).
"""
from libc.math cimport sqrt

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef class CholeskyAdaptiveMetropolis(Kernel):
    FIELDS = {
        "mu": Field("learned mean", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor of the proposal", ("d", "d"),
                   shared=True, learned=True),
        "delta": Field("global scale", shared=True, learned=True, stat="scale"),
    }
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef public double delta
    cdef double[::1] v
    cdef double mean_gain           # 0: the schedule's gain
    cdef double scale_gain
    cdef double target_acceptance
    cdef double floor

    def __init__(self, mean, factor, double delta, *, mean_gain, scale_gain, target_acceptance,
                 floor):
        self.allocate(d=len(mean))
        np.asarray(self.mu)[...] = mean
        np.asarray(self.L)[...] = factor
        self.delta = delta
        self.v = zeros(self.d)
        self.mean_gain, self.scale_gain = mean_gain or 0.0, scale_gain
        self.target_acceptance, self.floor = target_acceptance, floor

    cdef int propose(self, Chain *c) except -1 nogil:
        normal_step(c, sqrt(self.delta), &self.L[0, 0], &self.v[0])
        return 0

    cdef int adapt(self, Chain *c, double g) except -1 nogil:
        cdef Py_ssize_t i, j
        cdef const double *x = c.y if c.accepted else c.x
        cdef double *column
        cdef double *v = &self.v[0]
        cdef double h = self.mean_gain if self.mean_gain > 0 else g
        cdef double w, r
        for i in range(c.d):
            self.mu[i] += h * (x[i] - self.mu[i])
            v[i] = x[i] - self.mu[i]
        for j in range(c.d):
            column = &self.L[0, 0] + j * c.d
            w = v[j] / column[j]
            for i in range(j, c.d):
                r = v[i]
                v[i] -= w * column[i]
                column[i] += g * (w * r - column[i])
            column[j] = max(column[j], self.floor)
        self.delta += self.scale_gain * (c.accepted / self.target_acceptance - 1) * self.delta
        return 0
