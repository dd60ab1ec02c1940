"""PythonTarget, for estimators that are Python functions too."""
from fastkam._core.density.target cimport Target

cdef enum:
    RAISED = -100           # the code of a function that has raised

cdef class PythonTarget(Target):
    cdef object f
    cdef object hessian_product
    cdef object point           # the array handed to f, used again while nobody else holds it
    cdef double *buffer
    cdef readonly bint vectorized
    cdef readonly bint gradient
    cdef object error
    cdef object argument(self, size_t k, const double *x)

cdef int copy_vector(value, size_t n, what, double *out) except -1
