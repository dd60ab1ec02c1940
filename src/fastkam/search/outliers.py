"""Points at which a density is higher than its tails lead one to expect.

Far from a mode, the log density falls off with the distance R from it, faster in some directions u
than in others. The logarithm of the drop from the mode is regressed on both,

    log drop  =  f(u) + g(u) log R + error,        f and g quadratic in u

with weights that bound the influence of single points. In the basin of another mode the drop is
smaller than that, however few points are there, and however heavy the tails are elsewhere.

Holland, P. W. and Welsch, R. E. (1977). Robust regression using iteratively reweighted least
squares. Communications in Statistics A 6, 813-827.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, inverse, product
from fastkam._core.numerics.elementary import log
from fastkam.numerics.median import median

Array = NDArray[np.float64]

MOST_PRODUCTS = 10  # dimensions in which f and g have all products of two coordinates
ENOUGH = 4  # points of a regression, for each of its terms
ITERATIONS, BOUND = 4, 2.0  # of the weights; the error whose weight is one half, in units of sd
NORMAL = 1.4826  # sd of normal errors, in units of the median of their magnitudes
RIDGE = 1e-9  # of the normal equations, in units of their diagonal


def residuals(z: Array, drop: Array, groups: NDArray[np.intp]) -> Array:
    """Errors of the regression (n,), in units of their standard deviation.

    Parameters
    ----------
    z : array (n, d)
        Points relative to the nearest mode, in its standard deviations; none is 0.
    drop : array (n,)
        Log density of the mode less that at the points; positive.
    groups : array of int (n,)
        The mode of each point. There is a regression for each mode with enough points, and one for
        all others.
    """
    R = np.sqrt((z * z).sum(axis=1))
    x, y = terms(z / R[:, None], log(R)), log(drop)
    alone = np.bincount(groups) >= ENOUGH * x.shape[1]
    found = np.zeros(len(z))
    for rows in (~alone[groups], *(groups == k for k in np.flatnonzero(alone))):
        some = x[rows]
        if len(some) < ENOUGH * x.shape[1]:  # the mean drop at a distance
            some = np.column_stack([np.ones(len(some)), log(R[rows])])
        if len(some) >= ENOUGH * some.shape[1]:
            found[rows] = errors(some, y[rows])
    return found


def terms(u: Array, log_r: Array) -> Array:
    """The terms (n, k) of f and g at directions u (n, d)."""
    d = u.shape[1]
    i, j = np.tril_indices(d) if d <= MOST_PRODUCTS else (np.arange(d), np.arange(d))
    powers = np.column_stack([u, u[:, i] * u[:, j]])  # among them 1, the sum of all squares
    return np.column_stack([powers, powers * log_r[:, None]])


def errors(x: Array, y: Array) -> Array:
    """Errors (n,) of a regression of y (n,) on terms x (n, k), in units of their sd."""
    weights, error, sd = np.ones(len(y)), np.zeros(len(y)), 1.0
    for _ in range(ITERATIONS):
        weighted = x * weights[:, None]
        squares = product(weighted.T, x)
        squares[np.diag_indices_from(squares)] *= 1 + RIDGE
        try:
            root = inverse(cholesky(squares))
        except np.linalg.LinAlgError:  # the points lie in a plane
            return np.zeros(len(y))
        fit = product(root.T, product(root, product(weighted.T, y[:, None])))
        error = y - product(x, fit)[:, 0]
        sd = max(NORMAL * float(median(np.abs(error))), np.finfo(float).tiny)
        weights = 1 / (1 + (error / (BOUND * sd)) ** 2)
    return error / sd
