"""Target: an fk_target, and the objects that it needs."""
from fastkam.target cimport fk_target

cdef enum:
    NO_SURROGATE = -1000000     # the code of a surrogate without a density; plus a code of its own

cdef struct Refresh:        # of the noise of an estimated density, see noise.pxd
    double correlation      # rho; 0 for fresh noise
    Py_ssize_t blocks       # 1 for all of it

# the log of an estimate at each of k points X (k, n), with its row of the noise U (k, n_aux)
ctypedef int (*noisy_batch_fn)(size_t k, size_t n, const double *X, size_t n_aux, const double *U,
                               double *logp, void *data) noexcept nogil

cdef class Target:
    cdef fk_target c
    cdef noisy_batch_fn noisy_batch     # NULL for most
    cdef readonly str kind
    cdef readonly object owner
    cdef Refresh refresh
    cdef readonly Target surrogate      # None for most
    cdef bint *extras           # whether evaluations have returned extras; NULL where none can
    cdef readonly object derived    # a Python function of x, evaluated at each draw, or None
    cdef public object recipe   # a picklable call that makes the target again, or None
