"""Space: the transform of the sampler's unconstrained point z to the user's point x."""
from fastkam._core.density.coordinate cimport Segment

cdef enum:
    BROKEN = -200           # the code of a Python prior or transform that has raised

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

# x and, where a prior reads them, log(x - low) and log(high - x); the log Jacobian is added
cdef int constrain(const Transforms *c, const double *z, double *x, double *below, double *above,
                   double *log_jacobian) noexcept nogil

# log(x - low) and log(high - x) of a point x; OUTSIDE where it is beyond the bounds
cdef int locate(const Transforms *c, const double *x, double *below, double *above) noexcept nogil

# dz <- the gradient with respect to z of f(x, below, above) and of the log Jacobian
cdef int pull_back(const Transforms *c, const double *z, const double *x, const double *dx,
                   const double *dbelow, const double *dabove, double *dz) noexcept nogil
