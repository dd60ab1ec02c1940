"""Delayed acceptance: declarations for derived kernels."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam.target cimport fk_target

cdef class DelayedAcceptance(Kernel):
    cdef public double log_s_x
    cdef public double log_s_y
    cdef public int64_t passed
    cdef readonly Kernel inner
    cdef double[::1] slope
    cdef Py_ssize_t n_stats
    cdef int first_stage(self, Chain *c) except -1 nogil
    cdef int know_here(self, Chain *c) except -1 nogil
    cdef int consider_inner(self, Chain *c) except -1 nogil
    cdef int decide(self, Chain *c, double log_ratio) noexcept nogil
    cdef int ask(self, Chain *c, const double *x, double *log_s) noexcept nogil
    cdef int evaluate(self, const fk_target *s, const double *x, double *log_s) noexcept nogil
