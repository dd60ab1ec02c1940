"""A gradient-based adaptive sampler that must fail."""
from fastkam._core.kernel cimport Chain
from fastkam._core.samplers.gadmala cimport GradientAdaptiveMALA


cdef class WrongSign(GradientAdaptiveMALA):
    """The ratio of the proposal densities upside down."""
    cdef int consider(self, Chain *c) except -1 nogil:
        cdef int answer = GradientAdaptiveMALA.consider(self, c)
        c.log_q = -c.log_q
        return answer
