"""The reference distribution of tempering: a Gaussian, or flat.

    q = N(m, C),   log q(x) = -(d log 2 pi + log det C + |L^-1 (x - m)|^2) / 2,   C = L L'
    flat: log q(x) = 0

A Gaussian is given or fitted: m is the mean of the states of all rungs, and C their covariance
times a factor (`widening`). If the tails of pi were longer than those of q, log pi - log q would be
large there, and such states would hardly ever swap.

Surjanovic, N., Syed, S., Bouchard-Cote, A. and Campbell, T. (2022). Parallel tempering with a
variational reference. Advances in Neural Information Processing Systems 35.
"""
from libc.math cimport M_PI, log
from libc.string cimport memset

from fastkam._core.linalg.dense cimport add_Lz, cholesky, copy, log_det_L, solve_L, square
from fastkam._core.linalg.moments cimport add_to_moments
from fastkam._core.engine.rng cimport bitgen_t, normals
from fastkam._core.engine.state cimport State

from fastkam._core.engine.fields import Field

import numpy as np


cdef class Reference(State):
    FIELDS = {
        "mean": Field("m", ("d",)),
        "L": Field("lower-triangular factor of C", ("d", "d")),
        "round_mean": Field("mean of the states of this round", ("d",)),
        "round_scatter": Field("sum of their products, centered; the lower triangle", ("d", "d")),
        "n_x": Field("number of these states", least=0, finite=True),
    }

    def __init__(self, Py_ssize_t d, given, *, double widening, bint fits):
        self.d, self.widening, self.fits = d, widening, fits
        self.allocate(d=d)
        self.u = np.zeros(d)
        self.proper = given is not None
        if self.proper:
            np.asarray(self.mean)[...], np.asarray(self.L)[...] = given
            self.find_norm()

    def restored(self):
        self.find_norm()

    cdef void find_norm(self) noexcept nogil:
        """Compute log q(m), the log normalizing constant."""
        self.log_norm = -0.5 * log(2 * M_PI) * <double>self.d - log_det_L(self.d, &self.L[0, 0])

    cdef double log_density(self, const double *x, double *grad) noexcept nogil:
        """Return log q(x), and write its gradient unless grad is NULL."""
        cdef Py_ssize_t i, j
        cdef double value, s
        cdef double *u = &self.u[0]
        if not self.proper:
            if grad != NULL:
                memset(grad, 0, self.d * sizeof(double))
            return 0.0
        for i in range(self.d):
            u[i] = x[i] - self.mean[i]
        solve_L(self.d, &self.L[0, 0], u)
        value = self.log_norm - 0.5 * square(self.d, u)
        if grad != NULL:        # -L'^-1 u
            for j in range(self.d - 1, -1, -1):
                s = -u[j]
                for i in range(j + 1, self.d):
                    s -= self.L[i, j] * grad[i]
                grad[j] = s / self.L[j, j]
        return value

    cdef void draw(self, bitgen_t *rng, double *y) noexcept nogil:
        """Draw y ~ q."""
        normals(rng, self.d, &self.u[0])
        copy(self.d, &self.mean[0], y)
        add_Lz(self.d, 1.0, &self.L[0, 0], &self.u[0], y)

    # ---- fitting ----

    cdef void learn(self, const double *x) noexcept nogil:
        """Add a state to the moments of this round."""
        self.n_x += 1
        add_to_moments(self.d, self.n_x, x, &self.round_mean[0], &self.round_scatter[0, 0],
                       &self.u[0])

    cdef bint fit(self) noexcept nogil:
        """Fit q to the moments of this round; return False if they give no covariance."""
        cdef Py_ssize_t i, j
        if not self.fits or self.n_x <= 2 * self.d:
            return False
        for j in range(self.d):
            for i in range(j, self.d):
                self.round_scatter[i, j] *= self.widening / self.n_x
        if cholesky(self.d, &self.round_scatter[0, 0], NULL, NULL):
            return False
        copy(self.d, &self.round_mean[0], &self.mean[0])
        copy(self.d * self.d, &self.round_scatter[0, 0], &self.L[0, 0])
        self.find_norm()
        return True

    cdef void forget(self) noexcept nogil:
        """Begin a new round."""
        self.n_x = 0
        memset(&self.round_mean[0], 0, self.d * sizeof(double))
        memset(&self.round_scatter[0, 0], 0, self.d * self.d * sizeof(double))
