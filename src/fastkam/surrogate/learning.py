"""Rounds of learning: fit a surrogate, sample it, call the density at selected points, fit again.

A round calls the density at draws of the surrogate s, and at as many points where its logarithm is
least certain, taken from draws of (g e^(2 sd))^(1/2), where log g has this standard deviation: so
it reaches the ends of tails. A few chains on pi^(1/2), which make one step per round, do not depend
on where g is certain. Before the draws of s join the fit, they test it: with the weights
w = pi / s, E = (sum w)^2 / (n sum w^2) is the share of weighted draws that count. Learning ends
when s no longer changes, is nowhere far below the density, and E is good or grows too slowly to
pay.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from fastkam._core.surrogate.learned import LearnedDensity
from fastkam.samplers.metropolis import OPTIMAL
from fastkam.search.evaluator import Evaluator
from fastkam.search.mixture import Mixture
from fastkam.search.population import Population, Window
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.density import (
    FLAT_SHARE,
    FLATTER,
    SHARE,
    Students,
    Support,
    process_density,
    with_tails,
)
from fastkam.surrogate.ends import Ends
from fastkam.surrogate.regression import Process, fit, near_enough, whitened

Array = NDArray[np.float64]

BATCH, BATCH_EACH = 18, 3  # calls of a round, and further ones per dimension
HEAVY, FLAT = 0.1, 0.15  # shares of them from the two wider terms of s
STEPS_OF_CHAINS = 0.25  # share of them that chains on the density itself take
BETA = 0.5  # power of the density for these chains: they reach its tails sooner
WALKERS = 64
LOWEST = -1e10  # where a walker starts whose log density is -inf
HOPE = 2.0  # standard deviations
WINDOWS = (30, 30, 50)  # steps of walkers: to learn, on the flatter power, on s
CANDIDATES = 300
TRUSTED = 3.0  # standard deviations from the nearest point, within which walkers stay
GOAL = 400  # draws that count
LEAST_ROUNDS = 4
UNCERTAIN, BELOW = 1.0, 1.0  # sd of log g that matters, within this of the median of log g
SURE = 0.1  # share of hopeful states that are uncertain, below which learning may end
STILL = 0.25  # change of means, in standard deviations, and of log standard deviations in a round
SURPRISE, FEW = 1.0, 0.02  # by which log pi may exceed log s, on this share of the distribution
ENOUGH, BEST = 0.75, 0.85  # E at which learning ends, and the most that it comes to
LEAST = 0.15  # E below which the surrogate does not pay
TOGETHER = 4  # rounds that are compared with as many before them
FOLLOWED = 4  # times in a round that the ends are followed
FIRST_STEPS, STEPS = 40, 12  # of the optimization of hyperparameters


@dataclass
class Learned:
    """A surrogate, with draws of it and its efficiency.

    Attributes
    ----------
    density : LearnedDensity
    mixture : Mixture
        A mixture fitted to s.
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
    center, factor : ndarray
        Estimates of the mean and of the factor of the covariance of the distribution.
    learned : Learned or None
        The last surrogate that has been tested.
    rounds : int
        Number of rounds so far.
    """

    calls: Calls
    rng: np.random.Generator
    center: Array
    factor: Array
    learned: Learned | None = None
    rounds: int = 0
    log_weights: list[Array] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)
    theta: Array | None = None
    mixture: Mixture | None = None
    walkers: Array | None = None
    moved: list[float] = field(default_factory=list)
    unsure: list[float] = field(default_factory=list)
    surprised: list[Array] = field(default_factory=list)
    chains: Chains | None = None
    ends: Ends = field(init=False)

    def __post_init__(self) -> None:
        self.ends = Ends.of(len(self.center))

    @property
    def batch(self) -> int:
        return BATCH + BATCH_EACH * len(self.center)

    def until_good(self, most: float) -> None:
        """Make rounds until further ones would not pay, or `most` calls have been made."""
        while self.calls.n + self.batch <= most:
            self.next()
            if self.over():
                break

    def begin_again(self, states: tuple[Array, Array] | None = None) -> None:
        """Forget how good the surrogates so far have been.

        Chains on the density continue from the first of `states` (m, d), with log densities (m,),
        if these are given.
        """
        self.log_weights.clear()
        self.shares.clear()
        self.surprised.clear()
        if states is not None and self.chains is not None:
            m = len(self.chains.x)
            self.chains = replace(self.chains, x=states[0][:m].copy(), logp=states[1][:m].copy())

    def over(self) -> bool:
        """Return whether learning ends here."""
        if len(self.log_weights) < LEAST_ROUNDS:
            return False
        settled = max(self.moved[-2:]) < STILL and max(self.unsure[-2:]) < SURE
        settled = settled and self.surprise() < FEW and not self.ends.asked
        # before that, E describes only a part of the distribution
        return bool(settled and (self.efficiency(-2) > ENOUGH or self.late()))

    def surprise(self) -> float:
        """The share of the distribution where s is too small, by the states of the chains.

        The chains are on the density to the power BETA: weights make up for the rest of the power.
        """
        if not self.surprised:
            return 0.0
        above, logp = np.concatenate(self.surprised[-TOGETHER:], axis=1)
        weights = np.exp((1 - BETA) * (logp - logp.max()))
        return float(weights @ (above > SURPRISE) / weights.sum())

    def late(self) -> bool:
        """Return whether further rounds would cost more calls than a better E would save.

        E is expected to grow as much as between the last rounds and as many rounds before them.
        """
        if len(self.log_weights) < 2 * TOGETHER:
            return False
        E, before = self.efficiency(-TOGETHER), self.efficiency(-2 * TOGETHER, -TOGETHER)
        hoped = min(BEST, E * max(1.0, E / max(before, 1e-3)))
        saved = GOAL / max(E, 1e-3) - GOAL / max(hoped, 1e-3)
        return E > LEAST and saved < TOGETHER * self.batch

    def efficiency(self, start: int, stop: int | None = None) -> float:
        """Return E over these rounds."""
        return efficiency(np.concatenate(self.log_weights[start:stop]),
                          np.concatenate(self.shares[start:stop]))

    def next(self) -> None:
        """Make a round."""
        process, population, wide, window = self.explored()
        mixture = population.fit(window) or self.mixture
        chains = 0 if self.chains is None else len(self.chains.x)
        heavy, flat = int(HEAVY * self.batch), int(FLAT * self.batch)
        rest = self.batch - heavy - flat - chains
        n = rest // 2
        drawn = population.x[self.rng.permutation(WALKERS)[:n]]
        uncertain = most_uncertain(process, wide, rest - n, self.rng)
        self.rounds += 1
        if mixture is None:
            self.calls(np.vstack([drawn, uncertain]))
            return
        students = Students(mixture)
        flatter = self.flatter(population)
        density = self.with_tails(process, students, flatter)
        held_out = np.vstack([drawn, flatter.x[-1][self.rng.permutation(WALKERS)[:flat]],
                              students.draw(heavy, self.rng)])
        steps = uncertain[:0] if self.chains is None else self.chains.propose(mixture, self.rng)
        points = np.vstack([held_out, uncertain, steps])
        y, log_s = self.calls(points), density.logp(points)
        m = len(held_out)
        self.log_weights.append(y[:m] - log_s[:m])
        self.shares.append(np.repeat(
            [(1 - SHARE - FLAT_SHARE) / n, FLAT_SHARE / flat, SHARE / heavy], [n, flat, heavy]))
        if self.chains is None:
            self.chains = Chains.begun(
                drawn, y[:n], log_s[:n], int(STEPS_OF_CHAINS * self.batch), self.rng, BETA)
        elif chains:
            self.chains.decide(steps, y[-chains:], self.rng)
        if self.chains is not None:
            self.surprised.append(np.array(
                [self.chains.logp - density.logp(self.chains.x), self.chains.logp]))
        self.mixture = mixture
        self.learned = Learned(density, mixture, window, self.efficiency(-2))
        self.whiten(window)
        self.follow()

    def final(self) -> Learned:
        """Return the surrogate fitted to all calls, which is kept fixed."""
        assert self.learned is not None
        process, population, _, window = self.explored()
        mixture = population.fit(window) or self.learned.mixture
        density = self.with_tails(process, Students(mixture), self.flatter(population))
        return Learned(density, mixture, window, self.learned.efficiency)

    def follow(self) -> None:
        """Call the density beyond its ends so far, with a new fit each time."""
        for _ in range(FOLLOWED):
            X, y = self.calls.finite()
            process = fit(X, y, self.center, self.factor, self.theta, 0)
            density = process_density(process, Support.of(*self.calls.all()))
            points = self.ends.propose(density, X, y, self.center, self.factor)
            if not len(points):
                break
            self.ends.tell(points, self.calls(points), y.max())

    def with_tails(self, process: Process, students: Students, flatter: Window) -> LearnedDensity:
        """Return the density s of a process, with wider terms."""
        log_g = flatter.logp[flatter.second_half].ravel()
        return with_tails(process, Support.of(*self.calls.all()), students, log_g, self.rng)

    def flatter(self, population: Population) -> Window:
        """Return states of the walkers on g^FLATTER; the walkers return to g afterwards."""
        x, logp = population.x.copy(), population.logp.copy()
        window = population.window(WINDOWS[1], FLATTER)
        population.x, population.logp = x, logp
        return window

    def explored(self) -> tuple[Process, Population, Window, Window]:
        """Return a new fit g, walkers on it, hopeful states, and states on g."""
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
        process = fit(X, y, self.center, self.factor, self.theta, steps)
        self.theta = process.theta
        return process

    def population(self, density: LearnedDensity, process: Process | None = None) -> Population:
        """Return walkers on g, half of them at their states of the last round.

        With `process`, their density is the hopeful one: see `Trusted`.
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
        """Estimate mean and covariance from the walkers' states."""
        states = window.x[window.second_half].reshape(-1, window.x.shape[2])
        cov = np.cov(states.T, ddof=1).reshape(len(self.center), -1)
        old = self.factor @ self.factor.T
        try:
            self.factor = np.asarray(np.linalg.cholesky(cov + 1e-4 * old), dtype=float)
        except np.linalg.LinAlgError:
            self.moved.append(np.inf)
            return
        center = states.mean(axis=0)
        self.moved.append(change(self.center, old, center, cov))
        self.center = center


