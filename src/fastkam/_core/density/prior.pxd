"""Prior: the log density of a point x, as a sum over its coordinates and blocks of them."""

cdef struct Factor:         # of one coordinate, or of a block
    int kind
    Py_ssize_t x            # where it begins in x, and how many coordinates it has
    Py_ssize_t n
    double loc
    double inverse          # 1 / scale
    double log_scale
    double a                # parameters of the distribution, see prior.pyx
    double b
    double constant
    const double *vector    # (n,): a mean, or exponents
    const double *matrix    # (n, n), row-major: whitens x - mean
    void *callback          # a distribution in Python

cdef struct Product:        # of all factors
    Factor *factors
    Py_ssize_t n
    Py_ssize_t n_x

cdef class Prior:
    cdef Product c
    cdef readonly list callbacks
    cdef readonly list rows
    cdef list arrays        # the arrays that the factors point to

# Add log p(x) to `value` and, unless dx is NULL, set the partial derivatives (n_x,) with respect to
# x, log(x - low) and log(high - x); return BROKEN if Python has raised an exception. With
# `compiled`, distributions in Python are left out
cdef int evaluate(const Product *c, const double *x, const double *below, const double *above,
                  double *value, double *dx, double *dbelow, double *dabove,
                  bint compiled) noexcept nogil
