"""The tempered density, between log pi and the log density of the reference q.

    log pi_beta = beta log pi + (1 - beta) log q
"""
from libc.math cimport INFINITY


cdef inline double tempered(double beta, double log_pi, double log_ref) noexcept nogil:
    """Return log pi_beta; at beta = 0 it is log q, also where pi is 0."""
    if log_pi == -INFINITY:
        return log_ref if beta == 0 else -INFINITY
    return beta * log_pi + (1 - beta) * log_ref


cdef inline void temper_gradient(Py_ssize_t d, double beta, const double *grad_pi,
                                 double *grad) noexcept nogil:
    """Set grad <- beta grad log pi + (1 - beta) grad, where grad is grad log q on entry."""
    cdef Py_ssize_t i
    for i in range(d):
        grad[i] = beta * grad_pi[i] + (1 - beta) * grad[i]
