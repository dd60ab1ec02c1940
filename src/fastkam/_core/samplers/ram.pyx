"""Robust adaptive Metropolis.

    y     = x + S u,                  u ~ N(0, I)
    S S' <- S (I + g (alpha - alpha*) u u' / |u|^2) S'

and S is halved whenever ten proposals in a row have had alpha < 0.01 in the first half of a finite
warm-up: a first S that is a hundred times too wide would take thousands of steps otherwise.

Vihola, M. (2012). Robust adaptive Metropolis algorithm with coerced acceptance rate. Statistics
and Computing 22, 997-1008. Eq. (1); the gain is min(1, d n^(-2/3)) there.
"""
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memset

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.linalg.dense cimport add_Lz, rank_one, square
from fastkam._core.engine.rng cimport jittered
from fastkam._core.engine.step cimport normal_step

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np


cdef enum:
    ROW = 10            # of refused proposals
    EARLY = 2           # part of warm-up

cdef double REFUSED = 0.01


cdef class RobustAdaptiveMetropolis(Kernel):
    FIELDS = {
        "S": Field("lower-triangular factor of the proposal covariance", ("d", "d"), shared=True,
                   learnt=True),
        "u": Field("the last standard normal draw", ("d",)),
        "refused": Field("proposals in a row with alpha < 0.01", dtype="i8", shared=True),
    }
    cdef public double[::1, :] S
    cdef public double[::1] u
    cdef public int64_t refused
    cdef double[::1] v
    cdef double target_acceptance
    cdef double jitter

    def __init__(self, factor, double target_acceptance, *, double jitter):
        self.allocate(d=len(factor))
        np.asarray(self.S)[...] = factor
        self.v = zeros(self.d)
        self.target_acceptance, self.jitter = target_acceptance, jitter

    cdef int propose(self, Chain *c) except -1 nogil:
        normal_step(c, jittered(c.rng, self.jitter), &self.S[0, 0], &self.u[0])
        return 0

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef double *v = &self.v[0]
        memset(v, 0, c.d * sizeof(double))
        add_Lz(c.d, 1.0, &self.S[0, 0], &self.u[0], v)
        # g <= 1 keeps the update above (1 - alpha*) S S': it is always positive definite
        rank_one(c.d, &self.S[0, 0], 1.0,
                 gain * (c.alpha - self.target_acceptance) / square(c.d, &self.u[0]), v)
        if self.end_of_adaptation != INT64_MAX and EARLY * self.t < self.end_of_adaptation:
            self.refused = self.refused + 1 if c.alpha < REFUSED else 0
            if self.refused == ROW:
                self.refused = 0
                self.halve()
        return 0

    cdef void halve(self) noexcept nogil:
        cdef Py_ssize_t i, j
        for j in range(self.d):
            for i in range(j, self.d):
                self.S[i, j] *= 0.5
