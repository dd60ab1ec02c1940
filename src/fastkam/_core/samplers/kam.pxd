"""Kernel adaptive Metropolis, for the samplers that are built on it."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain, Kernel
from fastkam._core.kernel_gradient cimport KernelFunction

cdef struct Pass:               # the kernel pass at one point, and the factor made of it
    bint seen                   # Q and s, or r, w and Q, belong to the point and the subsample
    bint factored               # and L to them, nu, gamma
    double *Q                   # (d, d) as in kernel_pass.h; with few points (n, n), K of low_rank.h
    double *s                   # (d,) as there
    double *r                   # with few points, (n,) as in low_rank.h
    double *w                   # and the weights
    double *L                   # the factor of R (d, d), or of B (n, n)
    double log_det              # of L

cdef struct Decay:              # min(cap, c (offset + n)^-k)
    double c
    double k
    double offset
    double cap

cdef double decay(const Decay *p, int64_t n) noexcept nogil

cdef class KernelAdaptiveMetropolis(Kernel):
    cdef public double[:, :, ::1] z
    cdef public int64_t n
    cdef public double length
    cdef public double log_nu
    cdef public int64_t age
    cdef public double[:, ::1] history
    cdef public int64_t[::1] order
    cdef public int64_t kept
    cdef public int64_t stride
    cdef public int64_t passed
    cdef public double[::1] e
    cdef KernelFunction function
    cdef bint median
    cdef Py_ssize_t subsample
    cdef double target_acceptance
    cdef Decay noise
    cdef Decay renewal
    cdef double[::1] work
    cdef double[::1] distances
    cdef double[:, ::1] buffers         # what the passes point into
    cdef bint few                       # the form in n dimensions
    cdef double[::1] f                  # its draw in n dimensions
    cdef double[::1] u                  # and what the draw puts on each point
    cdef double[:, ::1] T               # |z_i - z_j|^2
    cdef int64_t measured               # points whose distances stand in T
    cdef Pass at_x
    cdef Pass at_y
    cdef int64_t renewals               # of z and the length, by any sharer
    cdef double gamma(self) noexcept nogil
    cdef void see(self, const double *point, Pass *p) noexcept nogil
    cdef int factor(self, const double *point, Pass *p) noexcept nogil
    cdef void measure(self) noexcept nogil
    cdef int move(self, Chain *c) noexcept nogil
    cdef void draw(self, Chain *c, const double *centre, double scale) noexcept nogil
    cdef double reverse_log_q(self, Chain *c) noexcept nogil
    cdef double along(self, const Pass *p, const Pass *q, double v2) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef void forget_points(self) noexcept nogil
    cdef void clear_history(self) noexcept nogil
    cdef bint remember(self, const double *x) noexcept nogil
    cdef void set_point(self, int64_t i, const double *x) noexcept nogil
    cdef int learn_subsample(self, Chain *c) except -1 nogil
    cdef int learn_length(self) except -1 nogil
