"""A check of weighted draws by chains on the density itself, which can leave the support of s.

Draws x of s with the weights pi(x)^b / s(x) are draws of the tempered density pi^b, and remain so
when chains move them by steps that leave pi^b invariant. Chains enter a region where s is far too
small from the side, and pi^b has more of the tails than pi. There is such a region where

- more states of the chains have a log weight log(pi / s) above a level than weighted draws have, or
- one state, or one proposal that is not improbable itself, has a log weight far above all draws.

Further, no call with a high density may be far outside the range of the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from fastkam._core.surrogate.learned import LearnedDensity
from fastkam.diagnostics.weights import systematic
from fastkam.samplers.metropolis import OPTIMAL
from fastkam.search.mixture import Mixture
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.ends import drop
from fastkam.surrogate.learning import BETA, Chains

Array = NDArray[np.float64]

STEPS = 5  # of each chain
ABOVE = 0.01  # share of the sum of the weights that is above the level of the check
FALSE_ALARM = 1e-3
FAR_ABOVE = 1.0  # by which a log weight is above those of all draws
HIGH, RANGE = 4.5, 0.005  # distance below the maximum; share of draws outside of their range
NOT_IMPROBABLE = 3.0  # by which a log density may be below the median of those of the draws


class Check(NamedTuple):
    """The points that the chains of a check have reached.

    Attributes
    ----------
    states : Chains
        After their last steps.
    points : ndarray, shape (n, d)
        Of all proposals.
    values : ndarray, shape (n,)
        The log densities there.
    """

    states: Chains
    points: Array
    values: Array

    @staticmethod
    def made(
        calls: Calls, mixture: Mixture, X: Array, logp: Array, log_weights: Array, n: int,
        rng: np.random.Generator,
    ) -> Check:
        """Call the density n times, for chains from draws X (m, d) of s.

        Parameters
        ----------
        calls : Calls
        mixture : Mixture
            Gives the shapes of the proposals.
        X, logp, log_weights : array (m, d), (m,), (m,)
            The draws, log pi there, and log(pi / s).
        n : int
        rng : Generator
        """
        rows = systematic(tempered(logp, log_weights), n // STEPS, rng)
        length = float(np.log(OPTIMAL / np.sqrt(X.shape[1])))
        chains = Chains(X[rows].copy(), logp[rows], length, BETA)
        points, values = [], []
        for _ in range(STEPS):
            points.append(chains.propose(mixture, rng))
            values.append(calls.at_draws(points[-1]))
            chains.decide(points[-1], values[-1], rng)
        return Check(chains, np.concatenate(points), np.concatenate(values))

    def beyond(self, density: LearnedDensity, logp: Array, log_weights: Array) -> int:
        """Return the number of points where s is far too small.

        Parameters
        ----------
        density : LearnedDensity
            s.
        logp, log_weights : array (m,)
        """
        found = self.states.logp - density.logp(self.states.x)
        n = above_expected(log_weights, tempered(logp, log_weights), found)
        level = log_weights.max() + FAR_ABOVE
        probable = self.values > np.median(logp) - NOT_IMPROBABLE
        proposed = self.values[probable] - density.logp(self.points[probable])
        return max(n, int((found > level).sum()), int((proposed > level).sum()))

    def worst(self, density: LearnedDensity, m: int) -> tuple[Array, Array]:
        """The m points (m, d) at which s / pi is smallest, and log pi there (m,)."""
        x = np.vstack([self.states.x, self.points])
        logp = np.concatenate([self.states.logp, self.values])
        order = np.argsort(density.logp(x) - logp, kind="stable")[:m]
        return x[order], logp[order]


def outside(X: Array, y: Array, draws: Array, logp: Array) -> int:
    """Return the number of points with a high density that are far outside the range of the draws.

    A density is high where its log has fallen by less than half of `drop`, its fall at the ends of
    a normal density, and by no more than that falls along one coordinate in three standard
    deviations. Far is more than a standard deviation of the draws beyond all but 0.5 % of them.

    Parameters
    ----------
    X, y : array (m, d), (m,)
        Points, and the log densities there.
    draws, logp : array (n, d), (n,)
        Draws of s, and log pi there; those at which it has fallen by more than `drop` do not count.
    """
    d, top = draws.shape[1], y.max()
    high, near = X[y > top - min(0.5 * drop(d), HIGH)], draws[logp > top - drop(d)]
    if not len(near):
        return len(high)
    low, up = np.quantile(near, [RANGE, 1 - RANGE], axis=0)
    sd = near.std(axis=0)
    return int(((high < low - sd) | (high > up + sd)).any(axis=1).sum())


def tempered(logp: Array, log_weights: Array) -> Array:
    """The logs of the weights (n,) with which draws of s are draws of pi^b."""
    return log_weights - (1 - BETA) * np.where(np.isfinite(logp), logp, 0.0)


def above_expected(log_weights: Array, log_shares: Array, found: Array) -> int:
    """Return the number of log weights `found` (m,) that are too high, or 0.

    They are too high above the level at which draws with `log_weights` (n,) have 1 % of the sum of
    the weights with the logs `log_shares` (n,). The number is compared with that share plus its
    error, and is 0 if one as large has a probability of 0.001 or more.
    """
    order = np.argsort(-log_weights, kind="stable")
    lw, w = log_weights[order], np.exp(log_shares - log_shares.max())[order]
    share = np.cumsum(w) / w.sum()
    at = int(np.searchsorted(share, ABOVE))
    expected = share[at] + 2 * np.sqrt(share[at] * (w @ w)) / w.sum()
    n = int((found > lw[at]).sum())
    return n if at_least(n, len(found), min(expected, 1.0)) < FALSE_ALARM else 0


def at_least(n: int, m: int, p: float) -> float:
    """The probability of n or more successes in m trials, each of probability p."""
    return float(betainc(n, m - n + 1, p)) if n else 1.0
