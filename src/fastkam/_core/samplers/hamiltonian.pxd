"""The metric, the step size and the leapfrog step of HMC and NUTS, with their adaptation."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel

cdef enum:          # metrics
    DIAGONAL
    DENSE
    LOW_RANK

cdef enum:          # the search for a first step size
    WANTED = -1     # when adaptation begins
    NONE = 0
    BEGUN = 1
    DOUBLING = 2
    HALVING = 3

cdef class Hamiltonian(Kernel):
    cdef int kind
    cdef bint learns_metric
    cdef bint from_gradients
    cdef double target_acceptance
    cdef object estimate
    # the metric
    cdef public double[::1] s
    cdef public double[:, ::1] L
    cdef public double[:, ::1] U
    cdef public double[::1] w
    cdef public int64_t rank
    # the step size
    cdef public double log_eps
    cdef public double log_eps_mean
    cdef public double mu
    cdef public double H_mean
    cdef public int64_t n_eps
    cdef public int64_t searching
    # the draws and gradients from which the metric is learned
    cdef public int64_t age
    cdef public int64_t window
    cdef public int64_t[::1] counts
    cdef public double[:, :, ::1] moments
    cdef public double[:, ::1] draws
    cdef public double[:, ::1] gradients
    # the trajectory
    cdef public double[::1] p
    cdef public double H0
    cdef public double eps
    cdef public double energy
    cdef public double energy_error
    cdef public double max_energy_error
    cdef double[::1] u

    cdef void F_times(self, double a, const double *v, double *y) noexcept nogil
    cdef void Ft_times(self, double a, const double *g, double *v) noexcept nogil
    cdef void draw_momentum(self, Chain *c) noexcept nogil
    cdef void kick_and_drift(
        self, Chain *c, double eps, const double *x, const double *grad) noexcept nogil
    cdef double last_kick(self, Chain *c, double eps) noexcept nogil
    cdef void set_energies(self, double error, double largest) noexcept nogil
    cdef int launch(self, Chain *c) except -1 nogil
    cdef int try_step(self, Chain *c) noexcept nogil
    cdef int search(self, Chain *c) except -1 nogil
    cdef void learn_step_size(self, double alpha) noexcept nogil
    cdef void restart_step_size(self) noexcept nogil
    cdef void first_metric(self, Chain *c) noexcept nogil
    cdef int learn_metric(self, Chain *c) except -1 nogil
    cdef void remember(self, Chain *c) noexcept nogil
    cdef void forget(self, int64_t n) noexcept nogil
    cdef void learn_diagonal(self) noexcept nogil
