"""k-hat: the shape of the tail of importance weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_K_HAT = 0.7  # above which importance weights are not reliable
LEAST_TAIL = 5


@np.errstate(under="ignore")
def k_hat(log_weights: NDArray[np.float64]) -> float:
    """Return the shape of the generalized Pareto distribution of the largest weights.

    The weights have moments of the orders below 1 / k. The tail consists of the
    min(n / 5, 3 sqrt(n)) largest of the n weights. The result is NaN for fewer than 25 weights,
    -inf if these are equal, and inf if nearly all of their sum is in fewer than five.

    Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance
    sampling. Journal of Machine Learning Research 25(72), 1-58.

    Parameters
    ----------
    log_weights : array (n,)
        Logarithms, -inf for a weight of 0.
    """
    n = len(log_weights)
    m = int(min(n / 5, 3 * np.sqrt(n)))
    high = log_weights.max(initial=-np.inf)
    if m < LEAST_TAIL or not np.isfinite(high):
        return np.nan
    top = np.sort(log_weights)[-m - 1 :]
    weights = np.exp(top - high)
    excess = weights[1:] - weights[0]
    excess = excess[excess > 1e-12]
    if len(excess) < LEAST_TAIL:
        return np.inf if high - top[-LEAST_TAIL] > 1 else -np.inf
    return regularized_shape(excess)


def regularized_shape(x: NDArray[np.float64]) -> float:
    """Return `pareto_shape`, with a weak prior of mean 1/2."""
    return float((len(x) * pareto_shape(x) + 5) / (len(x) + 10))


def pareto_shape(x: NDArray[np.float64]) -> float:
    """Return the shape k of a generalized Pareto distribution, from sorted positive values (n,).

    Zhang, J. and Stephens, M. A. (2009). A new and efficient estimation method for the generalized
    Pareto distribution. Technometrics 51, 316-325.
    """
    n = len(x)
    m = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    theta = 1 / x[-1] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * quartile)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_likelihood = n * (np.log(-theta / k) - k - 1)
    weights = np.exp(log_likelihood - log_likelihood.max())
    mean = float(theta @ weights / weights.sum())
    return float(np.log1p(-mean * x).mean())
