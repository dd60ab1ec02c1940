"""Quadratic forms for the Gaussian families."""
from fastkam._core.density.target cimport Target

cdef extern from "rows.h" nogil:
    ctypedef struct Form "fk_form":
        Py_ssize_t d
        const double *mean
        const double *h
        const double *blocks
        const double *rows
    double form_value "fk_form_value" (const Form *f, const double *x)
    double form_grad "fk_form_grad" (const Form *f, const double *x, double a, double *grad)


cdef class Forms:
    cdef Form *form
    cdef readonly Py_ssize_t K
    cdef readonly Py_ssize_t d
    cdef readonly object log_det
    cdef tuple arrays
