"""Rounds of learning: fit a surrogate, sample it, call the density where it matters, fit again.

A round calls the density at draws of the surrogate s, and at as many points where its logarithm is
least certain, taken from draws of s^(1/2). Before they join the fit, the draws of s test it: with
the weights w = pi / s, E = (sum w)^2 / (n sum w^2) is the share of weighted draws that count, and
the n_calls + 400 / E that the whole run takes, if learning ends here, decide whether it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from fastkam._core.surrogate.learned import LearnedDensity
from fastkam.search.evaluator import Evaluator
from fastkam.search.found import Known
from fastkam.search.mixture import Mixture
from fastkam.search.population import Population, Window
from fastkam.search.search import Searcher
from fastkam.search.watch import Spent
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.density import SHARE, Students, process_density, with_students
from fastkam.surrogate.design import design
from fastkam.surrogate.regression import Process, fit, near_enough, whitened

Array = NDArray[np.float64]

BATCH, BATCH_EACH = 16, 3  # calls of a round, and a dimension
HEAVY = 0.2  # share of them from the heavy-tailed components
WALKERS = 64
FLATTER = 0.5  # the power of s from whose draws uncertain points are chosen
WINDOWS = (30, 30, 50)  # steps of walkers: to learn, on the flatter power, on s
CANDIDATES = 300
TRUSTED = 3.0  # standard deviations from the nearest point, within which walkers stay
GOAL = 400  # draws that count
LEAST_ROUNDS = 3
STILL = 0.25  # change of means, in standard deviations, and of log standard deviations in a round
ENOUGH = 0.85  # E at which learning ends
LEAST = 0.1  # E below which the surrogate does not pay
PATIENCE = 3  # batches by which the least forecast may be exceeded
FIRST_STEPS, STEPS = 40, 12  # of the optimization of hyperparameters


@dataclass
class Learnt:
    """A surrogate, and what is known of it.

    Attributes
    ----------
    density : LearnedDensity
    mixture : Mixture
        About s.
    window : Window
        States of walkers on s.
    efficiency : float
        E of the last rounds.
    """

    density: LearnedDensity
    mixture: Mixture
    window: Window
    efficiency: float


@dataclass
class Rounds:
    """Learning, round by round.

    Attributes
    ----------
    calls : Calls
    rng : Generator
    centre, factor : ndarray
        About the mean and the factor of the covariance of the distribution.
    learnt : Learnt or None
        The last surrogate that has been tested.
    forecasts : list of float
        The calls that the run would have taken if learning had ended after each round.
    """

    calls: Calls
    rng: np.random.Generator
    centre: Array
    factor: Array
    learnt: Learnt | None = None
    forecasts: list[float] = field(default_factory=list)
    log_weights: list[Array] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)
    theta: Array | None = None
    mixture: Mixture | None = None
    walkers: Array | None = None
    moved: float = np.inf

    @property
    def batch(self) -> int:
        return BATCH + BATCH_EACH * len(self.centre)

    def until_good(self, most: float) -> None:
        """Rounds until more of them would not pay, or `most` calls have been made."""
        while self.calls.n + self.batch <= most:
            self.next()
            if self.over():
                break

    def over(self) -> bool:
        """Whether learning ends here."""
        assert self.learnt is not None
        if len(self.log_weights) < LEAST_ROUNDS:
            return False
        E = self.learnt.efficiency
        late = self.forecasts[-1] > min(self.forecasts) + PATIENCE * self.batch
        return self.moved < STILL and (E > ENOUGH or (late and E > LEAST))

    def next(self) -> None:
        """A round."""
        process, population, wide, window = self.explored()
        mixture = population.fit(window) or self.mixture
        heavy = int(HEAVY * self.batch)
        n = (self.batch - heavy) // 2
        drawn = population.x[self.rng.permutation(WALKERS)[:n]]
        uncertain = most_uncertain(process, wide, self.batch - heavy - n, self.rng)
        if mixture is None:
            self.calls(np.vstack([drawn, uncertain]))
            return
        students = Students(mixture)
        density = with_students(process, self.calls.without_density(), students, self.rng)
        held_out = np.vstack([drawn, students.draw(heavy, self.rng)])
        y = self.calls(np.vstack([held_out, uncertain]))
        self.log_weights.append(y[: n + heavy] - density.logp(held_out))
        self.shares.append(np.repeat([(1 - SHARE) / n, SHARE / heavy], [n, heavy]))
        E = efficiency(np.concatenate(self.log_weights[-2:]), np.concatenate(self.shares[-2:]))
        self.forecasts.append(self.calls.n + GOAL / max(E, 1e-3))
        self.mixture, self.learnt = mixture, Learnt(density, mixture, window, E)
        self.whiten(window)

    def final(self) -> Learnt:
        """The surrogate fitted to all calls, which is frozen."""
        assert self.learnt is not None
        process, population, _, window = self.explored()
        mixture = population.fit(window) or self.learnt.mixture
        density = with_students(
            process, self.calls.without_density(), Students(mixture), self.rng)
        return Learnt(density, mixture, window, self.learnt.efficiency)

    def explored(self) -> tuple[Process, Population, Window, Window]:
        """A new fit g, walkers on it, and their states on g^(1/2) and on g."""
        process = self.fitted()
        population = self.population(process_density(process, self.calls.without_density()))
        population.learn(population.window(WINDOWS[0]))
        wide = population.window(WINDOWS[1], FLATTER)
        population.window(WINDOWS[2])
        window = population.window(WINDOWS[2])
        self.walkers = population.x.copy()
        return process, population, wide, window

    def fitted(self) -> Process:
        X, y = self.calls.finite()
        steps = FIRST_STEPS if self.theta is None else STEPS
        process = fit(X, y, self.centre, self.factor, self.theta, steps)
        self.theta = process.theta
        return process

    def population(self, density: LearnedDensity) -> Population:
        """Walkers on s, half of them where the last round has left them."""
        X, y = self.calls.finite()
        d = X.shape[1]
        weights = np.exp(0.5 * np.maximum(y - y.max(), -100.0))
        x = X[self.rng.choice(len(X), WALKERS, p=weights / weights.sum())]
        if self.walkers is not None:
            x[::2] = self.walkers[::2]
        evaluate = Trusted(density, self.rng, X[near_enough(y.max() - y, d)], self.factor)
        scales = np.sqrt((self.factor**2).sum(axis=1))
        x = x + 0.1 * self.rng.standard_normal((WALKERS, d)) @ self.factor.T
        logp = evaluate(x)
        lost = ~np.isfinite(logp)
        x[lost], logp[lost] = x[~lost][0], logp[~lost][0]
        return Population(evaluate, x, logp, scales, np.ones(WALKERS), self.rng)

    def whiten(self, window: Window) -> None:
        """Take mean and covariance of states of the walkers."""
        states = window.x[window.second_half].reshape(-1, window.x.shape[2])
        cov = np.cov(states.T, ddof=1).reshape(len(self.centre), -1)
        old = self.factor @ self.factor.T
        try:
            self.factor = np.linalg.cholesky(cov + 1e-4 * old)
        except np.linalg.LinAlgError:
            return
        centre = states.mean(axis=0)
        self.moved = change(self.centre, old, centre, cov)
        self.centre = centre


def change(mean: Array, cov: Array, new_mean: Array, new_cov: Array) -> float:
    """The largest change of a coordinate's mean, in standard deviations, or log sd."""
    sd, new_sd = np.sqrt(np.diag(cov)), np.sqrt(np.diag(new_cov))
    return float(max((np.abs(new_mean - mean) / new_sd).max(), np.abs(np.log(new_sd / sd)).max()))


