"""Target: an fk_target and what keeps it alive."""
from fastkam.target cimport fk_target

cdef class Target:
    cdef fk_target c
    cdef readonly str kind
    cdef readonly object owner
    cdef public object recipe   # a picklable call that makes the target again, where there is one

cdef class PythonTarget(Target):
    cdef object f
    cdef object hessian_product
    cdef object point           # the array handed to f, used again while nobody else holds it
    cdef double *buffer
    cdef readonly bint vectorized
    cdef readonly bint gradient
    cdef object error
    cdef object argument(self, tuple shape, const double *x)
