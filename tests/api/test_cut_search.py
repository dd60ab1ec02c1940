"""Searches that a budget or a stop rule has cut short: their modes are used, and doubts are said.

A dose that is absorbed and eliminated, as two exponentials, has two modes of equal mass: the two
rates may be exchanged.
"""

import warnings

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.search import search
from fastkam.search.cut import CUT, LOOK, LOOKED
from fastkam.search.watch import Spent

TIMES = np.array([0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 24])
PRIOR = {"log_ka": stats.uniform(-3, 6), "log_ke": stats.uniform(-3, 6),
         "log_v": stats.uniform(-1, 5)}


def log_concentration(log_ka, log_ke, log_v):
    ka, ke, v = 10.0**log_ka, 10.0**log_ke, 10.0**log_v
    with np.errstate(all="ignore"):
        c = 100 * ka / (v * (ka - ke)) * (np.exp(-ke * TIMES) - np.exp(-ka * TIMES))
    return np.log(np.maximum(c, 1e-300))


OBSERVED = (log_concentration(np.log10(1.2), np.log10(0.25), np.log10(20))
            + 0.15 * np.random.default_rng(3).standard_normal(10))


def flip_flop(log_ka, log_ke, log_v):
    r = (OBSERVED - log_concentration(log_ka, log_ke, log_v)) / 0.15
    return -0.5 * r @ r


def with_gradient(x):
    """Two modes of weights 0.5, of standard deviations 0.05, 10 apart."""
    r = np.array([(x - m) / 0.05 for m in (-5, 5)])
    logs = -0.5 * (r * r).sum(axis=1)
    top = logs.max()
    w = np.exp(logs - top)
    return top + np.log(w.sum()), -(w @ r) / w.sum() / 0.05


def run(f, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return fk.sample(f, progress=False, **options)


def kinds(result):
    return [one.kind for one in result.warnings]


@pytest.fixture(scope="module")
def runs():
    """Eight seeds, in which the search is cut short."""
    return [run(flip_flop, prior=PRIOR, seed=seed, budget=60_000) for seed in range(8)]


def test_modes_that_a_cut_search_has_seen_are_sampled(runs):
    """One random walk per mode, in their place, never gave the shares of the modes."""
    right = 0
    for result in runs:
        assert result.search[-2].startswith(CUT) or result.search[-3].startswith(CUT)
        share = (result["log_ka"] > result["log_ke"]).mean()
        assert abs(share - 0.5) < 0.1 or result.verdict().status == "wrong"
        right += result.verdict().status == "ok"
        assert result.evaluations <= 60_000
    assert right >= 6


def test_what_is_left_of_a_budget_looks_for_missed_modes(runs):
    for result in runs:
        if result.search[-1].startswith(LOOKED):
            assert "search" not in kinds(result)
        else:
            assert "search" in kinds(result)
    assert sum(result.search[-1].startswith(LOOKED) for result in runs) >= 6


@pytest.mark.parametrize("options", [
    {"budget": 40_000}, {"stop": fk.stop.Done() | fk.stop.Evaluations(40_000)}])
def test_a_mode_that_may_be_missing_is_not_passed_over(options):
    for seed in range(8):
        result = run(flip_flop, prior=PRIOR, seed=seed, **options)
        share = (result["log_ka"] > result["log_ke"]).mean()
        assert abs(share - 0.5) < 0.1 or result.verdict().status != "ok"


def test_further_evaluations_settle_the_doubt():
    result = run(flip_flop, prior=PRIOR, seed=2,
                 stop=fk.stop.Done() | fk.stop.Evaluations(40_000))
    assert kinds(result) == ["search"]
    assert "ended the search while it looked for the modes" in str(result.verdict())
    assert result.verdict(evaluations=1000).status == "doubtful"
    assert result.verdict(evaluations=LOOK).status == "ok"
    assert result.warnings == []        # it is remembered


def test_a_gradient_leads_within_the_modes():
    result = run(with_gradient, x0=np.full(3, 4.0), seed=1, budget=15_000)
    assert any(line.startswith(CUT) for line in result.search)
    assert result.search[-1].startswith(
        "ModeJumping(FisherAdaptiveMALA), because the density has a gradient, and the search has "
        "ended early with 2 components")
    assert (result.draws[..., 0] < 0).any()
    assert "search" in kinds(result)


def test_a_search_that_was_not_cut_short_leaves_no_doubt():
    result = run(lambda x: -0.5 * float(x @ x), x0=np.zeros(2), seed=1, budget=60_000)
    assert not any(line.startswith("ended early") for line in result.search)
    assert not result.warnings


def two_modes(x):
    """N(0, I) and N(12, 0.7^2 I), of equal mass."""
    r = (x - 12) / 0.7
    return float(np.logaddexp(-0.5 * x @ x, -0.5 * r @ r - len(x) * np.log(0.7)))


def test_modes_found_last_are_used_and_walkers_that_disagree_are_doubted():
    """The search finds the second mode after some 8000 evaluations, and agrees after 12 500."""
    kept = disagreed = 0
    for share in range(8000, 13_300, 400):
        result = run(two_modes, x0=np.zeros(4), seed=11, draws=100, tune=20,
                     stop=fk.stop.Evaluations(3 * share))
        text = "".join(result.search)
        if "have found more" in text and isinstance(result.sampler, fk.ModeJumping):
            means = result.sampler.means[:, 0] * result.state.scales[0]
            assert means.min() < 6 < means.max()
            kept += 1
        if "do not agree" in text:
            assert CUT in text
            assert "search" in kinds(result)
            disagreed += 1
    assert kept > 5
    assert disagreed > 1


def test_a_mixture_that_has_been_fitted_is_kept(monkeypatch):
    made, fitted = [], search.Searcher.mixture

    def keeping(self, window):
        made.append(fitted(self, window))
        return made[-1]

    def spent(*_):
        raise Spent

    monkeypatch.setattr(search.Searcher, "mixture", keeping)
    monkeypatch.setattr(search, "tail_indices", spent)
    target = fk.as_target(two_modes, 4)
    found = search.Searcher(target, np.zeros((4, 4)), np.random.default_rng(1)).full(4, 60_000)
    assert found.mixture is made[0] is not None
    assert found.steps[-1].startswith("ended early, since")
