"""The fields of a sampler written in Python: declarations for its kernel."""

cdef class PythonFields:
    cdef object own
    cdef dict space                 # the attributes of own
    cdef dict table
    cdef list names
    cdef list shared
    cdef list stats
    cdef list kinds                 # of each field: REAL, INTEGER, ARRAY
    cdef list shapes
    cdef object where(self, name)
    cdef double number(self, method, verb, value) except? -1.0
    cdef double log_ratio(self, method, verb, value) except? -1.0
    cdef int look(self) except -1
    cdef object as_stored(self, Py_ssize_t i, value)
    cdef list now(self)
    cdef int set(self, list values) except -1
    cdef dict views(self)
    cdef dict learned(self)
    cdef dict stored(self, str prefix, list values)
    cdef list restored(self, str prefix, state)
