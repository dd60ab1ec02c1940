"""MALA, for its broken twin."""
from fastkam._core.kernel cimport Kernel

cdef class MALA(Kernel):
    cdef public double log_s
    cdef public double s
    cdef public double[::1] e
    cdef public double[::1] h
    cdef double[::1] h_y
    cdef double[::1] L
    cdef int ndim
    cdef double target_acceptance
    cdef double jitter
