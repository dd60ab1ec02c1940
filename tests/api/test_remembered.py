"""Findings of further evaluations stay with a result, and with what is made from it."""

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.diagnostics import Finding
from fastkam.diagnostics.scouting import without_visited
from fastkam.diagnostics.weights import weight_findings
from fastkam.run.state import NOWHERE

MIDDLE = np.full(2, 15 / 2 / np.sqrt(2))
TWO = fk.targets.GaussianMixture([-MIDDLE, MIDDLE])
HEAVY = fk.targets.StudentT(2, 2.0)


def missed(seed=1):
    """A run in one of two modes, which R-hat does not detect."""
    return sample(TWO, -MIDDLE, sampler="ram", draws=10_000, tune=2000, seed=seed, search=False,
                  diagnose=False)


def lattice(x):
    """Sixteen modes, of which a default call misses some."""
    high = np.array([0.8, 0.7, 0.5, 0.3])
    return np.logaddexp(np.log(high) - 2 * (x - 10) ** 2,
                        np.log(1 - high) - 2 * (x + 10) ** 2).sum()


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


def test_the_newest_finding_of_a_kind_counts_and_copies_have_their_own():
    result = sample(TWO, -MIDDLE, draws=200, seed=1)
    other = copy.copy(result)
    for coordinate in ("x[0]", "x[1]"):
        result.remember([Finding("moments", "They differ.", (coordinate,))])
    found = [one.coordinates for one in result.warnings if one.kind == "moments"]
    assert found == [("x[1]",)]
    assert "moments" not in kinds(other)


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


@pytest.fixture(scope="module")
def of_both():
    """A run in both modes."""
    return sample(TWO, np.array([-MIDDLE, -MIDDLE, MIDDLE, MIDDLE]), sampler="ram", draws=4000,
                  tune=1000, seed=2, search=False, diagnose=False)


@pytest.mark.parametrize("mass", [np.nan, 0.3])     # of a mode; of a region
def test_a_place_counts_until_a_chain_has_visited_it(found, of_both, mass):
    place = np.append(found.state.unvisited[0, :-1], mass)[None]
    before, same, visited = (replace(state, unvisited=place) for state in (
        found.state, missed(seed=2).state, of_both.state))
    assert without_visited(before, same, TWO) is same
    assert not len(without_visited(before, visited, TWO).unvisited)
    # these draws, by the same fit, have never left the place out: they do not show a visit
    assert without_visited(visited, visited, TWO) is visited


def test_a_place_in_another_period_is_visited_too():
    """The window of periodic coordinates begins elsewhere when chains have moved."""
    def circle(x):
        return np.logaddexp(60 * np.cos(x[0]), 60 * np.cos(x[0] - 2.2))

    options = {"sampler": fk.RandomWalk(proposal_cov=0.01), "bounds": [(-np.pi, np.pi)],
               "transforms": {"x": "periodic"}, "draws": 500, "tune": 0, "search": False,
               "diagnose": False}
    for seed in range(6):
        one = sample(circle, np.zeros(1), **options, seed=seed)
        both = sample(circle, np.array([[0.0], [2.2], [2.2], [2.2]]), **options, seed=seed)
        for period in (-1, 0, 1):
            place = np.array([[2.2 + 2 * np.pi * period, 60.0, np.nan]])
            before, after = (replace(some.state, unvisited=place) for some in (one, both))
            assert without_visited(before, before, one.target) is before
            assert not len(without_visited(before, after, one.target).unvisited)


def gone(monkeypatch):
    """Let the look at draws of a run that has gone on find that the place has been visited."""
    monkeypatch.setattr("fastkam.run.drive.without_visited",
                        lambda before, state, target: replace(state, unvisited=NOWHERE))


@pytest.mark.parametrize("draws", [100, None])
def test_runs_that_go_on_keep_a_place_or_drop_it(draws, tmp_path, monkeypatch):
    """And so does their file."""
    path = tmp_path / "run.fk"
    first = fk.sample(TWO, -MIDDLE, seed=1, progress=False, budget=40_000, diagnose=False)
    place = np.array([[40.0, 40.0, 0.0, np.nan]])
    first = fk.Result(replace(first.state, unvisited=place), first.target)
    looks = []
    monkeypatch.setattr("fastkam.run.drive.with_unvisited",
                        lambda outcome, *rest: looks.append(1) or outcome)
    for dropped in (False, True):
        if dropped:
            gone(monkeypatch)
        on = first.resume(draws, checkpoint=path, progress=False, diagnose=False)
        assert kinds(on).count("unvisited") == (not dropped)
        assert kinds(fk.load(path)) == kinds(on)
    assert len(looks) == (draws is None)        # a place that is known need not be looked for


@pytest.mark.parametrize("kept", ["checkpoint", "store"])
def test_the_file_of_a_default_call_has_what_its_end_has_found(kept, tmp_path):
    path = tmp_path / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(lattice, np.zeros(4), seed=2, progress=False, **{kept: path})
    assert "unvisited" in kinds(result)
    assert kinds(fk.load(path)) == kinds(result)


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
