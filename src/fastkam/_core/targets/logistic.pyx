"""The posterior of a Bayesian logistic regression.

    log pi(w) = sum_i log sigma(t_i x_i'w) - |w|^2/(2 v) - d/2 log(2 pi v)

with t_i = +-1 and w ~ N(0, v I): the likelihood and the prior with all their constants.
"""
from fastkam._core.density.target cimport Target
from fastkam._core.linalg.lanes import blocked
from fastkam._core.numerics import elementary

import numpy as np

cdef extern from "rows.h" nogil:
    double log_sigmoid "fk_log_sigmoid" (
        Py_ssize_t n, Py_ssize_t d, const double *X, const double *w, double *grad)
    void log_sigmoid_hvp "fk_log_sigmoid_hvp" (
        Py_ssize_t n, Py_ssize_t d, const double *X, const double *w, const double *v, double *Hv)


cdef struct Logistic:
    Py_ssize_t n
    const double *X             # the rows t_i x_i, in blocks of 8
    double h                    # 1 / prior variance
    double constant


cdef class LogisticDensity(Target):
    cdef Logistic logistic
    cdef double[:, :, ::1] blocks

    def set_up(self, X, t, variance):
        """Take the design matrix (n, d), labels (n,) of +-1 and the prior's variance."""
        n, d = X.shape
        self.blocks = blocked(t[:, None] * X)
        self.logistic.n = n
        self.logistic.X = &self.blocks[0, 0, 0]
        self.logistic.h = 1 / variance
        self.logistic.constant = -0.5 * d * elementary.log(2 * np.pi * variance)
        self.kind = "built-in"
        self.c.dim = d
        self.c.logp = logistic_logp
        self.c.logp_grad = logistic_logp_grad
        self.c.hvp = logistic_hvp
        self.c.data = &self.logistic


cdef inline double prior(const Logistic *f, size_t n, const double *w) noexcept nogil:
    cdef double square = 0
    cdef size_t j
    for j in range(n):
        square += w[j] * w[j]
    return f.constant - 0.5 * f.h * square


cdef int logistic_logp(size_t n, const double *w, double *logp, void *data) noexcept nogil:
    cdef const Logistic *f = <const Logistic *>data
    logp[0] = prior(f, n, w) + log_sigmoid(f.n, n, f.X, w, NULL)
    return 0


cdef int logistic_logp_grad(size_t n, const double *w, double *grad, double *logp,
                            void *data) noexcept nogil:
    """grad = sum_i t_i x_i sigma(-t_i x_i'w) - w/v"""
    cdef const Logistic *f = <const Logistic *>data
    cdef size_t j
    for j in range(n):
        grad[j] = -f.h * w[j]
    logp[0] = prior(f, n, w) + log_sigmoid(f.n, n, f.X, w, grad)
    return 0


cdef int logistic_hvp(size_t n, const double *w, const double *v, double *Hv,
                      void *data) noexcept nogil:
    """Hv = -sum_i sigma(z_i) sigma(-z_i) x_i (x_i'v) - v/v_prior"""
    cdef const Logistic *f = <const Logistic *>data
    cdef size_t j
    for j in range(n):
        Hv[j] = -f.h * v[j]
    log_sigmoid_hvp(f.n, n, f.X, w, v, Hv)
    return 0