def change(mean: Array, cov: Array, new_mean: Array, new_cov: Array) -> float:
    """Return the largest change of a coordinate's mean, in standard deviations, or log sd."""
    sd, new_sd = np.sqrt(np.diag(cov)), np.sqrt(np.diag(new_cov))
    return float(max((np.abs(new_mean - mean) / new_sd).max(), np.abs(np.log(new_sd / sd)).max()))


def unsure(process: Process, wide: Window, window: Window) -> float:
    """Return the share of uncertain states among hopeful ones with densities as high as g's."""
    half = wide.second_half
    hopeful = wide.logp[half].ravel()
    good = hopeful > np.median(window.logp[window.second_half]) - BELOW
    if not good.any():
        return 0.0
    some = wide.x[half].reshape(-1, wide.x.shape[2])[good][:: max(1, good.sum() // CANDIDATES)]
    return float((process.sd(some) > UNCERTAIN).mean())


@dataclass
class Chains:
    """Chains on the density itself, with the shape of the nearest component of a mixture.

    Attributes
    ----------
    x : ndarray, shape (m, d)
    logp : ndarray, shape (m,)
    log_length : float
        Log of the length of their proposals, adapted to an acceptance rate of 0.3.
    beta : float
        The power of the density that they leave invariant.
    """

    x: Array
    logp: Array
    log_length: float = 0.0
    beta: float = 1.0

    @staticmethod
    def begun(
        X: Array, y: Array, log_s: Array, m: int, rng: np.random.Generator, beta: float = 1.0
    ) -> Chains | None:
        """m chains at draws X (n, d) of s, with log densities y (n,), resampled by the weights
        pi^beta / s; None where all are 0.
        """
        log_w = beta * y - log_s
        w = np.exp(log_w - np.max(log_w, initial=-np.inf))
        if not np.isfinite(w).all() or not w.sum() > 0:
            return None
        rows = rng.choice(len(X), m, p=w / w.sum())
        return Chains(X[rows].copy(), y[rows].copy(), float(np.log(OPTIMAL / np.sqrt(X.shape[1]))),
                      beta)

    def propose(self, mixture: Mixture, rng: np.random.Generator) -> Array:
        """Return a proposal for each chain, (m, d)."""
        _, k = mixture.nearest(self.x)
        normals = rng.standard_normal(self.x.shape)
        steps = np.einsum("nij,nj->ni", mixture.factors[k], normals)
        return np.asarray(self.x + np.exp(self.log_length) * steps)

    def decide(self, y: Array, logp: Array, rng: np.random.Generator) -> None:
        """Accept or reject proposals y (m, d) with their log densities (m,)."""
        alpha = np.exp(np.minimum(0.0, self.beta * (logp - self.logp)))
        accepted = rng.random(len(y)) < alpha
        self.x[accepted], self.logp[accepted] = y[accepted], logp[accepted]
        self.log_length += float(alpha.mean()) - 0.3


class Trusted:
    """The log density of a surrogate near the points that it was fitted to, and -inf elsewhere.

    With `process`, it is an upper bound: higher by HOPE standard deviations.
    """

    def __init__(
        self, density: LearnedDensity, rng: np.random.Generator, X: Array, factor: Array,
        process: Process | None = None,
    ) -> None:
        self.evaluate, self.factor, self.process = Evaluator(density, rng), factor, process
        self.tree = KDTree(whitened(X, np.zeros(X.shape[1]), factor))

    def __call__(self, X: Array) -> Array:
        """Return the log densities (n,) at points X (n, d)."""
        values = self.evaluate(X)
        some = np.flatnonzero(np.isfinite(values))
        z = whitened(X[some], np.zeros(X.shape[1]), self.factor)
        distance, _ = self.tree.query(z, distance_upper_bound=TRUSTED)
        values[some[~np.isfinite(distance)]] = -np.inf
        some = some[np.isfinite(distance)]
        if self.process is not None and len(some):
            values[some] += HOPE * self.process.sd(X[some])
        return values


@np.errstate(under="ignore")
def efficiency(log_weights: Array, shares: Array | None = None) -> float:
    """Return (sum w)^2 / (n sum w^2) for weights w (n,), or 0 if all are 0.

    With strata, each draw represents a share (n,) of the distribution.
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
    """Return n states of a window, each with the largest variance of log s given the former."""
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
