"""Climbs to the mass of a costly density, from a few starting points.

Each climb maximizes the log density by a trust-region method without gradients (COBYQA). Far from
the mass its first steps are in units of the prior. Without a prior the only lengths known there are
those in which the log density changes by 1, which are far too small: `search.ascent` leads to the
mass then, with more calls.

COBYQA is slow along a thin curved valley. Where it has not reached the maximum after 15 d calls,
Newton's method follows, which takes d^2 / 2 calls and more in each step.

Ragonneau, T. M. and Zhang, Z. (2025). COBYQA: a derivative-free trust-region SQP method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from fastkam.search.ascent import Place, ascended, found_at
from fastkam.search.found import Prior
from fastkam.search.newton import climbed
from fastkam.search.quadratic import of_derivatives, second_differences
from fastkam.search.scales import first_with_density
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.regression import laplace, whitened

Array = NDArray[np.float64]

MOST_STARTS = 4
PRIOR_DRAWS = 10  # per dimension
WITHIN_SD = (0.16, 0.84)  # probabilities of quantiles that are two standard deviations apart
FAR_CLIMB, SECOND_CLIMB, CLIMB, FURTHER_CLIMB = 60, 25, 15, 10  # calls per dimension, at most
LAST_RADIUS = 0.1  # of the trust region, in units of the scales
NEVER = 1e-12  # the same, where another rule ends the climb
OF_PRIOR = 0.3  # the first radius far from the mass, in standard deviations of the prior
FAR = 50.0  # below the best log density, where a climb does not begin in units of the scales
OF_WAY = 0.1  # the same without a prior, in units of the distance to the best point
KNOWN = 3.0  # distance from the mode, in standard deviations, at which another climb ends
QUIET, LEAST_GAIN = 3, 1.0  # a climb from afar ends if QUIET (d + 1) calls gain less than that


class Starts(NamedTuple):
    """Starting points (d,), the best first, and the lengths (d,) of the prior, if there is one."""

    points: list[Array]
    lengths: Array | None


def starting_points(
    calls: Calls, points: Array, prior: Prior | None, rng: np.random.Generator
) -> Starts:
    """Return the starting points of climbs.

    They are the first of `points` with a density, or one nearby if none has one, and the best of
    the other points and of draws from the prior.

    Parameters
    ----------
    calls : Calls
    points : array (m, d)
        Starting points of chains, which may be equal.
    prior : callable, optional
        As in `search.found.Known`.
    rng : Generator
    """
    if calls.given:
        X, y = calls.finite()
        origin = X[y.argmax()]
    else:
        _, first = np.unique(points, axis=0, return_index=True)
        origin, _ = first_with_density(calls, points[np.sort(first)], rng)
    lengths = None
    if prior is not None:
        drawn = prior(PRIOR_DRAWS * len(origin), rng)
        calls(drawn)
        low, high = np.quantile(drawn, WITHIN_SD, axis=0)
        lengths = 0.5 * (high - low)
    X, y = calls.finite()
    best = X[np.argsort(-y, kind="stable")]
    others = best[(best != origin).any(axis=1)][: MOST_STARTS - 1]
    some = [origin, *others] if (best[0] == origin).all() else [*others, origin]
    return Starts(some, lengths)


def to_mass(calls: Calls, starts: Starts) -> Place:
    """Climb from the best start to the mass; return the best point, with its scales."""
    if starts.lengths is not None:
        climb_from_afar(calls, starts.points[0], OF_PRIOR * starts.lengths, FAR_CLIMB)
    X, y = calls.finite()
    return ascended(calls, found_at(calls, X[y.argmax()], float(y.max())))


def to_maxima(calls: Calls, starts: Starts, scales: Array) -> Array:
    """Climb from the best point, where the scales are these, and from the other starts.

    Return roughly a factor (d, d) of the covariance.
    """
    X, y = calls.finite()
    factor = np.diag(scales)
    if not climb(calls, X[y.argmax()], scales):
        scales, factor = by_newton(calls)
    for start in starts.points[1:]:
        climb_beside(calls, start, scales, factor, starts.lengths)
    return factor


def by_newton(calls: Calls) -> tuple[Array, Array]:
    """Climb from the best point by Newton's method.

    Return scales (d,) at the end, and roughly a factor (d, d) of the covariance.
    """
    X, y = calls.finite()
    place = found_at(calls, X[y.argmax()], float(y.max()))
    top = climbed(calls, partial(second_differences, calls), *place[:3], LEAST_GAIN)
    found = of_derivatives(*top[:5])
    return top.scales, np.diag(top.scales) if found is None else found.factor


def climb_beside(
    calls: Calls, start: Array, scales: Array, factor: Array, lengths: Array | None
) -> None:
    """Climb from another starting point (d,), but not again to the maximum that is known.

    There are these scales (d,), and a factor (d, d) of the covariance.
    """
    X, y = calls.finite()
    top = float(y.max())
    if y[(start == X).all(axis=1)][0] > top - FAR:
        climb(calls, start, scales)
        return
    center, factor = laplace(X, y, factor)

    is_known = near(center, factor)
    way = np.abs(start - X[y.argmax()])
    steps = np.maximum(scales, OF_WAY * way) if lengths is None else OF_PRIOR * lengths
    end, values = climb_from_afar(calls, start, steps, SECOND_CLIMB, is_known)
    if max(values) > top - FAR and not is_known(end):
        climb(calls, end, scales, FURTHER_CLIMB)


def near(center: Array, factor: Array) -> Callable[[Array], bool]:
    """Return the function that tells whether a point is near the mode, given its covariance."""
    def is_near(x: Array) -> bool:
        z = whitened(x[None], center, factor)
        return float((z * z).sum()) < KNOWN**2

    return is_near


def climb_from_afar(
    calls: Calls, start: Array, steps: Array, calls_each: int,
    is_known: Callable[[Array], bool] = lambda x: False,
) -> tuple[Array, list[float]]:
    """Climb with these first steps (d,) until it gains little, or reaches a point that is known.

    Return the best point (d,) and all log densities.
    """
    d = len(start)
    quiet = QUIET * (d + 1)

    def ends(x: Array, values: list[float]) -> bool:
        many = len(values) > 2 * d + 1 + quiet
        return (many and max(values) < max(values[:-quiet]) + LEAST_GAIN) or is_known(x)

    return maximize(calls, start, steps, calls_each * d, NEVER, ends)


def climb(
    calls: Calls, start: Array, scales: Array, calls_each: int = CLIMB,
    is_known: Callable[[Array], bool] = lambda x: False,
) -> bool:
    """Maximize the log density in units of the scales; return whether a maximum is reached.

    The climb ends, too, at a point that is known.
    """
    most = calls_each * len(start) + 10
    _, values = maximize(calls, start, scales, most, LAST_RADIUS, lambda x, values: is_known(x))
    return len(values) < most


def maximize(
    calls: Calls, start: Array, units: Array, most: int, last_radius: float,
    ends: Callable[[Array, list[float]], bool] = lambda x, values: False,
) -> tuple[Array, list[float]]:
    """Maximize the log density by COBYQA; return the best point (d,) and all log densities.

    The climb ends when the trust region has the last radius, after `most` calls, or where `ends`,
    called with the best point and all log densities of this climb, returns True.
    """
    best, values = start, list[float]()
    X, y = calls.all()
    called = y[(start == X).all(axis=1)][:1]

    def height(u: Array) -> float:
        nonlocal best
        x = start + units * u
        value = float((called if len(called) and not u.any() else calls(x[None]))[0])
        if value > max(values, default=-np.inf):
            best = x
        values.append(value)
        if np.isfinite(value):
            return -value
        worst = -min((v for v in values if np.isfinite(v)), default=0.0)
        return worst + 1 + abs(worst)  # no density: worse than all that have one

    def after_step(intermediate_result: OptimizeResult) -> None:
        if ends(best, values):
            raise StopIteration

    minimize(height, np.zeros(len(start)), method="COBYQA", callback=after_step, options={
        "maxfev": most, "initial_tr_radius": 1.0, "final_tr_radius": last_radius})
    return best, values
