"""Chains whose points are evaluated together."""
from libc.stdint cimport int64_t

from fastkam._core.density.target cimport Target
from fastkam._core.engine.chain_step cimport Schedule
from fastkam._core.engine.evaluation cimport Evaluation


cdef class Members:
    cdef readonly Target target
    cdef readonly list chains
    cdef Schedule schedule
    cdef void **pointers                    # (K,) each a ChainState
    cdef Evaluation evaluation
    cdef dict arrays                        # owners of these arrays of several chains:
    cdef double *xs                         # (K, d) their x
    cdef double *grad_xs                    # (K, d) gradients at x
    cdef signed char *wanteds               # (K width,) their wanted
    cdef signed char *statuses              # (K width,) their status
    cdef tuple common                       # owners of all memory that is moved here
    cdef bint noisy
    cdef bint alone                         # one chain, one point of a known density at a time
    cdef readonly bint shares               # the chains learn as one
    cdef int K
    cdef int width
    cdef int failed                         # the chain at fault, and its row of y
    cdef int failed_row
    cdef const int64_t[:] snapshot_steps
    cdef int place_together(self, Py_ssize_t i) except -1
    cdef int evaluate(self) noexcept nogil
    cdef int judge_all(self) noexcept nogil
    cdef int gather(self) noexcept nogil
