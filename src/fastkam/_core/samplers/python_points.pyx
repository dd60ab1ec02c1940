"""Points, proposals and decisions, which samplers written in Python receive and return."""
from libc.string cimport memcpy
from numpy cimport (
    NPY_ARRAY_WRITEABLE, NPY_DOUBLE, PyArray_CLEARFLAGS, PyArray_DATA, PyArray_SimpleNew,
    import_array, ndarray, npy_intp,
)

import_array()


cdef class Point:
    """A point with its log density, and the gradient if the class has GRADIENT.

    If the density is zero at the point, `logp` is -inf and `grad` is undefined.
    """

    def __init__(self, x, double logp, grad=None):
        self.x, self.logp, self.grad, self.place = x, logp, grad, -1

    def __repr__(self):
        return f"Point(x={self.x!r}, logp={self.logp!r})"


cdef class Proposal:
    """The return value of `step` if the engine decides: a point, and log q(x|y) - log q(y|x).

    NaN and +inf are errors, unless the density of the point is 0.
    """

    def __init__(self, Point point not None, log_q=0.0):
        self.point, self.log_q = point, log_q

    def __repr__(self):
        return f"Proposal({self.point!r}, log_q={self.log_q!r})"


cdef class Decision:
    """The return value of `step` if it has decided itself.

    The chain moves to `point` if `accepted`; `alpha` is the acceptance probability. A sampler that
    has exchanged the state of the chain before its move gives the point where it began as `x`.
    """

    def __init__(self, Point point=None, *, alpha, accepted, Point x=None):
        self.point, self.alpha, self.accepted, self.x = point, alpha, accepted, x

    def __repr__(self):
        return f"Decision({self.point!r}, alpha={self.alpha!r}, accepted={self.accepted!r})"


cdef object read_only(Py_ssize_t n, const double *values):
    """Return a read-only copy (n,)."""
    cdef npy_intp size = n
    cdef ndarray array = PyArray_SimpleNew(1, &size, NPY_DOUBLE)
    memcpy(PyArray_DATA(array), values, n * sizeof(double))
    PyArray_CLEARFLAGS(array, NPY_ARRAY_WRITEABLE)
    return array
