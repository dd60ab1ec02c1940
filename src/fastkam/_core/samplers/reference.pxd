"""The reference distribution of tempering: declarations for replicas."""
from fastkam._core.engine.numpy_random cimport bitgen_t

from fastkam._core.engine.state cimport State

cdef class Reference(State):
    cdef Py_ssize_t d
    cdef readonly bint proper
    cdef readonly bint fits
    cdef double widening
    cdef double log_norm
    cdef double[::1] u
    cdef public double[::1] mean
    cdef public double[::1, :] L
    cdef public double[::1] round_mean
    cdef public double[::1, :] round_scatter
    cdef public double n_x
    cdef void find_norm(self) noexcept nogil
    cdef double log_density(self, const double *x, double *grad) noexcept nogil
    cdef void draw(self, bitgen_t *rng, double *y) noexcept nogil
    cdef void learn(self, const double *x) noexcept nogil
    cdef bint fit(self) noexcept nogil
    cdef void forget(self) noexcept nogil
