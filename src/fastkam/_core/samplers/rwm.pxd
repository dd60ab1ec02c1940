"""Random-walk Metropolis, for kernels that are built on it."""
from fastkam._core.engine.kernel cimport Kernel

cdef class RandomWalk(Kernel):
    cdef public double s
    cdef int ndim
    cdef double length                      # of an isotropic walk
    cdef double[::1] L
    cdef double[::1] e
    cdef double target_acceptance
    cdef double jitter
