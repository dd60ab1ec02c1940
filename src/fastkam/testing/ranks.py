"""Uniformity of ranks: the largest deviation of their distribution function, and its p-value.

For n ranks between 0 and L, R_i is the number of ranks below i. If they are uniform,

    R_i ~ Bin(n, z_i),   z_i = i / (L + 1),   i = 1 ... L,

and the statistic is the smallest of the two-sided p-values of these counts,

    gamma = min_i 2 min(P(Bin(n, z_i) <= R_i), P(Bin(n, z_i) >= R_i)).

Its distribution is exact: the counts of the single ranks are independent Poisson numbers given
their sum n, so that the probability that all R_i are within bounds is found by L convolutions.

Säilynoja, T., Bürkner, P.-C. and Vehtari, A. (2022). Graphical test for discrete uniformity and its
applications in goodness-of-fit evaluation and multiple sample comparison. Statistics and Computing
32, 32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_integer

LEAST_P = 1e-12  # below this, rounding in 1 - P(within the bounds) is larger than the p-value
TIE = 1e-9  # relative: a value of gamma that rounding alone has made different is the same
HALVINGS = 40

Counts = NDArray[np.int64]


def counts_below(ranks: Counts, L: int) -> Counts:
    """R_i, the number of ranks below i, for i = 1 ... L, (L,)."""
    return np.cumsum(np.bincount(ranks, minlength=L + 1))[:-1]


def bounds(n: int, L: int, gamma: float) -> tuple[Counts, Counts]:
    """The smallest and the largest count R_i, (L,), with a two-sided p-value above gamma."""
    from scipy.stats import binom

    z = np.arange(1, L + 1) / (L + 1)
    half = gamma * (1 + TIE) / 2
    low = binom.ppf(half, n, z).astype(np.int64)
    return low, n - low[::-1]  # Bin(n, 1 - z) counts the other ranks


def p_value_of(n: int, L: int, gamma: float) -> float:
    """The probability that the statistic of n uniform ranks is gamma or less."""
    from scipy.stats import poisson

    if gamma >= 1:
        return 1.0
    low, high = bounds(n, L, gamma)
    if (low > high).any():
        return 1.0
    mean = n / (L + 1)
    one = poisson.pmf(np.arange(n + 1), mean)
    one = one[: np.flatnonzero(one)[-1] + 1]  # of the number of ranks of one value
    within, start = np.ones(1), 0  # P(R_i = start + k, and all counts before within bounds)
    for a, b in zip([*low, n], [*high, n], strict=True):
        full = np.convolve(within, one)
        first = max(a, start)
        within = full[first - start : b - start + 1]
        start = first
        if len(within) == 0:
            return 1.0
    outside = 1 - within[0] / poisson.pmf(n, n)
    return float(np.clip(min(max(outside, LEAST_P), L * gamma), np.finfo(float).tiny, 1))


def statistic(ranks: Counts, L: int) -> float:
    """gamma, the smallest two-sided p-value of the counts R_i."""
    from scipy.stats import binom

    n, R = len(ranks), counts_below(ranks, L)
    z = np.arange(1, L + 1) / (L + 1)
    return float(np.clip(2 * np.minimum(binom.cdf(R, n, z), binom.sf(R - 1, n, z)), 0, 1).min())


def uniformity(ranks: ArrayLike, L: int) -> float:
    """The p-value of uniform ranks between 0 and L: at most p with probability at most p.

    Parameters
    ----------
    ranks : array (n,) of int
        Independent, between 0 and L.
    L : int
        Number of draws among which the ranks were computed.

    Returns
    -------
    float
        Exact if it is above 1e-12, otherwise an upper bound.

    Raises
    ------
    TypeError, ValueError
        For a bad argument.

    References
    ----------
    Säilynoja, T., Bürkner, P.-C. and Vehtari, A. (2022). Graphical test for discrete uniformity and
    its applications in goodness-of-fit evaluation and multiple sample comparison. Statistics and
    Computing 32, 32.

    Examples
    --------
    >>> import fastkam as fk
    >>> round(fk.testing.uniformity([0, 3, 1, 2, 3, 0], 3), 3)
    0.956
    """
    L, array = check_integer("L", L, least=1), np.asarray(ranks)
    if array.dtype.kind not in "iu":
        raise TypeError(f"ranks must be an array of integers, not {ranks!r}")
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"ranks must have shape (n,) with n at least 1, not {array.shape}")
    if array.min() < 0 or array.max() > L:
        raise ValueError(f"ranks must be from 0 to L = {L}, not from {array.min()} to "
                         f"{array.max()}")
    return p_value_of(len(array), L, statistic(array.astype(np.int64), L))


def band(n: int, L: int, rate: float) -> tuple[Counts, Counts]:
    """Bounds of all counts R_i at once, (L,) each.

    n uniform ranks are beyond any of them with a probability of at most `rate`, and as near to it
    as whole numbers allow.
    """
    low, high = np.log(rate / L) - 1, 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if p_value_of(n, L, np.exp(middle)) <= rate:
            low = middle
        else:
            high = middle
    return bounds(n, L, float(np.exp(low)))


def deviation(ranks: Counts, L: int) -> str:
    """Interpret ranks that are not uniform, as a text.

    The larger of two deviations decides: that of the mean of u = (rank + 1/2) / (L + 1), and that
    of the mean of (u - 1/2)^2, which is larger where ranks are at both ends.
    """
    u = (np.arange(L + 1) + 0.5) / (L + 1) - 0.5
    v = u**2
    root = np.sqrt(len(ranks))
    shift = u[ranks].mean() / u.std() * root
    spread = (v[ranks].mean() - v.mean()) / max(float(v.std()), 1e-300) * root
    if abs(shift) >= abs(spread):
        return "draws too low" if shift > 0 else "draws too high"
    return "draws too narrow" if spread > 0 else "draws too wide"
