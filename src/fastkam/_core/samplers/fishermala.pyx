"""Fisher adaptive MALA.

    y      = x + (s^2 / 2) F F' grad log pi(x) + s F e,   e ~ N(0, I),   F = sqrt(d / tr R R') R
    v_n    = sqrt(alpha) (grad log pi(y) - grad log pi(x))     the signal of the n-th step
    R R'   = (v_1 v_1' + ... + v_n v_n' + lambda I)^-1
    log s <- log s + g (alpha - alpha*)

The preconditioner is the inverse of the target's Fisher information E[grad grad'], with mean
diagonal 1; of the preconditioners it maximizes the expected squared jump of small steps. Its square
root follows from the one before, R_0 = I / sqrt(lambda), in O(d^2):

    phi = R' v_n,   R <- R - r (R phi) phi' / (1 + |phi|^2),   r = 1 / (1 + sqrt(1 / (1 + |phi|^2)))

since (I - r phi phi' / (1 + |phi|^2))^2 = I - phi phi' / (1 + |phi|^2) = (I + phi phi')^-1.

Titsias, M. K. (2023). Optimal preconditioning and Fisher adaptive Langevin sampling. Advances in
Neural Information Processing Systems 36. Algorithm 1; plain MALA for the first 500 steps.
"""
from libc.math cimport INFINITY, exp, log, sqrt
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.linalg.dense cimport add, add_Rz, square, times_Rt
from fastkam._core.engine.rng cimport jittered
from fastkam._core.samplers.langevin cimport SQUARE, langevin_log_q, langevin_move

from fastkam._core.engine.fields import Field
from fastkam._core.engine.state import zeros

import numpy as np

cdef double LARGEST = 1e200      # squared length of a signal, beyond which R would overflow


cdef class FisherAdaptiveMALA(Kernel):
    GRADIENT = True
    FIELDS = {
        "log_s": Field("log of the step size", shared=True, learned=True),
        "R": Field("square root of the inverse of the summed information", ("d", "d"), shared=True,
                   learned=True),
        "trace": Field("tr R R'", shared=True),
        "n": Field("adaptations made", dtype="i8", shared=True, least=0),
        "s": Field("step size of the last step, jitter included", stat="step_size", least=0),
        "scale": Field("s sqrt(d / tr R R')"),
        "e": Field("the last standard normal draw", ("d",)),
        "h": Field("the last move, F^-1 (y - x) / s", ("d",)),
    }
    cdef public double log_s
    cdef public double[::1, :] R
    cdef public double trace
    cdef public int64_t n
    cdef public double s
    cdef public double scale
    cdef public double[::1] e
    cdef public double[::1] h
    cdef double[::1] v
    cdef double[::1] phi
    cdef double target_acceptance
    cdef double jitter
    cdef int64_t plain_steps

    def __init__(self, Py_ssize_t d, *, double step_size, double target_acceptance, double damping,
                 int64_t plain_steps, double jitter):
        self.allocate(d=d)
        np.asarray(self.R)[...] = np.eye(d) / np.sqrt(damping)
        self.trace = d / damping
        self.v = zeros(d)
        self.phi = zeros(d)
        self.log_s = log(step_size)
        self.target_acceptance, self.plain_steps = target_acceptance, plain_steps
        self.jitter = jitter

    cdef int propose(self, Chain *c) except -1 nogil:
        self.s = exp(self.log_s) * jittered(c.rng, self.jitter)
        self.scale = self.s * sqrt(self.d / self.trace)
        langevin_move(c, self.scale, SQUARE, &self.R[0, 0], &self.e[0], &self.h[0])
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        if c.logp_y > -INFINITY:
            c.log_q = langevin_log_q(c, self.scale, SQUARE, &self.R[0, 0], &self.e[0],
                                     &self.h[0], &self.v[0])
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.n += 1
        # grad_y is undefined if alpha is 0
        if self.n > self.plain_steps * self.sharers and c.alpha > 0:
            self.learn(sqrt(c.alpha), c)
        self.log_s += gain * (c.alpha - self.target_acceptance)
        return 0

    cdef void learn(self, double w, Chain *c) noexcept nogil:
        """Update R for one more signal, w (grad_y - grad_x)."""
        cdef Py_ssize_t d = c.d, i, j
        cdef double *v = &self.v[0]
        cdef double *phi = &self.phi[0]
        cdef double *column
        cdef double a, b
        for i in range(d):
            v[i] = w * (c.grad_y[i] - c.grad_x[i])
        if not square(d, v) < LARGEST:      # or NaN
            return
        times_Rt(d, 1.0, &self.R[0, 0], v, phi)
        a = 1 + square(d, phi)
        b = 1 / (a + sqrt(a))       # r / a
        for i in range(d):
            v[i] = 0
        add_Rz(d, b, &self.R[0, 0], phi, v)
        self.trace = 0              # computed again from R: an update would lose digits
        for j in range(d):
            column = &self.R[0, 0] + j * d
            add(d, -phi[j], v, column)
            self.trace += square(d, column)
