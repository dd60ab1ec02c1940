"""The normal approximation of a density, from log densities at points around its mode.

A quadratic function is fitted to the logarithm of the density by weighted least squares, first at
points that walkers have climbed through. Points are then drawn from the corresponding normal
density, and evaluated, until their importance weights are even. The next fit uses these alone once
they suffice, since walkers have also climbed through other modes, which make a fit too wide. If the
density has one mode and is nearly normal, some 200 evaluations do what takes walkers several
thousand. In many dimensions a fit would take too long: first and second differences at one point
determine the function, with the same number of evaluations.

Tierney, L. and Kadane, J. B. (1986). Accurate approximations for posterior moments and marginal
densities. Journal of the American Statistical Association 81, 82-86.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, eigen, inverse, product
from fastkam._core.numerics.elementary import exp
from fastkam.search.apart import is_apart

Array = NDArray[np.float64]

LEAST_POINTS = 64  # of a round
EVEN = 0.8  # effective share of the points of a round, above which their weights are even
NEARLY_EVEN = 0.5  # the same, if the next fit is no better
LEAST_FITTED, MOST_FITTED = 2, 8  # points of a fit, for each coefficient
RIDGE = 1e-9  # of the normal equations, in units of their diagonal
FLATTEST = 0.1  # curvature, in units of that of a normal density with the covariance of the points
FLATTEST_DIFFERENCE = 1e-8  # the same of differences, in units of the largest
FARTHEST = 3.0  # distance of the mode from the middle of the points, in standard deviations
ABOVE, ABOVE_DROP = 2.0, 0.25  # log density above the approximation, and that for each unit of drop


@dataclass(frozen=True, eq=False, repr=False)
class Quadratic:
    """log pi(x) = height - |L^-1 (x - mean)|^2 / 2, approximately.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    factor : ndarray, shape (d, d)
        Lower-triangular factor L of the covariance.
    height : float
    sure : bool
        Whether the points reach far enough to determine it: False if it had to be kept from being
        much wider than the points, or far from them.
    """

    mean: Array
    factor: Array
    height: float
    sure: bool = True

    def __call__(self, x: Array) -> Array:
        """The approximate log densities (n,) at x (n, d)."""
        z = product(x - self.mean, inverse(self.factor).T)
        return np.asarray(self.height - 0.5 * (z * z).sum(axis=1))

    def apart(
        self, evaluate: Callable[[Array], Array], x: Array, logp: Array, most: int | None = None
    ) -> NDArray[np.bool_]:
        """Mask of the points (n, d), of log densities (n,), that are in another mode.

        Their log densities are above the approximation, and fall towards its mode. If more than
        `most` are above it, those are tried whose log densities are the highest for their
        distances.
        """
        drop, expected = np.maximum(self.height - logp, 0.0), self.height - self(x)
        above = np.flatnonzero(expected - (self.height - logp) > ABOVE + ABOVE_DROP * drop)
        relative = drop[above] / np.maximum(expected[above], 1e-300)
        above = above[np.argsort(relative, kind="stable")][:most]
        apart = np.zeros(len(x), bool)
        if len(above):
            mode = np.broadcast_to(self.mean, x[above].shape)
            apart[above] = is_apart(evaluate, x[above], logp[above], mode)
        return apart


def normal_approximation(
    evaluate: Callable[[Array], Array],
    points: list[tuple[Array, Array]],
    deepest: float,
    rounds: int,
    rng: np.random.Generator,
) -> Quadratic | None:
    """Approximate a density by a normal one.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    points : list of tuples of arrays (n, d), (n,)
        Points around the mode, on the way to it, and elsewhere, with their log densities; those of
        the rounds are appended.
    deepest : float
        Drop of the log density from the highest one, down to which points are used; or that of the
        lowest of the few points that a fit needs.
    rounds : int
        Most rounds.
    rng : Generator

    Returns
    -------
    Quadratic or None
        None if it is far from the density.
    """
    d = points[0][0].shape[1]
    coefficients = (d + 1) * (d + 2) // 2
    n = max(LEAST_POINTS, coefficients)
    first, best, largest = len(points), None, NEARLY_EVEN
    for k in range(rounds):
        some = points[first if k * n >= LEAST_FITTED * coefficients else 0:]
        x, logp = (np.concatenate(part) for part in zip(*some, strict=True))
        found = fitted(x, logp, deepest, coefficients)
        if found is None:
            return None
        share, new, values = effective_share(evaluate, found, n, rng)
        if found.sure and share > EVEN:
            return found
        if best is not None and share <= largest:
            return best
        if found.sure and share > largest:
            best, largest = found, share
        points.append((new, values))
    return None


def normal_by_differences(
    evaluate: Callable[[Array], Array],
    x: Array,
    logp: float,
    scales: Array,
    rounds: int,
    rng: np.random.Generator,
) -> Quadratic | None:
    """Approximate a density of many dimensions by a normal one, from differences around a point.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    x : array (d,)
    logp : float
        The log density there, finite.
    scales : array (d,)
        Steps, which change the log density by about 1.
    rounds : int
        Most rounds, each of (d + 1)(d + 2) / 2 evaluations and some more. The second begins at the
        mode that the first suggests, if the density is higher there.
    rng : Generator

    Returns
    -------
    Quadratic or None
        None if it is far from the density.
    """
    for _ in range(rounds):
        found = differences(evaluate, x, logp, scales)
        if found is None:
            return None
        if effective_share(evaluate, found, max(LEAST_POINTS, len(x)), rng)[0] > EVEN:
            return found
        at_mode = float(evaluate(found.mean[None])[0])
        if at_mode <= logp:
            return None
        x, logp = found.mean, at_mode
    return None


def differences(
    evaluate: Callable[[Array], Array], x: Array, logp: float, scales: Array
) -> Quadratic | None:
    """The quadratic function with the first and second differences of a log density at x (d,)."""
    return of_derivatives(x, logp, scales, *second_differences(evaluate, x, logp, scales))


def second_differences(
    evaluate: Callable[[Array], Array], x: Array, logp: float, scales: Array
) -> tuple[Array, Array]:
    """Slopes (d,) and negative curvature (d, d) at x (d,), in units of the scales."""
    steps = np.diag(scales)
    up, down = evaluate(x + steps), evaluate(x - steps)
    i, j = np.tril_indices(len(x), -1)
    both = np.concatenate([evaluate(x + steps[i[part]] + steps[j[part]])
                           for part in np.array_split(np.arange(len(i)), len(x))])
    slopes, precision = 0.5 * (up - down), np.diag(2 * logp - up - down)
    precision[i, j] = precision[j, i] = up[i] + up[j] - both - logp
    return slopes, precision


def of_derivatives(
    x: Array, logp: float, scales: Array, slopes: Array, precision: Array
) -> Quadratic | None:
    """The quadratic function with slopes (d,) and negative curvature (d, d), in units of scales.

    None if it is not curved in all directions.
    """
    if not np.isfinite(precision).all():
        return None
    try:
        values, vectors = eigen(precision)
        if not values.min() > FLATTEST_DIFFERENCE * values.max():
            return None
        cov = product(vectors / values, vectors.T)
        factor = cholesky(scales[:, None] * cov * scales)
    except np.linalg.LinAlgError:
        return None
    mode = (cov * slopes).sum(axis=1)
    height = logp + 0.5 * (slopes * mode).sum()
    return Quadratic(x + scales * mode, factor, float(height))


def effective_share(
    evaluate: Callable[[Array], Array], found: Quadratic, n: int, rng: np.random.Generator
) -> tuple[float, Array, Array]:
    """The effective share of n points of a normal approximation; the points; log densities."""
    x = found.mean + product(rng.standard_normal((n, len(found.mean))), found.factor.T)
    logp = evaluate(x)
    log_weights = logp - found(x)
    weights = exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (n * (weights**2).sum())), x, logp


def fitted(x: Array, logp: Array, deepest: float, coefficients: int) -> Quadratic | None:
    """Fit a quadratic function to the highest log densities (n,) at points x (n, d).

    The weight of a point is exp(-drop / d). None if the points are too few, or lie in a plane.
    """
    d, (least, most) = x.shape[1], (LEAST_FITTED * coefficients, MOST_FITTED * coefficients)
    many = max(least, int((logp > logp.max() - deepest).sum()))
    near = np.argsort(-logp, kind="stable")[: many : -(-many // most)]
    x, drop = x[near], logp.max() - logp[near]
    if len(x) < least or not np.isfinite(drop).all():
        return None
    middle = x.mean(axis=0)
    away = x - middle
    try:
        L = cholesky(product(away.T, away) / len(x))
        z = product(away, inverse(L).T)
        i, j = np.tril_indices(d)
        terms = np.column_stack([np.ones(len(z)), z, z[:, i] * z[:, j]])
        weighted = terms * exp(-drop / d)[:, None]
        squares = product(weighted.T, terms)
        squares[np.diag_indices_from(squares)] *= 1 + RIDGE
        root = inverse(cholesky(squares))
        fit = product(root.T, product(root, product(weighted.T, -drop[:, None])))[:, 0]
        slopes, precision = fit[1 : d + 1], np.zeros((d, d))
        precision[i, j] -= fit[d + 1 :]
        precision[j, i] -= fit[d + 1 :]
        values, vectors = eigen(precision)
        cov = product(vectors / np.maximum(values, FLATTEST), vectors.T)
        factor = cholesky(product(product(L, cov), L.T))
    except np.linalg.LinAlgError:
        return None
    mode = (cov * slopes).sum(axis=1)
    far = float(np.abs(mode).max() / FARTHEST)
    mode /= max(far, 1.0)
    height = logp.max() + fit[0] + (slopes * mode).sum() - 0.5 * (
        product(mode[None], product(precision, mode[:, None]))[0, 0])
    sure = bool(far < 1 and values.min() > FLATTEST)
    return Quadratic(middle + product(L, mode[:, None])[:, 0], factor, float(height), sure)
