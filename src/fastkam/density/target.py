"""Target: a log density, made from any of the supported forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.foreign import CapsuleTarget, CFunctionTarget
from fastkam._core.density.python_target import PythonTarget
from fastkam._core.density.target import Target as CompiledTarget
from fastkam.arguments import check_flag, check_integer, shown
from fastkam.density.estimator import Estimator


class Provider(Protocol):
    """An object of another package that has a target."""

    def __fk_target__(self) -> object:
        """A capsule with its C struct."""


# type checkers see the attributes of the compiled class, of which all targets are
if TYPE_CHECKING:
    Base = CompiledTarget
else:
    Base = ABC


class Target(Base):
    """A log density that samplers can call.

    It is made by `fastkam.as_target` or one of the ``from_`` methods, never directly; the classes
    of `fastkam.targets` are targets too. `logp`, `logp_grad`, `hvp` and `estimate` evaluate it;
    `dim` is the dimension of the point, and `abilities` lists the functions that it has.
    """

    @abstractmethod
    def logp(self, x: ArrayLike) -> Any:
        """The log density at x (dim,), a float; at each row of x (k, dim), an array (k,)."""

    @staticmethod
    def from_python(
        f: Callable[[NDArray[np.float64]], Any],
        dim: int,
        *,
        vectorized: bool = False,
        gradient: bool = False,
        hvp: Callable[[NDArray[np.float64], NDArray[np.float64]], Any] | None = None,
    ) -> Target:
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
            if not (callable(function) or (name == "hvp" and hvp is None)):
                raise TypeError(f"{name} must be callable, not {shown(function)}")
        return cast(Target, PythonTarget(
            f, check_dim(dim), vectorized=check_flag("vectorized", vectorized),
            gradient=check_flag("gradient", gradient), hvp=hvp))

    @staticmethod
    def from_c(
        function: object, dim: int, *, user_data: object = None, thread_safe: bool = True
    ) -> Target:
        """A compiled function: SciPy LowLevelCallable, ctypes or cffi pointer, numba cfunc.

        A numba cfunc that raises prints the error and returns 0.0: `from_numba` is safer.

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
            Last argument of the function: a ctypes or cffi pointer, or a capsule. What it points to
            is kept, but not what is behind addresses that are stored in there as numbers, such as
            ``array.ctypes.data`` in a structure: keep that array for as long as the target.
        thread_safe : bool
            Whether several threads may call it at once. With False only one thread at a time calls
            any such function, in all runs of the process. With True draws of several threads are
            compared, at the end of a run, with values of calls from one thread.

        Raises
        ------
        TypeError
            If the signature is none of these; the message has the signature that was found.
        """
        return cast(Target, CFunctionTarget(function, check_dim(dim), user_data, thread_safe))

    @staticmethod
    def from_numba(f: Callable[..., Any], dim: int, *, args: tuple[Any, ...] = ()) -> Target:
        """A numba njit function, called without the GIL.

        It is compiled again with IEEE division, in which 1/0 is inf and not an error; if it raises,
        the run stops with that exception. If it uses ``parallel=True``, one thread at a time calls
        it.

        Parameters
        ----------
        f : numba dispatcher
            ``f(x, *args) -> float`` for x of shape (dim,), a copy to which it may write; or the
            pair (log density, gradient).
        dim : int
            The dimension of the point.
        args : tuple
            Arrays and numbers, copied when the target is made. The function must not write to
            these arrays.

        Raises
        ------
        ImportError
            If numba is not installed.
        TypeError
            If numba cannot compile the call, or `f` returns neither of these.
        """
        from fastkam.density.numba import NumbaTarget

        return cast(Target, NumbaTarget(f, check_dim(dim), args))

    @staticmethod
    def from_capsule(provider: Provider) -> Target:
        """An object of another package whose ``__fk_target__()`` returns a capsule.

        Raises
        ------
        TypeError, ValueError
            If the capsule is of another name or abi, or its struct has no density.
        """
        return cast(Target, CapsuleTarget(provider))

    @overload
    @staticmethod
    def from_estimator(
        f: object, dim: None = None, n_aux: int | None = None, *, vectorized: bool = False,
        correlation: float = 0.0, blocks: int = 1, user_data: object = None,
        thread_safe: bool = True,
    ) -> Estimator: ...

    @overload
    @staticmethod
    def from_estimator(
        f: object, dim: int, n_aux: int | None = None, *, vectorized: bool = False,
        correlation: float = 0.0, blocks: int = 1, user_data: object = None,
        thread_safe: bool = True,
    ) -> Target: ...

    @staticmethod
    def from_estimator(
        f: object,
        dim: int | None = None,
        n_aux: int | None = None,
        *,
        vectorized: bool = False,
        correlation: float = 0.0,
        blocks: int = 1,
        user_data: object = None,
        thread_safe: bool = True,
    ) -> Target | Estimator:
        """A density that can only be estimated: pseudo-marginal MCMC.

        Parameters
        ----------
        f : callable, pointer or object
            Returns the log of an estimate of the density at x; the estimate is never negative, and
            its mean is the density, up to a constant; -inf stands for an estimate of 0. A Python
            function is ``f(x, u) -> float``, a deterministic function of x (dim,) and the noise u
            (n_aux,), independent standard normals; or, without `n_aux`, ``f(x, rng) -> float``,
            which may draw any random numbers from rng, a numpy Generator valid for this call. A
            pointer (see `from_c`) is ``int (size_t n, const double *x, size_t n_aux, const double
            *u, double *logp, void *data)``. Or an object with ``__fk_target__`` that has ``noisy``.
        dim : int, optional
            The dimension of the point. Without it `sample` or `Problem` supply it, and a Python or
            numba function may take the parameters by name, beside an argument for its noise, and
            the data of `args` and `kwargs`.
        n_aux : int, optional
            Number of standard normals that an estimate takes.
        vectorized : bool
            The Python function takes points X (k, dim) and their noise U (k, n_aux), and returns
            (k,): one call for all chains, and for all replicas of "pt" and "scout". It needs
            `n_aux`.
        correlation : float
            rho: a step proposes the noise rho u + sqrt(1 - rho^2) xi, so that successive estimates
            are correlated (correlated pseudo-marginal). With 0 each step draws new noise.
        blocks : int
            Number of blocks of neighboring elements into which u is divided: a step draws one of
            them again and keeps the others (block pseudo-marginal). With 1 each step draws new
            noise.
        user_data, thread_safe
            For a pointer, as in `from_c`.

        Returns
        -------
        Target
            Or without `dim` an object that `sample`, `Problem`, `check_noise` and `as_target` take.

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
        made = Estimator(
            f, n_aux, vectorized=vectorized, correlation=correlation, blocks=blocks,
            user_data=user_data, thread_safe=thread_safe)
        return made if dim is None else cast(Target, made.target(check_dim(dim)))


Target.register(CompiledTarget)  # type: ignore[attr-defined]  # of ABC


def check_dim(dim: Any) -> int:
    """`dim`, if it is a positive integer."""
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
        raise ValueError(f"dim must be a positive integer, not {shown(dim)}")
    return check_integer("dim", dim, least=1)
