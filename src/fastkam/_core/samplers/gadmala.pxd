"""The gradient-based adaptive Langevin sampler, for its broken twin."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain
from fastkam._core.samplers.gad cimport GradientAdaptive

cdef class GradientAdaptiveMALA(GradientAdaptive):
    cdef public double[::1] h
    cdef public double[::1] h_y
    cdef public double[::1] k
    cdef public int64_t known
    cdef public int64_t stage
    cdef public double eps
    cdef public double logp_kept
    cdef public double[::1] y_kept
    cdef public double[::1] grad_kept
    cdef double[::1] left
    cdef double[::1] right
    cdef double[::1] left1
    cdef double[::1] right1
    cdef double[::1] right2
    cdef bint exact
    cdef double log_ratio(self, Chain *c) noexcept nogil
    cdef int curvature(self, Chain *c) except -1 nogil
    cdef int difference(self, Chain *c) except -1 nogil
    cdef void through_the_gradient(self, Chain *c) noexcept nogil
