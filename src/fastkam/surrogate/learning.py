"""Rounds of learning: fit a surrogate, sample it, call the density where it matters, fit again.

A round calls the density at draws of the surrogate s, and at as many points where its logarithm is
least certain, taken from draws of (g e^sd)^(1/2), where the fit g has this standard deviation: so
it comes to the ends of tails. Before they join the fit, the draws of s test it: with
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
from fastkam.search.mixture import Mixture
from fastkam.search.population import Population, Window
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.density import SHARE, Students, Support, process_density, with_students
from fastkam.surrogate.regression import Process, fit, near_enough, whitened

Array = NDArray[np.float64]

BATCH, BATCH_EACH = 16, 3  # calls of a round, and a dimension
HEAVY = 0.25  # share of them from the heavy-tailed components
WALKERS = 64
LOWEST = -1e10  # where a walker starts whose log density is -inf
FLATTER = 0.5  # the power of the hopeful g from whose draws uncertain points are chosen
HOPE = 1.0  # standard deviations
WINDOWS = (30, 30, 50)  # steps of walkers: to learn, on the flatter power, on s
CANDIDATES = 300
TRUSTED = 3.0  # standard deviations from the nearest point, within which walkers stay
GOAL = 400  # draws that count
LEAST_ROUNDS = 4
UNCERTAIN, BELOW = 1.0, 1.0  # sd of log g that matters, within this of the median of log g
SURE = 0.1  # share of hopeful states that are uncertain, below which learning may end
STILL = 0.25  # change of means, in standard deviations, and of log standard deviations in a round
ENOUGH = 0.85  # E at which learning ends
LEAST = 0.15  # E below which the surrogate does not pay
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
    moved: list[float] = field(default_factory=list)
    unsure: list[float] = field(default_factory=list)

    @property
    def batch(self) -> int:
        return BATCH + BATCH_EACH * len(self.centre)

    def until_good(self, most: float) -> None:
        """Rounds until more of them would not pay, or `most` calls have been made."""
        while self.calls.n + self.batch <= most:
            self.next()
            if self.over():
                break

    def begin_again(self) -> None:
        """Forget how good the surrogates until now have been."""
        self.log_weights.clear()
        self.shares.clear()
        self.forecasts.clear()

    def over(self) -> bool:
        """Whether learning ends here."""
        assert self.learnt is not None
        if len(self.log_weights) < LEAST_ROUNDS:
            return False
        E = self.learnt.efficiency
        late = self.forecasts[-1] > min(self.forecasts) + PATIENCE * self.batch
        settled = max(self.moved[-2:]) < STILL and max(self.unsure[-2:]) < SURE
        return (settled and E > ENOUGH) or (late and E > LEAST)

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
        density = with_students(process, Support.of(*self.calls.all()), students, self.rng)
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
            process, Support.of(*self.calls.all()), Students(mixture), self.rng)
        return Learnt(density, mixture, window, self.learnt.efficiency)

    def explored(self) -> tuple[Process, Population, Window, Window]:
        """A new fit g, walkers on it, states where the density may be high, and states on g."""
        process = self.fitted()
        density = process_density(process, Support.of(*self.calls.all()))
        hopeful = self.population(density, process)
        hopeful.learn(hopeful.window(WINDOWS[0], FLATTER))
        wide = hopeful.window(WINDOWS[1], FLATTER)
        population = self.population(density)
        population.learn(population.window(WINDOWS[0]))
        population.learn(population.window(WINDOWS[2]))
        window = population.window(WINDOWS[2])
        self.unsure.append(unsure(process, wide, window))
        self.walkers = population.x.copy()
        return process, population, wide, window

    def fitted(self) -> Process:
        X, y = self.calls.finite()
        steps = FIRST_STEPS if self.theta is None else STEPS
        process = fit(X, y, self.centre, self.factor, self.theta, steps)
        self.theta = process.theta
        return process

    def population(self, density: LearnedDensity, process: Process | None = None) -> Population:
        """Walkers on g, half of them where the last round has left them; with `process` hopeful.
        """
        X, y = self.calls.finite()
        d = X.shape[1]
        weights = np.exp(0.5 * np.maximum(y - y.max(), -100.0))
        x = X[self.rng.choice(len(X), WALKERS, p=weights / weights.sum())]
        if self.walkers is not None:
            x[::2] = self.walkers[::2]
        evaluate = Trusted(density, self.rng, X[near_enough(y.max() - y, d)], self.factor,
                           process)
        scales = np.sqrt((self.factor**2).sum(axis=1))
        x = x + 0.1 * self.rng.standard_normal((WALKERS, d)) @ self.factor.T
        logp = evaluate(x)
        lost = ~np.isfinite(logp)
        x[lost] = X[y.argmax()]
        logp[lost] = np.maximum(evaluate(x[lost]), LOWEST)
        return Population(evaluate, x, logp, scales, np.ones(WALKERS), self.rng)

    def whiten(self, window: Window) -> None:
        """Take mean and covariance of states of the walkers."""
        states = window.x[window.second_half].reshape(-1, window.x.shape[2])
        cov = np.cov(states.T, ddof=1).reshape(len(self.centre), -1)
        old = self.factor @ self.factor.T
        try:
            self.factor = np.asarray(np.linalg.cholesky(cov + 1e-4 * old), dtype=float)
        except np.linalg.LinAlgError:
            self.moved.append(np.inf)
            return
        centre = states.mean(axis=0)
        self.moved.append(change(self.centre, old, centre, cov))
        self.centre = centre


def change(mean: Array, cov: Array, new_mean: Array, new_cov: Array) -> float:
    """The largest change of a coordinate's mean, in standard deviations, or log sd."""
    sd, new_sd = np.sqrt(np.diag(cov)), np.sqrt(np.diag(new_cov))
    return float(max((np.abs(new_mean - mean) / new_sd).max(), np.abs(np.log(new_sd / sd)).max()))


