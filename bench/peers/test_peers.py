"""The comparison compares the same things: `pytest bench/peers -q`."""

import numpy as np
import pytest

import fastkam as fk
from bench.peers import job, rounds, sampling
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


def test_a_package_that_does_not_run_is_told_of(monkeypatch):
    def ask(package, job, **arguments):
        if package == "zeus":
            raise PeerError("ImportError: no such thing")
        return {"samplers": {}, "versions": {}}

    monkeypatch.setattr(rounds, "ask", ask)
    contest = rounds.Contest()
    assert contest.problems == {"zeus": "ImportError: no such thing"}
    assert "zeus" not in contest.samplers
