"""Kernel-PCA KAM: declarations for derived kernels."""
from libc.stdint cimport int64_t

from fastkam._core.samplers.kam cimport KernelAdaptiveMetropolis

cdef class KernelPCAMetropolis(KernelAdaptiveMetropolis):
    cdef public int64_t used
    cdef public double[:, ::1] a
    cdef public double[::1] p
    cdef object kernel
    cdef Py_ssize_t components
    cdef double[::1] w                  # (8 blocks,)
    cdef double[:, ::1] M               # (subsample, d)
    cdef double[:, ::1] V_x             # (d, components), v_c at x and y as columns
    cdef double[:, ::1] V_y
    cdef void look(self, const double *x, double *V) noexcept nogil
    cdef double log_mixture(self, const double *V, const double *D) noexcept nogil
