"""Target: a log density in any of the forms a user has it in, as one C struct."""
from cpython.pycapsule cimport (
    PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New,
)
from cpython.ref cimport PyObject
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from fastkam.target cimport (
    FK_NEEDS_GIL, FK_SERIAL, FK_TARGET_ABI, FK_TARGET_CAPSULE, fk_target,
)

import numpy as np

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *)

PYTHON_ERROR = -100     # the code a Python target answers when its function raised

cdef class Target:
    """A log density that the engine can call.

    Made by `fastkam.as_target` or one of the `from_` methods, never directly.
    """

    def __cinit__(self):
        memset(&self.c, 0, sizeof(fk_target))
        self.c.abi = FK_TARGET_ABI
        self.kind = "abstract"

    # ---- the forms a density comes in ----------------------------------------------------------

    @staticmethod
    def from_python(f, dim, *, vectorized=False, gradient=False):
        """A Python function.

        Parameters
        ----------
        f : callable
            ``f(x) -> float`` for x of shape (dim,); with `vectorized`, ``f(X) -> (k,)`` for X of
            shape (k, dim). With `gradient` it returns the pair (log density, gradient), the
            gradient of the shape of its argument. The argument is read-only.
        dim : int
            The dimension of the point.
        vectorized, gradient : bool
            As above.

        Raises
        ------
        TypeError
            If `f` is not callable.
        """
        if not callable(f):
            raise TypeError(f"f must be callable, not {f!r}")
        return PythonTarget(f, check_dim(dim), vectorized=vectorized, gradient=gradient)

    @staticmethod
    def from_c(function, dim, *, user_data=None, thread_safe=True):
        """A compiled function: SciPy LowLevelCallable, ctypes or cffi pointer, numba cfunc.

        Parameters
        ----------
        function : object
            A function of one of the C signatures ``double (int n, double *x, void *user_data)``,
            ``double (int n, double *x)``, or, as in ``fastkam/target.h``,
            ``int (size_t n, const double *x, double *logp, void *data)``. It must not need the
            GIL.
        dim : int
            The dimension of the point.
        user_data : object, optional
            What the function receives as its last argument, as SciPy's LowLevelCallable takes it
            (a ctypes or cffi pointer, or a capsule).
        thread_safe : bool
            Whether several threads may call it at once.

        Raises
        ------
        TypeError
            If the signature is none of these, with the one that was found.
        """
        return CFunctionTarget(function, check_dim(dim), user_data, thread_safe)

    @staticmethod
    def from_numba(f, dim, *, args=()):
        """A numba njit function ``f(x, *args) -> float``, called without the GIL.

        Compiled again with IEEE division (1/0 is inf, and no error); if it raises, the run stops
        with that exception.
        """
        from fastkam.interop.numba import NumbaTarget
        return NumbaTarget(f, check_dim(dim), args)

    @staticmethod
    def from_capsule(provider):
        """An object of another package whose ``__fk_target__()`` returns a capsule."""
        return CapsuleTarget(provider)

    # ---- evaluation from Python ----------------------------------------------------------------

    @property
    def dim(self):
        """The dimension of the point."""
        return self.c.dim

    @property
    def needs_gil(self):
        """Whether the density runs Python code."""
        return bool(self.c.flags & FK_NEEDS_GIL)

    @property
    def serial(self):
        """Whether only one thread at a time may evaluate it."""
        return bool(self.c.flags & FK_SERIAL)

    @property
    def batched(self):
        """Whether all chains are evaluated in one call."""
        return self.c.logp == NULL and self.c.batch != NULL

    @property
    def abilities(self):
        """Which functions the target has, a tuple of names."""
        return tuple(name for name, there in (
            ("logp", self.c.logp != NULL), ("logp_grad", self.c.logp_grad != NULL),
            ("batch", self.c.batch != NULL), ("hvp", self.c.hvp != NULL),
            ("noisy", self.c.noisy != NULL)) if there)

    def logp(self, x):
        """The log density at x (dim,), a float; at each row of x (k, dim), an array (k,)."""
        cdef const double[:, ::1] X = self.points(x)
        cdef double[::1] out = np.empty(X.shape[0])
        cdef Py_ssize_t i
        cdef int rc = 0
        if X.shape[0] > 0:
            if self.c.logp != NULL:
                for i in range(X.shape[0]):
                    rc = self.c.logp(self.c.dim, &X[i, 0], &out[i], self.c.data)
                    if rc:
                        self.complain(rc, X[i])
            else:
                rc = self.c.batch(X.shape[0], self.c.dim, &X[0, 0], NULL, &out[0], self.c.data)
                if rc:
                    self.complain(rc, X[0])
        return out[0] if np.ndim(x) < 2 else np.asarray(out)

    __call__ = logp

    def logp_grad(self, x):
        """The log density at x (dim,) and its gradient (dim,)."""
        cdef const double[:, ::1] X = self.points(x)
        cdef double[::1] grad = np.empty(self.c.dim)
        cdef double logp = 0
        cdef int rc
        if self.c.logp_grad != NULL:
            rc = self.c.logp_grad(self.c.dim, &X[0, 0], &grad[0], &logp, self.c.data)
        elif self.c.batch != NULL:
            rc = self.c.batch(1, self.c.dim, &X[0, 0], &grad[0], &logp, self.c.data)
        else:
            raise TypeError(f"{self!r} has no gradient")
        if rc:
            self.complain(rc, X[0])
        return logp, np.asarray(grad)

    def hvp(self, x, v):
        """The Hessian of the log density at x (dim,) times v (dim,)."""
        cdef const double[:, ::1] X = self.points(x)
        cdef const double[:, ::1] V = self.points(v)
        cdef double[::1] out = np.empty(self.c.dim)
        if self.c.hvp == NULL:
            raise TypeError(f"{self!r} has no Hessian-vector product")
        cdef int rc = self.c.hvp(self.c.dim, &X[0, 0], &V[0, 0], &out[0], self.c.data)
        if rc:
            self.complain(rc, X[0])
        return np.asarray(out)

    def points(self, x):
        x = np.array(x, dtype=float, order="C", ndmin=2)
        if x.ndim != 2 or x.shape[1] != self.c.dim:
            raise ValueError(f"x must have {self.c.dim} coordinates a point, not shape {x.shape}")
        return x

    def complain(self, rc, x):
        error = self.fault(rc, np.asarray(x))
        if error is not None:
            raise error
        raise ArithmeticError(f"the target answered code {rc} at x = {np.asarray(x)}")

    # ---- what the engine asks ------------------------------------------------------------------

    def bind(self):
        """The target as one group of chains may call it: itself, or a copy where it has state."""
        return self

    def fault(self, rc, x):
        """The exception behind a fatal code at x, or None where there is only the code."""
        return None

    def __fk_target__(self):
        """A capsule round the C struct; keep this object while the capsule is in use."""
        if self.needs_gil:
            raise TypeError("a Python target cannot be handed to another package")
        return PyCapsule_New(&self.c, FK_TARGET_CAPSULE, NULL)

    def __repr__(self):
        return f"<Target of dimension {self.c.dim}, {self.kind}: {', '.join(self.abilities)}>"


