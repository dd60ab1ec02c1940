"""Gradients, exact moments, and that wrong results are detected."""

import numpy as np
import pytest

import fastkam as fk
from bench.validation.posteriors import POSTERIORS
from bench.validation.report import bias, is_wrong, line, says_good, z_of
from bench.validation.runs import contenders, run
from fastkam.samplers import SAMPLERS


@pytest.mark.parametrize("name", POSTERIORS)
def test_gradient_is_that_of_the_density(name):
    known = POSTERIORS[name]()
    if isinstance(known.f, fk.Target):
        return      # tested with the built-in densities
    rng = np.random.default_rng(1)
    for x in known.starts(5, rng):
        found = known.f(x)[1]
        steps = 1e-6 * np.eye(len(x))
        wanted = [(known.logp(x + h) - known.logp(x - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", POSTERIORS)
def test_moments_agree_with_weights_of_other_draws(name):
    """Importance sampling from Student's t, 5 standard errors: a fault of 3 % is seen."""
    known = POSTERIORS[name]()
    d = len(known.mean)
    rng = np.random.default_rng(2)
    n = 40_000
    z = rng.standard_normal((n, d)) * np.sqrt(5 / rng.chisquare(5, n))[:, None]
    x = known.mean + 1.3 * known.sd * z
    logs = np.array([known.logp(point) for point in x])
    logs += 0.5 * (5 + d) * np.log1p((z**2).sum(axis=1) / 5)
    w = np.exp(logs - logs.max())
    for values, truth in ((x, known.mean), ((x - known.mean) ** 2, known.sd**2)):
        estimate = w @ values / w.sum()
        error = np.sqrt((w**2) @ (values - estimate) ** 2) / w.sum()
        assert (np.abs(estimate - truth) < 5 * error).all()
        assert (error < 0.1 * known.sd ** (1 if values is x else 2)).all()


def test_every_registered_sampler_is_there():
    assert set(SAMPLERS) < set(contenders())
    assert len(POSTERIORS) >= 15


def test_a_wrong_target_is_seen():
    """The moments of another density: nearly all runs say good, and are wrong."""
    known = POSTERIORS["normal, correlation 0.9, d = 2"]()
    rows = [run(known, {"sampler": "ram"}, seed, 2500) for seed in range(3)]
    for row in rows:
        assert says_good(row)
        assert not is_wrong(row)
        assert max(z.max() for z in z_of(row)) < 5
    shifted = type(known)(known.f, known.mean + 0.4, known.sd)
    rows = [run(shifted, {"sampler": "ram"}, seed, 2500) for seed in range(3)]
    assert line(rows)[:3] == ["3", "3", "3"]


def test_a_bias_is_seen():
    row = {"sampler": "am", "posterior": "a", "schedule": "finite", "error": [0.01, 0.05],
           "mcse": [0.02, 0.02]}
    assert "+0.0500 (+5.0)" in bias([{**row, "seed": k} for k in range(4)])
