"""Estimated densities by the default call: `python -m bench.first_answer.estimates [--quick]`.

Particle filters, importance sampling and approximate Bayesian computation by
`fk.sample(estimator, prior=prior, seed=seed)` and nothing else. The priors are wide: estimates at
most draws from them are useless. A run is judged as in `bench.first_answer`; the truth comes from
sums over a grid of the exact likelihood.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy import stats

import fastkam as fk
from bench.first_answer.__main__ import COLUMNS, FILE, is_right, row_of, text_of
from bench.papers.record import heading, options, table, write

POINTS = 60  # of a grid in each parameter


@dataclass(frozen=True)
class Case:
    """A model whose likelihood is estimated.

    Attributes
    ----------
    estimator : callable
        f(x, u), compiled by numba.
    n_aux : int
    exact : callable
        exact(*parameters) returns the log likelihood at arrays of parameters.
    prior : dict
        As `fk.sample` takes it.
    ranges : tuple
        (from, to) in each parameter, which hold the mass.
    """

    estimator: Callable[..., Any]
    n_aux: int
    exact: Callable[..., Any]
    prior: dict[str, Any]
    ranges: tuple[tuple[float, float], ...]

    def truth(self):
        """(means, standard deviations) by a sum over a grid."""
        axes = [low + (high - low) * (np.arange(POINTS) + 0.5) / POINTS
                for low, high in self.ranges]
        grid = np.meshgrid(*axes, indexing="ij")
        log_p = self.exact(*grid)
        for x, one in zip(grid, self.prior.values(), strict=True):
            log_p = log_p + one.logpdf(x)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        for axis, (ends, one) in enumerate(zip(self.ranges, self.prior.values(), strict=True)):
            at_ends = p.sum(axis=tuple({*range(p.ndim)} - {axis}))[[0, -1]]
            inside = np.array(ends) != one.support()
            assert (at_ends[inside] < 1e-3).all(), (axis, at_ends)  # the ranges hold the mass
        mean = np.array([(p * x).sum() for x in grid])
        return mean, np.sqrt([(p * (x - m) ** 2).sum() for x, m in zip(grid, mean, strict=True)])


@numba.njit
def log_mean(log_w):
    """The log of the mean of exp(log_w) (n,)."""
    highest = log_w.max()
    return highest + np.log(np.exp(log_w - highest).mean()) if highest > -np.inf else -np.inf


@numba.njit
def resampled(log_w, normal):
    """The indices of systematic resampling, with one normal number."""
    w = np.exp(log_w - log_w.max())
    edges = np.cumsum(w / w.sum())
    u = 0.5 * math.erfc(-normal / math.sqrt(2))
    return np.minimum(np.searchsorted(edges, (np.arange(len(w)) + u) / len(w)), len(w) - 1)


def of_states(steps=40, particles=64):
    """x_t = a x_(t-1) + s e_t, of which y_t = x_t + 0.5 e'_t is seen; the exact filter is Kalman's.
    """
    rng = np.random.default_rng(4)
    y, x = np.empty(steps), 0.0
    for t in range(steps):
        x = 0.8 * x + 0.6 * rng.standard_normal()
        y[t] = x + 0.5 * rng.standard_normal()

    @numba.njit
    def estimate(parameters, u):
        a, s = parameters
        x, total, n = np.zeros(particles), 0.0, particles + 1
        for t in range(steps):
            x = a * x + s * u[t * n : (t + 1) * n - 1]
            log_w = -2 * (y[t] - x) ** 2
            total += log_mean(log_w)
            if total == -np.inf:
                return total
            x = x[resampled(log_w, u[(t + 1) * n - 1])]
        return total

    def exact(a, s):
        mean, variance, total = 0.0, 0.0, 0.0
        for one in y:
            mean, variance = a * mean, a * a * variance + s * s
            whole = variance + 0.25
            total = total - 0.5 * ((one - mean) ** 2 / whole + np.log(whole))
            mean, variance = mean + variance / whole * (one - mean), variance * 0.25 / whole
        return total

    return Case(estimate, steps * (particles + 1), exact,
                {"a": stats.uniform(-1, 2), "s": stats.halfnorm(scale=30)}, ((-0.6, 1), (0, 1.8)))


def of_chain(steps=40, particles=64):
    """Counts of rate b, and c more while a hidden chain of two states, which stays with probability
    p, is in the second.
    """
    rng = np.random.default_rng(5)
    state, y = 0, np.empty(steps)
    for t in range(steps):
        state = state if rng.random() < 0.85 else 1 - state
        y[t] = rng.poisson((2.0, 9.0)[state])

    @numba.njit
    def estimate(parameters, u):
        low, more, stay = parameters
        z, total, n = np.zeros(particles), 0.0, particles + 1
        move = np.empty(particles)
        for t in range(steps):
            for i in range(particles):
                move[i] = 0.5 * math.erfc(-u[t * n + i] / math.sqrt(2)) > stay
            z = (1 - move) * z + move * (1 - z)
            rate = low + more * z
            log_w = y[t] * np.log(rate) - rate
            total += log_mean(log_w)
            if total == -np.inf:
                return total
            z = z[resampled(log_w, u[(t + 1) * n - 1])]
        return total

    def exact(low, more, stay):
        first, total = np.ones_like(low), 0.0  # the probability of the first state
        for one in y:
            first = stay * first + (1 - stay) * (1 - first)
            both = np.stack([stats.poisson.logpmf(one, low), stats.poisson.logpmf(one, low + more)])
            highest = both.max(axis=0)
            terms = np.stack([first, 1 - first]) * np.exp(both - highest)
            total = total + highest + np.log(terms.sum(axis=0))
            first = terms[0] / terms.sum(axis=0)
        return total

    return Case(estimate, steps * (particles + 1), exact,
                {"low": stats.halfnorm(scale=50), "more": stats.halfnorm(scale=50),
                 "stay": stats.uniform(0, 1)}, ((0.6, 4), (3, 11), (0.4, 1)))


def of_effects(terms=60):
    """Counts y_i ~ Poisson(exp(mu + tau b_i)), b_i ~ N(0, 1), by importance sampling."""
    y = np.array([0, 5, 1, 3, 12, 2, 4, 0, 2, 7, 1, 3, 6, 2, 1, 9, 0, 3, 2, 4.0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    @numba.njit
    def estimate(parameters, u):
        mu, tau = parameters
        total = 0.0
        for i in range(len(y)):
            log_rate = mu + tau * u[i * terms : (i + 1) * terms]
            total += log_mean(y[i] * log_rate - np.exp(log_rate))
        return total

    def exact(mu, tau):
        log_rate = mu[..., None] + tau[..., None] * nodes
        return sum(np.log(np.exp(one * log_rate - np.exp(log_rate)) @ weights) for one in y)

    return Case(estimate, len(y) * terms, exact,
                {"mu": stats.norm(0, 30), "tau": stats.halfnorm(scale=30)},
                ((-0.2, 2.2), (0.1, 2.4)))


def of_groups(groups=25, terms=60):
    """Binomial counts of 8, logit of mu + beta t + tau b_i, by importance sampling."""
    rng = np.random.default_rng(6)
    t = np.linspace(-1, 1, groups)
    y = rng.binomial(8, 1 / (1 + np.exp(-(0.3 + 1.2 * t + 0.8 * rng.standard_normal(groups)))))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    @numba.njit
    def estimate(parameters, u):
        mu, beta, tau = parameters
        total = 0.0
        for i in range(groups):
            logit = mu + beta * t[i] + tau * u[i * terms : (i + 1) * terms]
            # log(1 + e^l), without overflow
            total += log_mean(y[i] * logit - 8 * (np.maximum(logit, 0.0)
                                                  + np.log1p(np.exp(-np.abs(logit)))))
        return total

    def exact(mu, beta, tau):
        total = 0.0
        for one, place in zip(y, t, strict=True):
            logit = (mu + beta * place)[..., None] + tau[..., None] * nodes
            total = total + np.log(np.exp(one * logit - 8 * np.logaddexp(0, logit)) @ weights)
        return total

    return Case(estimate, groups * terms, exact,
                {"mu": stats.norm(0, 30), "beta": stats.norm(0, 30),
                 "tau": stats.halfnorm(scale=30)}, ((-1, 1.7), (-1, 3.5), (0, 2.4)))


def of_distances(kernel, n=20):
    """Mean and standard deviation of n normal numbers, compared with 2 and 1.5 by a kernel.

    The kernel is a product: of two intervals ("box"), or of two normal densities.
    """
    width = 0.3

    @numba.njit
    def estimate(parameters, u):
        mu, sigma = parameters
        z = mu + sigma * u
        m, s = z.mean() - 2, z.std() - 1.5
        if kernel == "box":
            return 0.0 if abs(m) < width and abs(s) < width else -np.inf
        return -0.5 * (m * m + s * s) / width**2

    def exact(mu, sigma):
        spread = sigma / math.sqrt(n)
        if kernel == "box":
            of_mean = stats.norm.cdf((2 + width - mu) / spread) - stats.norm.cdf(
                (2 - width - mu) / spread)
            cdf = [stats.chi2.cdf(n * (end / sigma) ** 2, n - 1) for end in (1.5 - width,
                                                                             1.5 + width)]
            return np.log(of_mean) + np.log(cdf[1] - cdf[0])
        s = 1.5 + width * np.linspace(-5, 5, 101)
        s = s[s > 0]
        density = stats.chi2.pdf(n * (s / sigma[..., None]) ** 2, n - 1) * s / sigma[..., None] ** 2
        of_sd = density @ np.exp(-0.5 * ((s - 1.5) / width) ** 2)
        return stats.norm.logpdf(2, mu, np.hypot(spread, width)) + np.log(of_sd)

    return Case(estimate, n, exact, {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=10)},
                ((-0.5, 4.5), (0.3, 5.5)))


def of_modes(sd=1.2):
    """Two normal modes, with normal noise of the log density."""
    @numba.njit
    def estimate(parameters, u):
        a = -2 * ((parameters[0] - 4) ** 2 + (parameters[1] - 4) ** 2)
        b = -2 * ((parameters[0] + 4) ** 2 + (parameters[1] + 4) ** 2)
        highest = max(a, b)
        return highest + np.log(np.exp(a - highest) + np.exp(b - highest)) + sd * u[0]

    def exact(x, y):
        return np.logaddexp(-2 * ((x - 4) ** 2 + (y - 4) ** 2), -2 * ((x + 4) ** 2 + (y + 4) ** 2))

    return Case(estimate, 1, exact, {"x": stats.norm(0, 30), "y": stats.norm(0, 30)},
                ((-7, 7), (-7, 7)))


CASES = {
    "particle filter of an autoregression, d = 2": of_states,
    "particle filter of a hidden chain, d = 3": of_chain,
    "Poisson counts with random effects, d = 2": of_effects,
    "binomial counts with random effects, d = 3": of_groups,
    "approximate Bayesian computation, a box": lambda: of_distances("box"),
    "approximate Bayesian computation, normal": lambda: of_distances("normal"),
    "two modes with noise of 1.2": of_modes,
}


def judge(case, truth, seed):
    """(right, warned, evaluations, CPU seconds, least ESS) of one run."""
    estimator = fk.Target.from_estimator(case.estimator, n_aux=case.n_aux)
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fk.sample(estimator, prior=case.prior, seed=seed, progress=False)
    seconds = time.process_time() - begun
    columns = result.summary()
    warned = any(issubclass(one.category, fk.SamplingWarning) for one in caught)
    ess = min(columns["ess_bulk"].min(), columns["ess_tail"].min())
    return is_right(columns, *truth), warned, result.evaluations, seconds, ess


def main():
    chosen = options(FILE, __doc__, quick="one seed")
    seeds = range(chosen.seed, chosen.seed + (1 if chosen.quick else 5))
    rows, totals = [], np.zeros(4, int)
    for name, make in CASES.items():
        case = make()
        truth = case.truth()
        row, counts = row_of(name, [judge(case, truth, seed) for seed in seeds])
        rows.append(row)
        totals += counts
    write(chosen.folder / "estimates.md", "\n".join([
        heading("Estimated densities by the default call",
                "python -m bench.first_answer.estimates", chosen),
        text_of(totals), table(COLUMNS, [*rows, ["all", *map(str, totals), "", "", ""]])]))


if __name__ == "__main__":
    main()
