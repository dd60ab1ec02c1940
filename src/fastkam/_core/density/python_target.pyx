"""PythonTarget: a log density that is a Python function."""
from cpython.ref cimport PyObject
from libc.string cimport memcpy
from numpy cimport (
    NPY_DOUBLE, PyArray_CheckExact, PyArray_DATA, PyArray_DIM, PyArray_ISCARRAY_RO, PyArray_NBYTES,
    PyArray_NDIM, PyArray_SIZE, PyArray_TYPE, import_array,
)

from fastkam._core.density.kept cimport Kept
from fastkam._core.density.target cimport Target
from fastkam.target cimport FK_NEEDS_GIL, fk_batch_fn, fk_hvp_fn, fk_logp_fn, fk_logp_grad_fn

from functools import partial

from fastkam._core.density.extras import is_masked

import numpy as np

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *)

import_array()


class MissingGradient(TypeError):
    """Raised if a function returns no gradient although the sampler needs it."""

    def __init__(self, value):
        super().__init__("this sampler needs the gradient: the function must return the pair "
                         f"(log density, gradient), not {value!r:.200}; or use a sampler without "
                         'gradients, such as "ram"')


cdef class PythonTarget(Target):
    """A trampoline that passes one read-only array, which it reuses.

    The caller holds the GIL, as FK_NEEDS_GIL requires: taking it each time would cost 20 ns.
    Hence its functions are not compiled for `nogil`; a cast makes them pointers to such functions.
    """

    def __init__(self, f, size_t dim, *, vectorized, gradient, hvp=None):
        self.f, self.hessian_product = f, hvp
        self.vectorized = vectorized
        self.gradient = gradient
        self.kind = "Python function" if not vectorized else "vectorized Python function"
        self.c.dim = dim
        self.c.flags = FK_NEEDS_GIL
        self.c.data = <void *>self
        if vectorized:
            self.c.batch = <fk_batch_fn><void *>call_vectorized
        else:
            self.c.logp = <fk_logp_fn><void *>call_scalar
            if gradient:
                self.c.logp_grad = <fk_logp_grad_fn><void *>call_gradient
        if hvp is not None:
            self.c.hvp = <fk_hvp_fn><void *>call_hvp

    @property
    def function(self):
        """The user's function."""
        return self.f

    def made_from(self):
        return partial(PythonTarget, **self.options()), (self.f, self.c.dim)

    def options(self):
        return {"vectorized": self.vectorized, "gradient": self.gradient,
                "hvp": self.hessian_product}

    def bind(self):
        bound = PythonTarget(self.f, self.c.dim, **self.options())
        bound.kept = Kept(self.kept)
        return bound

    # ---- extras ----

    def __cinit__(self):
        self.extras = &self.has_extras
        self.kept = Kept()

    def extras_fields(self):
        return self.kept.fields

    def extras_at(self, x, u=None):
        key = x.tobytes() if u is None else x.tobytes() + u.tobytes()
        row = self.kept.get(key)
        if row is None:
            extras = extras_in(self.call(x, u))
            if not extras:
                return None
            self.kept.put(key, extras)
            row = self.kept.get(key)
        return row

    def call(self, x, u):
        """Call the function at x (dim,)."""
        return first_row(paired(self.f(x.reshape(1, -1)))) if self.vectorized else paired(self.f(x))

    cdef object without_extras(self, tuple value, size_t n, const double *x, size_t n_aux,
                               const double *u):
        """Return the value without its extras, which are stored: a number, or (value, gradient)."""
        extras = extras_in(value)
        if extras:  # none, or {}, where the density is 0
            self.has_extras = True
            self.kept.put(key_of(n, x, n_aux, u), extras)
        if extras is not None:
            value = value[: len(value) - 1]
        if n_aux and len(value) == 2:
            raise TypeError(f"an estimate has no gradient: the function returned {value!r:.200}")
        return value[0] if len(value) == 1 else value

    cdef object without_extras_rows(self, tuple value, size_t k, size_t n, const double *X,
                                    size_t n_aux, const double *U):
        """Return the same as `without_extras`, for k points at once."""
        extras = extras_in(value)
        if extras:
            self.has_extras = True
            keys = [key_of(n, X + i * n, n_aux, U + i * n_aux) for i in range(k)]
            self.kept.put_rows(keys, extras)
        if extras is not None:
            value = value[: len(value) - 1]
        if n_aux and len(value) == 2:
            raise TypeError(f"an estimate has no gradient: the function returned {value!r:.200}")
        return value[0] if len(value) == 1 else value

    def fault(self, rc, x):
        error, self.error = self.error, None
        return error if rc == RAISED else None

    cdef object argument(self, size_t k, const double *x):
        """Return the array of k points for f; a new one if f has kept or changed the last."""
        cdef Py_ssize_t first = k if self.vectorized else self.c.dim
        if (self.point is None or Py_REFCNT(<PyObject *>self.point) > 1
                or PyArray_NDIM(self.point) != 1 + self.vectorized
                or PyArray_DIM(self.point, 0) != first
                or <size_t>PyArray_SIZE(self.point) != k * self.c.dim
                or PyArray_DATA(self.point) != <void *>self.buffer  # resized in place
                or PyArray_TYPE(self.point) != NPY_DOUBLE or not PyArray_ISCARRAY_RO(self.point)):
            shape = (k, self.c.dim)
            self.point = np.empty(shape if self.vectorized else shape[1:])
            self.point.flags.writeable = False
            self.buffer = <double *>PyArray_DATA(self.point)
        memcpy(self.buffer, x, k * self.c.dim * sizeof(double))
        return self.point


