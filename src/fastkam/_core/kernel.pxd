"""The contract between the engine and a sampler: what a kernel sees, and what it must do."""
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

from fastkam.target cimport fk_target

cdef struct Chain:              # all that a kernel may touch
    Py_ssize_t d
    bitgen_t *rng
    const fk_target *target
    double beta                 # inverse temperature: the law sampled is pi^beta
    double *x                   # (d,) current point
    double *y                   # (d,) proposed point
    double logp_x
    double logp_y
    double log_q                # log q(x|y) - log q(y|x)
    double alpha                # its acceptance probability, for adapt
    int accepted                # whether the last proposal was accepted
    int keep                    # whether the state after this step is a draw
    int64_t t                   # steps made

cdef class Kernel:
    cdef readonly Py_ssize_t d
    cdef readonly bint asymmetric           # log_q is completed by reverse
    cdef int propose(self, Chain *c) except -1 nogil
    cdef int reverse(self, Chain *c) except -1 nogil
    cdef int adapt(self, Chain *c, double gain) except -1 nogil
    cdef int freeze(self, Chain *c) except -1 nogil
    cdef void record(self, Chain *c, double *row) noexcept nogil
