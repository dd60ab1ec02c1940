"""A chain's memory, and where its draws go."""
cimport cython
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel, Parts
from fastkam._core.engine.state cimport State
from fastkam._core.density.target cimport Refresh, Target

cdef enum:
    N_KEPT = 5              # offending points kept of each kind
    N_KINDS = 4             # kinds of points without a density: see REJECTED

cdef struct Trace:          # where draws go; rows [count, capacity) are not yet filled
    double *x               # (capacity, d)
    const double *scales    # (d,) factors by which states are multiplied; NULL for 1
    double *logp            # (capacity,); NULL where only states are kept
    double *log_ratio       # (capacity,)
    signed char *accepted   # (capacity,)
    double *extra           # (capacity, n_extra), the sampler's own statistics
    Py_ssize_t n_extra
    int64_t count
    int64_t *filled         # where count is published
    int64_t capacity
    int64_t thin

cdef dict numbers_of(Chain *c)
cdef dict numbers_of_parts(Parts *parts)
cdef void take_rows(Chain *c, const Chain *outer, int64_t first) noexcept nogil


@cython.final
cdef class ChainState(State):
    # data that every step needs come first, contiguously
    cdef Chain c
    cdef Trace trace
    cdef readonly Kernel kernel
    cdef Target source                      # the target, whose extras are recorded with draws
    cdef bint noting                        # whether extras are recorded
    cdef int turn                           # index among the chains that share their adaptation
    cdef double log_ratio                   # of the last decision
    cdef public int64_t t                   # steps made
    cdef public int64_t pending             # whether y is proposed and not yet decided
    cdef public int64_t answer              # return value of the kernel's last consider
    cdef public int64_t frozen
    cdef public int64_t n_adapted
    cdef public int64_t next_adaptation
    cdef public int64_t n_accepted
    cdef public int64_t n_evaluations
    cdef signed char *status                # (width,) of the last evaluation, see REJECTED
    cdef int64_t *n_rejected                # (N_KINDS,)
    cdef double *offending                  # (N_KINDS, N_KEPT, d)
    cdef object memory                      # owner of these arrays and of those of c
    cdef object common                      # owner of the arrays that a group has moved
    cdef Refresh refresh
    cdef readonly object bit_generator
    cdef object arrays                      # owners of the memory of trace
    cdef dict notes                         # {row of the trace: its extras}, until they are taken
    cdef bytes noted_at                     # the point of the extras noted last
    cdef object noted                       # its extras
    cdef object note_error                  # error of an evaluation that should return extras
    cdef dict history                       # snapshots of what the kernel learns, by field
    cdef list learned                       # (array of snapshots, field of the kernel)
    cdef int lay_out(self, const double[::1] x0, Py_ssize_t n_aux) except -1
    cdef object view(self, int kind, const void *start, tuple shape)
    cdef object reals(self, const double *start, tuple shape)
    cdef int move_to(self, double *x, double *grad_x, double *y, double *grad_y,
                     signed char *wanted, signed char *status, object common) except -1
    cdef void note(self, int64_t row) noexcept with gil
