"""Evaluations of a run's density at new points, and the run's draws for bridge sampling."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.fault import Fault
from fastkam.density.forms import target_of
from fastkam.errors import SamplingError
from fastkam.numerics.periods import Periods
from fastkam.run.faults import describe
from fastkam.run.same_target import (
    check_density_of,
    check_draws_of,
    check_noise_of,
    check_own_density,
    target_in,
)
from fastkam.search.evaluator import Evaluator

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.problem.coordinates import Coordinates
    from fastkam.result import Result
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

LEAST_ROWS = 20  # draws of a chain


def target_for(result: Result, target: Any, vectorized: bool) -> Target | None:
    """Return the given target, after a check, or that of the result; None if there is none."""
    if target is None:
        found = result.target
        has_surrogate = found is not None and found.surrogate is not None
        return cast("Target", found.owner) if found is not None and has_surrogate else found
    state = result.state
    made, _ = target_in(state, target, None, vectorized)
    made = target_of(state.sampler, made, state.d, vectorized)
    check_noise_of(state, made)
    check_density_of(state, made)
    check_draws_of(state, made)
    return made


@contextmanager
def recorded(result: Result, density: Target, *, given: bool) -> Iterator[Target]:
    """The density of `target_for`, with its calls in the run's file of calls, if there is one.

    A density that was given has no such file; that of the result must not have changed.
    """
    if given or result.kept is None:
        yield density
        return
    check_own_density(result.state, density)
    with result.kept.keeping(density, result.state.layout.numbered) as made:
        yield made


class Window:
    """A window around the draws: one period of each periodic coordinate, all of the others.

    In z, a periodic or reflected coordinate runs over several periods, each with a weight. The
    density in one period, with weight 1, has the same integral and fewer modes.

    Parameters
    ----------
    coordinates : Coordinates or None
        Of the run.
    z : ndarray, shape (chains, n, d)
        Draws.
    """

    def __init__(self, coordinates: Coordinates | None, z: Array) -> None:
        self.periods = None
        if coordinates is None or not coordinates.repeats:
            return
        rows = coordinates.periods
        for row in rows:
            k, start, width, period, *_ = row
            if width == period:  # not reflected
                angle = 2 * np.pi * (z[..., int(k)] - start) / period
                middle = np.arctan2(np.sin(angle).mean(), np.cos(angle).mean())
                row[1] = start + (middle / (2 * np.pi) - 0.5) * period
        self.periods = Periods(rows)

    def points(self, z: Array) -> Array:
        """Return the points of the window that are equivalent to z (..., d)."""
        return z if self.periods is None else self.periods.points(z)

    def inside(self, z: Array) -> NDArray[np.bool_]:
        """Return which rows of z (n, d) are in the window, (n,)."""
        return np.ones(len(z), bool) if self.periods is None else self.periods.inside(z)

    def log_weight(self, z: Array) -> Array:
        """Return the log weights (...) of the periods at z (..., d)."""
        return np.zeros(z.shape[:-1]) if self.periods is None else self.periods.log_weight(z)


class Density:
    """The log density in the window, at new points; counts its evaluations.

    If the function raises a numerical error at a point or returns NaN, the density is 0 there, as
    in a search. Each value of an estimated density is computed with new noise.

    Attributes
    ----------
    n : int
        Evaluations.
    failed : int
        Number of evaluations that raised an error.
    """

    def __init__(self, target: Target, window: Window, rng: np.random.Generator) -> None:
        self.target, self.window, self.rng = target, window, rng
        self.evaluator = None if target.is_estimate else Evaluator(target, rng)
        if self.evaluator is not None:
            self.evaluator.found = True  # the run has found points with a density
        self.estimates = 0

    @property
    def n(self) -> int:
        return self.estimates if self.evaluator is None else self.evaluator.n

    @property
    def failed(self) -> int:
        return 0 if self.evaluator is None else self.evaluator.n_failed

    def __call__(self, z: Array) -> Array:
        """Return the log densities (n,) at the rows of z (n, d)."""
        values = np.full(len(z), -np.inf)
        rows = np.flatnonzero(self.window.inside(z))
        some = np.ascontiguousarray(z[rows])
        try:
            found = self.estimated(some) if self.evaluator is None else self.evaluator(some)
        except Fault as fault:
            if fault.cause is not None and not isinstance(fault.cause, Exception):
                raise fault.cause from None  # KeyboardInterrupt, SystemExit
            raise SamplingError(describe(fault, "in the evidence, at a draw of q"),
                                x=fault.x) from fault.cause
        values[rows] = found - self.window.log_weight(some)
        return values

    def estimated(self, z: Array) -> Array:
        """Return estimates (n,) at the rows of z (n, d), with new noise."""
        values = np.empty(len(z))
        for i, point in enumerate(z):
            value = self.target.estimate(point, self.rng.standard_normal(self.target.n_aux))
            values[i] = -np.inf if np.isnan(value) else value
            self.estimates += 1
        return values


def draws_of(state: RunState, most: int) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return z (chains, n, d), log p (chains, n) and the rows (n,) of about `most` draws at most.

    The draws are equally spaced, from all periods, and at least LEAST_ROWS from each chain.
    """
    trace = state.trace
    step = max(1, min(-(-state.chains * trace.rows // most), trace.rows // LEAST_ROWS))
    rows = np.arange(0, trace.rows, step)
    return trace.x[:, rows], trace.logp[:, rows], rows
