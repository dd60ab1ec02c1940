"""Random numbers with numpy's streams; see draws.h and bits.h."""
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport PyObject
from fastkam._core.engine.numpy_random cimport bitgen_t

import json

import numpy as np

cdef extern from "draws.h" nogil:
    void make_tables "fk_make_tables" (Tables *tables, bitgen_t *some)
    void draw_normals "fk_normals" (const Tables *tables, bitgen_t *rng, Py_ssize_t n, double *out)
    void *find_pcg64 "fk_find_pcg64" (bitgen_t *rng, const void *object, size_t size)


cdef void normals(bitgen_t *rng, Py_ssize_t n, double *out) noexcept nogil:
    """Draw out ~ N(0, I_n), as Generator.standard_normal(n)."""
    draw_normals(&tables, rng, n, out)


cdef bitgen_t *bits_of(bit_generator):
    return <bitgen_t *>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


def standard_normal(bit_generator, Py_ssize_t n):
    """Return the draws of ``Generator(bit_generator).standard_normal(n)``; for tests."""
    cdef double[::1] out = np.empty(n)
    normals(bits_of(bit_generator), n, &out[0] if n else NULL)
    return np.asarray(out)


def in_turns(bit_generator, Py_ssize_t n):
    """Return (n, 2): alternately a standard normal and an exponential; for tests."""
    cdef double[:, ::1] out = np.empty((n, 2))
    cdef bitgen_t *rng = bits_of(bit_generator)
    cdef Py_ssize_t i
    for i in range(n):
        out[i, 0] = normal(rng)
        out[i, 1] = exponential(rng)
    return np.asarray(out)


def is_in_line():
    """Return whether PCG64 is used without calling numpy; for tests."""
    return tables.pcg64 != NULL


cdef object encoded_states(list states):
    """Return the states of a bit generator, as returned by numpy, encoded in an array of bytes."""
    if not states:
        return np.zeros(0, np.uint8)
    text = json.dumps(states, default=lambda a: {"array": a.tolist(), "dtype": str(a.dtype)})
    return np.frombuffer(text.encode(), np.uint8).copy()


cdef list decoded_states(encoded):
    """Return the states that `encoded_states` has encoded."""
    def array(found):
        if "array" not in found:
            return found
        if found["dtype"] not in ("uint32", "uint64"):
            raise ValueError(f"no word of a state has the type {found['dtype']!r}")
        return np.array(found["array"], found["dtype"])

    return json.loads(bytes(encoded), object_hook=array) if len(encoded) else []


probe = np.random.PCG64(0)
make_tables(&tables, bits_of(probe))    # the tables do not depend on the generator
tables.pcg64 = find_pcg64(bits_of(probe), <PyObject *>probe, type(probe).__basicsize__)
