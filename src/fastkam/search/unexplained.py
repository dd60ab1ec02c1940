"""Search for modes that the mixture q misses, from points that were evaluated already.

If a density has one mode and falls off from it on all sides, a step towards the mode raises the
density. So a point far from all components of q is suspicious if a step towards the nearest
component lowers the log density. In many dimensions such points are rare: far from two modes a step
towards one of them leads towards the other, too. There the log density is above that of the nearest
component, and its gradient leads to the mode whose part it is: of two modes of the same shape, in a
single step of Newton's method. So some steps along gradients are made from the points that are
highest above q.

Walkers climb from all these points, each alone. A walker that ends where the density is far above
q, and not below that of the other walkers, has found a mode that q misses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import product
from fastkam._core.numerics.elementary import exp, log
from fastkam.numerics.median import median
from fastkam.search.apart import is_apart
from fastkam.search.mixture import Mixture
from fastkam.search.population import Population, Window, largest_drop

Array = NDArray[np.float64]

AROUND, MOST_AROUND = 500, 3000  # points around the walkers, per dimension and at most
NEAR_AND_FAR = 2.0, 30.0  # how far these are, in standard deviations within a mode
MOST_TRIED, MOST_WALKERS = 150, 16
FIRST = 0.025  # the first steps of walkers from there, as parts of the way to the nearest component
PAUSES = 2  # stages in a row in which such a walker may fail to climb
UNEXPLAINED = 5.0  # log density above q, in comparison with the states of q
MOST_LED, LED_STEPS = 12, 2  # points from which gradients are followed; steps
DIFFERENCE = 0.1  # by which gradients are computed, in standard deviations
LENGTHS = 0.03, 0.1, 0.3, 1.0, 3.0  # of the steps; 1 leads to the mode of a component's shape


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
    if population.wrap is None:
        parts.append(led_uphill(
            population.evaluate, window, q, *above(window, q, *points), gradients))
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


def above(window: Window, q: Mixture, x: Array, logp: Array) -> tuple[Array, Array]:
    """Points far from q with the highest log densities for their distances, and these."""
    level = level_of(window)
    some, squares, _ = outside(q, x, logp, level)
    over = excess(squares[some], logp[some], level, x.shape[1]) > UNEXPLAINED
    some = some[over][:MOST_LED]
    return x[some], logp[some]


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
    n, d = x.shape
    for _ in range(LED_STEPS if n else 0):
        factors = q.factors[q.nearest(x)[1]]
        if gradients is None:
            beside = x[:, None] + DIFFERENCE * factors.transpose(0, 2, 1)
            slopes = (evaluate(beside.reshape(-1, d)).reshape(n, d) - logp[:, None]) / DIFFERENCE
        else:
            slopes = (factors * gradients(x)[:, :, None]).sum(axis=1)
        slopes[~np.isfinite(slopes)] = 0.0
        along = product(factors, slopes[:, :, None])[:, :, 0]
        tried = np.stack([x, *(x + length * along for length in LENGTHS)])
        values = np.stack([logp, *(evaluate(points) for points in tried[1:])])
        best = values.argmax(axis=0)
        x, logp = tried[best, np.arange(n)], values[best, np.arange(n)]
    squares, nearest = q.nearest(x)
    towards = q.means[nearest] - x
    some = excess(squares, logp, level_of(window), d) > UNEXPLAINED
    some[some] = is_apart(evaluate, x[some], logp[some], x[some] + towards[some])
    return x[some], logp[some], FIRST * towards[some]


def farthest(d: int) -> float:
    """Largest squared distance from a component, in its standard deviations, of its states."""
    return float(d + 4 * np.sqrt(2 * d) + 10)
