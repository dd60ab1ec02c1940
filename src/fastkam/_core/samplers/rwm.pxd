"""Random-walk Metropolis: declarations for derived kernels."""
from fastkam._core.engine.kernel cimport Kernel

cdef class RandomWalk(Kernel):
    cdef public double s                    # what every proposal needs stands together
    cdef double length                      # of an isotropic walk
    cdef double jitter
    cdef int ndim
    cdef bint in_own                        # the widths of all chains are laid out
    cdef double target_acceptance
    cdef double[::1] L
    cdef double[::1] e
