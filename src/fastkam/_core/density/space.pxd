"""Space: the transform of the sampler's unconstrained point z to the user's point x."""
from fastkam._core.density.coordinate cimport Segment

cdef enum:
    BROKEN = -200           # the code of a Python prior or transform that has raised an exception

cdef struct Transforms:     # of all coordinates
    Segment *segments
    Py_ssize_t n
    Py_ssize_t n_z
    Py_ssize_t n_x

cdef class Callback:
    cdef readonly object object
    cdef object error

cdef class Space:
    cdef Transforms c
    cdef readonly list callbacks
    cdef readonly list rows

# Compute x and, if a prior reads them, log(x - low) and log(high - x); add the log Jacobian
cdef int constrain(const Transforms *c, const double *z, double *x, double *below, double *above,
                   double *log_jacobian) noexcept nogil

# Compute log(x - low) and log(high - x); return OUTSIDE if x is beyond the bounds
cdef int locate(const Transforms *c, const double *x, double *below, double *above) noexcept nogil

# Set dz to the gradient with respect to z of f(x, below, above) plus the log Jacobian
cdef int pull_back(const Transforms *c, const double *z, const double *x, const double *dx,
                   const double *dbelow, const double *dabove, double *dz) noexcept nogil
