"""Distributions that are evaluated by scipy, with gradients by differences."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# of the scale, or of the distance from the middle: the error of five points is of its fourth power
STEP = np.finfo(float).eps ** 0.2
# f'(x) = sum of these times f(x + k h) / h
WEIGHTS = {1: 2 / 3, -1: -2 / 3, 2: -1 / 12, -2: 1 / 12}
NEAR = 0.1  # of the distance to an end of the support, which no step may pass
QUARTILES = np.array([0.25, 0.5, 0.75])
DRAWS = 100  # of which quartiles are taken


def steps(x: Array, quartiles: Array) -> Array:
    """The steps of differences at x (n,), from the quartiles (3, n) of the distribution.

    The scale is the distance of the outer two; where this is not known, it is 1.
    """
    low, middle, high = quartiles
    known = (low < high) & np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        scale, middle = np.where(known, high - low, 1.0), np.where(known, middle, 0.0)
    h = STEP * (scale + np.abs(x - middle))
    return np.asarray(np.maximum(h, np.spacing(np.abs(x))))


class Univariate:
    """Independent elements with a univariate distribution each.

    The gradient is the central difference of each element's log density, of fourth order.

    Parameters
    ----------
    distribution : object
        With ``logpdf``.
    shape : tuple of int
    low, high : ndarray, shape (n,)
        Ends of the support of each element.
    """

    def __init__(self, distribution: Any, shape: tuple[int, ...], low: Any, high: Any) -> None:
        self.distribution, self.shape = distribution, shape
        self.low, self.high = low, high

    @cached_property
    def quartiles(self) -> Array:
        """The quartiles of each element, (3, n); NaN if the distribution cannot give them."""
        try:
            at = getattr(self.distribution, "ppf", None) or self.distribution.icdf
            with np.errstate(all="ignore"):
                return np.array([np.broadcast_to(at(p), self.shape).reshape(-1)
                                 for p in QUARTILES], dtype=float)
        except Exception:  # such as an object of a user that has only a density and draws
            return np.full((len(QUARTILES), len(self.low)), np.nan)

    def logpdf(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            values = self.distribution.logpdf(x.reshape(self.shape))
        return np.broadcast_to(values, self.shape).reshape(-1)

    def logp(self, x: Array) -> float:
        """The log density at x (n,)."""
        return float(self.logpdf(x).sum())

    def logps(self, X: Array) -> Array:
        """The log density at each row of X (k, n), (k,)."""
        with np.errstate(all="ignore"):
            values = self.distribution.logpdf(X.reshape(-1, *self.shape))
        return np.asarray(values.reshape(len(X), -1).sum(axis=1))

    def logp_grad(self, x: Array) -> tuple[float, Array]:
        """The log density at x (n,) and its gradient (n,)."""
        h = np.minimum(steps(x, self.quartiles), NEAR * np.minimum(x - self.low, self.high - x))
        h = (x + h) - x  # a step that x + h makes without rounding
        with np.errstate(all="ignore"):
            slope = sum(w * self.logpdf(x + k * h) for k, w in WEIGHTS.items()) / h
        return self.logp(x), np.asarray(slope)


class Multivariate:
    """Blocks of one multivariate distribution, such as a matrix.

    Parameters
    ----------
    distribution : object
        With ``logpdf`` and ``rvs``.
    shape : tuple of int
        Shape of a block.
    """

    def __init__(self, distribution: Any, shape: tuple[int, ...]) -> None:
        self.distribution, self.shape = distribution, shape

    @cached_property
    def quartiles(self) -> Array:
        """The quartiles of each element, (3, n), of some draws."""
        draws = self.distribution.rvs(size=DRAWS, random_state=0).reshape(DRAWS, -1)
        return np.asarray(np.quantile(draws, QUARTILES, axis=0))

    def logp(self, x: Array) -> float:
        """The log density at x (n,)."""
        return float(np.squeeze(self.distribution.logpdf(x.reshape(self.shape))))

    def logps(self, X: Array) -> Array:
        """The log density at each row of X (k, n), (k,)."""
        return np.array([self.logp(x) for x in X])

    def logp_grad(self, x: Array) -> tuple[float, Array]:
        """The log density at x (n,) and its gradient (n,), by central differences."""
        h = (x + steps(x, self.quartiles)) - x
        slope = np.empty(len(x))
        for i, step in enumerate(np.diag(h)):
            slope[i] = sum(w * self.logp(x + k * step) for k, w in WEIGHTS.items()) / h[i]
        return self.logp(x), slope


class KernelDensity(Multivariate):
    """Blocks of a kernel density estimate.

    Parameters
    ----------
    distribution : scipy.stats.gaussian_kde
    """

    def __init__(self, distribution: Any) -> None:
        super().__init__(distribution, (distribution.d, 1))

    @cached_property
    def quartiles(self) -> Array:
        """The quartiles of each element, (3, d), of the points of the estimate."""
        return np.asarray(np.quantile(self.distribution.dataset, QUARTILES, axis=1))

    def logps(self, X: Array) -> Array:
        """The log density at each row of X (k, d), (k,)."""
        return np.asarray(self.distribution.logpdf(X.T))
