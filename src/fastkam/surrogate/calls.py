"""The calls of a costly density: counted, kept, and never more than the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.search.evaluator import Evaluator
from fastkam.search.watch import Spent, Watch

if TYPE_CHECKING:
    from fastkam._core.density.target import Target

Array = NDArray[np.float64]

KEEP_SECONDS, MOST_AT_ONCE = 1.0, 10_000


class Calls:
    """Evaluates points of a target, and keeps all of them.

    Parameters
    ----------
    target : Target
    rng : Generator
    budget : float
        The number of calls at which `Spent` is raised, after those that are left were made.
    watch : Watch, optional
        Reports progress, and ends the work where the time is over.
    """

    def __init__(
        self, target: Target, rng: np.random.Generator, budget: float, watch: Watch | None = None
    ) -> None:
        self.evaluator = Evaluator(target, rng, watch)
        self.budget = budget
        self.points: list[Array] = []
        self.values: list[Array] = []
        self.whole = False  # whether all points of a call are handed on at once

    def __call__(self, X: Array) -> Array:
        """Log densities (n,) at points X (n, d), -inf where there is none.

        All points of a call are independent of each other: they may be evaluated at once.
        """
        some = X[: max(0, int(min(len(X), self.budget - self.n)))]
        done = 0
        while done < len(some):  # what has been called is kept if the next call is interrupted
            part = some[done : done + self.at_once]
            self.values.append(self.evaluator(part))
            self.points.append(part.copy())
            done += len(part)
        if len(some) < len(X):
            raise Spent
        return self.last(done) if done else np.zeros(0)

    def last(self, n: int) -> Array:
        """The last n values."""
        parts, left = [], n
        for values in reversed(self.values):
            parts.append(values)
            left -= len(values)
            if left <= 0:
                break
        return np.concatenate(parts[::-1])[-n:]

    @property
    def at_once(self) -> int:
        """How many points to call for before their values are kept: about a second's, one at least.
        """
        if self.whole or self.evaluator.slow or not self.n:
            return MOST_AT_ONCE
        return int(np.clip(KEEP_SECONDS * self.n / max(self.evaluator.seconds, 1e-9), 1,
                           MOST_AT_ONCE))

    @property
    def n(self) -> int:
        """The number of calls."""
        return self.evaluator.n

    @property
    def left(self) -> float:
        """The number of calls that are left."""
        return self.budget - self.n

    @property
    def failures(self) -> list[Exception]:
        """The points at which the function failed."""
        return list(self.evaluator.failures)

    def all(self) -> tuple[Array, Array]:
        """Points (n, d) and log densities (n,), in the order of the calls."""
        return np.concatenate(self.points), np.concatenate(self.values)

    def finite(self) -> tuple[Array, Array]:
        """The same without the points that have no density."""
        X, y = self.all()
        rows = np.isfinite(y)
        return X[rows], y[rows]
