"""The calls of a costly density: counted, stored, and never more than the budget."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import REJECTED
from fastkam._core.engine.fault import Fault
from fastkam.run.faults import Unwritten
from fastkam.search.evaluator import Evaluator
from fastkam.search.population import largest_drop
from fastkam.search.watch import Spent, Watch

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.points.pool import PointPool
    from fastkam.surrogate.given import Given

Array = NDArray[np.float64]

KEEP_SECONDS, MOST_AT_ONCE = 1.0, 10_000
HAS_DENSITY = -1
NAN, OUTSIDE, FAILED = (REJECTED.index(kind) for kind in ("nan", "outside", "failed"))


class Inspecting(Evaluator):
    """An Evaluator that keeps the points where the density is NaN or has failed.

    Attributes
    ----------
    kinds : dict of bytes to int
        The kind of each point, by the bytes of the point.
    """

    def __init__(
        self, target: Target, rng: np.random.Generator, watch: Watch | None = None
    ) -> None:
        super().__init__(target, rng, watch)
        self.kinds: dict[bytes, int] = {}

    def values_of(self, X: Array) -> tuple[Array, NDArray[np.intc]]:
        """Log densities and return codes at points (m, d)."""
        values, codes = super().values_of(X)
        for i in np.flatnonzero((codes > 0) | ((codes == 0) & np.isnan(values))):
            self.kinds[X[i].tobytes()] = FAILED if codes[i] else NAN
        return values, codes


class Calls:
    """Evaluates a target at points, and stores all of them.

    A point that fails in a pool is called twice, and counts as two calls, also if they are in the
    file of calls: so the same run continues from there.

    Parameters
    ----------
    target : Target
    rng : Generator
    budget : float
        The largest number of calls; `Spent` is raised once all have been made.
    watch : Watch, optional
        Reports progress, and ends the work when its time is over.
    pool : PointPool, optional
        Evaluates the points of the target.
    """

    def __init__(
        self, target: Target, rng: np.random.Generator, budget: float, watch: Watch | None = None,
        pool: PointPool | None = None,
    ) -> None:
        self.evaluator = Inspecting(target, rng, watch)
        self.budget, self.pool = budget, pool
        self.points: list[Array] = []
        self.values: list[Array] = []
        self.given = 0

    def take(self, given: Given) -> None:
        """Use calls of an earlier run, which do not count, if the best one gives the same again.

        Raises
        ------
        ValueError
            If it does not.
        """
        self.points.append(given.points)
        self.values.append(given.values)
        self.given = len(given.values)
        best = int(given.values.argmax())
        given.check(best, float(self(given.points[best][None])[0]))

    def __call__(self, X: Array) -> Array:
        """Return log densities (n,) at points X (n, d), -inf where the density is zero.

        The points are independent of each other, so that they may be evaluated at once.
        """
        done = 0
        while done < len(X):  # what has been called is kept if the next call is interrupted
            if self.room < 1:
                raise Spent
            part = X[done : done + self.at_once]
            before = self.evaluator.n
            try:
                self.values.append(self.evaluator(part))
            except Fault as fault:
                if isinstance(fault.cause, Unwritten):
                    self.evaluator.n = before
                    self.keep(part)
                raise
            self.points.append(part.copy())
            done += len(part)
        return self.last(done) if done else np.zeros(0)

    def keep(self, X: Array) -> None:
        """Keep those points among X (n, d) whose calls were made, but are not in the file."""
        for x in X:
            with suppress(Fault):  # the others are not called any more
                self.values.append(self.evaluator(x[None]))
                self.points.append(x[None].copy())

    def at_draws(self, X: Array) -> Array:
        """Return the same at draws, where any error ends the run, as in a chain."""
        self.evaluator.strict = True
        try:
            return self(X)
        finally:
            self.evaluator.strict = False

    def kinds(self, X: Array, values: Array) -> NDArray[np.int8]:
        """Return the kinds (n,) of the points X (n, d) without a density, indices of REJECTED.

        The others have HAS_DENSITY. NaN in a worker counts as outside: workers do not report it.
        """
        kinds = np.full(len(X), HAS_DENSITY, np.int8)
        for i in np.flatnonzero(values == -np.inf):
            kinds[i] = self.evaluator.kinds.get(X[i].tobytes(), OUTSIDE)
        return kinds

    def last(self, n: int) -> Array:
        """Return the last n values."""
        parts, left = [], n
        for values in reversed(self.values):
            parts.append(values)
            left -= len(values)
            if left <= 0:
                break
        return np.concatenate(parts[::-1])[-n:]

    @property
    def at_once(self) -> int:
        """The number of points to evaluate before values are stored: a second's worth, or one.

        In a pool it is half of the calls that are left, as all of these points may fail.
        """
        if self.pool is not None:
            return int(max(1, min(MOST_AT_ONCE, self.left // 2)))
        most = int(min(MOST_AT_ONCE, self.left))
        if self.evaluator.slow or not self.n:
            return most
        return int(np.clip(KEEP_SECONDS * self.n / max(self.evaluator.seconds, 1e-9), 1, most))

    @property
    def n(self) -> int:
        """The number of calls."""
        return self.evaluator.n + self.repeated

    @property
    def repeated(self) -> int:
        """The number of calls that repeat a failed one."""
        return 0 if self.pool is None else len(self.pool.failed)

    @property
    def room(self) -> float:
        """The number of points for which the calls left suffice, though more points may fail."""
        return self.left // 2 if self.repeated else self.left

    @property
    def left(self) -> float:
        """The number of calls that are left."""
        return self.budget - self.n

    def higher(self, points: Array) -> Array:
        """Return points (n, d), with that of the highest density in place of those far below it."""
        X, y = self.finite()
        values = {x.tobytes(): value for x, value in zip(X, y.tolist(), strict=True)}
        level = y.max(initial=-np.inf) - largest_drop(points.shape[1])
        return np.array([X[y.argmax()] if values.get(x.tobytes(), np.inf) < level else x
                         for x in points])

    def all(self) -> tuple[Array, Array]:
        """Return points (n, d) and log densities (n,): those given, and those of the calls."""
        nothing = np.zeros((0, self.evaluator.target.dim))
        return np.concatenate([nothing, *self.points]), np.concatenate([np.zeros(0), *self.values])

    def finite(self) -> tuple[Array, Array]:
        """Return the same, without the points at which the density is zero."""
        X, y = self.all()
        rows = np.isfinite(y)
        return X[rows], y[rows]
