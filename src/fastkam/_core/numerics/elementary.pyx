"""Exponentials and logarithms of the C library, element by element.

numpy's own depend, in the last bit, on the vectors of the processor.
"""
cimport libc.math

import numpy as np

cdef object mapped(x, double (*f)(double) noexcept nogil):
    """f of each element of an array, or of a number."""
    out = np.array(x, dtype=float, order="C")
    cdef double[::1] values = out.reshape(-1)
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        values[i] = f(values[i])
    return out[()]


def exp(x):
    """e^x of an array, or of a number."""
    return mapped(x, libc.math.exp)


def log(x):
    """The natural logarithm of an array, or of a number; -inf of 0, NaN below."""
    return mapped(x, libc.math.log)