cdef int call_scalar(size_t n, const double *x, double *logp, void *data) noexcept:
    cdef PythonTarget self = <PythonTarget>data
    try:
        value = self.f(self.argument(1, x))
        if type(value) is list:
            value = paired(value)
        if type(value) is tuple:
            value = self.without_extras(value, n, x, 0, NULL)
            if type(value) is tuple:        # (log density, gradient)
                check_gradient(value[1], n)
                value = value[0]
        logp[0] = value if isinstance(value, float) else as_float(value)
        return 0
    except BaseException as error:
        self.error = error
        return RAISED


cdef int call_gradient(
        size_t n, const double *x, double *grad, double *logp, void *data) noexcept:
    cdef PythonTarget self = <PythonTarget>data
    try:
        answer = paired(self.f(self.argument(1, x)))
        if type(answer) is tuple:
            answer = self.without_extras(answer, n, x, 0, NULL)
        if type(answer) is not tuple or len(answer) != 2:
            if not is_nowhere(answer, ()):
                raise MissingGradient(answer)
            answer = answer, np.zeros(n)
        value, gradient = answer
        logp[0] = value if isinstance(value, float) else as_float(value)
        copy_vector(gradient, n, "gradient", grad)
        return 0
    except BaseException as error:
        self.error = error
        return RAISED


cdef int call_hvp(size_t n, const double *x, const double *v, double *Hv,
                  void *data) noexcept:
    cdef PythonTarget self = <PythonTarget>data
    try:
        value = self.hessian_product(array_of(n, x), array_of(n, v))
        copy_vector(value, n, "Hessian-vector product", Hv)
        return 0
    except BaseException as error:
        self.error = error
        return RAISED


cdef int call_vectorized(size_t k, size_t n, const double *X, double *grad, double *logp,
                         void *data) noexcept:
    cdef PythonTarget self = <PythonTarget>data
    gradient = None
    try:
        value = paired(self.f(self.argument(k, X)))
        if type(value) is tuple and len(value) > 0 and np.ndim(value[0]) == 1:
            value = self.without_extras_rows(value, k, n, X, 0, NULL)
        if type(value) is tuple and len(value) == 2 and np.ndim(value[0]) == 1:
            value, gradient = value
            if grad == NULL:
                check_gradient(gradient, k * n)
        elif grad != NULL and is_nowhere(value, (k,)):
            gradient = np.zeros((k, n))
        elif grad != NULL:
            raise MissingGradient(value)
        if grad != NULL:
            copy_array(gradient, (k, n), "gradient", grad)
        copy_vector(value, k, "log density", logp)
        return 0
    except BaseException as error:
        self.error = error
        return RAISED


def paired(value):
    """Return the value of a function, with a list replaced by the tuple that was meant.

    Such a list has a gradient or extras after the log density, as in [logp, gradient].
    """
    if type(value) is list and 2 <= len(value) <= 3 and (
            isinstance(value[1], dict) or np.ndim(value[1]) > 0):
        return tuple(value)
    return value


cpdef object extras_in(value):
    """Return the dict of extras in the value of a function, or None."""
    if type(value) is not tuple:
        return None
    if 2 <= len(value) <= 3 and isinstance(value[len(value) - 1], dict):
        extras = value[len(value) - 1]
        return extras if type(extras) is dict else dict(extras)
    if len(value) != 2:
        raise TypeError(f"the log density must be one real number, not {value!r:.200} of type "
                        "tuple; it may be followed by its gradient, by extras in a dict, or by the "
                        "gradient and then extras")
    return None


def is_nowhere(value, shape):
    """Return whether these are log densities of points without a density, which have no gradient.
    """
    return (isinstance(value, (float, np.ndarray)) and np.shape(value) == shape
            and getattr(value, "dtype", np.dtype(float)).kind == "f"
            and not np.any(np.greater(value, -np.inf)))


