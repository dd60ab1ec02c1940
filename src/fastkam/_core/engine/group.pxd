"""Chains that step together."""
cimport cython
from libc.stdint cimport int64_t

from fastkam._core.density.target cimport Target
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.lockstep cimport Lockstep
from fastkam._core.engine.chain_step cimport Schedule


@cython.final
cdef class Group:
    cdef readonly Target target
    cdef readonly list chains
    cdef Schedule schedule
    cdef void **pointers
    cdef Evaluation evaluation
    cdef Lockstep lockstep                  # None where the chains cannot step side by side
    cdef object xs                          # (K, d) the chains' x, if there are several
    cdef object grad_xs                     # (K, d) gradients there, or None
    cdef object wanteds                     # (K width,) their wanted
    cdef object statuses                    # (K width,) their status
    cdef bint noisy
    cdef bint alone                         # one chain, one point of a known density at a time
    cdef readonly bint shares               # the chains learn as one
    cdef int K
    cdef int width
    cdef int failed                         # the chain at fault, and its row of y
    cdef int failed_row
    cdef int64_t most_evaluations           # a chain
    cdef const int64_t[:] snapshot_steps
    cdef int64_t done                       # steps made by the last call of run
    cdef int place_together(self, Py_ssize_t i) except -1
    cdef int settle(self) except -1 nogil
    cdef void hand_on(self, int k, int to) noexcept nogil
    cdef int evaluate(self) noexcept nogil
    cdef int judge_all(self) noexcept nogil
    cdef int gather(self) noexcept nogil
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
