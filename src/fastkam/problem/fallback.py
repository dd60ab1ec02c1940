"""Distributions that are evaluated by scipy, with gradients by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = np.finfo(float).eps ** 0.2  # of the scale: the error of five points is of its fourth power
# f'(x) = sum of these times f(x + k h) / h
WEIGHTS = {1: 2 / 3, -1: -2 / 3, 2: -1 / 12, -2: 1 / 12}
NEAR = 0.1  # of the distance to an end of the support, which no step may pass


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

    def logpdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            values = self.distribution.logpdf(x.reshape(self.shape))
        return np.broadcast_to(values, self.shape).reshape(-1)

    def logp(self, x: NDArray[np.float64]) -> float:
        """The log density at x (n,)."""
        return float(self.logpdf(x).sum())

    def logps(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log density at each row of X (k, n), (k,)."""
        with np.errstate(all="ignore"):
            values = self.distribution.logpdf(X.reshape(-1, *self.shape))
        return np.asarray(values.reshape(len(X), -1).sum(axis=1))

    def logp_grad(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The log density at x (n,) and its gradient (n,)."""
        h = np.minimum(STEP * (1 + np.abs(x)), NEAR * np.minimum(x - self.low, self.high - x))
        h = (x + h) - x  # a step that x + h makes without rounding
        with np.errstate(all="ignore"):
            slope = sum(w * self.logpdf(x + k * h) for k, w in WEIGHTS.items()) / h
        return self.logp(x), np.asarray(slope)


class Multivariate:
    """Blocks of one multivariate distribution, such as a matrix.

    Parameters
    ----------
    distribution : object
        With ``logpdf``.
    shape : tuple of int
        Shape of a block.
    """

    def __init__(self, distribution: Any, shape: tuple[int, ...]) -> None:
        self.distribution, self.shape = distribution, shape

    def logp(self, x: NDArray[np.float64]) -> float:
        """The log density at x (n,)."""
        return float(np.squeeze(self.distribution.logpdf(x.reshape(self.shape))))

    def logps(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log density at each row of X (k, n), (k,)."""
        return np.array([self.logp(x) for x in X])

    def logp_grad(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The log density at x (n,) and its gradient (n,), by central differences."""
        slope = np.empty(len(x))
        for i in range(len(x)):
            step = np.zeros(len(x))
            step[i] = STEP * (1 + abs(x[i]))
            slope[i] = sum(w * self.logp(x + k * step) for k, w in WEIGHTS.items()) / step[i]
        return self.logp(x), slope
