"""Hamiltonian samplers that must fail, with one classic mistake each."""
from fastkam._core.kernel cimport DECIDE, Chain
from fastkam._core.samplers.hmc cimport HMC
from fastkam._core.samplers.nuts cimport NUTS


cdef class WithoutKineticEnergy(HMC):
    """HMC that decides by the density alone."""
    cdef int consider(self, Chain *c) except -1 nogil:
        cdef int answer = HMC.consider(self, c)
        if answer == DECIDE:
            c.log_q = 0
        return answer


cdef class AlwaysTheNewest(NUTS):
    """NUTS that takes the point of each new subtrajectory, whatever its weight."""
    cdef int join(self, Chain *c) except -1 nogil:
        self.log_w = -1e300
        return NUTS.join(self, c)
