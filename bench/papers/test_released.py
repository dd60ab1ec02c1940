"""Samplers as released differ from the papers as their docstrings say, and in nothing else."""

import numpy as np
import pytest

import fastkam as fk
from bench.papers.dharamshi2023 import released as dharamshi2023
from bench.papers.li2022 import released as li2022
from bench.papers.titsias2019 import released as titsias2019

COVARIANCE = [[2.0, 0.7], [0.7, 0.5]]


def run(sampler, x0=(1.0, 1.0), **options):
    target = fk.targets.Gaussian([0.0, 1.0], COVARIANCE)
    return fk.sample(target, x0, sampler=sampler, chains=2, seed=3, progress=False,
                     **{"tune": 400, "draws": 300} | options)


def assert_close(one, other):
    np.testing.assert_allclose(one.draws, other.draws, rtol=1e-6, atol=1e-6)


class WithTheMaskOfThePaper(titsias2019.AdaptiveMetropolis):
    def change(self, v, w):
        return self.L @ np.tril(np.outer(w, w) - np.eye(self.d))


def test_the_cholesky_factor():
    schedule = fk.schedules.Finite(gain=titsias2019.AdaptiveMetropolis().default_gain(2))
    paper = fk.CholeskyAdaptiveMetropolis(proposal_cov=1.0, scale=0.1 / np.sqrt(2), scale_gain=0.01,
                                          mean_gain=0.01)
    expected = run(paper, schedule=schedule)
    assert_close(run(WithTheMaskOfThePaper()), expected)
    assert not np.allclose(run(titsias2019.AdaptiveMetropolis()).draws, expected.draws)


class TrueSwaps(dharamshi2023.ParallelTempering):
    def swap(self, a, b):
        self.states[[a, b]], self.logps[[a, b]] = self.states[[b, a]], self.logps[[b, a]]


@pytest.mark.parametrize("rungs", [2, 5])
def test_swaps(rungs):
    paper = fk.ParallelTempering(sampler=fk.RandomWalk(proposal_cov=0.5), n_replicas=rungs,
                                 scheme="random",
                                 betas=np.linspace(1, 0.1, rungs), tune_betas=False,
                                 reference="flat")
    options = {"n_replicas": rungs, "variance": 0.5}
    expected = run(paper)
    assert_close(run(TrueSwaps(**options)), expected)
    released = run(dharamshi2023.ParallelTempering(**options))
    assert not np.allclose(released.draws, expected.draws)
    for state in released.states:
        np.testing.assert_array_equal(state["kernel.states"][0], state["x"])


def test_a_copy_goes_from_hot_to_cold_as_often_as_back():
    """Both orders of a pair have the same probability, and the same acceptance probability."""
    pairs = []

    class Recorded(dharamshi2023.ParallelTempering):
        def swap(self, a, b):
            pairs.append((a, b))
            super().swap(a, b)

    run(Recorded(variance=0.5), draws=5000)
    n, to_cold = len(pairs), pairs.count((0, 1))
    assert pairs.count((1, 0)) == n - to_cold
    assert n > 2000
    assert abs(to_cold - n / 2) < 2.5 * np.sqrt(n)     # 5 standard errors: 6e-7 by chance


def test_the_adaptive_walk():
    starts, d = np.array([[1.0, 1.0], [0.0, 2.0]]), 2
    result = run(dharamshi2023.AdaptiveRandomWalk(), starts, schedule="perpetual", tune=0)
    for state, x0, draws in zip(result.states, starts, result.draws, strict=True):
        learned = 2.38**2 / d * np.cov(np.vstack([x0, draws]).T)
        L = np.asarray(state["kernel.L"])
        np.testing.assert_allclose(L @ L.T, 0.95 * learned + 0.05 * 0.01 / d * np.eye(d),
                                   rtol=1e-10)
    few = run(dharamshi2023.AdaptiveRandomWalk(), schedule="perpetual", tune=0, draws=3)
    for state in few.states:
        np.testing.assert_allclose(state["kernel.L"], np.sqrt(0.01 / d) * np.eye(d))


class EntryOfTheProposal(dharamshi2023.DivergenceMinimization):
    def reverse(self, x, y):
        return self.nearest(y)


@pytest.mark.parametrize("tune", [0, 400])
def test_the_finite_form(tune):
    options = {"proposal_cov": 1.0, "rejection_factor": 0.5, "bank_size": 30, "entropy_weight": 0.5}
    expected = run(fk.DivergenceMinimization(**options), tune=tune)
    assert_close(run(EntryOfTheProposal(**options), tune=tune), expected)
    released = run(dharamshi2023.DivergenceMinimization(**options), tune=tune)
    assert np.allclose(released.draws, expected.draws) == (tune == 0)


def test_ckam_has_no_kernel():
    sampler = li2022.ckam(2, cycle=100)
    assert sampler.gamma(1) == pytest.approx(4, rel=0.01)
    assert sampler.gamma(101) == pytest.approx(1)
    states = run(sampler, schedule="perpetual").states
    assert all(state["kernel.n"] == 0 for state in states)


@pytest.mark.parametrize(("make", "mean", "second"), [
    (li2022.two_mode, [8 / 3, 0], [65.5, 1.5]),
    (li2022.five_component, [5, 5], [39, 39]),
])
def test_moments_of_the_targets(make, mean, second):
    np.testing.assert_allclose(make().mean, mean, atol=1e-12)
    np.testing.assert_allclose(make().second_moment, second, rtol=1e-12)


def test_the_divergence_of_the_figures_misses_a_missed_mode():
    target, box = fk.targets.two_mode(), [[-17.0, 17.0], [-12.0, 12.0]]
    x = target.sample(50_000, seed=1)
    missing = x[x[:, 0] < 0]
    outside = np.vstack([x, [[100.0, 0.0]]])
    half, one = (li2022.symmetric_kl(each, target.logp, box, 600) for each in (x, missing))
    assert one < 1 < fk.diagnostics.symmetric_kl(missing, target.logp, box, 60)
    assert li2022.symmetric_kl(outside, target.logp, box, 600) == pytest.approx(half, rel=1e-9)
