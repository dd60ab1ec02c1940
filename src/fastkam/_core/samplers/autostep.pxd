"""The choice of a step size in every step, common to autoMALA and the AutoStep random walk."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel

cdef class AutoStep(Kernel):
    # learned
    cdef public double log_eps
    cdef public double[::1] mu
    cdef public double[::1] F
    # the search
    cdef public double[::1] p
    cdef public double[::1] q
    cdef public double low
    cdef public double high
    cdef public double chosen
    cdef public int64_t refreshing
    cdef public int64_t k
    cdef public int64_t j
    cdef public int64_t direction
    cdef public int64_t backwards
    cdef public int64_t agreed
    # the candidate
    cdef public double[::1] candidate
    cdef public double[::1] q_y
    cdef bint dense
    cdef bint learns
    cdef double[::1] work
    cdef double r                   # r at the current point, within one call of consider
    cdef void shoot(self, Chain *c, const double *x, const double *grad) noexcept nogil
    cdef void add_F(self, Py_ssize_t d, double a, const double *p, double *y) noexcept nogil
    cdef void add_Ft(self, Py_ssize_t d, double a, const double *grad, double *q) noexcept nogil
    cdef double log_ratio(self, Chain *c, double logp_x) noexcept nogil
    cdef double eps(self, int64_t k) noexcept nogil
    cdef int move_noise(self, Chain *c) except -1 nogil
    cdef int look(self, Chain *c, int64_t k) noexcept nogil
    cdef double size(self, Chain *c) noexcept nogil
    cdef void keep(self, Chain *c) noexcept nogil
    cdef int search(self, Chain *c) noexcept nogil
    cdef bint goes_on(self, double r) noexcept nogil
    cdef int reject(self, Chain *c) noexcept nogil
    cdef int turn(self, Chain *c) noexcept nogil
    cdef int search_back(self, Chain *c) noexcept nogil
    cdef int decide(self, Chain *c) noexcept nogil
