"""Bridge sampling between the draws of chains and a normalized density q, with its error.

With l = log p - log q, and p the density of the chains times the unknown constant Z, the optimal
bridge solves

    s_2 E_q sigma(l - lambda) = s_1 E_p sigma(lambda - l),   lambda = log Z - log(s_1 / s_2)

with the logistic function sigma and s_1 : s_2 the numbers of draws, for the chains the effective
sample size. Both sides are monotone in lambda: there is one root.

Any bridge function is consistent, so that to first order the error of log Z is that of the ratio of
two means with the function taken as fixed:

    sigma(l - lambda) / E_q sigma - sigma(lambda - l) / E_p sigma

This is one number for each draw of a chain. The error of the mean of these numbers follows from
their effective sample size, so that autocorrelation and differences between chains are included.

Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
identity: a theoretical exploration. Statistica Sinica 6, 831-860. Frühwirth-Schnatter, S. (2004).
Estimating marginal likelihoods for mixture and Markov switching models using bridge sampling
techniques. Econometrics Journal 7, 143-167: the error of dependent draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure

Array = NDArray[np.float64]

ITERATIONS = 200  # of bisection, which ends as soon as nothing changes
FURTHER = 50.0  # of the bracket, beyond l


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """log p - log q at draws of chains and at draws of q.

    Attributes
    ----------
    chain : ndarray, shape (chains, n)
        At the draws of the chains, to which q was not fitted.
    attached : ndarray, shape (chains, n)
        At the proposal from q that a chain considered in the step before the draw; NaN where that
        step was another move.
    own : ndarray, shape (m,)
        At further independent draws of q. -inf where p is 0.
    """

    chain: Array
    attached: Array
    own: Array

    @property
    def of_q(self) -> Array:
        """log p - log q at all draws of q, (k,)."""
        return np.r_[self.attached[~np.isnan(self.attached)], self.own]


@dataclass(frozen=True, eq=False, repr=False)
class Bridge:
    """An estimate of log Z from `Pairs`.

    Attributes
    ----------
    log_z : float
        NaN if the two sets of draws do not overlap.
    series : ndarray, shape (chains, n)
        log Z plus the contribution of each draw of a chain, and of the proposal attached to it. The
        mean is the estimate without the contribution of the further draws of q.
    variance : float
        Variance of the contribution of the further draws of q.
    root : float
        lambda.
    mean : float
        E_p sigma(lambda - l), over the draws of the chains.
    """

    log_z: float
    series: Array
    variance: float
    root: float = np.nan
    mean: float = np.nan

    def influence(self, log_ratio: Array) -> Array:
        """Return the contributions of draws of chains to n log Z, from their log p - log q."""
        return 1 - logistic(self.root - log_ratio) / self.mean


def effective(series: Array) -> float:
    """Return the bulk effective sample size of series (chains, n), at least 1."""
    columns = measure(series[:, :, None], r_hat=False, mcse_sd=False)
    size = columns[COLUMNS.index("ess_bulk"), 0]
    return float(max(1.0, size)) if np.isfinite(size) else float(series.size)


def standard_error(series: Array) -> float:
    """Return the standard error of the mean of series (chains, n)."""
    columns = measure(series[:, :, None], r_hat=False, mcse_sd=False)
    error = float(columns[COLUMNS.index("mcse_mean"), 0])
    if np.isfinite(error):
        return error
    return 0.0 if (series == series.flat[0]).all() else np.inf


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x))"""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)


