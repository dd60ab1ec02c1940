"""Mode jumping, for its broken twins."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel

cdef enum:
    INNER               # the other sampler's step
    JUMP
    INDEPENDENT
    HOP

cdef class ModeJumping(Kernel):
    cdef readonly Kernel inner
    cdef object estimate
    cdef double chance
    cdef int[::1] kinds
    cdef const double[:, ::1] jump_factor   # transposed
    cdef public int64_t move
    cdef public int64_t t
    cdef public int64_t accepted
    cdef public int64_t n
    cdef public double[::1] weights
    cdef public double[:, ::1] means
    cdef public double[:, :, ::1] factors
    cdef public double[:, ::1] history
    cdef public int64_t seen
    cdef public int64_t kept
    cdef public int64_t stride
    cdef double[::1] constants
    cdef double[::1] terms
    cdef double[::1] v
    cdef int64_t outer_t
    cdef int64_t outer_end
    cdef int choose(self, double u) noexcept nogil
    cdef void look_back(self, Chain *c) noexcept nogil
    cdef void enter(self, Chain *c, int64_t t) noexcept nogil
    cdef void leave(self, Chain *c) noexcept nogil
    cdef double log_density(self, const double *x, int first) noexcept nogil
    cdef void put(self, Chain *c, const double *centre, const double *L,
                  const double *z) noexcept nogil
    cdef void jump(self, Chain *c) noexcept nogil
    cdef void draw_independently(self, Chain *c) noexcept nogil
    cdef void hop(self, Chain *c) noexcept nogil
    cdef void remember(self, const double *x) noexcept nogil
