"""A chain that steps, and the group of chains that step together."""
cimport cython
from libc.stdint cimport int64_t

from fastkam._core.engine.chain cimport ChainMemory
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.sums cimport Power
from fastkam._core.density.target cimport Target

# adapt at the steps start <= t < stop
cdef struct Schedule:
    Power gain
    int64_t start
    int64_t stop
    double rarity           # > 0: only at start - 1 + ceil(j^(1 + rarity)), j = 1, 2, ...
    int64_t n               # of the term last computed: chains that step together share it
    double term


@cython.final       # methods are plain C calls, which the compiler inlines into the loop
cdef class ChainState(ChainMemory):
    cdef int64_t advance(self, int64_t n, Schedule *schedule, int64_t most_evaluations,
                         double *gradient, bint *faulty) except -1 nogil
    cdef int settle(self, double *gradient) except -1 nogil
    cdef int begin(self, Schedule *schedule) except -1 nogil
    cdef int draw_noise(self) except -1 nogil
    cdef int judge(self, int row, int rc, double logp) noexcept nogil
    cdef int consider(self) except -1 nogil
    cdef void publish(self) noexcept nogil
    cdef bint is_full(self, int64_t most_evaluations) noexcept nogil
    cdef int finish(self, Schedule *schedule) except -1 nogil
    cdef int adapt(self, Schedule *schedule) except -1 nogil
    cdef int freeze(self, Schedule *schedule) except -1 nogil
    cdef void tally(self) noexcept nogil
    cdef void tally_point(self, int row) noexcept nogil
    cdef void record(self) noexcept nogil
    cdef void note(self, int64_t row) noexcept with gil


@cython.final
cdef class Group:
    cdef readonly Target target
    cdef readonly list chains
    cdef Schedule schedule
    cdef void **pointers
    cdef Evaluation evaluation
    cdef bint noisy
    cdef bint alone                         # one chain, one point of a known density at a time
    cdef readonly bint shares               # the chains learn as one
    cdef int K
    cdef int width
    cdef int failed                         # the chain at fault, and its row of y
    cdef int failed_row
    cdef int64_t most_evaluations           # a chain
    cdef int64_t done                       # steps made by the last call of run
    cdef int settle(self) except -1 nogil
    cdef void hand_on(self, int k, int to) noexcept nogil
    cdef int evaluate(self) noexcept nogil
    cdef int gather(self) noexcept nogil
    cdef int advance(self, int64_t n) except -1 nogil
