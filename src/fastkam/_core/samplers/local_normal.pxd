"""Proposals from N(x, R(x)), for the samplers that adapt R."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.kam.kernel_gradient cimport KernelFunction

cdef struct Pass:               # the kernel pass at one point, and its factor
    bint seen                   # whether Q and s, or r, w and Q, match the point and the subsample
    bint factored               # whether L also matches these, nu and gamma
    double *Q                   # (d, d) as in kernel_pass.h; with few points K of low_rank.h
    double *s                   # (d,) as in kernel_pass.h
    double *u                   # (d,) the point in the coordinates of z
    double *r                   # with few points, (n,) as in low_rank.h
    double *w                   # and the weights
    double *L                   # the factor of R (d, d), or of B (n, n)
    double log_det              # of L

cdef class LocalNormal(Kernel):
    cdef public double[:, :, ::1] z
    cdef public int64_t n
    cdef public double length
    cdef public double log_nu
    cdef public double[::1] e
    cdef public double[::1] A
    cdef bint metric
    cdef KernelFunction function
    cdef bint few                       # the form with n x n matrices
    cdef double[::1] work
    cdef double[::1] v                  # x - y in the coordinates of z
    cdef double[:, ::1] buffers         # memory of the passes
    cdef Pass at_x
    cdef Pass at_y
    cdef double[::1] f                  # with few points: the draw in n dimensions
    cdef double[:, ::1] T               # |z_i - z_j|^2
    cdef int64_t measured               # number of points whose distances are in T
    cdef double gamma(self) noexcept nogil
    cdef void draw(self, Chain *c, const double *center, double scale) noexcept nogil
    cdef void whiten(self, double *v) noexcept nogil
    cdef double reverse_log_q(self, Chain *c) noexcept nogil
    cdef void see(self, const double *point, Pass *p) noexcept nogil
    cdef int factor(self, const double *point, Pass *p, double *v) noexcept nogil
    cdef double along(self, const Pass *p, const Pass *q, double v2) noexcept nogil
    cdef void set_point(self, int64_t i, const double *x) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef void forget_points(self) noexcept nogil
