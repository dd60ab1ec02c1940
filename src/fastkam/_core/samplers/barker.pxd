"""The Barker proposal, for its broken twin."""
from fastkam._core.kernel cimport Chain, Kernel

cdef class BarkerProposal(Kernel):
    cdef public double log_s
    cdef public double[::1] mu
    cdef public double[::1] F
    cdef public double[::1] w
    cdef public double log_forward
    cdef double[::1] g
    cdef double[::1] p
    cdef double target_acceptance
    cdef double jitter
    cdef bint dense
    cdef bint learns
    cdef void gradient_along(self, Chain *c, const double *grad) noexcept nogil
