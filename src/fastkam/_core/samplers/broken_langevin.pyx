"""Langevin samplers and delayed rejection that must fail, with one classic mistake each."""
from fastkam._core.kernel cimport DECIDE, Chain
from fastkam._core.samplers.automala cimport AutoMALA
from fastkam._core.samplers.autorwm cimport AutoStepRandomWalk
from fastkam._core.samplers.barker cimport BarkerProposal
from fastkam._core.samplers.dram cimport DelayedRejectionAdaptiveMetropolis
from fastkam._core.samplers.fishermala cimport FisherAdaptiveMALA


cdef class StaleGradient(FisherAdaptiveMALA):
    """Fisher adaptive MALA that takes the gradient at x for the one at y in the reverse move."""
    cdef int consider(self, Chain *c) except -1 nogil:
        cdef double *grad_y = c.grad_y
        c.grad_y = c.grad_x
        cdef int answer = FisherAdaptiveMALA.consider(self, c)
        c.grad_y = grad_y
        return answer


cdef class SymmetricSigns(BarkerProposal):
    """Barker's proposal that takes the probabilities of its signs for equal both ways."""
    cdef int consider(self, Chain *c) except -1 nogil:
        c.log_q = 0
        return DECIDE


cdef class OneWayMALA(AutoMALA):
    """autoMALA that does not ask whether the way back has the same step size."""
    cdef int turn(self, Chain *c) noexcept nogil:
        return self.decide(c)


cdef class OneWayWalk(AutoStepRandomWalk):
    """The same of the random walk."""
    cdef int turn(self, Chain *c) noexcept nogil:
        return self.decide(c)


cdef class SecondTryForFirst(DelayedRejectionAdaptiveMetropolis):
    """Delayed rejection that accepts a second try as if there had been no first."""
    cdef double log_second_ratio(self, Chain *c) noexcept nogil:
        return 0
