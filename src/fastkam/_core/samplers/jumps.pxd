"""Mode jumping, for its broken twins."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel
from fastkam._core.mixture cimport Mixture
from fastkam._core.samplers.exchange cimport Exchange

cdef enum:
    INNER               # the other sampler's step
    JUMP
    INDEPENDENT
    HOP

cdef class ModeJumping(Kernel):
    cdef readonly Kernel inner
    cdef Exchange tempered                  # the same, where it is one; else None
    cdef object estimate
    cdef bint[3] used                       # which kinds
    cdef int[::1] counts                    # columns of the inner sampler's that count its steps
    cdef bint learns_chances
    cdef double planned                     # what share of warm-up the inner sampler plans for
    cdef const double[:, ::1] jump_factor   # transposed
    cdef public int64_t move
    cdef public int64_t t
    cdef public int64_t accepted
    cdef public double[::1] chances
    cdef public double[::1] tried
    cdef public double[::1] taken
    cdef public int64_t n
    cdef public double[::1] weights
    cdef public double[:, ::1] means
    cdef public double[:, :, ::1] factors
    cdef public double[:, ::1] history
    cdef public double[:, ::1] warmer
    cdef public int64_t seen
    cdef public int64_t fitted
    cdef public int64_t kept
    cdef public int64_t stride
    cdef Mixture q
    cdef double log_q_x                     # log q of the current point, NaN where not known
    cdef double log_q_y
    cdef double[::1] v
    cdef int64_t outer_t
    cdef int64_t outer_end
    cdef int choose(self, double u) noexcept nogil
    cdef void look_back(self, Chain *c) noexcept nogil
    cdef void enter(self, Chain *c, int64_t t) noexcept nogil
    cdef void leave(self, Chain *c) noexcept nogil
    cdef double log_modes(self, const double *x) noexcept nogil
    cdef void put(self, Chain *c, const double *centre, double scale,
                  const double *L) noexcept nogil
    cdef void jump(self, Chain *c) noexcept nogil
    cdef void draw_independently(self, Chain *c) noexcept nogil
    cdef void hop(self, Chain *c) noexcept nogil
    cdef int learn(self, Chain *c) except -1 nogil
    cdef void learn_chances(self) noexcept nogil
    cdef void remember(self, const double *x) noexcept nogil
