"""The divergence-minimisation sampler, for its broken twin."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel
from fastkam._core.nearest cimport NearestIndex

cdef class DivergenceMinimization(Kernel):
    cdef public double[::1, :] C
    cdef public double[:, ::1] e
    cdef public int64_t frozen
    cdef public int64_t banked
    cdef public double[:, ::1] bank_x
    cdef public double[:, :, ::1] bank_C
    cdef public int64_t at_x
    cdef public int64_t at_y
    cdef NearestIndex index
    cdef double[::1] log_dets
    cdef double[::1] weights
    cdef double[::1] step
    cdef double[::1] v
    cdef double entropy_weight
    cdef double largest_step
    cdef double norm_clip
    cdef double shrink
    cdef double ignore_below
    cdef int64_t nearest_for_reverse(self, Chain *c) noexcept nogil
    cdef double log_q(self, Chain *c) noexcept nogil
    cdef void learn_bank(self, Chain *c) noexcept nogil
    cdef void put_into_bank(self, const double *x) noexcept nogil
    cdef void build_index(self) noexcept nogil
