"""Distributions of scipy.stats are sampled directly: in their support, and as they are."""

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

QUIET = {"diagnose": False, "seed": 1}


@pytest.mark.parametrize("distribution", [
    stats.norm(3, 2), stats.gamma(2, scale=3), stats.beta(2, 5), stats.expon(), stats.skewnorm(4),
    stats.truncnorm(-1, 2)], ids=lambda one: one.dist.name)
def test_univariate(distribution):
    """Mean and standard deviation within 5 standard errors: one of 12 is beyond in 1 of 1.5e5 runs.
    """
    result = fk.sample(distribution, draws=2000, **QUIET)
    assert result.draws.shape == (4, 2000, 1)
    x = result["x"]
    assert np.isfinite(distribution.logpdf(x)).all()
    table = result.summary()
    assert abs(x.mean() - distribution.mean()) < 5 * table["mcse_mean"][0]
    assert abs(x.std() - distribution.std()) < 5 * max(table["mcse_sd"][0], 0.01 * x.std())


def test_multivariate():
    cov = np.array([[2.0, 1.2], [1.2, 1.0]])
    result = fk.sample(stats.multivariate_normal([1, -1], cov), draws=2000, **QUIET)
    np.testing.assert_allclose(result.draws.mean(axis=(0, 1)), [1, -1], atol=0.2)
    np.testing.assert_allclose(np.cov(result.draws.reshape(-1, 2).T), cov, atol=0.35)
    w = fk.sample(stats.dirichlet([2.0, 3.0, 4.0]), draws=500, names=["w"], **QUIET)["w"]
    np.testing.assert_allclose(w.sum(axis=-1), 1)
    np.testing.assert_allclose(w.mean(axis=(0, 1)), np.array([2, 3, 4]) / 9, atol=0.05)


def test_arrays_of_parameters_and_new_distributions():
    assert fk.sample(stats.norm([0, 10, 20], 1), draws=50, **QUIET)["x"].shape == (4, 50, 3)
    if hasattr(stats, "Normal"):
        assert fk.sample(stats.Normal(mu=3, sigma=1), draws=50, **QUIET)["x"].mean() > 2


def test_every_sampler_takes_it():
    for sampler in ("nuts", "ram", "pt"):
        result = fk.sample(stats.gamma(3), [1.0], sampler=sampler, draws=20, tune=20, **QUIET)
        assert (result["x"] > 0).all()


def test_refusals():
    with pytest.raises(ValueError, match="bounds is not for a distribution"):
        fk.sample(stats.norm(), bounds=[(0, 1)])
    with pytest.raises(ValueError, match="names must be one name"):
        fk.sample(stats.norm([0, 1]), names=["a", "b"])
    with pytest.raises((TypeError, ValueError), match=r"discrete|poisson"):
        fk.sample(stats.poisson(3))


@pytest.mark.parametrize(("target", "says"), [
    (stats.norm, r"with its parameters, not stats\.norm itself: write stats\.norm\(\.\.\.\)"),
    (stats.multivariate_normal, r"write stats\.multivariate_normal\("),
    (stats.poisson, r"write stats\.poisson\("),
    (stats.gaussian_kde(np.random.default_rng(1).normal(size=(2, 20))), "its method logpdf")],
    ids=["norm", "multivariate_normal", "poisson", "gaussian_kde"])
@pytest.mark.parametrize("x0", [None, np.zeros(2)], ids=["without start", "with start"])
def test_what_returns_no_log_density_is_refused(target, says, x0):
    with pytest.raises(TypeError, match=says):
        fk.sample(target, x0, **QUIET)


def test_the_method_of_a_kernel_density_estimate():
    data = np.random.default_rng(1).normal(size=(2, 200))
    result = fk.sample(stats.gaussian_kde(data).logpdf, np.zeros(2), draws=500, **QUIET)
    np.testing.assert_allclose(result.draws.mean(axis=(0, 1)), data.mean(axis=1), atol=0.4)
