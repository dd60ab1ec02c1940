"""Fisher adaptive MALA, for its broken twin."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel

cdef class FisherAdaptiveMALA(Kernel):
    cdef public double log_s
    cdef public double[::1, :] R
    cdef public double trace
    cdef public int64_t n
    cdef public double scale
    cdef public double[::1] e
    cdef public double[::1] h
    cdef double[::1] v
    cdef double[::1] phi
    cdef double target_acceptance
    cdef double jitter
    cdef int64_t plain_steps
    cdef void learn(self, double w, Chain *c) noexcept nogil
