"""A chain at an inverse temperature: declarations for coupled kernels."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel, Parts
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.engine.state cimport State
from fastkam.target cimport fk_target

cdef class Replica(State):
    cdef Chain c
    cdef Parts parts_of
    cdef fk_target target
    cdef readonly Kernel kernel
    cdef Reference reference
    cdef double beta
    cdef int64_t first                      # row of the outer chain's y at which its own begin
    cdef public int64_t waits
    cdef public double[::1] x
    cdef public double[::1] grad_x
    cdef public double[:, ::1] grad_y
    cdef public double[::1] logps
    cdef public double[::1] grad_pi_x
    cdef bint is_reference(self) noexcept nogil
    cdef void connect(self, Chain *outer, bint gradient) noexcept
    cdef void follow(self, const Chain *outer, bint displaced) noexcept nogil
    cdef double W(self) noexcept nogil
    cdef void refer(self) noexcept nogil
    cdef int propose(self, const Chain *outer, int64_t t) except -1 nogil
    cdef int consider(self, Chain *outer, int64_t t) except -1 nogil
    cdef void evaluate(self, const Chain *outer) noexcept nogil
    cdef void decide(self, int answer) noexcept nogil
