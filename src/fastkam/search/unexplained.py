"""Search for modes that the mixture q misses, from points that were evaluated already.

If a density has one mode and falls off from it on all sides, a step towards the mode raises the
density. So a point far from all components of q is suspicious if a step towards the nearest
component lowers the log density. In many dimensions such points are rare: far from two modes a step
towards one of them leads towards the other, too. There the log density is above that of the nearest
component, and its gradient leads to the mode whose part it is: of two modes of the same shape, in a
single step of Newton's method. So steps along gradients are made from the points whose densities
are the most surprising for their distances and directions (outliers.py).

Walkers climb from all these points, each alone. A walker that ends where the density is far above
q, and not below that of the other walkers, has found a mode that q misses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import inverse, product
from fastkam._core.numerics.elementary import exp, log
from fastkam.numerics.median import median
from fastkam.search.apart import is_apart
from fastkam.search.mixture import Mixture
from fastkam.search.outliers import residuals
from fastkam.search.population import Population, Window, largest_drop

Array = NDArray[np.float64]

AROUND, MOST_AROUND = 500, 3000  # points around the walkers, per dimension and at most
NEAR_AND_FAR = 2.0, 30.0  # how far these are, in standard deviations within a mode
MOST_TRIED, MOST_WALKERS = 150, 16
FIRST = 0.025  # the first steps of walkers from there, as parts of the way to the nearest component
PAUSES = 2  # stages in a row in which such a walker may fail to climb
UNEXPLAINED = 5.0  # log density above q, in comparison with the states of q
SURPRISING, MOST_DIMENSIONS = 2.5, 30  # error of the regression of log drops; dimensions for it
MOST_LED, LED_STEPS = 12, 8  # points from which gradients are followed; steps
DIFFERENCE = 0.1  # by which gradients are computed, in standard deviations
LENGTHS = 0.01, 0.03, 0.1, 0.3, 1.0, 3.0  # of the steps; 1 leads to the mode of a component's shape


def modes_beyond(
    population: Population,
    window: Window,
    q: Mixture,
    points: tuple[Array, Array],
    stages: int,
    gradients: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array]:
    """Points (m, d) in modes that q misses, and their log densities (m,).

    Parameters
    ----------
    population : Population
        The walkers, which made `window`.
    window : Window
    q : Mixture
        Fitted to the states of the window.
    points : tuple of arrays (n, d), (n,)
        Points with their log densities.
    stages : int
        Largest number of stages of the approach.
    gradients : callable, optional
        Gradients (n, d) at points (n, d), in place of differences.
    """
    parts = [suspicious(population.evaluate, window, q, *points)]
    led = unexpected(q, *points, level_of(window))[:MOST_LED]
    parts.append(led_uphill(
        population.evaluate, window, q, points[0][led], points[1][led], gradients))
    x, logp, steps = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(x):
        return x, logp
    lengths = np.sqrt(((steps / population.scales) ** 2).mean(axis=1))
    walkers = Population(population.evaluate, x, logp, population.scales, lengths, population.rng,
                         population.wrap)

    def arrived(rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether walkers are where q is, or climb towards it."""
        squares, nearest = q.nearest(walkers.x[rows])
        arrived = squares < farthest(x.shape[1])
        left = rows[~arrived]
        arrived[~arrived] = ~is_apart(population.evaluate, walkers.x[left], walkers.logp[left],
                                      q.means[nearest[~arrived]])
        return np.asarray(arrived)

    level = level_of(window)
    walkers.climb(stages, arrived, np.inf, PAUSES)
    x, logp, states = walkers.x, walkers.logp, window.states()
    known = level - median(q.log_density(states))
    new = logp - q.log_density(x) > known + UNEXPLAINED
    new &= logp > level - largest_drop(x.shape[1])
    return x[new], logp[new]


def around(
    population: Population, states: Array, most: int = MOST_AROUND
) -> tuple[Array, Array]:
    """Points in all directions from states of the walkers (n, d), and their log densities."""
    d, rng = population.d, population.rng
    n = min(most, AROUND * d)
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    near, far = log(np.array(NEAR_AND_FAR))
    length = np.sqrt(d) + exp(rng.uniform(near, far, n))
    x = states[rng.integers(len(states), size=n)]
    x = x + length[:, None] * shaped(population, x, direction)
    if population.wrap is not None:
        x = population.wrap(x)
    return x, population.evaluate(x)


def shaped(population: Population, x: Array, normals: Array) -> Array:
    """Normal variables (n, d) with the covariance of the component nearest to x (n, d)."""
    q = population.mixture
    if q is None:
        return normals * population.scales
    return product(q.factors[q.nearest(x)[1]], normals[:, :, None])[:, :, 0]


