"""Chains that step together."""
cimport cython
from libc.stdint cimport int64_t

from fastkam._core.engine.lockstep cimport Lockstep
from fastkam._core.engine.members cimport Members


@cython.final
cdef class Group(Members):
    cdef Lockstep lockstep                  # None if the chains cannot step side by side
    cdef int64_t most_evaluations           # per chain
    cdef int64_t done                       # steps made by the last call of run
    cdef int settle(self) except -1 nogil
    cdef void hand_on(self, int k, int to) noexcept nogil
    cdef int begin_all(self) except -1 nogil
    cdef int wait_for(self, int k, int m) noexcept nogil
    cdef bint failure_among(self, int m) noexcept nogil
    cdef int consider_all(self) except -99 nogil
    cdef int advance_side_by_side(self, int64_t last, bint *full) except -1 nogil
    cdef int advance_in_step(self, int64_t last, bint *full) except -1 nogil
    cdef int advance(self, int64_t n) except -1 nogil
    cdef int advance_segment(self, int64_t n, bint *full) except -1 nogil
    cdef int64_t next_snapshot(self, int64_t t) noexcept nogil
    cdef int take_snapshots(self) except -1 nogil
