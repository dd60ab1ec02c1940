"""Target: a log density in any of the forms a user has it in, as one C struct."""
from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memset

from fastkam.target cimport (
    FK_NEEDS_GIL, FK_SERIAL, FK_TARGET_ABI, FK_TARGET_CAPSULE, fk_target,
)

import numpy as np


cdef class Target:
    """A log density that the engine can call.

    Made by `fastkam.as_target` or one of the `from_` methods, never directly.
    """

    def __cinit__(self):
        memset(&self.c, 0, sizeof(fk_target))
        self.c.abi = FK_TARGET_ABI
        self.refresh.blocks = 1
        self.kind = "abstract"

    # ---- the forms a density comes in ----------------------------------------------------------

    @staticmethod
    def from_python(f, dim, *, vectorized=False, gradient=False, hvp=None):
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
        hvp : callable, optional
            ``hvp(x, v) -> (dim,)``, the Hessian of the log density at x times v, for samplers that
            can use it.

        Raises
        ------
        TypeError
            If `f` or `hvp` is not callable.
        """
        for name, function in (("f", f), ("hvp", hvp)):
            if not (callable(function) or name == "hvp" and hvp is None):
                raise TypeError(f"{name} must be callable, not {function!r}")
        from fastkam._core.python_target import PythonTarget
        return PythonTarget(f, check_dim(dim), vectorized=vectorized, gradient=gradient, hvp=hvp)

    @staticmethod
    def from_c(function, dim, *, user_data=None, thread_safe=True):
        """A compiled function: SciPy LowLevelCallable, ctypes or cffi pointer, numba cfunc.

        A numba cfunc that raises prints the error and answers 0.0: `from_numba` is safer.

        Parameters
        ----------
        function : object
            A function of one of the C signatures ``double (int n, double *x, void *user_data)``,
            ``double (int n, double *x)``, or, as in ``fastkam/target.h``,
            ``int (size_t n, const double *x, double *logp, void *data)``, or with the gradient
            ``int (size_t n, const double *x, double *grad, double *logp, void *data)``, which
            is also the signature of nuts-rs. It must not need the GIL.
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
        from fastkam._core.foreign import CFunctionTarget
        return CFunctionTarget(function, check_dim(dim), user_data, thread_safe)

    @staticmethod
    def from_numba(f, dim, *, args=()):
        """A numba njit function, called without the GIL.

        It is compiled again with IEEE division (1/0 is inf, and no error); if it raises, the run
        stops with that exception.

        Parameters
        ----------
        f : numba dispatcher
            ``f(x, *args) -> float`` for x of shape (dim,), which it must not change; or the pair
            (log density, gradient).
        dim : int
            The dimension of the point.
        args : tuple
            Arrays and numbers, fixed when the target is made.

        Raises
        ------
        ImportError
            If numba is not installed.
        TypeError
            If numba cannot compile the call, or `f` returns anything else.
        """
        from fastkam.interop.numba import NumbaTarget
        return NumbaTarget(f, check_dim(dim), args)

    @staticmethod
    def from_capsule(provider):
        """An object of another package whose ``__fk_target__()`` returns a capsule.

        Raises
        ------
        TypeError, ValueError
            If the capsule is of another name or abi, or its struct has no density.
        """
        from fastkam._core.foreign import CapsuleTarget
        return CapsuleTarget(provider)

    @staticmethod
    def from_estimator(f, dim, n_aux=None, *, vectorized=False, correlation=0.0, blocks=1,
                       user_data=None, thread_safe=True):
        """A density that can only be estimated: pseudo-marginal MCMC.

        Parameters
        ----------
        f : callable, pointer or object
            Gives the log of an estimate of the density at x that is never negative and has the
            density, up to a constant, as its mean; -inf for an estimate of 0. As Python functions,
            ``f(x, u) -> float`` for x (dim,) and noise u (n_aux,) of independent standard normals,
            of which it is a known function; or, without `n_aux`, ``f(x, rng) -> float``, which may
            draw what it likes from rng, a numpy Generator that is good for this call. As a pointer
            (see `from_c`), ``int (size_t n, const double *x, size_t n_aux, const double *u,
            double *logp, void *data)``. Or an object with ``__fk_target__`` that has ``noisy``.
        dim : int
            The dimension of the point.
        n_aux : int, optional
            How many standard normals an estimate takes.
        vectorized : bool
            The Python function takes points X (k, dim) with their noise U (k, n_aux), a row each,
            and returns (k,): one call for all chains, and for all replicas of "pt" and "scout".
            It needs `n_aux`.
        correlation : float
            rho: a step proposes the noise rho u + sqrt(1 - rho^2) xi, so that two estimates have
            much of their noise in common (correlated pseudo-marginal). 0 draws all of it anew.
        blocks : int
            A step draws one block of the noise anew, of so many blocks of neighbours in u, and
            keeps the others (block pseudo-marginal). 1 draws all of it anew.
        user_data, thread_safe
            For a pointer, as in `from_c`.

        Raises
        ------
        TypeError, ValueError
            For another signature, or a bad argument.

        References
        ----------
        Andrieu, C. and Roberts, G. O. (2009). The pseudo-marginal approach for efficient Monte
        Carlo computations. Annals of Statistics 37, 697-725. For `correlation` Deligiannidis, G.,
        Doucet, A. and Pitt, M. K. (2018), JRSS B 80, 839-870; for `blocks` Tran, M.-N., Kohn, R.,
        Quiroz, M. and Villani, M. (2016), arXiv:1603.02485.
        """
        from fastkam.noise import estimator
        return estimator(f, check_dim(dim), n_aux, vectorized, correlation, blocks, user_data,
                         thread_safe)

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
        """Whether the density is estimated, and not known."""
        return (self.c.noisy != NULL and self.c.logp == NULL and self.c.logp_grad == NULL
                and self.c.batch == NULL)

    @property
    def has_gradient(self):
        """Whether the engine can call it for gradients."""
        return self.c.logp_grad != NULL or self.c.logp == NULL and self.c.batch != NULL

    @property
    def n_aux(self):
        """How many standard normals an estimate takes; 0 for a density that is known."""
        return self.c.n_aux if self.is_estimate else 0

    @property
    def correlation(self):
        """rho of the noise of an estimate, see `from_estimator`."""
        return self.refresh.correlation

    @property
    def blocks(self):
        """Blocks of the noise of an estimate, see `from_estimator`."""
        return self.refresh.blocks

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
        """The log of the estimate of the density at x (dim,) with the noise u (n_aux,)."""
        cdef const double[:, ::1] X = self.point(x)
        cdef const double[::1] U = np.array(u, dtype=float, order="C", ndmin=1)
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
        """The log density at x (dim,) and its gradient (dim,)."""
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
        """The Hessian of the log density at x (dim,) times v (dim,)."""
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
        x = np.array(x, dtype=float, order="C", ndmin=2)
        if x.ndim != 2 or x.shape[1] != self.c.dim:
            raise ValueError(f"x must have {self.c.dim} coordinates a point, not shape {x.shape}")
        return x

    def point(self, x):
        if np.ndim(x) > 1:
            raise ValueError(f"x must be one point ({self.c.dim},), not of shape {np.shape(x)}")
        return self.points(x)

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

    def __reduce__(self):
        """A target travels as what it was made of; a pointer cannot travel."""
        if self.recipe is not None:
            return self.recipe, ()
        raise TypeError(
            f"{self!r} cannot be sent to another process: give a fastkam.TargetRecipe, which "
            "makes it there")

    def __repr__(self):
        return f"<Target of dimension {self.c.dim}, {self.kind}: {', '.join(self.abilities)}>"


def check_dim(dim):
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
        raise ValueError(f"dim must be a positive integer, not {dim!r}")
    return dim
