"""Target: an fk_target and what keeps it alive."""
from fastkam.target cimport fk_target

cdef enum:
    NO_SURROGATE = -1000000     # the code of a surrogate without a density; plus a code of its own

cdef struct Refresh:        # of the noise of an estimated density, see noise.pxd
    double correlation      # rho; 0 for fresh noise
    Py_ssize_t blocks       # 1 for all of it

cdef class Target:
    cdef fk_target c
    cdef readonly str kind
    cdef readonly object owner
    cdef Refresh refresh
    cdef readonly Target surrogate      # None for most
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
