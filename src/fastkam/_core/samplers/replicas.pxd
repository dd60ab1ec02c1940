"""All replicas of a chain: declarations for coupled kernels."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.samplers.replica cimport Replica

cdef class Replicas:
    cdef readonly list members
    cdef readonly int width                 # total number of their rows of y
    cdef readonly bint gradient             # whether one of them needs the gradient
    cdef Reference reference
    cdef void **pointers                    # to the members
    cdef int rungs
    cdef Chain *chain(self, int r) noexcept nogil
    cdef void set_ladder(self, const double *ladder) noexcept nogil
    cdef void connect(self, Chain *c) noexcept
    cdef void plan(self, int64_t end_of_adaptation) noexcept
    cdef void begin(self, const Chain *c) noexcept nogil
    cdef void move(self, const Chain *c, bint displaced) noexcept nogil
    cdef void lead(self, Chain *c) noexcept nogil
    cdef int propose(self, const Chain *c, int64_t t) except -1 nogil
    cdef int consider(self, Chain *c, int64_t t) except -1 nogil
    cdef int adapt(self, double gain, int64_t t) except -1 nogil
    cdef void fit_reference(self) noexcept nogil
    cdef int freeze(self, int64_t t) except -1 nogil
    cdef void record(self, int64_t t, double *row) noexcept nogil
