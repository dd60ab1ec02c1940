"""Evaluation of the density at the points of a group, with helper threads."""
cimport cython

from fastkam._core.density.target cimport Target

cdef extern from "thread_pool.h" nogil:
    enum: FK_HELPERS
    ctypedef struct Pool "fk_pool":
        int helpers


@cython.final
cdef class Evaluation:
    cdef Target target
    cdef dict arrays                        # owners of the arrays below, by name
    cdef double *points                     # (n, d)
    cdef double *gradients                  # (n, d), at the points
    cdef double *values                     # (n,)
    cdef int *codes                         # (n,) return codes of the target
    cdef int *waiting                       # (n,) indices of points to be evaluated, the first m
    cdef const double **noises              # (n,) each to the n_aux noise variables of a point
    cdef double *some_points                # the same for the waiting points alone, for one call
    cdef double *some_gradients
    cdef double *some_values
    cdef double *some_noise
    cdef int n
    cdef bint gradient
    cdef bint noisy
    cdef bint batched                       # one call for all points
    cdef Pool *pool                         # helper threads, if a point takes long
    cdef int untimed                        # calls still to be timed
    cdef double fastest                     # least seconds per point of the timed calls
    cdef void at(self, int m) noexcept nogil
    cdef void evaluate(self, int m) noexcept nogil
    cdef int evaluate_point(self, int i) noexcept nogil
    cdef void evaluate_batch(self, int m) noexcept nogil
    cdef int call_batch(self, size_t m, const double *X, double *gradients,
                        double *values) noexcept nogil
