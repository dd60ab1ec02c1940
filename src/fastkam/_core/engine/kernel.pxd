"""The contract between the engine and a sampler: what a kernel sees, and what it must do."""
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.rng cimport bitgen_t
from fastkam._core.engine.state cimport State
from fastkam.target cimport fk_target

cdef struct Parts:              # terms of the log density of a tempered chain: see replica.pyx
    double log_pi_x             # log pi and the log density of the reference at x
    double log_ref_x
    double log_pi_y             # and at y
    double log_ref_y
    double *grad_pi_x           # (d,) gradients of log pi; NULL where the kernel needs none
    double *grad_pi_y

cdef struct Chain:              # all that a kernel may touch
    Py_ssize_t d
    bitgen_t *rng
    void *bit_generator         # the numpy object that owns rng, for kernels in Python
    const fk_target *target
    const fk_target *surrogate  # a cheap density that stands in for target; NULL for most
    double *x                   # (d,) current point
    double *y                   # (d,) proposed point, the first of `width` rows
    double *grad_x              # (d,) gradient of log pi; NULL where the kernel needs none
    double *grad_y              # (d,) at y, the first of `width` rows
    double *logps               # (width,) log pi at each row of y; logp_y is the first of them
    signed char *wanted         # (width,) which rows are to be evaluated
    Parts *parts                # of a tempered chain; NULL for others
    Py_ssize_t n_aux            # noise variables of an estimate; 0 for a known density
    double *u                   # (width, n_aux) first row: noise at x; the others are the kernel's
    double *v                   # (width, n_aux) noise at each row of y
    signed char *noise          # (width,) which noise the evaluation of each row takes
    double logp_x
    double logp_y               # -inf where y has no density or gradient; grad_y is then undefined
    double log_q                # log q(x|y) - log q(y|x); kept from step to step
    const double *drawn         # (d,) normals that propose begins with, drawn ahead; or NULL
    double E                    # -log U of the decision: accepted if E > -log(ratio)
    double alpha                # the acceptance probability, for adapt
    int64_t accepted            # whether the last proposal was accepted
    int64_t keep                # whether the state after this step is a draw
    int64_t adapting            # whether this step ends with adapt
    int code                    # the target's return code, if it is fatal

cdef struct Lanes:              # K chains that step together, their numbers stored contiguously
    Py_ssize_t K
    Py_ssize_t d
    void **kernels              # (K,)
    bitgen_t **rng              # (K,)
    double *x                   # (K, d), and so on as in Chain
    double *y
    double *grad_x              # NULL where the kernels need none
    double *grad_y
    double *logp_x              # (K,)
    double *logp_y
    double *log_q
    double *E
    double *alpha
    double *log_ratio
    double *drawn               # (K, d) while they propose, or NULL
    double *own                 # (K,) a number of each kernel, written by `lay_out`
    signed char *accepted
    signed char *answer         # of each kernel's last consider
    int64_t t                   # steps made by each
    bint adapting
    bint decided                # whether any answer of this step is DECIDED

cdef enum:                      # what consider returns
    DECIDE = 0                  # log_q is complete: the engine decides
    AGAIN = 1                   # y is another point now: evaluate it, and consider again
    DECIDED = 2                 # accepted, alpha and, if accepted, y, logp_y, grad_y are set
    FATAL = 3                   # the target returned `code` < 0 to the kernel itself

cdef enum:                      # the noise of an evaluation
    MOVED = 0                   # v from u by the target's refresh: set before propose
    FURTHER = 1                 # v from v in the same way
    FRESH = 2                   # v ~ N(0, I)
    SAME = 3                    # v unchanged
    HELD = 4                    # u instead of v
    SPENT = 5                   # v has been used: at AGAIN the kernel chooses the next

cdef class Kernel(State):
    cdef readonly Py_ssize_t d
    cdef readonly bint gradient             # grad_x and grad_y are needed
    cdef readonly bint several              # consider may ask for further evaluations
    cdef readonly bint in_lanes             # the methods *_lanes may be called
    cdef readonly bint normals_first        # propose begins with draw_normals of d (step.pxd)
    cdef readonly int width                 # points evaluated at once; 1 for most
    cdef readonly int sharers               # kernels that learn as one; 1 for most
    cdef int64_t t                          # steps that this kernel has made: its clock
    cdef int64_t end_of_adaptation          # the step t at which it is frozen; INT64_MAX for never
    cdef void connect(self, Chain *c) noexcept
    cdef void plan(self, int64_t end_of_adaptation) noexcept
    cdef int propose(self, Chain *c) except -1 nogil
    cdef int consider(self, Chain *c) except -1 nogil
    cdef int adapt(self, Chain *c, double gain) except -1 nogil
    cdef int freeze(self, Chain *c) except -1 nogil
    cdef void lay_out(self, Lanes *g) noexcept nogil
    cdef int propose_lanes(self, Lanes *g) except -1 nogil
    cdef int consider_lanes(self, Lanes *g) except -1 nogil
    cdef int adapt_lanes(self, Lanes *g, double gain) except -1 nogil
    cdef void displaced(self) noexcept nogil
    cdef void take(self, Kernel other) noexcept nogil
    cdef void record(self, Chain *c, double *row) noexcept nogil


# ---- chains side by side, each of which becomes a Chain in turn: see Kernel.propose_lanes ----


cdef inline void blank(const Lanes *g, Chain *c) noexcept nogil:
    """Clear c and set the members that all chains have in common."""
    memset(c, 0, sizeof(Chain))
    c.d, c.adapting, c.keep = g.d, g.adapting, 1


cdef inline void enter(const Lanes *g, Py_ssize_t k, Chain *c) noexcept nogil:
    """Fill c with the members of the k-th chain."""
    c.rng = g.rng[k]
    c.x, c.y = g.x + k * g.d, g.y + k * g.d
    if g.grad_x != NULL:
        c.grad_x, c.grad_y = g.grad_x + k * g.d, g.grad_y + k * g.d
    c.logp_x, c.logp_y, c.log_q = g.logp_x[k], g.logp_y[k], g.log_q[k]
    c.alpha, c.accepted = g.alpha[k], g.accepted[k]
    c.drawn = NULL if g.drawn == NULL else g.drawn + k * g.d


cdef inline void proposed(Lanes *g, Py_ssize_t k, const Chain *c) noexcept nogil:
    """Copy back what `propose` of the k-th chain has set."""
    g.log_q[k] = c.log_q


cdef inline bint has_considered(const Lanes *g, Py_ssize_t k) noexcept nogil:
    """Return whether the k-th chain no longer waits for an evaluation."""
    return g.answer[k] != AGAIN


cdef inline bint considered(Lanes *g, Py_ssize_t k, const Chain *c, int answer) noexcept nogil:
    """Copy back what `consider` of the k-th chain has set; return whether it waits again."""
    g.answer[k] = answer
    g.logp_y[k], g.log_q[k] = c.logp_y, c.log_q
    if answer == DECIDED:
        g.alpha[k], g.accepted[k] = c.alpha, c.accepted
        g.decided = True
    return answer == AGAIN