def suspicious(
    evaluate: Callable[[Array], Array], window: Window, q: Mixture, x: Array, logp: Array
) -> tuple[Array, Array, Array]:
    """The suspicious points, at most MOST_WALKERS; their log densities; the first steps.

    At most half of them are plausible states, the others are lower.
    """
    level = level_of(window)
    some, _, nearest = outside(q, x, logp, level)
    plausible = logp[some] > level - largest_drop(x.shape[1])
    high = some[plausible][: MOST_TRIED // 2]
    some = np.r_[high, some[~plausible]][:MOST_TRIED]
    apart = is_apart(evaluate, x[some], logp[some], q.means[nearest[some]])
    high, low = high[apart[: len(high)]], some[len(high):][apart[len(high):]]
    high = high[: MOST_WALKERS // 2]
    some = np.r_[high, low[: MOST_WALKERS - len(high)]]
    return x[some], logp[some], FIRST * (q.means[nearest[some]] - x[some])


def outside(
    q: Mixture, x: Array, logp: Array, level: float
) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]]:
    """Indices of the points x (n, d) far from q, first the highest for their distances.

    With the squared distance (n,) of each point from q, and its nearest component.
    """
    squares, nearest = q.nearest(x)
    some = np.flatnonzero((squares > farthest(x.shape[1])) & np.isfinite(logp))
    return some[np.argsort((level - logp[some]) / squares[some], kind="stable")], squares, nearest


def level_of(window: Window) -> float:
    """The median log density of the walkers."""
    return float(median(window.logp[window.second_half]))


def excess(squares: Array, logp: Array, level: float, d: int) -> Array:
    """The excess of log densities (n,) over those of components at these squared distances (n,)."""
    return logp - level + (squares - d) / 2


def unexpected(
    q: Mixture, x: Array, logp: Array, level: float
) -> NDArray[np.intp]:
    """Indices of points x (n, d) far from q whose log densities are higher than those of its tails.

    The most surprising are first. In many dimensions, and without other points to compare them
    with, the tails are taken to be normal.
    """
    some, squares, nearest = outside(q, x, logp, level)
    d = x.shape[1]
    if d > MOST_DIMENSIONS or len(some) < MOST_LED:
        return some[excess(squares[some], logp[some], level, d) > UNEXPLAINED]
    some = some[squares[some] < (np.sqrt(d) + NEAR_AND_FAR[1]) ** 2]
    of = nearest[some]
    factors = np.stack([inverse(factor) for factor in q.factors])
    z = product(factors[of], (x[some] - q.means[of])[:, :, None])[:, :, 0]
    error = residuals(z, np.maximum(level - logp[some], 1.0), of)
    order = np.argsort(error, kind="stable")
    return some[order][error[order] < -SURPRISING]


def led_uphill(
    evaluate: Callable[[Array], Array],
    window: Window,
    q: Mixture,
    x: Array,
    logp: Array,
    gradients: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array, Array]:
    """Follow gradients from points x (n, d), in the metric of the nearest component.

    Returns the suspicious ones of the points to which they lead, their log densities, and the first
    steps of walkers.
    """
    d, level = x.shape[1], level_of(window)
    rows = np.arange(len(x))
    for _ in range(LED_STEPS):
        squares, nearest = q.nearest(x[rows])
        left = (squares > farthest(d)) | (excess(squares, logp[rows], level, d) > UNEXPLAINED)
        rows, factors = rows[left], q.factors[nearest[left]]
        if not len(rows):
            break
        here = x[rows]
        if gradients is None:
            beside = here[:, None] + DIFFERENCE * factors.transpose(0, 2, 1)
            slopes = (evaluate(beside.reshape(-1, d)).reshape(-1, d)
                      - logp[rows, None]) / DIFFERENCE
        else:
            slopes = (factors * gradients(here)[:, :, None]).sum(axis=1)
        slopes[~np.isfinite(slopes)] = 0.0
        along = product(factors, slopes[:, :, None])[:, :, 0]
        tried = np.stack([here, *(here + length * along for length in LENGTHS)])
        values = np.stack([logp[rows], *(evaluate(points) for points in tried[1:])])
        # as far as the density rises: a longer step may lead across a valley
        best = np.logical_and.accumulate(np.diff(values, axis=0) > 0).sum(axis=0)
        x[rows], logp[rows] = (part[best, np.arange(len(rows))] for part in (tried, values))
        rows = rows[best > 0]
    squares, nearest = q.nearest(x)
    towards = q.means[nearest] - x
    some = excess(squares, logp, level, d) > UNEXPLAINED
    some[some] = is_apart(evaluate, x[some], logp[some], x[some] + towards[some])
    return x[some], logp[some], FIRST * towards[some]


def farthest(d: int) -> float:
    """Largest squared distance from a component, in its standard deviations, of its states."""
    return float(d + 4 * np.sqrt(2 * d) + 10)
