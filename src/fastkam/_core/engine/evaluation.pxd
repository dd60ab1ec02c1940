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
    cdef double[:, ::1] points              # (n, d)
    cdef double[:, ::1] gradients           # (n, d), there
    cdef double[::1] values                 # (n,)
    cdef int[::1] codes                     # (n,) return codes of the target
    cdef const double **noises              # (n,) each of the target's n_aux, for an estimate
    cdef int[::1] waiting                   # (n,) indices of the points that do, the first m
    cdef double[:, ::1] some_points         # the same for those alone, for one call
    cdef double[:, ::1] some_gradients
    cdef double[::1] some_values
    cdef double[:, ::1] some_noise
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
