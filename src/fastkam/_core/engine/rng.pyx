"""Standard normals with numpy's stream; see normal.h."""
from cpython.pycapsule cimport PyCapsule_GetPointer
from fastkam._core.engine.numpy_random cimport bitgen_t

import json

import numpy as np

cdef extern from "normal.h" nogil:
    void make_ziggurat "fk_make_ziggurat" (Ziggurat *table, bitgen_t *some)


cdef void normals(bitgen_t *rng, Py_ssize_t n, double *out) noexcept nogil:
    """out ~ N(0, I_n); Generator.standard_normal(n)."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = normal(rng)


cdef bitgen_t *bits_of(bit_generator):
    return <bitgen_t *>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


def standard_normal(bit_generator, Py_ssize_t n):
    """n draws, as ``Generator(bit_generator).standard_normal(n)`` makes them; for tests."""
    cdef double[::1] out = np.empty(n)
    normals(bits_of(bit_generator), n, &out[0] if n else NULL)
    return np.asarray(out)


cdef object encoded_states(list states):
    """Return states of a bit generator, as numpy gives them, as an array of bytes."""
    if not states:
        return np.zeros(0, np.uint8)
    text = json.dumps(states, default=lambda a: {"array": a.tolist(), "dtype": str(a.dtype)})
    return np.frombuffer(text.encode(), np.uint8).copy()


cdef list decoded_states(encoded):
    """Return the states that `encoded_states` has made bytes of."""
    def array(found):
        if "array" not in found:
            return found
        if found["dtype"] not in ("uint32", "uint64"):
            raise ValueError(f"no word of a state has the type {found['dtype']!r}")
        return np.array(found["array"], found["dtype"])

    return json.loads(bytes(encoded), object_hook=array) if len(encoded) else []


probe = np.random.SFC64(0)      # only the way the tables are read off depends on it
make_ziggurat(&ziggurat, bits_of(probe))
