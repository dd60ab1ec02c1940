"""Kept: declarations for the densities that store extras."""

cdef class Kept:
    cdef Kept original
    cdef dict new, old          # {key: row}
    cdef readonly dict fields   # {name: (shape, type)}, or None before the first extras
    cdef tuple shapes
    cdef bytes kinds            # first letters of the types
    cdef Py_ssize_t width
    cdef Py_ssize_t most        # rows in `new`
    cdef int find_fields(self, dict extras, tuple lead) except -1
    cpdef row_of(self, dict extras)
    cpdef put(self, bytes key, dict extras)
    cdef int store(self, bytes key, row) except -1
    cdef object plain(self, dict extras)
