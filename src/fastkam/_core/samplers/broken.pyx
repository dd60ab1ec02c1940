"""Samplers that must fail: each has one classic mistake, and the invariance test has to see it."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.samplers.kam cimport KernelAdaptiveMetropolis
from fastkam._core.samplers.kpca cimport KernelPCAMetropolis
from fastkam._core.samplers.mala cimport MALA
from fastkam._core.samplers.rwm cimport RandomWalk


cdef class DriftingWalk(RandomWalk):
    """A random walk that favours one direction, and does not correct for it."""
    cdef int propose(self, Chain *c) except -1 nogil:
        RandomWalk.propose(self, c)
        c.y[0] += 0.1
        return 0


cdef class UncorrectedLangevin(MALA):
    """MALA that takes its drift for symmetric."""
    cdef int consider(self, Chain *c) except -1 nogil:
        c.log_q = 0
        return DECIDE


cdef class WithoutHastings(KernelAdaptiveMetropolis):
    """KAM as if its proposal were symmetric."""
    cdef int consider(self, Chain *c) except -1 nogil:
        c.log_q = 0
        return DECIDE


cdef class WrongDeterminant(KernelAdaptiveMetropolis):
    """KAM with the sign of the log determinants turned."""
    cdef int consider(self, Chain *c) except -1 nogil:
        KernelAdaptiveMetropolis.consider(self, c)
        c.log_q -= 2 * (self.at_x.log_det - self.at_y.log_det)
        return DECIDE


cdef class StaleReverse(KernelAdaptiveMetropolis):
    """KAM that takes the covariance of an earlier proposal for the reverse density."""
    cdef int propose(self, Chain *c) except -1 nogil:
        cdef bint stale = self.at_y.seen and not c.accepted
        KernelAdaptiveMetropolis.propose(self, c)
        self.at_y.seen = stale
        return 0


cdef class StaleDistances(KernelAdaptiveMetropolis):
    """KAM that keeps the distances of points of the subsample that have been replaced."""
    cdef void set_point(self, int64_t i, const double *x) noexcept nogil:
        cdef int64_t measured = self.measured
        KernelAdaptiveMetropolis.set_point(self, i, x)
        self.measured = measured


cdef class OwnDistances(KernelAdaptiveMetropolis):
    """KAM that keeps them where another chain has replaced the points."""
    cdef void take(self, Kernel other) noexcept nogil:
        cdef int64_t measured = self.measured
        KernelAdaptiveMetropolis.take(self, other)
        self.measured = min(measured, self.n)


cdef class PCAWithoutHastings(KernelPCAMetropolis):
    """Kernel-PCA KAM as if its proposal were symmetric."""
    cdef int consider(self, Chain *c) except -1 nogil:
        c.log_q = 0
        return DECIDE