class Trusted:
    """The log density of a surrogate near the points that it was fitted to, and -inf elsewhere."""

    def __init__(
        self, density: LearnedDensity, rng: np.random.Generator, X: Array, factor: Array
    ) -> None:
        self.evaluate, self.factor = Evaluator(density, rng), factor
        self.tree = KDTree(whitened(X, np.zeros(X.shape[1]), factor))

    def __call__(self, X: Array) -> Array:
        """Log densities (n,) at points X (n, d)."""
        values = self.evaluate(X)
        some = np.flatnonzero(np.isfinite(values))
        z = whitened(X[some], np.zeros(X.shape[1]), self.factor)
        distance, _ = self.tree.query(z, distance_upper_bound=TRUSTED)
        values[some[~np.isfinite(distance)]] = -np.inf
        return values


def efficiency(log_weights: Array, shares: Array | None = None) -> float:
    """(sum w)^2 / (n sum w^2) of weights (n,); 0 where all are.

    Draws of strata stand for `shares` (n,) of the distribution each.
    """
    high = log_weights.max(initial=-np.inf)
    if not np.isfinite(high):
        return 0.0
    w = np.exp(log_weights - high)
    p = np.full(len(w), 1 / len(w)) if shares is None else shares / shares.sum()
    return float((p @ w) ** 2 / (p @ (w * w)))


def most_uncertain(
    process: Process, window: Window, n: int, rng: np.random.Generator
) -> Array:
    """n states of a window, each with the largest variance of log s given those before it."""
    states = window.x[window.second_half].reshape(-1, window.x.shape[2])
    states = states[np.isfinite(states).all(axis=1)]
    states = states[rng.permutation(len(states))[:CANDIDATES]]
    C = process.covariance(states)
    chosen = []
    for _ in range(min(n, len(states))):
        variance = np.diag(C).copy()
        variance[chosen] = 0.0
        k = int(variance.argmax())
        chosen.append(k)
        C = C - np.outer(C[:, k], C[k]) / max(C[k, k] + 1e-6, 1e-300)
    return states[chosen]
