"""PythonTarget: declarations for estimators that are Python functions."""
from fastkam._core.density.kept cimport Kept
from fastkam._core.density.target cimport Target

cdef enum:
    RAISED = -100           # the code of a function that has raised an exception

cdef class PythonTarget(Target):
    cdef object f
    cdef object hessian_product
    cdef object point           # the array handed to f, reused while nothing else refers to it
    cdef double *buffer
    cdef readonly bint vectorized
    cdef readonly bint gradient
    cdef object error
    cdef Kept kept              # the extras of the last evaluations
    cdef bint has_extras        # whether there have been any
    cdef object argument(self, size_t k, const double *x)
    cdef object without_extras(self, tuple value, size_t n, const double *x, size_t n_aux,
                               const double *u)
    cdef object without_extras_rows(self, tuple value, size_t k, size_t n, const double *X,
                                    size_t n_aux, const double *U)

cdef int copy_vector(value, size_t n, what, double *out) except -1
