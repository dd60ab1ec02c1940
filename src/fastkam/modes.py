"""Gaussian mixtures fitted to the states of a chain: EM, with restarts, and their number by BIC."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mixture = tuple[Array, Array, Array]  # weights (K,), means (K, d), covariances (K, d, d)

WIDE_WEIGHT = 0.1
WIDENING = 4.0  # of the covariance of the wide component
RESTARTS = 3
MOST_ITERATIONS = 50
LEAST_GAIN = 0.01  # of the log likelihood in an iteration, for each parameter of a component
RIDGE = 1e-6  # added to covariances in units of the states' variances


def fit(
    states: Array, seed: int, *, most: int, means: Array | None = None, covs: Array | None = None
) -> Mixture | None:
    """A mixture fitted to states, with a wide component; None where they do not spread enough.

    Parameters
    ----------
    states : array (n, d)
    seed : int
        Of the restarts.
    most : int
        Components at most, besides the wide one; without `means` BIC chooses how many.
    means : array (K, d), optional
        Guesses of the modes: there are as many components, and each guess counts as one state.
    covs : array (K, d, d), optional
        Guesses of their covariances, which count as d + 1 states each. Without them, each component
        tends to the covariance within components instead.

    Returns
    -------
    weights : ndarray, shape (K + 1,)
        That of the wide component first.
    means : ndarray, shape (K + 1, d)
    factors : ndarray, shape (K + 1, d, d)
        Lower-triangular factors of the covariances.
    """
    n, d = states.shape
    with np.errstate(all="ignore"):  # scales may be anything: what is not finite is refused
        scale = states.std(axis=0) if n else np.zeros(d)
        if n <= d + 1 or not ((scale > 0) & np.isfinite(scale**2)).all():
            return None
        try:
            if means is None:
                found = chosen_by_bic(states, scale, most, np.random.default_rng(seed))
            else:
                found, _ = em(states, nearest(states / scale, means / scale), means, covs)
            return with_wide(*found)
        except np.linalg.LinAlgError:
            return None


def chosen_by_bic(states: Array, scale: Array, most: int, rng: np.random.Generator) -> Mixture:
    """The best mixture; the search ends where two more components in turn make it worse."""
    n, d = states.shape
    least, worse = np.inf, 0
    for k in range(1, min(most, n // (d + 1)) + 1):
        starts = [
            nearest(states / scale, spread(states / scale, k, rng))
            for _ in range(RESTARTS if k > 1 else 1)
        ]
        found, log_likelihood = max((em(states, start) for start in starts), key=lambda f: f[1])
        bic = k * parameters(d) * np.log(n) - 2 * log_likelihood
        if k == 1 or bic < least:
            best, least, worse = found, bic, 0
        else:
            worse += 1
        if worse == 2:
            break
    return best


def parameters(d: int) -> float:
    """Of a component in d dimensions: weight, mean and covariance."""
    return 1 + d + d * (d + 1) / 2


def spread(points: Array, k: int, rng: np.random.Generator) -> Array:
    """k of the points (n, d), each drawn by its squared distance from those drawn before."""
    chosen = [int(rng.integers(len(points)))]
    for _ in range(k - 1):
        away = ((points[:, None] - points[chosen]) ** 2).sum(axis=2).min(axis=1)
        chosen.append(int(rng.choice(len(points), p=away / away.sum())) if away.sum() > 0 else 0)
    return points[chosen]


def nearest(points: Array, centres: Array) -> Array:
    """Responsibilities (K, n): 1 for the nearest centre, 0 for others."""
    distance = ((points - centres[:, None]) ** 2).sum(axis=2)
    return np.eye(len(centres))[distance.argmin(axis=0)].T


def em(
    states: Array, r: Array, guesses: Array | None = None, covs: Array | None = None
) -> tuple[Mixture, float]:
    """(mixture, log likelihood) from responsibilities r (K, n), by expectation-maximisation."""
    before, least_gain = -np.inf, LEAST_GAIN * parameters(states.shape[1])
    for _ in range(MOST_ITERATIONS):
        mixture = maximised(states, r, guesses, covs)
        logs = log_terms(states, *mixture)
        high = logs.max(axis=0)
        r = np.exp(logs - high)
        total = r.sum(axis=0)
        r /= total
        log_likelihood = float((high + np.log(total)).sum())
        if log_likelihood - before < least_gain:
            break
        before = log_likelihood
    return mixture, log_likelihood


def maximised(states: Array, r: Array, guesses: Array | None, covs: Array | None) -> Mixture:
    """The mixture for given responsibilities; weights as if each component had a state more."""
    n, d = states.shape
    n_k = r.sum(axis=1)
    weights = (n_k + 1) / (n + len(r))
    if guesses is None:
        means = r @ states / np.maximum(n_k, 1e-300)[:, None]
    else:
        means = (r @ states + guesses) / (n_k + 1)[:, None]
    away = states - means[:, None]
    scatter = (away * r[:, :, None]).transpose(0, 2, 1) @ away
    if covs is None:
        covs = scatter.sum(axis=0) / n
    ridge = RIDGE * np.diag(states.var(axis=0))
    return weights, means, (scatter + (d + 1) * covs) / (n_k + d + 1)[:, None, None] + ridge


def log_terms(x: Array, weights: Array, means: Array, covs: Array) -> Array:
    """log(w_k N(x; m_k, C_k)) at each point x (n, d), (K, n)."""
    L = np.linalg.cholesky(covs)
    z = (x - means[:, None]) @ np.linalg.inv(L).transpose(0, 2, 1)
    log_det = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    constants = np.log(weights) - log_det - 0.5 * x.shape[1] * np.log(2 * np.pi)
    return np.asarray(constants[:, None] - 0.5 * (z**2).sum(axis=2))


def with_wide(weights: Array, means: Array, covs: Array) -> Mixture:
    """(weights, means, factors) with a wide component in front.

    It has the mean of the others, taken as equal, and `WIDENING` times their covariance.
    """
    away = means - means.mean(axis=0)
    wide = WIDENING * (covs.mean(axis=0) + away.T @ away / len(means))
    return (
        np.r_[WIDE_WEIGHT, (1 - WIDE_WEIGHT) * weights / weights.sum()],
        np.vstack([means.mean(axis=0), means]),
        np.linalg.cholesky(np.concatenate([wide[None], covs])),
    )
