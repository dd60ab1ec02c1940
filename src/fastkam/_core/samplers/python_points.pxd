"""Points, proposals and decisions of samplers written in Python."""

cdef class Point:
    cdef readonly object x
    cdef readonly double logp
    cdef readonly object grad
    cdef Py_ssize_t place           # among the points that the step has received; -1 for others

cdef class Proposal:
    cdef readonly Point point
    cdef readonly object log_q

cdef class Decision:
    cdef readonly Point point
    cdef readonly object alpha
    cdef readonly bint accepted
    cdef readonly Point x

cdef object read_only(Py_ssize_t n, const double *values)