def root(chain: Array, own: Array, s_1: float, s_2: float) -> float:
    """Return lambda, found by bisection.

    It is between the least l of the chains and the largest of q, or no further from these than the
    logarithm of a number of draws. Other values of l can be of any size.
    """
    finite = own[np.isfinite(own)]
    low = min(chain.min(), finite.max()) - FURTHER
    high = max(chain.min(), finite.max()) + FURTHER
    for _ in range(ITERATIONS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        rest = (s_2 * logistic(finite - middle).sum() / len(own)
                - s_1 * logistic(middle - chain).mean())
        low, high = (middle, high) if rest > 0 else (low, middle)
    return float(0.5 * (low + high))


def bridge(pairs: Pairs) -> Bridge:
    """Return the optimal bridge between draws of chains and draws of q."""
    l_1, l_2 = pairs.chain, pairs.of_q
    n_2 = len(l_2)
    if n_2 == 0 or not np.isfinite(l_2).any() or not np.isfinite(l_1).all():
        return Bridge(np.nan, np.full(l_1.shape, np.nan), np.nan)
    n_1 = effective(l_1)
    s_1, s_2 = n_1 / (n_1 + n_2), n_2 / (n_1 + n_2)
    lam = root(l_1, l_2, s_1, s_2)
    of_chain, of_own = logistic(lam - l_1), logistic(pairs.own - lam)
    is_attached = ~np.isnan(pairs.attached)
    of_attached = np.where(is_attached, logistic(np.where(is_attached, pairs.attached, 0) - lam), 0)
    mean_1, mean_2 = of_chain.mean(), (of_attached.sum() + of_own.sum()) / n_2
    if not (mean_1 > 0 and mean_2 > 0):
        return Bridge(np.nan, np.full(l_1.shape, np.nan), np.nan)
    log_z = float(lam + np.log(s_1 / s_2))
    part = l_1.size / n_2 * np.where(is_attached, of_attached / mean_2 - 1, 0)
    series = log_z + 1 - of_chain / mean_1 + part
    m = len(of_own)
    variance = np.square(of_own / mean_2 - 1).sum() / n_2**2
    if m > 1:
        variance *= m / (m - 1)
    elif n_2 == 1:
        variance = np.inf
    return Bridge(log_z, series, float(variance), lam, float(mean_1))


def joined(bridges: list[Bridge], crossed: float = 0.0) -> tuple[float, float]:
    """Return log Z and its standard error from bridges without common draws, weighted by chains.

    `crossed` is the share of the variance of the chains' draws that counts twice: see
    `crossed_share`.
    """
    chains = np.array([len(one.series) for one in bridges])
    share = chains / chains.sum()
    value = float(sum(w * one.log_z for w, one in zip(share, bridges, strict=True)))
    if not np.isfinite(value):
        return np.nan, np.nan
    series = np.concatenate([one.series for one in bridges])
    variance = sum(w**2 * one.variance for w, one in zip(share, bridges, strict=True))
    return value, float(np.hypot(np.sqrt(1 + crossed) * standard_error(series), np.sqrt(variance)))


def crossed_share(bridges: list[Bridge], across: list[Array]) -> float:
    """Return the share of the chains' variance due to the noise in the fits of q, at most 1.

    With q_k fitted to all folds but k, and bridged with fold k, that noise adds to log Z the
    products of the deviations of folds k and j, once in the bridge of k and once in that of j.
    These are the same products, so that their variance is twice the apparent one. The part that is
    common to all fits does not contribute. With F folds, the noise of q_k is a mean over F - 1 of
    them, and that of q_j - q_k has 2 / (F - 1) times its variance.

    Parameters
    ----------
    bridges : list of Bridge
        That with q_k, of each fold.
    across : list of ndarray, shape (chains, n)
        log p - log q_k at the draws of all chains, of each fold.
    """
    F = len(bridges)
    added = np.array([one.influence(log_ratio)
                      for one, log_ratio in zip(bridges, across, strict=True)])
    total = np.square(added).mean()
    if not (F > 1 and np.isfinite(total) and total > 0):
        return 0.0
    differences = added.var(axis=0, ddof=1).mean() * 2
    return float(min(1.0, differences * (F - 1) / 2 / total))


def difference_between_chains(bridges: list[Bridge], across: list[Array]) -> float:
    """Return by how much log Z is larger with the draws of all chains than with a chain's own.

    This is the mean over chains k of log E_k sigma(lambda - l) - log E sigma(lambda - l), with the
    bridge function as it is. It is about 0 if all chains have the same distribution, and log 2 if
    half of them are where the q of the others have no mass: their bridges are those of one half of
    the density each, and may agree about it.

    Parameters
    ----------
    bridges : list of Bridge
        That of each chain with its own q_k.
    across : list of ndarray, shape (chains, n)
        log p - log q_k at draws of all chains, of each chain k.
    """
    means = np.array([logistic(one.root - log_ratio).mean(axis=1)
                      for one, log_ratio in zip(bridges, across, strict=True)])
    with np.errstate(divide="ignore"):
        return float((np.log(np.diag(means)) - np.log(means.mean(axis=1))).mean())
