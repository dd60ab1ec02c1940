"""Target: a log density in any of the user's forms, as one C struct."""
from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memset

from fastkam.target cimport (
    FK_NEEDS_GIL, FK_SERIAL, FK_TARGET_ABI, FK_TARGET_CAPSULE, fk_target,
)

from fastkam._core.density.extras import is_masked

import numpy as np


cdef class Target:
    """A log density that the engine can call: the base class of all forms.

    Made by `fastkam.as_target` or the `from_` methods of `fastkam.Target`, never directly.
    """

    def __cinit__(self):
        memset(&self.c, 0, sizeof(fk_target))
        self.c.abi = FK_TARGET_ABI
        self.refresh.blocks = 1
        self.kind = "abstract"

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
        return self.c.logp == NULL and (self.c.batch != NULL or self.noisy_batch != NULL)

    @property
    def is_estimate(self):
        """Whether the density is an estimate."""
        return (self.c.noisy != NULL and self.c.logp == NULL and self.c.logp_grad == NULL
                and self.c.batch == NULL)

    @property
    def has_gradient(self):
        """Whether the engine can call it for gradients."""
        return self.c.logp_grad != NULL or self.c.logp == NULL and self.c.batch != NULL

    @property
    def n_aux(self):
        """Number of standard normals that an estimate takes; 0 for a known density."""
        return self.c.n_aux if self.is_estimate else 0

    @property
    def correlation(self):
        """rho of the noise of an estimate, see `fastkam.Target.from_estimator`."""
        return self.refresh.correlation

    @property
    def blocks(self):
        """Blocks of the noise of an estimate, see `fastkam.Target.from_estimator`."""
        return self.refresh.blocks

    @property
    def abilities(self):
        """Names of the functions that the target has, a tuple."""
        return tuple(name for name, there in (
            ("logp", self.c.logp != NULL), ("logp_grad", self.c.logp_grad != NULL),
            ("batch", self.c.batch != NULL), ("hvp", self.c.hvp != NULL),
            ("noisy", self.c.noisy != NULL)) if there)

    def logp(self, x):
        """Return the log density at x (dim,), a float, or at the rows of x (k, dim), (k,)."""
        cdef const double[:, ::1] X = self.points(x)
        cdef double[::1] out = np.empty(X.shape[0])
        cdef double[::1] grad
        cdef Py_ssize_t i
        cdef int rc = 0
        if X.shape[0] > 0:
            if self.c.logp != NULL:
                for i in range(X.shape[0]):
                    rc = self.c.logp(self.c.dim, &X[i, 0], &out[i], self.c.data)
                    if rc:
                        self.complain(rc, X[i])
            elif self.c.batch == NULL and self.c.logp_grad == NULL:
                raise TypeError(f"{self!r} has no density, only estimates: call estimate(x, u)")
            elif self.c.batch == NULL:
                grad = np.empty(self.c.dim)
                for i in range(X.shape[0]):
                    rc = self.c.logp_grad(self.c.dim, &X[i, 0], &grad[0], &out[i], self.c.data)
                    if rc:
                        self.complain(rc, X[i])
            else:
                rc = self.c.batch(X.shape[0], self.c.dim, &X[0, 0], NULL, &out[0], self.c.data)
                if rc:
                    self.complain(rc, X[0])
        return out[0] if np.ndim(x) < 2 else np.asarray(out)

    __call__ = logp

    def estimate(self, x, u):
        """Return the log of the estimate of the density at x (dim,) with the noise u (n_aux,)."""
        cdef const double[:, ::1] X = self.point(x)
        cdef const double[::1] U = numbers("u", u, 1)
        cdef double logp = 0
        if self.c.noisy == NULL:
            raise TypeError(f"{self!r} has no estimate")
        if U.shape[0] != <Py_ssize_t>self.c.n_aux:
            raise ValueError(f"u must have shape ({self.c.n_aux},), not {np.shape(u)}")
        cdef int rc = self.c.noisy(self.c.dim, &X[0, 0], self.c.n_aux, &U[0], &logp, self.c.data)
        if rc:
            self.complain(rc, X[0])
        return logp

    def logp_grad(self, x):
        """Return the log density at x (dim,) and its gradient (dim,)."""
        cdef const double[:, ::1] X = self.point(x)
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
        """Return the Hessian of the log density at x (dim,) times v (dim,)."""
        cdef const double[:, ::1] X = self.point(x)
        cdef const double[:, ::1] V = self.point(v)
        cdef double[::1] out = np.empty(self.c.dim)
        if self.c.hvp == NULL:
            raise TypeError(f"{self!r} has no Hessian-vector product")
        cdef int rc = self.c.hvp(self.c.dim, &X[0, 0], &V[0, 0], &out[0], self.c.data)
        if rc:
            self.complain(rc, X[0])
        return np.asarray(out)

    def points(self, x):
        x = numbers("x", x, 2)
        if x.ndim != 2 or x.shape[1] != self.c.dim:
            raise ValueError(f"x must have {self.c.dim} coordinates a point, not shape {x.shape}")
        return x

    def point(self, x):
        found = self.points(x)
        if np.ndim(x) > 1:
            raise ValueError(f"x must be one point ({self.c.dim},), not of shape {np.shape(x)}")
        return found

    def complain(self, rc, x):
        error = self.fault(rc, np.asarray(x))
        if error is not None:
            raise error
        raise ArithmeticError(f"the target returned code {rc} at x = {np.asarray(x)}")

    # ---- for the engine ------------------------------------------------------------------------

    @property
    def returns_extras(self):
        """Whether evaluations have returned extras."""
        return self.extras != NULL and self.extras[0]

    def expect_extras(self):
        """Require extras at every draw, as in the run so far."""
        if self.extras != NULL:
            self.extras[0] = True

    def extras_fields(self):
        """Return {name: (shape, type)} of the extras, or None if there were none."""
        return None

    def extras_at(self, x, u=None):
        """Return the extras at x (dim,), with the noise u (n_aux,) of an estimate, as doubles.

        The result is None if the function returns none.
        """
        return None

    def points_of(self, X):
        """Return the user's points for the sampler's X (k, dim)."""
        return X

    def bind(self):
        """Return the target for one group of chains: itself, or a copy if it has state."""
        return self

    def fault(self, rc, x):
        """Return the exception behind a fatal code at x, or None if there is only the code."""
        return None

    def __fk_target__(self):
        """Return a capsule with the C struct; keep this object while the capsule is in use."""
        if self.needs_gil:
            raise TypeError("a Python target cannot be handed to another package")
        return PyCapsule_New(&self.c, FK_TARGET_CAPSULE, NULL)

    def __reduce__(self):
        """Pickle a target as its recipe, or as the arguments it was made from."""
        return self.made_from() if self.recipe is None else (self.recipe, ())

    def made_from(self):
        """Return a callable that makes the target again, and its arguments; not for pointers."""
        raise TypeError(
            f"{self!r} cannot be sent to another process: give a fastkam.TargetRecipe, which "
            "makes it there")

    def __repr__(self):
        return f"<Target of dimension {self.c.dim}, {self.kind}: {', '.join(self.abilities)}>"


def numbers(name, value, ndmin):
    """Return real numbers as an array with `ndmin` or more axes; TypeError for other values."""
    if is_masked(value):
        raise TypeError(f"{name} must be an array without masked elements, not {value!r:.200}")
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiubO":
            raise TypeError(f"they are of type {array.dtype}")
        return np.array(array, dtype=float, order="C", ndmin=ndmin)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} must be an array of numbers, not {type(value).__name__}: "
                        f"{error!s:.200}") from None
