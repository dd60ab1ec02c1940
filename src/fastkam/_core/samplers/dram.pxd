"""Delayed rejection, for its broken twin."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel

cdef class DelayedRejectionAdaptiveMetropolis(Kernel):
    cdef public double[::1] mu
    cdef public double[::1, :] L
    cdef public double step
    cdef public double[::1] e
    cdef public double[::1] f
    cdef public double logp_first
    cdef public int64_t stage
    cdef double[::1] work
    cdef double scale
    cdef double shrink
    cdef double jitter
    cdef double log_second_ratio(self, Chain *c) noexcept nogil
