"""Chains that step side by side."""
cimport cython
from libc.stdint cimport int64_t, uint64_t

from fastkam._core.engine.chain cimport ChainState
from fastkam._core.engine.chain_step cimport Schedule
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.held cimport HeldRows
from fastkam._core.engine.kernel cimport Lanes
from fastkam._core.engine.rng cimport bitgen_t
from fastkam._core.engine.watch cimport Watch

cdef extern from "streams.h" nogil:
    ctypedef struct Lane "fk_lane":
        pass
    ctypedef struct Streams "fk_streams":
        Py_ssize_t n
        uint64_t *low
        uint64_t *high
        uint64_t *c_low
        uint64_t *c_high
        bitgen_t *each
        Lane *lanes


@cython.final
cdef class Lockstep:
    cdef Lanes g
    cdef void **chains                      # (K,) each a ChainState
    cdef Evaluation evaluation
    cdef dict arrays                        # owners of the memory below
    cdef bint loaded                        # whether the states of the chains are here
    cdef bint pending                       # whether a step has begun and is not finished
    cdef bint in_streams                    # whether the chains draw from `streams`
    cdef Streams streams
    cdef double *drawn                      # (K, d) normals
    # what all chains have in common
    cdef int64_t n_adapted
    cdef int64_t next_adaptation
    cdef bint frozen
    cdef bint noting
    # counted since `load`
    cdef int64_t *n_accepted                # (K,)
    cdef int64_t rounds                     # evaluations of all chains, not yet in their counts
    cdef int64_t made                       # evaluations of all chains together
    cdef int listed                         # points listed as waiting
    cdef HeldRows rows                      # rows that are not yet in the traces
    cdef int make_streams(self) except -1
    cdef bint load(self) noexcept nogil
    cdef bint is_like_the_first(self, int k) noexcept nogil
    cdef void store(self) noexcept nogil
    cdef void give_back(self, ChainState s, Py_ssize_t k) noexcept nogil
    cdef int advance(self, int64_t n, Schedule *schedule, int64_t most_evaluations, Watch *watch,
                     int64_t *done, bint *full) except -1 nogil
    cdef int propose(self) except -1 nogil
    cdef int settle(self) except -1 nogil
    cdef void wait_for(self, int waiting) noexcept nogil
    cdef bint are_good(self, int m) noexcept nogil
    cdef bint judge_each(self, int m) noexcept nogil
    cdef int finish(self, Schedule *schedule) except -1 nogil
    cdef int adapt(self, Schedule *schedule) except -1 nogil
    cdef int freeze(self) except -1 nogil
    cdef bint is_full(self, int64_t most_evaluations) noexcept nogil
    cdef void record(self) noexcept nogil
