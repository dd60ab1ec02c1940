"""Replica exchange, for its broken twins."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel
from fastkam.target cimport fk_target

cdef class Exchange(Kernel):
    cdef readonly list kernels
    cdef void **pointers
    cdef Chain *inner
    cdef fk_target target
    cdef int rungs
    cdef int64_t[::1] first                 # row of y of each rung
    cdef int scheme
    cdef int64_t every
    cdef bint proper
    cdef double widening
    cdef bint fits
    cdef bint tunes
    cdef public double[::1] ladder
    cdef public double[:, ::1] x
    cdef public double[:, ::1] grad
    cdef public double[::1] logp
    cdef public double[::1] logp_y
    cdef public double[::1] log_ref
    cdef public double[::1] log_ref_y
    cdef public double[:, ::1] slope
    cdef public double[:, ::1] slope_y
    cdef public double[::1] level_y
    cdef public int64_t[::1] waits
    cdef public double[::1] alpha
    cdef public double[::1] E
    cdef public double[::1] level
    cdef public double[::1] log_q
    cdef public int64_t[::1] accepted
    cdef public int64_t begun
    cdef public int64_t moved
    cdef public int64_t frozen
    cdef public int64_t rounds
    cdef public int64_t[::1] replica
    cdef public int64_t[::1] was_hot
    cdef public int64_t round_trips
    cdef public double[::1] tried
    cdef public double[::1] swapped
    cdef public double[::1] mean
    cdef public double[::1, :] L
    cdef public double[::1] sum_x
    cdef public double[::1, :] sum_xx
    cdef public double n_x
    cdef public int64_t batch
    cdef public int64_t batch_length
    cdef public int64_t in_batch
    cdef public double[:, ::1] stones
    cdef public double[:, ::1] sums
    cdef public double[:, ::1] squares
    cdef double[::1] u
    cdef double log_norm
    cdef void find_norm(self) noexcept nogil
    cdef double log_reference(self, const double *x, double *slope) noexcept nogil
    cdef double level_of(self, Chain *c, int r, double logp, double log_ref) noexcept nogil
    cdef void slope_of(self, Chain *c, int r, const double *x, const double *grad,
                       double *slope) noexcept nogil
    cdef double excess(self, Chain *c, int r) noexcept nogil
    cdef bint is_reference(self, int r) noexcept nogil
    cdef Chain *connect(self, Chain *c, int r) noexcept nogil
    cdef void begin(self, Chain *c) noexcept nogil
    cdef void move(self, Chain *c) noexcept nogil
    cdef void give_back(self, Chain *c) noexcept nogil
    cdef void exchange(self, Chain *c) noexcept nogil
    cdef void try_swap(self, Chain *c, int a, int b) noexcept nogil
    cdef void swap(self, Chain *c, int a, int b) noexcept nogil
    cdef void count_round_trips(self) noexcept nogil
    cdef void look(self, Chain *c, int r) noexcept nogil
    cdef int settle(self, Chain *c, int r, int answer) noexcept nogil
    cdef void recover(self, Chain *c, int r) noexcept nogil
    cdef void add_to_batch(self, Chain *c) noexcept nogil
    cdef void halve_batches(self) noexcept nogil
    cdef void learn_reference(self, Chain *c) noexcept nogil
    cdef int end_round(self, Chain *c) except -1 nogil
    cdef void tune_ladder(self) noexcept nogil
    cdef void clear(self) noexcept nogil
