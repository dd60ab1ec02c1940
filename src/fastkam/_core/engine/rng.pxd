"""Random numbers from numpy's bitgen_t by numpy's own distributions, so that a chain can be
replayed with numpy.random.Generator draw by draw."""
from libc.stdint cimport int64_t

from fastkam._core.engine.numpy_random cimport bitgen_t, random_standard_uniform

cdef extern from "draws.h" nogil:
    ctypedef struct Tables "fk_tables":
        void *pcg64
    double fk_normal(const Tables *tables, bitgen_t *rng)
    double fk_exponential(const Tables *tables, bitgen_t *rng)

cdef Tables tables

cdef bitgen_t *bits_of(bit_generator)
cdef void normals(bitgen_t *rng, Py_ssize_t n, double *out) noexcept nogil
cdef object encoded_states(list states)
cdef list decoded_states(encoded)


cdef inline double normal(bitgen_t *rng) noexcept nogil:
    """Draw from N(0, 1), as Generator.standard_normal()."""
    return fk_normal(&tables, rng)


cdef inline double exponential(bitgen_t *rng) noexcept nogil:
    """Draw -log U, as Generator.standard_exponential()."""
    return fk_exponential(&tables, rng)


cdef inline int64_t integer(bitgen_t *rng, int64_t n) noexcept nogil:
    """Draw floor(n U), uniform on 0 .. n-1 up to 2^-53 n, as int(n * Generator.random())."""
    return <int64_t>(<double>n * random_standard_uniform(rng))


cdef inline double jittered(bitgen_t *rng, double jitter) noexcept nogil:
    """Draw 1 + jitter (2 U - 1), a factor of a step size; 1 without a draw if jitter is 0."""
    return 1 + jitter * (2 * random_standard_uniform(rng) - 1) if jitter > 0 else 1.0
