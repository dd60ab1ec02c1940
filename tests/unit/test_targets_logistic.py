"""Logistic regression: published values, layout, accuracy, threads."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runs import sample
from scipy import integrate
from scipy.special import log_expit

import fastkam as fk
from fastkam import targets

# log pi at 0, at the mode, and its posterior mean with standard error, from an independent
# program; the model of Titsias and Dellaportas, v = 1
PUBLISHED = {
    "australian": (15, -492.0556, -229.7109, -237.33, 0.04),
    "heart": (14, -200.0149, -104.4648, -111.70, 0.05),
    "pima": (8, -376.1058, -241.9627, -246.02, 0.03),
    "ripley": (3, -176.0436, -87.9646, -89.46, 0.02),
    "german": (25, -716.1206, -492.1147, -504.88, 0.07),
    "caravan": (86, -4114.5316, -1212.5948, -1257.1, 0.26),
}
needs_data = pytest.mark.skipif(
    not os.environ.get("FASTKAM_DATA"), reason="FASTKAM_DATA names no folder")


def synthetic(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ rng.standard_normal(d)))).astype(float)


@needs_data
@pytest.mark.parametrize("name", list(PUBLISHED))
def test_the_published_values(name):
    d, at_zero, at_mode, _, _ = PUBLISHED[name]
    t = targets.logistic_regression(name)
    assert t.dim == d
    assert t.logp(np.zeros(d)) == pytest.approx(at_zero, abs=6e-5)
    mode, cov = t.laplace()
    assert t.logp(mode) == pytest.approx(at_mode, abs=6e-5)
    assert np.abs(t.logp_grad(mode)[1]).max() < 1e-6
    assert (np.linalg.eigvalsh(cov) > 0).all()
    assert repr(t) == f"<{name}: LogisticRegression d={d}, prior_variance=1.0>"


@needs_data
@pytest.mark.parametrize("name", ["heart", "pima", "ripley", "german"])
def test_the_published_posterior_mean(name):
    """A random walk shaped by `laplace` finds E log pi, within 5 standard errors of both."""
    d, _, _, expected, error = PUBLISHED[name]
    t = targets.logistic_regression(name)
    mode, cov = t.laplace()
    walk = fk.RandomWalk(proposal_cov=2.38**2 / d * cov)
    res = sample(t, mode, sampler=walk, draws=40_000, tune=2000, chains=4, seed=1,
                 progress=False)
    batches = res.stats["lp"].reshape(4 * 20, 2000).mean(axis=1)
    own = batches.std(ddof=1) / np.sqrt(len(batches))
    assert own < 0.1
    assert abs(batches.mean() - expected) < 5 * np.hypot(own, error)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 127, 200])
@pytest.mark.parametrize("d", [1, 3, 8, 33])
def test_every_shape_of_the_blocks(n, d):
    X, y = synthetic(n, d)
    t = targets.LogisticRegression(X, y, prior_variance=0.7)
    rng = np.random.default_rng(2)
    w, v = rng.standard_normal((2, d))
    s = np.where(y > 0, 1, -1)
    z = s * (X @ w)
    p = np.exp(log_expit(-z))
    logp = log_expit(z).sum() - w @ w / 1.4 - d / 2 * np.log(2 * np.pi * 0.7)
    grad = X.T @ (s * p) - w / 0.7
    hvp = -X.T @ (p * (1 - p) * (X @ v)) - v / 0.7
    assert t.logp(w) == pytest.approx(logp, rel=1e-13)
    np.testing.assert_allclose(t.logp_grad(w)[1], grad, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(t.hvp(w, v), hvp, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(t.hessian(w) @ v, hvp, rtol=1e-11, atol=1e-12)


def test_labels_of_either_kind_are_the_same():
    X, y = synthetic(30, 4)
    w = np.ones(4)
    assert targets.LogisticRegression(X, y).logp(w) == targets.LogisticRegression(
        X, 2 * y - 1).logp(w)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 30.0, 700.0, 745.0, 1e4, 1e8])
def test_extreme_logits_keep_their_digits(scale):
    """Two rows of opposite labels: log sigma(z) + log sigma(-z) = -|z| - 2 log(1 + exp(-|z|))."""
    t = targets.LogisticRegression([[1.0], [1.0]], [0, 1], prior_variance=1e300)
    constant = -0.5 * np.log(2 * np.pi * 1e300)
    expected = -scale - 2 * np.log1p(np.exp(-scale)) + constant
    assert t.logp([scale]) == pytest.approx(expected, rel=1e-14)
    assert t.logp_grad([scale])[1][0] == pytest.approx(-np.tanh(scale / 2), rel=1e-13, abs=2e-16)


def test_the_prior_is_normalized():
    """One row of zeros gives the likelihood 1/2 everywhere."""
    t = targets.LogisticRegression([[0.0]], [1], prior_variance=3.0)
    total, _ = integrate.quad(lambda w: np.exp(t.logp([w])), -40, 40)
    assert total == pytest.approx(0.5, rel=1e-9)


def test_threads_give_the_same_bits():
    X, y = synthetic(1000, 25)
    t = targets.LogisticRegression(X, y)
    rng = np.random.default_rng(3)
    w = rng.standard_normal((200, 25))

    def everything(i):
        return t.logp(w[i]), *t.logp_grad(w[i]), t.hvp(w[i], w[i - 1])

    alone = [everything(i) for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            for one, other in zip(alone, pool.map(everything, range(200)), strict=True):
                for a, b in zip(one, other, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_chains_in_threads_are_the_same_draws():
    """The engine calls the density without the GIL: here the calls truly overlap."""
    X, y = synthetic(300, 5)
    for t in (targets.LogisticRegression(X, y), targets.gp_gaussian(), targets.mixture_32d()):
        runs = [sample(t, np.zeros(t.dim), draws=300, tune=100, chains=4, seed=1, threads=k,
                       sampler=fk.RandomWalk(proposal_cov=1e-3),
                       progress=False).draws for k in (1, 4)]
        np.testing.assert_array_equal(*runs)


def test_the_posterior_is_found():
    """z-test of the draws' mean and square against quadrature over a grid, at 5 standard errors."""
    X, y = synthetic(40, 2)
    t = targets.LogisticRegression(X, y)
    mode, cov = t.laplace()
    sd = np.sqrt(np.diag(cov))
    axes = [m + s * np.linspace(-8, 8, 161) for m, s in zip(mode, sd, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    p = np.exp(t.logp(grid) - t.logp(mode))
    truth = p @ np.c_[grid, grid**2] / p.sum()
    res = sample(t, mode, draws=20_000, tune=5000, chains=4, seed=1, progress=False)
    x = np.concatenate([res.draws, res.draws**2], axis=2)
    batches = x.reshape(4 * 40, 500, 4).mean(axis=1)
    z = (batches.mean(axis=0) - truth) / (batches.std(axis=0, ddof=1) / np.sqrt(len(batches)))
    assert np.abs(z).max() < 5


# ---- standardize -------------------------------------------------------------------------------


def test_standardize_divides_by_n_minus_one_and_appends_the_ones_last():
    X = np.random.default_rng(1).normal(3, 7, (20, 4))
    Z = targets.standardize(X, intercept=True)
    assert Z.shape == (20, 5)
    np.testing.assert_allclose(Z[:, :4].mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(Z[:, :4].var(axis=0, ddof=1), 1)
    np.testing.assert_array_equal(Z[:, 4], 1)
    assert targets.standardize(X).shape == (20, 4)
