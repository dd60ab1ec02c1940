"""The density at the points of a group, and the helpers that share in it."""
cimport cython

from fastkam._core.density.target cimport Target

cdef extern from "crew.h" nogil:
    enum: FK_HELPERS
    ctypedef struct Crew "fk_crew":
        int helpers


@cython.final
cdef class Evaluation:
    cdef Target target
    cdef dict arrays                        # the memory of those below, by name
    cdef double *points                     # (n, d)
    cdef double *gradients                  # (n, d), there
    cdef double *values                     # (n,)
    cdef int *codes                         # (n,) return codes of the target
    cdef int *waiting                       # (n,) indices of the points that do, the first m
    cdef const double **noises              # (n,) each of the target's n_aux, for an estimate
    cdef double *some_points                # the same for those alone, for one call
    cdef double *some_gradients
    cdef double *some_values
    cdef double *some_noise
    cdef int n
    cdef bint gradient
    cdef bint noisy
    cdef bint batched                       # one call for all points
    cdef Crew *crew                         # helpers, where a point takes long
    cdef int untimed                        # calls still to be timed
    cdef double fastest                     # seconds a point of those that were
    cdef void at(self, int m) noexcept nogil
    cdef void evaluate(self, int m) noexcept nogil
    cdef int evaluate_point(self, int i) noexcept nogil
    cdef void evaluate_batch(self, int m) noexcept nogil
    cdef int call_batch(self, size_t m, const double *X, double *gradients,
                        double *values) noexcept nogil
