"""The first points of a surrogate: the path up to the mode, and points on shells around it.

From each starting point a trust-region method without gradients (COBYQA) maximizes the log density,
in units of the lengths in which it changes by 1. Points on shells around the best maximum follow.
If the density at such a point is much higher than that of a quadratic fitted to the other points, a
further search begins there: so other modes are found if their basins are wide.

Ragonneau, T. M. and Zhang, Z. (2025). COBYQA: a derivative-free trust-region SQP method.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fastkam.search.found import Known
from fastkam.search.images import images_of
from fastkam.search.search import Searcher
from fastkam.surrogate import regression
from fastkam.surrogate.calls import Calls

Array = NDArray[np.float64]

MOST_STARTS = 3
CLIMB, FURTHER_CLIMB = 25, 10  # calls per dimension, at most
FIRST_RADIUS, LAST_RADIUS = 1.0, 0.1  # of the trust region
SHELL, SHELL_EACH = 10, 5  # points on shells, and further ones per dimension
NEAREST, FARTHEST = 2.5, 15.0  # radii of shells, in standard deviations
HIGHER = 0.4  # share of the fall from the maximum by which a value is higher than expected
FURTHER_CLIMBS = 2
MOST_EXCHANGED = 15  # points with two elements, or two components, exchanged
PRIOR_DRAWS = 10  # per dimension


def design(
    calls: Calls, searcher: Searcher, known: Known, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Make the first calls; return roughly the center (d,) and a factor (d, d) of the covariance.

    The searcher has begun: it has found scales, and has climbed from starts far from the mass.
    """
    scales = searcher.scales
    for start in starts(calls, searcher, known, rng):
        climb(calls, start, scales, CLIMB)
    X, y = calls.finite()
    calls(np.unique(images_of(X[y.argmax()], rng, MOST_EXCHANGED), axis=0))
    center, factor = laplace(calls, scales)
    for _ in range(FURTHER_CLIMBS):
        X = around(center, factor, rng)
        y = calls(X)
        found = higher_than_expected(X, y, calls, center, factor)
        if found is None:
            continue
        climb(calls, found, np.sqrt(np.diag(factor @ factor.T)), FURTHER_CLIMB)
    return center, factor


def starts(
    calls: Calls, searcher: Searcher, known: Known, rng: np.random.Generator
) -> list[Array]:
    """Return starting points: the origin, and the best of other starts and draws from the prior."""
    others = np.unique(searcher.points, axis=0)
    if known.prior is not None:
        others = np.vstack([others, known.prior(PRIOR_DRAWS * searcher.d, rng)])
    others = others[(others != searcher.origin).any(axis=1)]
    if not len(others):
        return [searcher.origin]
    values = calls(others)
    order = np.argsort(-values, kind="stable")
    some = [others[k] for k in order[: MOST_STARTS - 1] if np.isfinite(values[k])]
    return [searcher.origin, *some] if searcher.level > values.max() else [*some, searcher.origin]


def climb(calls: Calls, start: Array, scales: Array, calls_each: int) -> None:
    """Maximize the log density in units of the scales, beginning at `start`."""
    worst = -np.inf

    def height(u: Array) -> float:
        nonlocal worst
        value = -float(calls((start + scales * u)[None])[0])
        if np.isfinite(value):
            worst = max(worst, value)
            return value
        return worst + 1 + abs(worst)  # no density: worse than all that have one

    d = len(start)
    minimize(height, np.zeros(d), method="COBYQA", options={
        "maxfev": calls_each * d + 10, "initial_tr_radius": FIRST_RADIUS,
        "final_tr_radius": LAST_RADIUS})


def laplace(calls: Calls, scales: Array) -> tuple[Array, Array]:
    """Return the mode (d,) of a quadratic fitted to the calls, and a factor (d, d) of -(2 B)^-1."""
    X, y = calls.finite()
    center, factor = X[y.argmax()], np.diag(scales)
    for _ in range(3):  # the penalty depends on the units of a fit, which come from the last one
        rows = regression.near_enough(y.max() - y, X.shape[1])
        z = regression.whitened(X[rows], center, factor)
        _, b, B = regression.mean_of(z, y[rows], y.max() - y[rows])
        values, vectors = np.linalg.eigh(-2 * B)
        spread = np.clip(1 / values, 0.04, 10.0)
        step = (vectors * spread) @ vectors.T @ b
        length = np.sqrt(step @ ((vectors / spread) @ vectors.T) @ step)
        center = center + factor @ step * min(1.0, 2.0 / max(length, 1e-300))
        cov = factor @ ((vectors * spread) @ vectors.T) @ factor.T
        factor = np.linalg.cholesky(0.5 * (cov + cov.T))
    return center, factor


def around(center: Array, factor: Array, rng: np.random.Generator) -> Array:
    """Return points (n, d) on shells of many radii."""
    d = len(center)
    direction = rng.standard_normal((SHELL + SHELL_EACH * d, d))
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    radius = np.exp(rng.uniform(np.log(NEAREST), np.log(FARTHEST), len(direction)))
    return np.asarray(center + (radius[:, None] * direction) @ factor.T)


def higher_than_expected(
    X: Array, y: Array, calls: Calls, center: Array, factor: Array
) -> Array | None:
    """Return the point (d,) of X with the highest of the unexpectedly high densities, or None.

    Values more than 300 below the maximum are ignored.
    """
    z = regression.whitened(X, center, factor)
    top = calls.finite()[1].max()
    fall = 0.5 * (z * z).sum(axis=1)
    high = np.isfinite(y) & (y - top + fall > HIGHER * fall + 3) & (top - y < 300)
    return X[high][y[high].argmax()] if high.any() else None