def first_row(value):
    """Return one row of a vectorized function's value, in the form of a scalar function's."""
    if type(value) is tuple:
        return tuple({name: np.asarray(row)[0] for name, row in part.items()}
                     if isinstance(part, dict) else part[0] for part in value)
    return value[0]


cdef int check_gradient(value, size_t size) except -1:
    """Raise an error for an invalid gradient, even if no gradient is needed."""
    if value is None or PyArray_CheckExact(value) and PyArray_SIZE(value) == <Py_ssize_t>size:
        return 0
    try:
        array = np.asarray(value)
        fits = array.size == size and array.dtype.kind in "fiub"
    except ValueError:
        fits = False
    if not fits:
        raise TypeError("beside the log density the function must return its gradient, an array "
                        f"of {size} numbers, or extras in a dict, not {value!r:.200}")
    return 0


cdef bytes key_of(size_t n, const double *x, size_t n_aux, const double *u):
    """Return the bytes of a point, and of the noise of an estimate."""
    key = (<const char *>x)[: n * sizeof(double)]
    return key + (<const char *>u)[: n_aux * sizeof(double)] if n_aux else key


cdef object array_of(size_t n, const double *x):
    """Return a copy of x (n,)."""
    array = np.empty(n)
    memcpy(PyArray_DATA(array), x, n * sizeof(double))
    return array


def as_float(value):
    """Return the real number in `value`, or raise TypeError with a description of the value."""
    # float() would parse a string, and drop the imaginary part of a numpy number
    if not isinstance(value, (str, bytes, bool, np.bool_, np.complexfloating)) and not (
            isinstance(value, np.ndarray) and is_masked(value)):
        try:
            if not isinstance(value, np.ndarray) and np.ndim(value) == 0:
                return float(value)
            array = np.asarray(value)
            if array.size == 1 and array.dtype.kind in "fiu":
                return float(array.item())
        except (TypeError, ValueError, RuntimeError):    # e.g. of a tensor with a gradient
            pass
        except OverflowError:
            raise ValueError("the log density must be one real number, not an integer beyond "
                             "1.8e308") from None
    got = (f"a {value.dtype} array of shape {value.shape}" if type(value) is np.ndarray
           else f"{value!r:.200} of type {type(value).__name__}")
    raise TypeError(f"the log density must be one real number, not {got}{mend(value)}")


def mend(value):
    """Suggest, as the end of a message, what to do about a value that is not a log density."""
    if value is None:
        return ": the function has to return it"
    if isinstance(value, (complex, np.complexfloating)):
        return ": take its real part"
    if isinstance(value, (bool, np.bool_)):
        return ": return 0.0 or -inf where x is possible or not"
    size = getattr(value, "size", None)
    if hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict)) and size != 1:
        return ": sum it, or give vectorized=True if the function takes many points"
    return ""


def mend_array(array, shape, what):
    """Suggest the same about an array of the wrong shape or type."""
    if what == "log density" and array.dtype == bool:
        return ": return 0.0 or -inf where x is possible or not"
    if array.shape == (*shape, 1):
        return ": return its column, [:, 0]"
    if len(shape) == 2 and array.shape == shape[::-1]:
        return ": return its transpose"
    if what == "log density" and shape != (1,) and array.size == 1:
        return ": sum over the coordinates of each point alone, with axis=1"
    return ""


cdef bint is_plain(value):
    """Return whether `value` is a contiguous array of doubles."""
    return (PyArray_CheckExact(value) and PyArray_ISCARRAY_RO(value)
            and PyArray_TYPE(value) == NPY_DOUBLE)


cdef int copy_vector(value, size_t n, what, double *out) except -1:
    """Copy an array of shape (n,) like `copy_array`, without a tuple: called in every step."""
    if is_plain(value) and PyArray_NDIM(value) == 1 and PyArray_SIZE(value) == <Py_ssize_t>n:
        memcpy(out, PyArray_DATA(value), n * sizeof(double))
        return 0
    return copy_array(value, (n,), what, out)


def as_array(value, shape, what):
    """Return a contiguous array of doubles of that shape, or raise TypeError with what it was."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape != shape or is_masked(value):
        got = (f"{value!r:.200}" if array.dtype.kind == "O"
               else f"a {array.dtype} array of shape {array.shape}")
        masked = " with masked elements" if is_masked(value) else ""
        points = (": with vectorized=True the function takes points (k, d), one per row"
                  if what == "log density" else "")
        raise TypeError(f"the {what} must be a real array of shape {shape}, not {got}{masked}"
                        f"{mend_array(array, shape, what)}{points}")
    return np.ascontiguousarray(array, dtype=float)


cdef int copy_array(value, tuple shape, what, double *out) except -1:
    """Copy an array of that shape to out, or raise TypeError with what it was."""
    array = as_array(value, shape, what)
    memcpy(out, PyArray_DATA(array), PyArray_NBYTES(array))
    return 0
