"""Samplers in Python leave their target invariant; with one mistake each they do not."""

import numpy as np
import pytest

import fastkam as fk
from fastkam import targets
from fastkam.samplers import Decision, Proposal
from fastkam.testing import invariance

FALSE_ALARM = 1e-4
BANANA = targets.banana(b=0.1, V=4.0, d=2)


class Skewed(fk.PythonSampler):
    """y = x e^(s e) in each coordinate's distance from a corner: log_q = sum log(y' / x')"""

    corner: float = -12.0
    s: float = 0.2

    def propose(self, x, rng):
        return self.corner + (x - self.corner) * np.exp(self.s * rng.standard_normal(self.d))

    def log_q(self, x, y):
        return np.log((y - self.corner) / (x - self.corner)).sum()


class WithoutRatio(Skewed):
    log_q = fk.PythonSampler.log_q


class Tries(fk.PythonSampler):
    """Delayed rejection of a symmetric step, without and with the term of the first try."""

    right: bool = True
    bold: float = 0.7

    def step(self, x, rng):
        first = yield x + self.bold * rng.standard_normal(self.d)
        if self.E > self.logp_x - first.logp:
            return Proposal(first)
        self.E = rng.standard_exponential()
        second = yield x + 1.5 * rng.standard_normal(self.d)
        if not self.right or second.logp == -np.inf:
            return Proposal(second)
        with np.errstate(divide="ignore"):
            log_q = (np.sum((first.x - x) ** 2 - (first.x - second.x) ** 2)
                     / (2 * self.bold**2)
                     + np.log(-np.expm1(min(0.0, first.logp - second.logp)))
                     - np.log(-np.expm1(first.logp - self.logp_x)))
        return Proposal(second, log_q=log_q)


class Best(fk.PythonSampler):
    """Multiple tries; the mistake is to go without the tries around the point chosen."""

    right: bool = True
    WIDTH = 3

    def step(self, x, rng):
        tries = yield x + 2 * rng.standard_normal((3, self.d))
        w = np.exp([point.logp for point in tries])
        y = tries[np.searchsorted(np.cumsum(w) / w.sum(), rng.random())]
        others = tries[:2]
        if self.right:
            others = yield y.x + 2 * rng.standard_normal((2, self.d))
        log_ratio = np.log(w.sum()) - np.log(
            np.exp(self.logp_x) + sum(np.exp(point.logp) for point in others))
        return Decision(y, alpha=min(1.0, np.exp(log_ratio)), accepted=self.E > -log_ratio)


@pytest.mark.parametrize("sampler", [Skewed(), Tries(), Best(),
                                     fk.ModeJumping(sampler=Tries(), jump_probability=0.4,
                                                    means=[[-3.0, 0.0], [3.0, 0.0]], fit=False)],
                         ids=lambda sampler: type(sampler).__name__)
def test_invariance(sampler):
    found = invariance(sampler, BANANA, replicates=15_000, tune=0, seed=2)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("sampler", [WithoutRatio(), Tries(right=False), Best(right=False)],
                         ids=lambda sampler: type(sampler).__name__)
def test_a_planted_mistake_is_detected(sampler):
    found = invariance(sampler, BANANA, replicates=20_000, steps=6, tune=0, seed=3)
    assert found.p_value < FALSE_ALARM, found
