"""HMC, for its broken twin."""
from libc.stdint cimport int64_t

from fastkam._core.samplers.hamiltonian cimport Hamiltonian

cdef class HMC(Hamiltonian):
    cdef public int64_t step
    cdef public double lowest
    cdef public double highest
    cdef public int64_t diverging
    cdef int64_t steps
    cdef double jitter
    cdef double max_energy_error
