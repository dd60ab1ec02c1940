"""Differentiable: a log density with a separate gradient, as packages with gradients provide."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.joined import JoinedTarget
from fastkam._core.density.python_target import PythonTarget
from fastkam.arguments import shown
from fastkam.density.target import Target
from fastkam.problem.call import UserFunction
from fastkam.run.streams import Stream, own_seed

Array = NDArray[np.float64]



class Differentiable:
    """A function of x (d,), or of X (k, d), whose gradient is computed only if requested.

    Accepted wherever a Python function is: by `fastkam.sample`, and as the likelihood of a
    `fastkam.Problem`.

    Attributes
    ----------
    value : callable
        ``value(x) -> float``, or (k,) of X.
    pair : callable or None
        ``pair(x) -> (float, gradient)``, or (k,) and (k, d) of X; None without a gradient.
    vectorized : bool
        Whether they take X.
    dim : int or None
        The dimension of x, if it is known.
    draw : callable or None
        ``draw(n, seed) -> (n, d)`` points at which chains may start.
    """

    value: Callable[[Array], Any]
    pair: Callable[[Array], Any] | None = None
    vectorized: bool = False
    dim: int | None = None
    draw: Callable[[int, Any], Array] | None = None

    def __call__(self, x: Array) -> Any:
        """The log density at x (d,), a float, or at each row of X (k, d), (k,)."""
        if not self.vectorized:
            return self.value(x)
        rows = np.asarray(self.value(np.atleast_2d(x)))
        return rows if np.ndim(x) > 1 else float(rows[0])

    def target(self, dim: int) -> Target:
        """The Target of points of that dimension."""
        if self.dim is not None and self.dim != dim:
            raise ValueError(f"target {self!r} takes {self.dim} numbers, and x0 has {dim} "
                             "coordinates")
        made: Any = JoinedTarget(
            PythonTarget(self.value, dim, vectorized=self.vectorized, gradient=False),
            None if self.pair is None else PythonTarget(
                self.pair, dim, vectorized=self.vectorized, gradient=True),
            recipe=partial(made_target, self, dim))
        return made


class OfFunction(Differentiable):
    """The density that a function of a package returns.

    Attributes
    ----------
    f : callable
        ``f(x) -> number`` of the package's array x (d,).
    """

    f: Callable[..., Any]

    @abstractmethod
    def of(self, f: Callable[..., Any]) -> OfFunction:
        """The density of another function, evaluated in the same way."""

    def calling(self, args: tuple[Any, ...], kwargs: Mapping[str, Any],
                shapes: Mapping[str, tuple[int, ...]] | None) -> OfFunction:
        """The density of the function called with further arguments, or by parameters' names."""
        return self.of(UserFunction(self.f, args, kwargs, shapes))

    def target(self, dim: int) -> Target:
        try:
            inspect.signature(self.f, follow_wrapped=False).bind(None)
        except ValueError:  # built-in functions may have no signature
            pass
        except TypeError as error:
            name = getattr(self.f, "__name__", repr(self.f))
            raise TypeError(
                f"target must be a function of one argument, a point x (d,), not {name}"
                f"{inspect.signature(self.f, follow_wrapped=False)} ({error}): parameters are "
                "passed by name where x0 is a dict, or with prior=; data go into args= or kwargs="
            ) from None
        return super().target(dim)


def check_number(f: Callable[..., Any], value: Any) -> None:
    """Refuse the value that a function of a package returns for a point, if not one number."""
    if isinstance(value, tuple):
        raise TypeError(f"{shown(f)} must return the log density alone, and returns a tuple: the "
                        "gradient is computed by the package, and other quantities belong in "
                        "derived=")
    size = getattr(value, "shape", ())
    if not hasattr(value, "shape") and not isinstance(value, (int, float)):
        raise TypeError(f"{shown(f)} must return one number, not {shown(value)}")
    if any(n != 1 for n in size):
        raise TypeError(f"{shown(f)} must return one number, not an array of shape {tuple(size)}: "
                        "sum it")


def made_target(density: Differentiable, dim: int) -> Target:
    """The target of a density, in another process."""
    return density.target(dim)


def drawn(target: Any, n: int, seed: np.random.SeedSequence) -> Array | None:
    """Points (n, d) at which chains may start, if a density has a way to draw them; or None."""
    if not isinstance(target, Differentiable) or target.draw is None:
        return None
    return target.draw(n, int(own_seed(seed, Stream.MODEL_STARTS).generate_state(1)[0]))
