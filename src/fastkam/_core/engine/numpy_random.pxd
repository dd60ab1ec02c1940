"""Declarations of numpy's generators and distributions, from its C headers alone.

numpy's own declarations bring all of numpy into every module that uses a generator, which would
take half of its translation time and a fifth of its C code.
"""
from libc.stdint cimport uint64_t

cdef extern from "numpy/random/bitgen.h":
    ctypedef struct bitgen_t:
        void *state
        uint64_t (*next_uint64)(void *state) nogil
        double (*next_double)(void *state) nogil

cdef extern from "numpy/random/distributions.h" nogil:
    double random_standard_uniform(bitgen_t *rng)
    double random_uniform(bitgen_t *rng, double lower, double range)
    double random_chisquare(bitgen_t *rng, double degrees)
    void random_bounded_uint64_fill(bitgen_t *rng, uint64_t offset, uint64_t range, Py_ssize_t n,
                                    bint masked, uint64_t *out)
