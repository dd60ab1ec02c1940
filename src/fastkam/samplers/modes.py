"""Gaussian mixtures fitted to the states of a chain: EM, and the number of components by AIC3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, product
from fastkam._core.numerics.mixture import expect

Array = NDArray[np.float64]
Mixture = tuple[Array, Array, Array]  # weights (K,), means (K, d), factors (K, d, d)

WIDE_WEIGHT = 0.05
MOST_ITERATIONS = 20
LEAST_GAIN = 0.3  # smallest gain in log likelihood, per parameter of a component, to iterate on
RIDGE = 1e-6  # added to covariances in units of the states' variances


def fit(
    states: Array,
    seed: int,
    near: int = 1,
    *,
    most: int,
    means: Array | None = None,
    covs: Array | None = None,
    effective: float = np.inf,
) -> Mixture | None:
    """Fit a mixture with a wide component to states; None if these have too little spread.

    Parameters
    ----------
    states : array (n, d)
    seed : int
        Seed of the choice of first means.
    near : int
        Number of components of an earlier fit, for a quicker search.
    most : int
        Largest number of components, without the wide one; without `means` AIC3 chooses the number.
    means : array (K, d), optional
        Guesses of the modes, which determine the number of components; each counts as one state.
    covs : array (K, d, d), optional
        Guesses of their covariances, which count as d + 1 states each. Without them, each component
        is shrunk towards the mean covariance within components.
    effective : float
        Effective number of independent states, if it is known.

    Returns
    -------
    weights : ndarray, shape (K + 1,)
        The weights, that of the wide component first.
    means : ndarray, shape (K + 1, d)
    factors : ndarray, shape (K + 1, d, d)
        Lower-triangular factors of the covariances.

    References
    ----------
    Bozdogan, H. (1994). Mixture-model cluster analysis using model selection criteria and a new
    informational measure of complexity. In: Proceedings of the first US/Japan conference on the
    frontiers of statistical modeling, volume 2, 69-113: a penalty of 3 for each parameter.
    """
    n, d = states.shape
    with np.errstate(all="ignore"):  # scales may be anything: what is not finite is refused
        scale = states.std(axis=0) if n else np.zeros(d)
        if n <= d + 1 or not ((scale > 0) & np.isfinite(scale**2)).all():
            return None
        center = states.mean(axis=0)
        z = (states - center) / scale
        try:
            if means is None:
                weights, at, factors = chosen(
                    z, most, near, np.random.default_rng(seed), effective)
            else:
                if covs is not None:
                    covs = covs / np.outer(scale, scale)
                weights, at, factors = around((means - center) / scale, covs, z)
            return with_wide(weights, center + scale * at, scale[:, None] * factors)
        except np.linalg.LinAlgError:
            return None


def chosen(
    z: Array, most: int, near: int, rng: np.random.Generator, effective: float
) -> Mixture:
    """The mixture of z (n, d), of mean 0 and variances 1, with the smallest AIC3.

    A state that repeats the one before is no new information: the log likelihood is scaled to the
    number of `new` states or, if only `effective` ones are independent, to the geometric mean of
    both numbers. The number of components grows from half of `near`, by a factor of about 1.4,
    until two in a row are worse.
    """
    n, d = z.shape
    new = 1 + (z[1:] != z[:-1]).any(axis=1).sum()
    most = max(1, min(most, int(new / parameters(d))))
    if effective < new:
        new = np.sqrt(new * effective)
    if most == 1:
        squares = product(z.T, z)[None]
        return maximized(n, np.array([float(n)]), z.sum(axis=0)[None], squares, None, None)
    least, worse, k = np.inf, 0, min(max(1, near // 2), most)
    while worse < 2 and k <= most:
        found, log_likelihood = em(z, *first(z, k, rng))
        criterion = 3 * len(found[0]) * parameters(d) - 2 * new / n * log_likelihood
        if criterion < least:
            best, least, worse = found, criterion, 0
        else:
            worse += 1
        k = max(k + 1, round(1.4 * k))
    return best


def parameters(d: int) -> float:
    """Number of parameters of a component in d dimensions: weight, mean and covariance."""
    return 1 + d + d * (d + 1) / 2


def first(z: Array, k: int, rng: np.random.Generator) -> Mixture:
    """k of the points, drawn by their squared distance from earlier ones, as round components.

    Their variance is the mean squared distance, per coordinate, to the nearest of them.
    """
    chosen = [int(rng.integers(len(z)))]
    away = ((z - z[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(k - 1):
        if away.sum() == 0:
            break
        chosen.append(int(rng.choice(len(z), p=away / away.sum())))
        away = np.minimum(away, ((z - z[chosen[-1]]) ** 2).sum(axis=1))
    d, K = z.shape[1], len(chosen)
    factor = np.sqrt(away.mean() / d + RIDGE) * np.eye(d)
    return np.full(K, 1 / K), z[chosen], np.repeat(factor[None], K, axis=0)


def around(guesses: Array, covs: Array | None, z: Array) -> Mixture:
    """A mixture with a component at each guess."""
    K, d = guesses.shape
    away = ((z - guesses[:, None]) ** 2).sum(axis=2).min(axis=0)
    start = np.repeat((away.mean() / d + RIDGE) * np.eye(d)[None], K, axis=0)
    factors = cholesky(start if covs is None else covs)
    return em(z, np.full(K, 1 / K), guesses, factors, guesses, covs)[0]


def em(
    z: Array, weights: Array, means: Array, factors: Array,
    guesses: Array | None = None, covs: Array | None = None,
) -> tuple[Mixture, float]:
    """(mixture, log likelihood) from a first mixture, by expectation-maximization.

    Components without states vanish, unless they are guesses.
    """
    n, d = z.shape
    before, least_gain = -np.inf, LEAST_GAIN * parameters(d)
    for _ in range(MOST_ITERATIONS):
        n_k, sums, squares, log_likelihood = expect(z, weights, means, factors)
        if log_likelihood - before < least_gain:
            break
        before = log_likelihood
        if guesses is None and (n_k < 1).any():
            stay = n_k >= 1
            n_k, sums, squares = n_k[stay], sums[stay], squares[stay]
        weights, means, factors = maximized(n, n_k, sums, squares, guesses, covs)
    return (weights, means, factors), log_likelihood


def maximized(
    n: int, n_k: Array, sums: Array, squares: Array, guesses: Array | None, covs: Array | None
) -> Mixture:
    """The mixture for given responsibilities; one state is added to each component's weight."""
    d = sums.shape[1]
    weights = (n_k + 1) / (n_k + 1).sum()
    means = sums / n_k[:, None] if guesses is None else (sums + guesses) / (n_k + 1)[:, None]
    cross = sums[:, :, None] * means[:, None]
    products = means[:, :, None] * means[:, None]
    scatter = squares - cross - cross.transpose(0, 2, 1) + n_k[:, None, None] * products
    if covs is None:
        covs = scatter.sum(axis=0) / n
    shrunk = (scatter + (d + 1) * covs) / (n_k + d + 1)[:, None, None]
    return weights, means, cholesky(shrunk + RIDGE * np.eye(d))


def with_wide(weights: Array, means: Array, factors: Array) -> Mixture:
    """(weights, means, factors) with a wide component in front.

    It has the mean and the covariance of the others, taken as equal.
    """
    away = means - means.mean(axis=0)
    covs = product(factors, factors.transpose(0, 2, 1))
    wide = covs.mean(axis=0) + product(away.T, away) / len(means)
    return (
        np.r_[WIDE_WEIGHT, (1 - WIDE_WEIGHT) * weights / weights.sum()],
        np.vstack([means.mean(axis=0), means]),
        np.concatenate([cholesky(wide)[None], factors]),
    )