def check_dim(dim):
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
        raise ValueError(f"dim must be a positive integer, not {dim!r}")
    return dim


# ---- Python functions --------------------------------------------------------------------------

cdef class PythonTarget(Target):
    """A trampoline that takes the GIL and hands over one read-only array, used again."""

    def __init__(self, f, size_t dim, *, vectorized, gradient):
        self.f = f
        self.vectorized = vectorized
        self.gradient = gradient
        self.kind = "Python function" if not vectorized else "vectorized Python function"
        self.c.dim = dim
        self.c.flags = FK_NEEDS_GIL
        self.c.data = <void *>self
        if vectorized:
            self.c.batch = call_vectorized
        else:
            self.c.logp = call_scalar
            if gradient:
                self.c.logp_grad = call_gradient

    @property
    def function(self):
        """The user's function."""
        return self.f

    def bind(self):
        return PythonTarget(
            self.f, self.c.dim, vectorized=self.vectorized, gradient=self.gradient)

    def fault(self, rc, x):
        error, self.error = self.error, None
        return error

    cdef object argument(self, tuple shape, const double *x):
        """The array to call f with; a new one where f has kept the last."""
        cdef uintptr_t address
        if (self.point is None or Py_REFCNT(<PyObject *>self.point) > 1
                or (self.vectorized and self.point.shape != shape)):
            self.point = np.empty(shape)
            address = self.point.ctypes.data
            self.buffer = <double *>address
            self.point.flags.writeable = False
        cdef size_t size = self.c.dim
        if self.vectorized:
            size *= <size_t>shape[0]
        memcpy(self.buffer, x, size * sizeof(double))
        return self.point


cdef int call_scalar(size_t n, const double *x, double *logp, void *data) noexcept with gil:
    cdef PythonTarget self = <PythonTarget>data
    try:
        value = self.f(self.argument((n,), x))
        if self.gradient:
            value = value[0]
        logp[0] = value if type(value) is float else as_float(value)
        return 0
    except BaseException as error:
        self.error = error
        return -100


cdef int call_gradient(
        size_t n, const double *x, double *grad, double *logp, void *data) noexcept with gil:
    cdef PythonTarget self = <PythonTarget>data
    cdef const double[::1] g
    try:
        value, gradient = self.f(self.argument((n,), x))
        logp[0] = as_float(value)
        g = as_array(gradient, (n,), "gradient")
        memcpy(grad, &g[0], n * sizeof(double))
        return 0
    except BaseException as error:
        self.error = error
        return -100


