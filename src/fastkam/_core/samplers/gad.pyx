"""The adaptation of the gradient-based adaptive samplers: ascent on the generalized speed measure.

    log s(x) = E log alpha(x, y) + beta H(q(. | x)),   H(q) = sum_i log L_ii + const

The gradient g of a one-draw estimate changes the proposal's factor L, elementwise:

    RMSprop      G <- r G + (1 - r) g^2  (g^2 at first),   L <- L + rho g / (1 + sqrt(G))
    Adam         M <- m M + (1 - m) g,   L <- L + rho M' / (sqrt(G') + 1e-8), bias-corrected
    plain        L <- L + rho g, a Robbins-Monro step where the gain decays

and beta follows the acceptance rate: beta <- beta (1 + h (accepted - alpha*)). The diagonal of L
and beta have floors.

Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
Advances in Neural Information Processing Systems 32.
"""
from libc.math cimport pow

from fastkam._core.engine.kernel cimport Kernel
from fastkam._core.engine.step cimport point_size

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np

cdef extern from "ascent.h" nogil:
    ctypedef struct fk_ascent:
        Py_ssize_t d
        int diagonal
        double *L
        double *G
        double *M
        const double *left[3]
        const double *right[3]
        int rule
        double beta
        double rho
        double floor
        double decay
        double decay1
        double correction
        double correction1
        int first
        double *g
    enum: FK_RMSPROP, FK_ADAM, FK_PLAIN
    void fk_ascend(const fk_ascent *a)

RULES = {"rmsprop": FK_RMSPROP, "adam": FK_ADAM, "plain": FK_PLAIN}


cdef class GradientAdaptive(Kernel):
    GRADIENT = True
    FIELDS = {
        "L": Field("lower-triangular factor of the proposal, or its diagonal alone",
                   ("d", "columns"), shared=True, learned=True),
        "G": Field("running mean of the squared gradient", ("d", "columns"), shared=True),
        "M": Field("running mean of the gradient, for Adam", ("d", "moments"), shared=True),
        "beta": Field("weight of the entropy of the proposal", shared=True, learned=True,
                      stat="entropy_weight"),
        "e": Field("the last standard normal draw", ("d",)),
        "age": Field("adaptations made", dtype="i8", shared=True, least=0),
    }

    def __init__(self, factor, *, optimizer, double beta, double decay, double decay_mean,
                 double floor, double beta_floor, beta_cap, double beta_gain,
                 double target_acceptance):
        d = len(factor)
        self.diagonal, self.rule = factor.ndim == 1, RULES[optimizer]
        columns = 1 if self.diagonal else d
        self.allocate(d=d, columns=columns, moments=columns if optimizer == "adam" else 0,
                      point=point_size(d))
        np.asarray(self.L)[...] = factor[:, None] if self.diagonal else factor
        self.g, self.zero = zeros(d), zeros(d)
        self.beta, self.decay, self.decay_mean, self.floor = beta, decay, decay_mean, floor
        self.beta_floor, self.beta_gain = beta_floor, beta_gain
        self.beta_cap = np.inf if beta_cap is None else beta_cap
        self.target_acceptance = target_acceptance

    cdef int ndim(self) noexcept nogil:
        """Return the form of L, for the functions of langevin.pxd."""
        return 1 if self.diagonal else 2

    cdef void ascend(self, double rho, const double *left0, const double *right0,
                     const double *left1, const double *right1, const double *left2,
                     const double *right2) noexcept nogil:
        """Make a step along lower(sum_k left_k right_k') + beta diag(1 / L_ii); NULL is zero."""
        cdef fk_ascent a
        cdef const double *zero = &self.zero[0]
        self.age += 1
        a.d, a.diagonal = self.d, self.diagonal
        a.L, a.G = &self.L[0, 0], &self.G[0, 0]
        a.M = &self.M[0, 0] if self.rule == FK_ADAM else NULL
        a.left[0], a.right[0] = (left0, right0) if left0 != NULL else (zero, zero)
        a.left[1], a.right[1] = (left1, right1) if left1 != NULL else (zero, zero)
        a.left[2], a.right[2] = (left2, right2) if left2 != NULL else (zero, zero)
        a.beta, a.rho, a.decay, a.floor = self.beta, rho, self.decay, self.floor
        a.rule, a.decay1 = self.rule, self.decay_mean
        a.correction = 1 - pow(self.decay, <double>self.age)
        a.correction1 = 1 - pow(self.decay_mean, <double>self.age)
        a.first = self.age == 1
        a.g = &self.g[0]
        fk_ascend(&a)

    cdef void follow_acceptance(self, bint accepted) noexcept nogil:
        self.beta *= 1 + self.beta_gain * (accepted - self.target_acceptance)
        self.beta = min(max(self.beta, self.beta_floor), self.beta_cap)
