"""Replica exchange: declarations for derived kernels."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Kernel
from fastkam._core.samplers.evidence cimport Evidence
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.samplers.replicas cimport Replicas
from fastkam._core.samplers.swaps cimport Swaps

cdef class Exchange(Kernel):
    cdef readonly Replicas replicas
    cdef readonly Reference reference
    cdef readonly Swaps swaps
    cdef readonly Evidence evidence
    cdef int rungs
    cdef bint tunes
    cdef public double[::1] ladder
    cdef public int64_t begun
    cdef public int64_t moved
    cdef public int64_t frozen
    cdef public int64_t rounds
    cdef double[::1] rejections
    cdef const double *state_at(self, int r) noexcept nogil
    cdef void end_round(self) noexcept nogil
    cdef void forget(self) noexcept nogil