cdef int call_vectorized(size_t k, size_t n, const double *X, double *grad, double *logp,
                         void *data) noexcept with gil:
    cdef PythonTarget self = <PythonTarget>data
    cdef const double[::1] values
    cdef const double[:, ::1] g
    try:
        value = self.f(self.argument((k, n), X))
        if self.gradient:
            value, gradient = value
            if grad != NULL:
                g = as_array(gradient, (k, n), "gradient")
                memcpy(grad, &g[0, 0], k * n * sizeof(double))
        elif grad != NULL:
            raise TypeError("the function was given without a gradient")
        values = as_array(value, (k,), "log density")
        memcpy(logp, &values[0], k * sizeof(double))
        return 0
    except BaseException as error:
        self.error = error
        return -100


def as_float(value):
    """The one real number in value; a TypeError that says what else it was."""
    try:
        if np.ndim(value) == 0:
            return float(value)
        if np.size(value) == 1:
            return float(np.asarray(value).item())
    except (TypeError, ValueError):
        pass
    got = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
    raise TypeError(f"the log density must be one real number, not {got}")


def as_array(value, tuple shape, what):
    """value as a C-contiguous float64 array of that shape; an error that says what else it was."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.shape != shape:
        raise TypeError(
            f"the {what} must be a real array of shape {shape}, not {array.dtype} {array.shape}")
    return np.ascontiguousarray(array, dtype=float)


# ---- compiled functions ------------------------------------------------------------------------

ctypedef double (*scipy_fn)(int, double *, void *) noexcept nogil
ctypedef double (*plain_fn)(int, double *) noexcept nogil

cdef struct Foreign:
    void *function
    void *user_data


cdef int call_scipy(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef Foreign *f = <Foreign *>data
    logp[0] = (<scipy_fn>f.function)(<int>n, <double *>x, f.user_data)
    return 0


cdef int call_plain(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    logp[0] = (<plain_fn>(<Foreign *>data).function)(<int>n, <double *>x)
    return 0


cdef class CFunctionTarget(Target):
    """A pointer to a C function, of SciPy's signature or of ours."""
    cdef Foreign foreign

    def __init__(self, function, size_t dim, user_data, thread_safe):
        from scipy import LowLevelCallable
        if hasattr(function, "ctypes") and hasattr(function, "native_name"):    # a numba cfunc
            function, self.owner = function.ctypes, function
        if not isinstance(function, LowLevelCallable):
            function = (LowLevelCallable(function) if user_data is None
                        else LowLevelCallable(function, user_data))
        elif user_data is not None:
            raise TypeError("user_data belongs into the LowLevelCallable")
        capsule = tuple.__getitem__(function, 0)
        cdef const char *name = PyCapsule_GetName(capsule)
        signature = name.decode()
        self.foreign.function = PyCapsule_GetPointer(capsule, name)
        self.foreign.user_data = PyCapsule_GetContext(capsule)
        self.owner = (self.owner, function)
        self.kind = "C function"
        self.c.dim = dim
        self.c.flags = 0 if thread_safe else FK_SERIAL
        form = signature.replace(" const", "").replace("const ", "").replace(" ", "")
        if form == "double(int,double*,void*)":
            self.c.logp = call_scipy
            self.c.data = &self.foreign
        elif form == "double(int,double*)":
            self.c.logp = call_plain
            self.c.data = &self.foreign
        elif form in OURS:
            self.c.logp = <int (*)(size_t, const double *, double *, void *) noexcept nogil>(
                self.foreign.function)
            self.c.data = self.foreign.user_data
        else:
            raise TypeError(
                f"the function's signature is {signature!r}; expected "
                "'double (int, double *, void *)', 'double (int, double *)' or "
                "'int (size_t, double *, double *, void *)'")


OURS = tuple(f"int({size},double*,double*,void*)" for size in (
    "size_t", "unsignedlong", "unsignedlonglong", "uint64_t"))


cdef class CapsuleTarget(Target):
    """Another package's struct, used as it is."""

    def __init__(self, provider):
        if not hasattr(provider, "__fk_target__"):
            raise TypeError(f"{provider!r} has no __fk_target__ method")
        capsule = provider.__fk_target__()
        if not PyCapsule_IsValid(capsule, FK_TARGET_CAPSULE):
            raise TypeError(
                f"__fk_target__() must return a capsule named 'fk_target_v1', not {capsule!r}")
        cdef fk_target *other = <fk_target *>PyCapsule_GetPointer(capsule, FK_TARGET_CAPSULE)
        if other.abi != FK_TARGET_ABI:
            raise TypeError(f"the target's abi is {other.abi}; this fastkam knows {FK_TARGET_ABI}")
        if other.dim < 1 or (other.logp == NULL and other.batch == NULL):
            raise ValueError("the target has no dimension, or neither logp nor batch")
        self.c = other[0]
        self.owner = (provider, capsule)
        self.kind = "capsule"
