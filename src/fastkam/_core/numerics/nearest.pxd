"""The nearest of many points, see nearest.h."""
from libc.stdint cimport int16_t, int64_t

cdef extern from "nearest.h" nogil:
    ctypedef struct fk_nearest:
        Py_ssize_t d
        Py_ssize_t s
        const double *points
        int is_tree
        double *leaves
        int64_t *order
        double *boxes
        int16_t *filter
        double *center
    enum: FK_GROUP, FK_WAYS
    Py_ssize_t fk_sixteenths(Py_ssize_t n)
    Py_ssize_t fk_in_groups(Py_ssize_t s)
    Py_ssize_t fk_count_nodes(Py_ssize_t s)
    void fk_nearest_build_tree(fk_nearest *n, Py_ssize_t s)
    void fk_nearest_build_filter(fk_nearest *n, Py_ssize_t s)
    int64_t fk_nearest_find(const fk_nearest *n, const double *x, float *work)

cdef class NearestIndex:
    cdef fk_nearest c
    cdef const double[:, ::1] points
    cdef double[:, :, ::1] leaves
    cdef int64_t[::1] order
    cdef double[:, :, :, ::1] boxes
    cdef int16_t[:, :, :, ::1] filter
    cdef double[::1] center
    cdef float[::1] work
    cdef void build(self, Py_ssize_t n) noexcept nogil
    cdef int64_t find(self, const double *x) noexcept nogil
