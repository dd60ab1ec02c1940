"""Metrics from draws and gradients: exact for a Gaussian, whatever its scales."""

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.samplers import hamiltonian, metrics


def gaussian(rng, d, n, spread):
    """Draws of N(0, Sigma), the gradients there, and Sigma, scales 10^-spread .. 10^spread."""
    A = rng.standard_normal((d, d)) / np.sqrt(d) + np.eye(d)
    A *= 10.0 ** rng.uniform(-spread, spread, (d, 1))
    u = rng.standard_normal((n, d))
    return u @ A.T, -np.linalg.solve(A.T, u.T).T, A @ A.T


def covariance(metric):
    s, U, w = metric
    F = s[:, None] * (np.eye(len(s)) + (U.T * w) @ U) if U is not None else s
    return F @ F.T


@pytest.mark.parametrize("form", [metrics.dense, lambda *a: metrics.low_rank(
    *a, most=100, cutoff=1.0)], ids=["dense", "low-rank"])
@pytest.mark.parametrize("spread", [0, 3, 6])
def test_gaussian(form, spread):
    x, g, Sigma = gaussian(np.random.default_rng(1), 12, 60, spread)
    scale = np.sqrt(np.diag(Sigma))
    found = covariance(form(x, g))
    np.testing.assert_allclose(found / np.outer(scale, scale), Sigma / np.outer(scale, scale),
                               atol=2e-3)


def test_a_metric_is_learned_to_the_end_of_a_long_warmup(monkeypatch):
    """After windows of 10, 15, 22, 33, 49, 73 and 109 steps, from the last 20 to 40 draws."""
    estimate, sizes = metrics.low_rank, []

    def counted(draws, gradients, **options):
        sizes.append(len(draws))
        return estimate(draws, gradients, **options)

    monkeypatch.setattr(metrics, "low_rank", counted)
    monkeypatch.setattr(hamiltonian, "ROWS", 40)
    sample(fk.targets.banana(d=2), np.zeros(2), sampler="nuts", tune=400, draws=1, chains=1,
           seed=1)
    assert sizes[:4] == [10, 15, 22, 33]
    assert len(sizes) == 7
    assert all(20 <= size <= 40 for size in sizes[4:])


@pytest.mark.parametrize("metric", ["diagonal", "low-rank"])
@pytest.mark.parametrize("sd", [[1.0, 1e-11], [1.0, 1e11]])
def test_a_metric_is_learned_at_scales_of_all_sizes(metric, sd):
    """Without the scales of a search; the standard deviations are within 5 errors."""
    sd = np.array(sd)
    result = sample(fk.targets.Gaussian(np.zeros(2), sd**2), sd, draws=500, tune=600, chains=4,
                    sampler=fk.NUTS(metric=metric, step_size=0.1), seed=1, search=False)
    table = result.summary()
    assert (np.abs(table["sd"] - sd) < 5 * table["mcse_sd"]).all()


@pytest.mark.parametrize("seed", range(20))
def test_draws_and_gradients_of_all_sizes(seed):
    """Draws from a distant start have such sizes, with collinear coordinates."""
    rng = np.random.default_rng(seed)
    d, n = 30, int(rng.integers(5, 200))
    A = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-6, 6, d)
    u = rng.standard_normal((n, d))
    x, g = u @ A.T, -np.linalg.solve(A.T, u.T).T * 10.0 ** rng.uniform(-3, 3, (n, 1))
    s, U, w = metrics.low_rank(x, g, most=100)
    assert np.isfinite(np.r_[s, U.ravel()]).all()
    assert (w > -1).all()
    assert np.isfinite(metrics.dense(x, g)[0]).all()


@pytest.mark.parametrize(("n", "weight"), [(4, 0.0), (5, 0.0), (6, 6 / 11), (40, 40 / 45)])
def test_the_metric_of_draws_alone_is_their_covariance_shrunk_to_its_diagonal(n, weight):
    """In five dimensions, with no correlation until there are more draws than dimensions."""
    x = np.random.default_rng(1).standard_normal((n, 5)) @ np.triu(np.ones((5, 5)))
    C = np.cov(x.T)
    expected = weight * C + (1 - weight) * np.diag(np.diag(C))
    np.testing.assert_allclose(covariance(metrics.dense_from_draws(x, x)), expected, rtol=1e-10)
