"""A Gaussian mixture, packed for fast evaluation of its density; see mixture.h."""
cdef extern from "tails.h" nogil:
    enum:
        FK_DEGREES
    const double FK_TAIL, FK_TAIL_SCALE


cdef Py_ssize_t nearest_component(
    Py_ssize_t d, Py_ssize_t K, const double *x, const double *means, const double *factors,
    double *z, double *square) noexcept nogil


cdef class Mixture:
    cdef readonly Py_ssize_t d, n           # n components; 0 if there is no mixture
    cdef double[::1] means, W, c            # eight components per block
    cdef double[::1] q                      # the last squares
    cdef double log_tail                    # log t 2^-d
    cdef double to_student                  # s
    cdef void set(self, Py_ssize_t n, const double *weights, const double *means,
                  const double *factors) noexcept nogil
    cdef void squares(self, const double *x) noexcept nogil
    cdef double shares(self, const double *x) noexcept nogil
    cdef double log_density(self, const double *x) noexcept nogil
