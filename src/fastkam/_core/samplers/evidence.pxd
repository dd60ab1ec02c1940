"""The normalizing constant from tempered replicas."""
from libc.stdint cimport int64_t

from fastkam._core.engine.state cimport State

cdef class Evidence(State):
    cdef int rungs
    cdef public int64_t batch
    cdef public int64_t batch_length
    cdef public int64_t in_batch
    cdef public double[:, ::1] stones
    cdef public double[:, ::1] sums
    cdef public double[:, ::1] squares
    cdef public double[::1] outside
    cdef void add(self, void **replicas) noexcept nogil
    cdef void halve(self) noexcept nogil
    cdef void forget(self) noexcept nogil