def unsure(process: Process, wide: Window, window: Window) -> float:
    """The share of uncertain states among the hopeful ones that may be as good as those on g."""
    half = wide.second_half
    hopeful = wide.logp[half].ravel()
    good = hopeful > np.median(window.logp[window.second_half]) - BELOW
    if not good.any():
        return 0.0
    some = wide.x[half].reshape(-1, wide.x.shape[2])[good][:: max(1, good.sum() // CANDIDATES)]
    return float((process.sd(some) > UNCERTAIN).mean())


class Trusted:
    """The log density of a surrogate near the points that it was fitted to, and -inf elsewhere.

    With the `process` it is hopeful: one standard deviation higher.
    """

    def __init__(
        self, density: LearnedDensity, rng: np.random.Generator, X: Array, factor: Array,
        process: Process | None = None,
    ) -> None:
        self.evaluate, self.factor, self.process = Evaluator(density, rng), factor, process
        self.tree = KDTree(whitened(X, np.zeros(X.shape[1]), factor))

    def __call__(self, X: Array) -> Array:
        """Log densities (n,) at points X (n, d)."""
        values = self.evaluate(X)
        some = np.flatnonzero(np.isfinite(values))
        z = whitened(X[some], np.zeros(X.shape[1]), self.factor)
        distance, _ = self.tree.query(z, distance_upper_bound=TRUSTED)
        values[some[~np.isfinite(distance)]] = -np.inf
        some = some[np.isfinite(distance)]
        if self.process is not None and len(some):
            values[some] += HOPE * self.process.sd(X[some])
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
    chosen: list[int] = []
    for _ in range(min(n, len(states))):
        variance = np.diag(C).copy()
        variance[chosen] = 0.0
        k = int(variance.argmax())
        chosen.append(k)
        C = C - np.outer(C[:, k], C[k]) / max(C[k, k] + 1e-6, 1e-300)
    return states[chosen]
