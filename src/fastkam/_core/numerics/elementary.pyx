"""Exponentials and logarithms of the C library, element by element.

The last bit of numpy's functions depends on the vector instructions of the processor.
"""
cimport libc.math

import numpy as np

cdef object mapped(x, double (*f)(double) noexcept nogil):
    """Return f of each element of an array, or of a number."""
    out = np.array(x, dtype=float, order="C")
    cdef double[::1] values = out.reshape(-1)
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        values[i] = f(values[i])
    return out[()]


def exp(x):
    """Return e^x of an array or a number."""
    return mapped(x, libc.math.exp)


def log(x):
    """Return the natural logarithm of an array or a number; -inf at 0, NaN below."""
    return mapped(x, libc.math.log)
