"""The comparison compares the same things: `pytest bench/peers -q`."""

import sys
from pathlib import Path

import numpy as np
import pytest

import fastkam as fk
from bench.peers import environments, job, rounds, sampling
from bench.peers.densities import DENSITIES, V
from bench.peers.launch import PeerError


@pytest.mark.parametrize("name", DENSITIES)
def test_all_forms_of_a_density_agree(name):
    density = DENSITIES[name]
    X = np.random.default_rng(1).standard_normal((5, density.d))
    values = np.array([density.gradient(x)[0] for x in X])
    for x, value in zip(X, values, strict=True):
        fk.check_gradient(fk.as_target(density.gradient, density.d, gradient=True), x)
        if hasattr(density, "python"):
            assert density.python(x) == pytest.approx(value)
    if hasattr(density, "many"):
        np.testing.assert_allclose(density.many(X), values)
    if hasattr(density, "compiled"):
        compiled = density.compiled().logp(X)
        np.testing.assert_allclose(compiled - compiled[0], values - values[0])


def test_the_banana_has_the_moments_of_the_table():
    target = DENSITIES["banana"].compiled()
    np.testing.assert_allclose(target.mean, 0)
    np.testing.assert_allclose(np.diag(target.cov), [V, 201, 1, 1, 1, 1, 1, 1])


def walkers(n=20_000):
    """AR(1) chains (8, n, 1) of correlation 0.9: a draw is worth 1/19."""
    e = np.random.default_rng(2).standard_normal((8, n, 1)) * np.sqrt(1 - 0.9**2)
    x = np.empty_like(e)
    x[:, 0] = e[:, 0]
    for t in range(1, n):
        x[:, t] = 0.9 * x[:, t - 1] + e[:, t]
    return x


def test_an_ensemble_is_worth_what_its_mean_is():
    """Exchanging walkers does not make them worth more, as it does by their own courses."""
    x = walkers()
    ess = sampling.ensemble_ess(x)
    assert ess == pytest.approx(x.size / 19, rel=0.35)      # 4 standard errors
    mixed = np.random.default_rng(3).permuted(x, axis=0)
    np.testing.assert_allclose(sampling.ensemble_ess(mixed), ess)
    assert fk.diagnostics.ess_bulk(mixed) > 3 * ess         # the broken twin
    copies = np.repeat(x[:1], 8, axis=0)
    assert sampling.ensemble_ess(copies) == pytest.approx(x.size / 8 / 19, rel=0.3)


def test_the_error_says_how_many_draws_a_run_is_worth():
    rng, n = np.random.default_rng(4), 500
    answers = []
    for _ in range(400):
        x = rng.standard_normal(n) * np.sqrt(V)
        answers.append({"mean": [x.mean()], "var": [x.var()], "seconds": 2.0})
    assert sampling.by_error(answers) == pytest.approx(n / 2, rel=0.2)      # 4 standard errors


def test_steps_fill_the_time_though_some_of_it_is_spent_once(monkeypatch):
    monkeypatch.setattr(job, "counted", lambda c, name, n, seed: (4 * n, 0.5 + 1e-5 * 2 * n))
    contestant = job.Contestant(None, "python")
    steps, evaluations = job.steps_for(contestant, "normal", 4.0, 1)
    assert 0.5 + 1e-5 * 2 * steps == pytest.approx(4.0, rel=0.1)
    assert evaluations == 2


def test_a_package_that_does_not_run_is_reported(monkeypatch):
    def ask(package, job, **arguments):
        if package == "zeus":
            raise PeerError("ImportError: no such thing")
        return {"samplers": {}, "versions": {}}

    monkeypatch.setattr(rounds, "ask", ask)
    contest = rounds.Contest()
    assert contest.problems == {"zeus": "ImportError: no such thing"}
    assert "zeus" not in contest.samplers
    assert contest.missing("banana", 5) == [
        ["zeus", "", "did not run: ImportError: no such thing", "", ""]]


def test_a_sampler_that_fails_has_a_row(monkeypatch):
    told = {"stretch": {"kind": "python", "chains": 4, "parts": ["banana"], "ensemble": True}}

    def ask(package, job, **arguments):
        if job == "describe":
            return {"samplers": told, "versions": {}}
        if package == "emcee":
            raise PeerError("ValueError: a | b")
        return {"seconds": 1.0}

    monkeypatch.setattr(rounds, "ask", ask)
    contest = rounds.Contest(["fastkam", "emcee"])
    assert list(contest.rounds("banana", "sampling", [1, 2])) == [("fastkam", "stretch")]
    assert contest.missing("banana", 4) == [
        ["emcee", "stretch", "did not run: ValueError: a / b", ""]]
    assert contest.missing("neal", 4) == []


def test_chains_that_disagree_have_no_effective_draws():
    good, bad = ([{"r_hat": r_hat, "per_second": 7.0}] for r_hat in (1.02, 1.4))
    assert sampling.ratio(good, good) == "1"
    assert sampling.ratio(bad, good) == sampling.ratio(good, bad) == ""


def test_the_unit_is_the_bare_call_of_the_same_process(monkeypatch):
    """A processor that becomes slower for a while changes the nanoseconds, not the calls."""
    slow = iter([1.0, 1.0, 3.0, 3.0] * 100)
    monkeypatch.setattr(job, "steps_for", lambda *arguments: (100, 1.0))
    monkeypatch.setattr(job, "counted", lambda *arguments: (200, 0.1))
    monkeypatch.setattr(job, "timed", lambda go: (
        None, (1e-6 if go.__name__ == "bare" else 4e-6) * 200 * next(slow)))
    contestant = job.Contestant(lambda *arguments: lambda: None, "python", chains=1)
    assert job.overhead(contestant, 1.0, 1)["calls"] == pytest.approx(3.0)


def test_a_wheel_is_built_once_a_commit(monkeypatch, tmp_path):
    built = []

    def told(*words):
        built.append(words)
        place = Path(words[words.index("-w") + 1])
        place.mkdir(parents=True)
        (place / "fastkam-0.1.0-cp311-cp311-linux_x86_64.whl").touch()

    monkeypatch.setenv("FASTKAM_BENCH", str(tmp_path))
    monkeypatch.setattr(environments, "told", told)
    for version in ("a", "a", "b", None, None):     # None: sources that are not committed
        monkeypatch.setattr(environments, "version_of_sources", lambda version=version: version)
        assert environments.wheel().endswith(".whl")
    assert len(built) == 4


def test_the_last_error_of_pip_is_reported():
    with pytest.raises(environments.BuildError, match="ERROR: no such package"):
        environments.told(sys.executable, "-c", "import sys; print('Collecting x'); "
                          "print('ERROR: no such package', file=sys.stderr); sys.exit(1)")
