"""Swaps of the states of replicas, and their acceptance rates."""
from libc.stdint cimport int64_t
from fastkam._core.engine.numpy_random cimport bitgen_t

from fastkam._core.samplers.replica cimport Replica
from fastkam._core.engine.state cimport State

cdef class Swaps(State):
    cdef int rungs
    cdef int scheme
    cdef int64_t every
    cdef public double[::1] attempted
    cdef public double[::1] swapped
    cdef public int64_t[::1] replica
    cdef public int64_t[::1] was_hot
    cdef public int64_t round_trips
    cdef bint due(self, int64_t t) noexcept nogil
    cdef void exchange(self, bitgen_t *rng, int64_t t, void **replicas) noexcept nogil
    cdef void try_swap(self, bitgen_t *rng, int a, int b, void **replicas) noexcept nogil
    cdef void count_round_trips(self) noexcept nogil
    cdef void find_rejections(self, double *rates) noexcept nogil
    cdef void forget(self) noexcept nogil
