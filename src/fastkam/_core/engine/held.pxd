"""Rows of the traces of many chains, not yet written to them."""
cimport cython
from libc.stdint cimport int64_t

from fastkam._core.engine.chain cimport Trace
from fastkam._core.engine.kernel cimport Lanes

cdef void *room_in(dict arrays, name, Py_ssize_t n, dtype=*) except NULL


@cython.final
cdef class HeldRows:
    cdef Trace trace                        # of the first chain; its count includes the held rows
    cdef Py_ssize_t K
    cdef Py_ssize_t d
    cdef void **chains                      # (K,) each a ChainState
    cdef dict arrays                        # owners of the memory below
    cdef int64_t held
    cdef int64_t room
    cdef Py_ssize_t stride                  # from row to row, K or a little more
    cdef Py_ssize_t stride_x                # K d or a little more
    cdef double *rows_x                     # (room, stride_x), of which K d are in use
    cdef double *rows_logp                  # (room, stride)
    cdef double *rows_log_ratio
    cdef signed char *rows_accepted
    cdef double **to_x                      # (K,) where the next rows of each chain belong
    cdef double **to_logp
    cdef double **to_log_ratio
    cdef signed char **to_accepted
    cdef void begin(self) noexcept nogil
    cdef bint is_like_the_first(self, const Trace *trace) noexcept nogil
    cdef bint is_full(self) noexcept nogil
    cdef bint wants(self, int64_t t) noexcept nogil
    cdef void hold(self, const Lanes *g) noexcept nogil
    cdef void flush(self) noexcept nogil
    cdef void end(self) noexcept nogil
