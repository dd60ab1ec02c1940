"""The points of a surrogate that follow the climbs: images of the maximum, and shells around it.

If the density at a point on a shell is much higher than that of a quadratic fitted to the other
points, a further climb begins there: so other modes are found if their basins are wide. There is
none where the density rises all along the way to the maximum, as on the flat side of a skewed one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam.search.images import images_of
from fastkam.surrogate import regression
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.climbs import FURTHER_CLIMB, climb, near

Array = NDArray[np.float64]

SHELL, SHELL_EACH = 10, 5  # points on shells, and further ones per dimension
NEAREST, FARTHEST = 2.5, 15.0  # radii of shells, in standard deviations
HIGHER = 0.4  # share of the fall from the maximum by which a value is higher than expected
OF_WAY = np.array([0.75, 0.5, 0.25])  # between such a point and the maximum
FURTHER_CLIMBS = 2
MOST_EXCHANGED = 15  # points with two elements, or two components, exchanged


def design(calls: Calls, factor: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return roughly the center (d,) and a factor (d, d) of the covariance, after further calls.

    The factor given is rougher.
    """
    X, y = calls.finite()
    calls(np.unique(images_of(X[y.argmax()], rng, MOST_EXCHANGED), axis=0))
    center, factor = regression.laplace(*calls.finite(), factor)
    for _ in range(FURTHER_CLIMBS):
        X = around(center, factor, rng)
        y = calls(X)
        found = higher_than_expected(X, y, calls, center, factor)
        if found is None or rises(calls, found):
            continue
        climb(calls, found, np.sqrt(np.diag(factor @ factor.T)), FURTHER_CLIMB,
              near(center, factor))
    return center, factor


def around(center: Array, factor: Array, rng: np.random.Generator) -> Array:
    """Return points (n, d) on shells of many radii."""
    d = len(center)
    direction = rng.standard_normal((SHELL + SHELL_EACH * d, d))
    direction /= np.sqrt((direction**2).sum(axis=1))[:, None]
    radius = np.exp(rng.uniform(np.log(NEAREST), np.log(FARTHEST), len(direction)))
    return np.asarray(center + (radius[:, None] * direction) @ factor.T)


def rises(calls: Calls, x: Array) -> bool:
    """Return whether the density rises along the way from the point x (d,) to the best point."""
    X, y = calls.finite()
    best = X[y.argmax()]
    along = calls(best + OF_WAY[:, None] * (x - best))
    return bool((np.diff([y[(x == X).all(axis=1)][0], *along, y.max()]) >= 0).all())


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
