"""Findings of further evaluations stay with a result, and with what is made from it."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.diagnostics.weights import weight_findings

MIDDLE = np.full(2, 15 / 2 / np.sqrt(2))
TWO = fk.targets.GaussianMixture([-MIDDLE, MIDDLE])
HEAVY = fk.targets.StudentT(2, 2.0)


def missed():
    """A run in one of two modes, which R-hat does not detect."""
    return sample(TWO, -MIDDLE, sampler="ram", draws=10_000, tune=2000, seed=1, search=False,
                  diagnose=False)


def kinds(result):
    return [one.kind for one in result.warnings]


@pytest.fixture(scope="module")
def found():
    result = missed()
    assert result.verdict().status == "ok"
    assert result.verdict(1000).status == "wrong"
    return result


def test_a_verdict_stays(found):
    assert kinds(found) == ["unvisited"]
    assert found.verdict().status == "wrong"
    assert "No chain has visited a mode" in str(found.summary())
    again = pickle.loads(pickle.dumps(found))
    assert kinds(again) == ["unvisited"]


def test_another_look_that_finds_nothing_does_not_withdraw_it(found):
    assert found.verdict(4).status == "wrong"


def test_a_verdict_is_kept_in_files(found, tmp_path):
    found.save(tmp_path / "run.fk")
    assert kinds(fk.load(tmp_path / "run.fk")) == ["unvisited"]


def test_findings_other_than_a_place_stay_too():
    result = sample(HEAVY, np.zeros(2), sampler="ram", draws=1000, seed=1, search=False,
                    diagnose=False)
    for _ in range(2):
        result.verdict(1000)
        assert kinds(result).count("tails") == 1


def test_the_evidence_tells_the_verdict():
    """Its own look for modes has found the one without draws."""
    result = missed()
    evidence = result.log_evidence()
    assert sum("The evidence lacks what is there" in one for one in evidence.notes) == 1
    assert result.verdict().status == "wrong"
    assert kinds(result) == ["unvisited"]


def test_the_verdict_tells_the_evidence(found):
    notes = found.log_evidence(evaluations=400).notes
    assert sum("The evidence lacks what is there" in one for one in notes) == 1


def test_a_place_counts_until_a_chain_has_visited_it(found):
    """Chains go on where they are; of two states, the draws of one have the place."""
    assert "unvisited" in kinds(found.resume(100, progress=False, diagnose=False))
    near = found.state.unvisited.copy()
    near[0, :2] = found.draws[0, -1]
    for mass in (np.nan, 0.3):      # of a mode; of a region
        near[0, -1] = mass
        result = fk.Result(replace(found.state, unvisited=near), found.target)
        assert kinds(result) == ["unvisited"]
        assert kinds(result.resume(100, progress=False, diagnose=False)) == []


def test_a_place_is_forgotten_with_another_density(found):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        on = found.resume(100, target=lambda x: TWO.logp(x) + 1.0, check_target=False,
                          progress=False, diagnose=False)
    assert kinds(on) == []


def test_weighted_draws_have_the_finding_too(found):
    log_weights = np.zeros(found.draws.shape[:2])
    assert [one.kind for one in weight_findings(found.state, log_weights)] == ["unvisited"]


def test_weighted_draws_of_chains_that_disagree():
    """Weights do not mend the draws of a surrogate whose modes the chains have not shared."""
    result = sample(TWO, np.array([-MIDDLE, -MIDDLE, MIDDLE, MIDDLE]), sampler="ram", draws=1000,
                    seed=1, search=False, diagnose=False)
    log_weights = np.zeros(result.draws.shape[:2])
    first = weight_findings(result.state, log_weights)[0]
    assert (first.kind, first.status) == ("r_hat", "doubtful")
    assert "do not agree about the surrogate" in first.text
