"""The factor of the gradient-based adaptive samplers, and the ascent on it."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Kernel

cdef class GradientAdaptive(Kernel):
    cdef public double[::1, :] L
    cdef public double[::1, :] G
    cdef public double[::1, :] M
    cdef public double beta
    cdef public double[::1] e
    cdef public int64_t age
    cdef double[::1] g
    cdef double[::1] zero
    cdef bint diagonal
    cdef int rule
    cdef double decay
    cdef double decay_mean
    cdef double floor
    cdef double beta_floor
    cdef double beta_cap
    cdef double beta_gain
    cdef double target_acceptance
    cdef int ndim(self) noexcept nogil
    cdef void ascend(self, double rho, const double *left0, const double *right0,
                     const double *left1, const double *right1, const double *left2,
                     const double *right2) noexcept nogil
    cdef void follow_acceptance(self, bint accepted) noexcept nogil
