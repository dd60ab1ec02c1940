"""One chain's state as the engine keeps it, and the group of chains that step together."""
cimport cython
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel
from fastkam._core.target cimport Refresh, Target

cdef extern from "crew.h" nogil:
    enum: FK_HELPERS
    ctypedef struct Crew "fk_crew":
        int helpers

cdef enum:
    N_KEPT = 5              # offending points kept of each kind

# adapt at the steps start <= t < stop, with the gain min(cap, c (offset + n)^-k)
cdef struct Schedule:
    double c
    double k
    double offset
    double cap
    int64_t start
    int64_t stop
    double rarity           # > 0: only at start - 1 + ceil(j^(1 + rarity)), j = 1, 2, ...
    int64_t n               # of the gain last asked for, and its power: chains ask in turn
    double power

cdef struct Trace:          # where draws go; rows [count, capacity) are still to come
    double *x               # (capacity, d)
    double *logp            # (capacity,); NULL where states alone are kept
    double *log_ratio       # (capacity,)
    signed char *accepted   # (capacity,)
    double *extra           # (capacity, n_extra), the sampler's own statistics
    Py_ssize_t n_extra
    int64_t count
    int64_t *filled         # where count is published
    int64_t capacity
    int64_t thin


@cython.final       # methods are plain C calls, which the compiler inlines into the loop
cdef class ChainState:
    cdef Chain c
    cdef Trace trace
    cdef readonly Kernel kernel
    cdef readonly object bit_generator
    cdef object arrays                      # what trace points into
    cdef dict history                       # snapshots of what the kernel learns, by field
    cdef double[::1] x
    cdef double[::1] y                      # (width d,)
    cdef double[::1] grad_x                 # unallocated where the kernel asks for no gradient
    cdef double[::1] grad_y
    cdef double log_ratio                   # of the last decision
    cdef bint pending                       # y is proposed and not yet decided
    cdef int answer                         # of the kernel's last consider
    cdef bint frozen
    cdef signed char[::1] status            # (width,) of the last evaluation, see REJECTED
    cdef signed char[::1] wanted
    cdef double[:, ::1] u                   # (width, n_aux) noise of an estimated density
    cdef double[:, ::1] v
    cdef signed char[::1] noise
    cdef Refresh refresh
    cdef double[::1] logps
    cdef int64_t n_adapted
    cdef int turn                           # among the chains that share what they learn
    cdef int64_t next_adaptation
    cdef int64_t n_accepted
    cdef int64_t n_evaluations
    cdef int64_t[::1] n_rejected            # by kind
    cdef double[:, :, ::1] offending        # (kind, N_KEPT, d)
    cdef int64_t advance(self, int64_t n, Schedule *schedule, int64_t most_evaluations,
                         double *gradient, int *code) except -1 nogil
    cdef int begin(self, Schedule *schedule) except -1 nogil
    cdef int draw_noise(self) except -1 nogil
    cdef int judge(self, int row, int rc, double logp) noexcept nogil
    cdef int consider(self) except -1 nogil
    cdef void publish(self) noexcept nogil
    cdef bint is_full(self, int64_t most_evaluations) noexcept nogil
    cdef int finish(self, Schedule *schedule) except -1 nogil
    cdef int adapt(self, Schedule *schedule) except -1 nogil
    cdef int freeze(self, Schedule *schedule) except -1 nogil
    cdef void tally(self) noexcept nogil
    cdef void record(self) noexcept nogil


@cython.final
cdef class Group:
    cdef readonly Target target
    cdef readonly list chains
    cdef Schedule schedule
    cdef void **pointers
    cdef double[:, ::1] points              # (K width, d), the proposals
    cdef double[:, ::1] gradients           # (K width, d), there
    cdef double[::1] values                 # (K width,)
    cdef double[:, ::1] some_points         # the same for those chains that wait for an evaluation
    cdef double[:, ::1] some_gradients
    cdef double[::1] some_values
    cdef double[:, ::1] some_noise          # for estimates in one call
    cdef bint considers                     # what the kernels ask for
    cdef bint gradient
    cdef bint noisy
    cdef bint batched                       # one call for all points
    cdef bint alone                         # one chain, one known density a step
    cdef readonly bint shares               # the chains learn as one
    cdef int K
    cdef int width
    cdef int failed                         # the chain at fault, and its row of y
    cdef int failed_row
    cdef int code
    cdef int64_t most_evaluations           # a chain
    cdef int64_t done                       # steps made by the last call of run
    cdef Crew *crew                         # helpers at the evaluations, where these are slow
    cdef int untimed                        # calls of evaluate still to be timed
    cdef double fastest                     # seconds a point of those that were
    cdef int[::1] errands                   # the points that wait, for the crew
    cdef int[::1] codes                     # the target's answers at all points
    cdef int settle(self) except -1 nogil
    cdef void hand_on(self, int k, int to) noexcept nogil
    cdef int evaluate(self) noexcept nogil
    cdef int evaluate_timed(self) noexcept nogil
    cdef void evaluate_together(self) noexcept nogil
    cdef int evaluate_point(self, int i) noexcept nogil
    cdef int gather(self) noexcept nogil
    cdef const double *noise_of(self, int i) noexcept nogil
    cdef int evaluate_batch(self) noexcept nogil
    cdef int call_batch(self, size_t m, const double *X, double *gradients,
                        double *values) noexcept nogil
    cdef int advance(self, int64_t n) except -1 nogil
