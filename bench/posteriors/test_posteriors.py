"""Gradients, references, and what is counted."""

import numpy as np
import pytest

from bench.posteriors import references, runs
from bench.posteriors.densities import POSTERIORS


@pytest.mark.parametrize("name", POSTERIORS)
def test_gradient_is_that_of_the_density(name):
    one = POSTERIORS[name]
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = one.x0 + 0.1 * rng.standard_normal(one.d)
        value, found = one.logp_and_grad(x)
        assert value == pytest.approx(one.logp(x), rel=1e-12)
        steps = 1e-5 * np.eye(one.d)
        wanted = [(one.logp(x + h) - one.logp(x - h)) / 2e-5 for h in steps]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7 * (1 + np.abs(value)))


@pytest.mark.parametrize("name", POSTERIORS)
def test_reference_is_of_the_posterior(name):
    """Every posterior has one; where two samplers made it, they agree."""
    one, truth = POSTERIORS[name], references.load()[name]
    assert [len(truth[key]) for key in references.MOMENTS] == [one.d] * 4
    assert min(truth["sd"]) > 0
    assert truth["apart"] is None or truth["apart"] < references.MOST_APART
    assert np.isfinite(one.logp(np.array(truth["mean"])))


@pytest.mark.parametrize("name", ["AR(2)", "linear regression, correlation 0.99"])
def test_conjugacy_and_a_normal_approximation_agree(name):
    """Given log s, the density is normal: a grid over log s has the same moments."""
    one, truth = POSTERIORS[name], references.load()[name]
    center, width = truth["mean"][-1], truth["sd"][-1]
    grid = np.linspace(center - 8 * width, center + 10 * width, 400)
    mean, sd = references.normal_given(one, [one.d - 1], [grid])
    np.testing.assert_allclose(mean, truth["mean"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sd, truth["sd"], rtol=1e-5)


@pytest.mark.parametrize("name", ["AR(2)", "Gaussian process", "eight schools, non-centered"])
def test_importance_sampling_agrees_with_the_exact_moments(name, monkeypatch):
    """Means and standard deviations within 4.5 of their errors, which come from 20 batches.

    False alarms: 34 values, 1 in 120 choices of seeds. The last has a long tail, of log tau.
    """
    monkeypatch.setattr(references, "POINTS", 100_000)
    x, w = references.weighted_points(POSTERIORS[name])
    four, size = references.by_weights(x, w)
    truth = references.load()[name]
    assert size > 10_000
    for key, found, error in zip(("mean", "sd"), four[:2], four[2:], strict=True):
        assert (error < 0.02 * np.array(truth["sd"])).all()
        assert (np.abs(found - truth[key]) < 4.5 * error).all()


def test_labels_are_exchanged_with_their_components():
    """Each component has the moments of both, and the logit of the weight a mean of 0."""
    x = np.random.default_rng(1).standard_normal((50_000, 5)) * 0.3 + [0, 0, -1, 1, 0.5]
    x, w = references.without_labels(x, np.ones(len(x)))
    mean, sd = references.weighted(x, w)
    m2 = np.exp(0.3**2 / 2)     # of exp(u); m1 has mean 0
    np.testing.assert_allclose(mean, [m2 / 2, m2 / 2, 0, 0, 0], atol=0.01)
    np.testing.assert_allclose(sd[2:], [*2 * [np.hypot(0.3, 1)], np.hypot(0.3, 0.5)], atol=0.01)


def test_errors_beyond_the_tolerance_are_wrong():
    name = "AR(2)"
    truth = references.load()[name]
    four = np.array([truth[key] for key in references.MOMENTS])
    four[2:] = 0.03 * four[1]
    assert references.errors(name, four)[0]
    for k in range(2):
        for error, right in ((0.05, True), (0.11, False), (-0.11, False)):
            moved = four.copy()
            moved[k, 1] += error * four[1, 1]
            found, worst = references.errors(name, moved)
            assert found is right
            assert worst == pytest.approx(abs(error))
    four[2:] = 0.01 * four[1]   # an error of 0.05 is 5 standard errors now
    four[0, 0] += 0.05 * four[1, 0]
    assert not references.errors(name, four)[0]


@pytest.mark.parametrize("gradient", [False, True])
def test_evaluations_of_all_parts_are_counted(gradient):
    """A random walk of one evaluation a step: 1000 steps of warm-up, 1000 draws, four chains."""
    options = {"sampler": "nuts" if gradient else "ram", "check_gradient": False, "draws": 1000}
    row = runs.run("AR(2)", gradient, 1, 0, 10.0, **options)
    assert row["total"] == row["first"] > 8000
    if not gradient:
        assert row["before"] == pytest.approx(row["searched"] + 4000, abs=8)
        assert row["total"] == pytest.approx(row["searched"] + 8000, abs=8)
    share = 400 / row["ess"]
    wanted = row["before"] + share * (row["total"] - row["before"])
    assert row["evaluations"] == (pytest.approx(wanted) if row["ess"] >= 400 else None)
