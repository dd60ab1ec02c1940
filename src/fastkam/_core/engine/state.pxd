"""Declarations of objects whose state is declared once, in a table."""
from libc.stdint cimport int64_t

cdef object real_view(double *number)
cdef object integer_view(int64_t *number)

cdef class Places:
    cdef dict offsets                       # {name: offset} of every number
    cdef const Py_ssize_t[::1] shared       # offsets of the shared numbers
    cdef const Py_ssize_t[::1] recorded     # of the recorded ones; ~offset for an integer

cdef class State:
    cdef readonly dict sizes                # the sizes given to `allocate`
    cdef Places places
    cdef void copy_shared_numbers(self, State other) noexcept nogil
    cdef void record_numbers(self, double *row) noexcept nogil
