"""Kernel adaptive Metropolis: declarations for derived kernels."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain
from fastkam._core.samplers.local_normal cimport LocalNormal
from fastkam._core.engine.sums cimport Power

cdef class KernelAdaptiveMetropolis(LocalNormal):
    cdef public double nu
    cdef public int64_t age
    cdef public double[:, ::1] history
    cdef public int64_t[::1] order
    cdef public int64_t kept
    cdef public int64_t stride
    cdef public int64_t passed
    cdef public int64_t n_learned
    cdef public double[::1] mu
    cdef public double[::1] L
    cdef bint median
    cdef Py_ssize_t subsample
    cdef double target_acceptance
    cdef Power noise
    cdef Power renewal
    cdef double[::1] distances
    cdef int64_t renewals               # of z and the length, by any sharer
    cdef int move(self, Chain *c) noexcept nogil
    cdef void clear_history(self) noexcept nogil
    cdef bint remember(self, const double *x) noexcept nogil
    cdef void learn_metric(self, Chain *c) noexcept nogil
    cdef void take_metric(self) noexcept nogil
    cdef int learn_subsample(self, Chain *c) except -1 nogil
    cdef int learn_length(self) except -1 nogil
