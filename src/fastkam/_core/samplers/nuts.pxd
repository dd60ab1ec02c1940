"""NUTS, for its broken twin."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain
from fastkam._core.samplers.hamiltonian cimport Hamiltonian

cdef class NUTS(Hamiltonian):
    cdef public double[:, :, ::1] ends
    cdef public double[::1] rho
    cdef public double log_w
    cdef public double[:, ::1] draw
    cdef public double logp_draw
    cdef public double[:, :, ::1] stack
    cdef public double[::1] stack_log_w
    cdef public double[::1] stack_logp
    cdef public int64_t direction
    cdef public int64_t depth
    cdef public int64_t leaves
    cdef public int64_t n_steps
    cdef public int64_t diverging
    cdef public int64_t moved
    cdef public double sum_alpha
    cdef public double worst
    cdef int64_t max_depth
    cdef double max_energy_error
    cdef void double_trajectory(self, Chain *c) noexcept nogil
    cdef double signed_eps(self) noexcept nogil
    cdef void step(self, Chain *c, const double *x, const double *grad) noexcept nogil
    cdef int64_t put_point(self, Chain *c, double log_w) noexcept nogil
    cdef bint merge(self, Chain *c, int64_t a) noexcept nogil
    cdef int join(self, Chain *c) except -1 nogil
    cdef int decide(self, Chain *c) except -1 nogil
