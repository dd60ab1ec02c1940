"""The log density at many points, as a search needs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.evaluation import Evaluation
from fastkam._core.engine.fault import INFINITE, Fault
from fastkam.numerics.periods import Periods
from fastkam.run.faults import Unwritten, describe
from fastkam.run.hints import may_be_due_to_x
from fastkam.run.serial import serially
from fastkam.search.watch import Watch

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.search.fold import Fold
    from fastkam.search.implausible import Implausible

Array = NDArray[np.float64]
MOST_POINTS = 256  # in one call of a vectorized function
RAISED = -1  # code of a function that raises an exception
MOST_KEPT = 10  # failures
MOST_IN_ROW = 1000  # failures in a row, after which the function itself counts as failing
SLOW_SECONDS = 2e-3  # seconds per point above which points are sent to workers


class Evaluator:
    """Evaluates a target, and counts the evaluations.

    If the density is estimated, all estimates use the same noise, so that they differ only by the
    points. Until one of them is finite, each uses new noise.

    A search evaluates the density at points that no chain may ever reach. Therefore, once a point
    with a finite density has been found, a point at which the function raises a numerical error or
    returns +inf counts as one of density 0; other errors, such as a NameError, end the search.
    NumPy's floating-point warnings are not shown.

    If coordinates repeat, the density with `windowed` is 0 beyond the window of one period, and
    within it lacks the weight of the period. With a `fold` it is 0 beyond this part of the space.

    With `strict`, for points that are draws, every error ends the work, as in a chain. So do 1000
    failures in a row: the function then fails everywhere.

    Attributes
    ----------
    n : int
        Number of points that have been evaluated.
    seconds : float
        Time that the evaluations have taken.
    failures : list of Fault
        The first points at which the function failed.
    n_failed : int
        Number of points at which it failed.
    strict : bool
        Whether any failure is raised.
    periods : Periods or None
        The coordinates that repeat.
    windowed : bool
        Whether the density is that within their window.
    fold : Fold or None
        The part of the space in which walkers stay (`fastkam.search.fold`).
    spread : callable or None
        Evaluates points in other processes (`fastkam.search.spread.Spread`), if the density is
        slow.
    implausible : Implausible or None
        Takes points far beyond the prior for ones of density 0.
    """

    def __init__(
        self, target: Target, rng: np.random.Generator, watch: Watch | None = None
    ) -> None:
        self.target, self.watch = target.bind(), watch or Watch()
        self.rng = rng
        self.noise = rng.standard_normal(target.n_aux) if target.is_estimate else None
        self.evaluation = Evaluation(self.target, MOST_POINTS, False)
        self.n = 0
        self.found = False
        self.failures: list[Fault] = []
        self.n_failed = 0
        self.strict, self.in_row = False, 0
        self.periods: Periods | None = None
        self.windowed = False
        self.fold: Fold | None = None
        self.spread: Callable[[Array, Array | None, Callable[[], None]], Any] | None = None
        self.seconds = 0.0
        self.implausible: Implausible | None = None

    @contextmanager
    def helped(self, threads: int) -> Iterator[None]:
        """A context in which other threads help to evaluate a slow compiled density."""
        self.evaluation.call_helpers(threads)
        try:
            yield
        finally:
            self.evaluation.dismiss_helpers()

    def __call__(self, X: Array) -> Array:
        """The log densities (n,) at the rows of X (n, d); -inf where the density is 0.

        Raises a Fault, or Spent once the search has used its share.
        """
        values = np.full(len(X), -np.inf)
        some = np.asarray(np.isfinite(X).all(axis=1))
        if self.periods is not None and self.windowed:
            some &= self.periods.inside(X)
        if self.fold is not None:
            rows = np.flatnonzero(some)
            some[rows] = self.fold.inside(X[rows])
        rows = inside = np.flatnonzero(some)
        if self.slow and len(rows) > 1:
            self.watch(self.n)
            rows = self.elsewhere(X, values, rows)
        while len(rows):
            if self.n:
                self.watch(self.n)
            begun = time.perf_counter()
            m = self.watch.at_once(self.n, self.seconds, MOST_POINTS)
            if self.noise is not None and not self.found:
                m = 1
                if self.n:
                    self.noise = self.rng.standard_normal(len(self.noise))
            done = self.some(X[rows[:m]], values, rows[:m])
            rows = rows[done:]
            self.seconds += time.perf_counter() - begun
        if self.periods is not None and self.windowed:
            values[inside] -= self.periods.log_weight(X[inside])
        if self.implausible is not None:
            self.implausible.remove(X, values)
        return values

    def gradients(self, X: Array, target: Target | None = None) -> Array:
        """The gradients at the rows of X, (n, d): NaN where there is none.

        They are those of `target`, the same density in a form with gradients, if it is given.
        """
        target = self.target if target is None else target
        gradients = np.full(X.shape, np.nan)
        for x, gradient in zip(X, gradients, strict=True):
            self.watch(self.n)
            begun = time.perf_counter()
            try:
                with np.errstate(all="ignore"), serially(target):
                    gradient[:] = target.logp_grad(x)[1]
            except Exception as error:
                if error is self.watch.spent:
                    raise
                if not may_be_due_to_x(error):
                    raise Fault(0, x.copy(), RAISED, error) from None
            self.n += 1
            self.seconds += time.perf_counter() - begun
        return gradients

    def wrapped(self, X: Array) -> Array:
        """The images of points (n, d) in one period, or in the fold."""
        for part in (self.periods, self.fold):
            if part is not None:
                X = part.points(X)
        return X

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """A context in which the density is not 0 beyond the fold."""
        fold, self.fold = self.fold, None
        try:
            yield
        finally:
            self.fold = fold

    @property
    def slow(self) -> bool:
        """Whether points are evaluated by `spread`."""
        return self.spread is not None and self.found and self.seconds > SLOW_SECONDS * self.n

    def elsewhere(self, X: Array, values: Array, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Evaluate rows of X into `values` by `spread`; return the rows that are left."""
        returned = None
        if self.spread is not None:
            returned = self.spread(X[rows], self.noise, self.watch.within)
        if returned is None:  # workers were lost: evaluate all later points here, too
            self.spread = None
            return rows
        values[rows], n, failures, n_failed = returned
        self.seconds *= 1 + n / self.n  # as slow as before
        self.n += n
        self.in_row = 0 if n_failed < n else self.in_row + n_failed - len(failures)
        self.n_failed += n_failed - len(failures)
        for failure in failures:
            self.note(failure)
        return rows[:0]

    def some(self, X: Array, values: Array, rows: NDArray[np.intp]) -> int:
        """Evaluate points (m, d) into values[rows]; return how many are done, at least one."""
        found, codes = self.values_of(X)
        if not codes.any() and np.isfinite(found).all():  # the usual outcome
            values[rows] = found
            self.n, self.in_row, self.found = self.n + len(X), 0, True
            return len(X)
        codes = np.where((codes == 0) & (found == np.inf), INFINITE, codes)
        done = len(X)
        if (codes < 0).any():
            done = int(np.argmax(codes < 0))
            code, x = int(codes[done]), X[done].copy()
            alone = len(X) == 1 or code == INFINITE
            fault = Fault(0, x, code, self.target.fault(code, x))
            if fault.cause is self.watch.spent:
                raise self.watch.spent
            if isinstance(fault.cause, Unwritten):
                raise fault
            of_function = fault.cause is None or isinstance(fault.cause, Exception)  # not Ctrl-C
            if self.target.batched and self.found and not alone and of_function:
                # one of them has made the whole call fail
                return self.some(X[:1], values, rows[:1])
            self.note(fault)
        good = (codes[:done] == 0) & ~np.isnan(found[:done])
        values[rows[:done]] = np.where(good, found[:done], -np.inf)
        if done:
            self.in_row = 0
        self.found = self.found or bool(np.isfinite(values[rows[:done]]).any())
        failed = done < len(X)
        self.n += done + failed
        return done + failed

    def values_of(self, X: Array) -> tuple[Array, NDArray[np.intc]]:
        """Log densities and return codes at points (m, d)."""
        with np.errstate(all="ignore"), serially(self.target):
            return self.evaluation.values_of(np.ascontiguousarray(X), self.noise)

    def note(self, fault: Fault) -> None:
        """Record a failure, or raise it."""
        passed = fault.cause is None or may_be_due_to_x(fault.cause)
        self.in_row += 1
        if not passed or not self.found or self.strict or self.in_row > MOST_IN_ROW:
            raise fault
        self.n_failed += 1
        if len(self.failures) < MOST_KEPT:  # each may hold much memory
            if (cause := fault.cause) is not None:
                cause.__traceback__ = cause.__context__ = cause.__cause__ = None
            self.failures.append(fault)

    def passed_over(self) -> list[str]:
        """Return lines about points that count as ones of density 0, if there were any."""
        lines = []
        if n := self.n_failed:
            lines.append(f"passed over {points(n)} without a density: "
                         f"{describe(self.failures[0], 'the first')}")
        if self.implausible is not None and (n := self.implausible.n):
            lines.append(f"passed over {points(n)} far beyond the prior, where the density is "
                         "higher than at all others: does the function lose its digits there?")
        return lines


def points(n: int) -> str:
    return "a point" if n == 1 else f"{n} points"
