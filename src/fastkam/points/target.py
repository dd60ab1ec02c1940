"""A target whose density comes from a pool of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import fields_of
from fastkam._core.density.problem_target import ProblemTarget
from fastkam._core.density.python_target import PythonTarget
from fastkam._core.engine.fault import Fault
from fastkam.points.pool import PointPool
from fastkam.points.records import blank
from fastkam.points.reply import Reply

if TYPE_CHECKING:
    from fastkam.density.target import Target

Array = NDArray[np.float64]


class Unevaluated(Exception):
    """The density is not known yet at some points.

    Attributes
    ----------
    points : ndarray, shape (n, d)
        The points, in the coordinates of the user's function.
    source : object
        The function that raised it. A user's function may also raise such an exception, from a run
        within it: that is an error of the function, and not a reason to wait.
    """

    def __init__(self, points: Array, source: object = None) -> None:
        super().__init__(points)
        self.points, self.source = points, source


def missing_of(error: BaseException, source: object) -> Array | None:
    """Return the points (n, d) that `source` does not know yet; None if the error is another."""
    cause = error.cause if isinstance(error, Fault) else error
    return cause.points if isinstance(cause, Unevaluated) and cause.source is source else None


class Lookup:
    """A function of many points, whose values come from a pool.

    It waits for values that are not known yet; within ``deferring`` it raises Unevaluated instead,
    which stops a chain until they are known.

    Attributes
    ----------
    meanwhile : callable or None
        Called while it waits; an error that this raises ends the wait.
    of_user : object
        The function, if it is one of Python.
    """

    of_single_points = True  # the user's function may take one point at a time

    def __init__(self, pool: PointPool, of_user: object = None) -> None:
        self.of_user = of_user
        self.pool, self.defers, self.repeats = pool, False, False
        self.meanwhile: Callable[[], None] | None = None

    @contextmanager
    def deferring(self) -> Iterator[None]:
        """A context in which calls do not wait."""
        self.defers = True
        try:
            yield
        finally:
            self.defers = False

    @property
    def error(self) -> BaseException | None:
        """An error that the function has raised, if there is one."""
        return next((reply.error for reply in self.pool.calls.known.values()
                     if reply.error is not None), None)

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """A context in which calls that this run has made before are made again."""
        self.repeats = True
        try:
            yield
        finally:
            self.repeats = False

    def __call__(self, x: Array) -> Any:
        """Log densities (k,) at x (k, d), and gradients and extras if the function has them."""
        if self.repeats:
            for row in x:
                self.pool.calls.repeat(row.tobytes())
        known = [self.pool.known(row.tobytes()) for row in x]
        missing = [i for i, reply in enumerate(known) if reply is None]
        if missing and self.defers:
            raise Unevaluated(x[missing].copy(), self)
        if missing:
            replies = self.pool.evaluate(x[missing], self.meanwhile)
            for i, reply in zip(missing, replies, strict=True):
                known[i] = reply
        return joined([reply for reply in known if reply is not None])


def joined(replies: list[Reply]) -> Any:
    """Replies in the form that a function of many points returns."""
    for reply in replies:
        if reply.error is not None:
            raise reply.error
    parts: list[Any] = [np.array([reply.value for reply in replies], dtype=float)]
    with_gradient = next((r.gradient for r in replies if r.gradient is not None), None)
    if with_gradient is not None:
        none = np.full_like(with_gradient, np.nan)
        parts.append(np.array([none if r.gradient is None else r.gradient for r in replies]))
    first = next((reply.extras for reply in replies if reply.extras), None)
    if first is not None:
        missing = blank(fields_of(first))
        if any(not r.extras and np.isfinite(r.value) for r in replies):
            raise TypeError("the function must return extras at every point with a density, or at "
                            "none")
        each = [reply.extras or missing for reply in replies]
        parts.append({name: np.array([one[name] for one in each]) for name in first})
    return parts[0] if len(parts) == 1 else tuple(parts)


def of_function(target: Target) -> Target:
    """The part of a target that is the user's function: for a Problem, the likelihood."""
    return cast(Any, target).inner if isinstance(target, ProblemTarget) else target


def through(target: Target, lookup: Callable[[Array], Any]) -> Target:
    """The target with its function replaced by `lookup`.

    For a Problem this replaces only the likelihood, which is not called where the prior is 0.
    """
    if isinstance(target, ProblemTarget):
        return cast(Any, target).around(through(of_function(target), lookup))
    made: Any = PythonTarget(lookup, target.dim, vectorized=True,
                             gradient=returns_gradient(target))
    return made


def returns_gradient(target: Target) -> bool:
    """Whether replies at points of a target, the user's function, have gradients."""
    return target.has_gradient and getattr(target, "gradient", None) is not False
