"""The contract between the engine and a sampler: what a kernel sees, and what it must do."""
from libc.stdint cimport int64_t
from fastkam._core.engine.numpy_random cimport bitgen_t

from fastkam._core.engine.state cimport State
from fastkam.target cimport fk_target

cdef struct Parts:              # what the log density of a tempered chain is made of: replica.pyx
    double log_pi_x             # log pi and the log density of the reference at x
    double log_ref_x
    double log_pi_y             # and at y
    double log_ref_y
    double *grad_pi_x           # (d,) gradients of log pi; NULL where the kernel needs none
    double *grad_pi_y

cdef struct Chain:              # all that a kernel may touch
    Py_ssize_t d
    bitgen_t *rng
    void *bit_generator         # numpy's object that has it, for kernels in Python
    const fk_target *target
    const fk_target *surrogate  # a cheap density that stands in for it; NULL for most
    double *x                   # (d,) current point
    double *y                   # (d,) proposed point, the first of `width` rows
    double *grad_x              # (d,) gradient of log pi; NULL where the kernel needs none
    double *grad_y              # (d,) at y, the first of `width` rows
    double *logps               # (width,) log pi at each row of y; logp_y is the first of them
    signed char *wanted         # (width,) which rows are to be evaluated
    Parts *parts                # of a tempered chain; NULL for others
    Py_ssize_t n_aux            # numbers of noise that an estimate takes; 0 for a known density
    double *u                   # (width, n_aux) noise at x, the first row; others are the kernel's
    double *v                   # (width, n_aux) noise at each row of y
    signed char *noise          # (width,) which noise the evaluation of each row takes
    double logp_x
    double logp_y               # -inf where y has no density (or no gradient): grad_y is then void
    double log_q                # log q(x|y) - log q(y|x); kept from step to step
    double E                    # -log U of the decision: accepted if E > -log(ratio)
    double alpha                # the acceptance probability, for adapt
    int64_t accepted            # whether the last proposal was accepted
    int64_t keep                # whether the state after this step is a draw
    int64_t adapting            # whether this step ends with adapt
    int code                    # of the target, where it is fatal

cdef enum:                      # what consider returns
    DECIDE = 0                  # log_q is complete: the engine decides
    AGAIN = 1                   # y is another point now: evaluate it, and consider again
    DECIDED = 2                 # accepted, alpha and, if accepted, y, logp_y, grad_y are set
    FATAL = 3                   # the target returned `code` < 0 to the kernel itself

cdef enum:                      # the noise of an evaluation
    MOVED = 0                   # v from u, in the target's way: what propose gets
    FURTHER = 1                 # v from v, in that way
    FRESH = 2                   # v ~ N(0, I)
    SAME = 3                    # v as it is
    HELD = 4                    # u in place of v
    SPENT = 5                   # v has been used: at AGAIN the kernel says which comes next

cdef class Kernel(State):
    cdef readonly Py_ssize_t d
    cdef readonly bint gradient             # grad_x and grad_y are needed
    cdef readonly bint several              # consider may ask for further evaluations
    cdef readonly int width                 # points evaluated at once; 1 for most
    cdef readonly int sharers               # kernels that learn as one; 1 for most
    cdef int64_t t                          # steps that this kernel has made: its clock
    cdef int64_t end_of_adaptation          # the t from which on it is frozen; INT64_MAX for never
    cdef void connect(self, Chain *c) noexcept
    cdef void plan(self, int64_t end_of_adaptation) noexcept
    cdef int propose(self, Chain *c) except -1 nogil
    cdef int consider(self, Chain *c) except -1 nogil
    cdef int adapt(self, Chain *c, double gain) except -1 nogil
    cdef int freeze(self, Chain *c) except -1 nogil
    cdef void displaced(self) noexcept nogil
    cdef void take(self, Kernel other) noexcept nogil
    cdef void record(self, Chain *c, double *row) noexcept nogil
