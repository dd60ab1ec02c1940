"""Gaussian-process classification: unbiased, equal to its formula in NumPy, safe far out."""

import os
import pickle
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from runs import sample
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import multivariate_normal, norm
from threadpoolctl import threadpool_limits

import fastkam as fk
from fastkam.targets import GaussianProcessClassification, GaussianProcessLaplace

HEADERS = Path(__file__).parents[2] / "src" / "fastkam" / "_core" / "numerics"
FORMS = ("log_squared_length", "log_weight")
# False alarms of the z-tests below: 6 of them, P(|z| > 5) = 6e-7 each
BOUND = 5.0


@pytest.fixture(autouse=True)
def one_thread():
    """Limit BLAS to one thread, as in a run; two would wait for each other on a busy machine."""
    with threadpool_limits(1, user_api="blas"):
        yield


def problem(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(rng.random(n) < expit(2 * X[:, 0]), 1, -1)


# ---- the formula, again ------------------------------------------------------------------------


def covariance(X, theta, form):
    weights = np.exp(-theta / 2) if form == "log_squared_length" else np.exp(theta)
    return np.exp(-0.5 * (((X[:, None] - X) * weights) ** 2).sum(axis=2))


def mode(K, y):
    """f <- K (I + W K)^-1 (W f + g), and W at the end."""
    f = np.zeros(len(y))
    for _ in range(50):
        W = expit(f) * expit(-f)
        f = K @ np.linalg.solve(np.eye(len(y)) + W[:, None] * K, W * f + y * expit(-y * f))
    return f, expit(f) * expit(-f)


def log_prior(theta, variance):
    return norm.logpdf(theta, scale=np.sqrt(variance)).sum()


def laplace(X, y, theta, form, variance=5.0):
    K = covariance(X, theta, form)
    f, W = mode(K, y)
    quadratic = f @ (y * expit(-y * f))         # f'K^-1 f, since K^-1 f is the gradient at the mode
    _, log_det = np.linalg.slogdet(np.eye(len(y)) + W[:, None] * K)
    return log_expit(y * f).sum() - quadratic / 2 - log_det / 2 + log_prior(theta, variance)


def log_weights(X, y, theta, u, form, ridge=1e-3, drawn_ridge=None):
    """log p(y | f_i) + log N(f_i; 0, K + r I) - log N(f_i; m, S + r I), for u (..., n)."""
    n = len(y)
    K = covariance(X, theta, form)
    f, W = mode(K, y)
    S = K - K @ np.linalg.solve(K + np.diag(1 / W), K)
    one = np.eye(n)
    F = f + u @ np.linalg.cholesky(S + (ridge if drawn_ridge is None else drawn_ridge) * one).T
    return (log_expit(y * F).sum(axis=-1)
            + multivariate_normal(np.zeros(n), K + ridge * one).logpdf(F)
            - multivariate_normal(f, S + ridge * one).logpdf(F))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 30])
def test_the_formula_in_numpy(n, form):
    X, y = problem(n, 2)
    t = GaussianProcessClassification(X, y, n_importance=7, ridge=0.01, prior_variance=2.0,
                                      parametrization=form)
    rng = np.random.default_rng(2)
    for _ in range(5):
        theta, u = 2 * rng.standard_normal(2), rng.standard_normal((7, n))
        expected = (logsumexp(log_weights(X, y, theta, u, form, 0.01)) - np.log(7)
                    + log_prior(theta, 2.0))
        assert t.estimate(theta, u) == pytest.approx(expected, abs=1e-9)
        assert t.laplace(theta) == pytest.approx(laplace(X, y, theta, form, 2.0), abs=1e-9)


# ---- unbiased ----------------------------------------------------------------------------------


def evidence(X, y, theta, form, ridge):
    """p(y | theta) by Gauss-Hermite quadrature over f = L z."""
    n = len(y)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    z = np.stack(np.meshgrid(*[nodes] * n), axis=-1).reshape(-1, n)
    w = np.prod(np.meshgrid(*[weights] * n), axis=0).ravel() / (2 * np.pi) ** (n / 2)
    L = np.linalg.cholesky(covariance(X, theta, form) + ridge * np.eye(n))
    return w @ np.exp(log_expit(y * (z @ L.T)).sum(axis=1))


def z_score(estimates, truth):
    return (estimates.mean() - truth) / (estimates.std(ddof=1) / np.sqrt(len(estimates)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_estimate_is_unbiased(n, form):
    """The mean of p_hat against quadrature; the twin draws without the ridge."""
    X, y = problem(n, 2)
    theta, ridge = np.array([0.4, -0.3]), 0.3
    u = np.random.default_rng(3).standard_normal((20_000, 2, n))
    t = GaussianProcessClassification(X, y, n_importance=2, ridge=ridge, parametrization=form)
    truth = evidence(X, y, theta, form, ridge)
    estimates = np.exp([t.estimate(theta, each) - log_prior(theta, 5.0) for each in u])
    assert abs(z_score(estimates, truth)) < BOUND
    broken = np.exp(log_weights(X, y, theta, u, form, ridge, drawn_ridge=0)).mean(axis=1)
    assert abs(z_score(broken, truth)) > 2 * BOUND


def test_more_draws_are_less_noise():
    X, y = problem(30, 2)
    rng = np.random.default_rng(4)
    spread = [np.std([t.estimate([0, 0], rng.standard_normal((draws, 30))) for _ in range(300)])
              for draws in (4, 400)
              for t in [GaussianProcessClassification(X, y, n_importance=draws)]]
    assert 5 < spread[0] / spread[1] < 20


# ---- extremes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_extreme_scales(form):
    X, y = problem(40, 3)
    t = GaussianProcessClassification(X, y, n_importance=5, parametrization=form)
    u = np.random.default_rng(5).standard_normal((5, 40))
    for corner in product((-10, 0, 10), repeat=3):
        theta = np.array(corner, dtype=float)
        assert t.laplace(theta) == pytest.approx(laplace(X, y, theta, form), abs=1e-9)
        assert np.isfinite(t.estimate(theta, u))
    for scale in (-1e6, -1e3, 1e3, 1e6):
        assert np.isfinite(t.estimate(np.full(3, scale), u))
    for beyond in (np.inf, -np.inf, 1e200):
        assert t.laplace([0, beyond, 0]) == t.estimate([0, beyond, 0], u) == -np.inf
    assert np.isnan(t.laplace([0, np.nan, 0]))


def test_a_singular_covariance_is_rejected():
    """Without ridge: two equal points, and points closer than the rounding of K."""
    for X in ([[1.0], [1.0]], np.linspace(0, 1e-3, 30)[:, None]):
        y = np.arange(len(X)) % 2
        t = GaussianProcessClassification(X, y, n_importance=2, ridge=0)
        with pytest.raises(ArithmeticError, match=r"singular at theta = \[3\.\]"):
            t.estimate([3.0], np.zeros((2, len(X))))
        assert np.isfinite(t.laplace([3.0]))


def test_without_a_ridge_a_regular_covariance_is_accepted():
    X, y = problem(5, 2)
    t = GaussianProcessClassification(X, y, n_importance=3, ridge=0)
    theta, u = np.array([-1.0, -2.0]), np.random.default_rng(6).standard_normal((3, 5))
    expected = logsumexp(log_weights(X, y, theta, u, FORMS[0], 0.0)) - np.log(3)
    assert t.estimate(theta, u) == pytest.approx(expected + log_prior(theta, 5.0), abs=1e-9)


# ---- as a target -------------------------------------------------------------------------------


def test_overlapping_calls_give_the_same_bits():
    X, y = problem(60, 3)
    t = GaussianProcessClassification(X, y, n_importance=20)
    rng = np.random.default_rng(7)
    theta, u = rng.standard_normal((40, 3)), rng.standard_normal((40, 20, 60))
    alone = [t.estimate(theta[i], u[i]) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(t.estimate, theta, u)) == alone


PROGRAM = r"""
#include "workspace.h"
#include <stdint.h>

int main(void)
{
    fk_workspace w = {64};
    double *memory[FK_PLACES + 2];
    int place[FK_PLACES + 2];
    for (int i = 0; i < FK_PLACES + 2; i++) {
        memory[i] = fk_enter(&w, &place[i]);
        if (!memory[i] || (uintptr_t)memory[i] % FK_ALIGNMENT) return 1;
        for (int j = 0; j < 64; j++) memory[i][j] = i;
    }
    for (int i = 0; i < FK_PLACES + 2; i++) {
        if (memory[i][0] != i || memory[i][63] != i) return 2;
        fk_leave(&w, place[i], memory[i]);
    }
    if (fk_enter(&w, place) != memory[0] || fk_enter(&w, place) != memory[1]) return 3;
    fk_free_workspace(&w);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None or not HEADERS.is_dir(),
                    reason="needs a C compiler and the sources")
def test_more_simultaneous_calls_than_workspaces(tmp_path):
    source, program = tmp_path / "places.c", tmp_path / "places"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", f"-I{HEADERS}", source, "-o", program],
                   check=True)
    subprocess.run([program], check=True)


def test_the_approximation_can_be_sampled():
    """Its draws are the same in any number of threads, with the moments of a fine grid."""
    t = GaussianProcessLaplace(*problem(15, 1), prior_variance=2.0)
    runs = [sample(t, [0.0], draws=2000, tune=500, chains=4, seed=1, threads=threads,
                   progress=False) for threads in (1, 4)]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    grid = np.linspace(-9, 9, 2001)[:, None]
    p = np.exp(t.logp(grid))
    batches = runs[0].draws.reshape(40, 200).mean(axis=1)
    error = batches.std(ddof=1) / np.sqrt(40)
    assert abs(batches.mean() - p @ grid[:, 0] / p.sum()) < 5 * error


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_by_pickle_is_the_same(form):
    t = GaussianProcessClassification(*problem(9, 2), 3, 0.1, 4.0, form)
    copy = pickle.loads(pickle.dumps(t))
    u = np.random.default_rng(8).standard_normal((3, 9))
    assert copy.estimate([1, 2], u) == t.estimate([1, 2], u) == t.estimate([1, 2], u.ravel())
    assert pickle.loads(pickle.dumps(t.laplace)).logp([1, 2]) == copy.laplace([1, 2])
    assert t.abilities == ("noisy",)
    assert t.laplace.abilities == ("logp",)
    assert repr(t) == ("<GaussianProcessClassification d=2, prior_variance=4.0, "
                       f"parametrization={form!r}, n_importance=3, ridge=0.1>")


def test_bad_points_and_draws_are_named():
    t = GaussianProcessClassification(*problem(9, 2), n_importance=3)
    for theta, u, message in (
            ([1], np.zeros((3, 9)), r"theta must have shape \(2,\), not \(1,\)"),
            ([1, 2], np.zeros((9, 3)), r"u must have shape \(3, 9\), .* not \(9, 3\)")):
        with pytest.raises(ValueError, match=message):
            t.estimate(theta, u)
    with pytest.raises(TypeError, match="u must be an array of numbers"):
        t.estimate([1, 2], "u")


@pytest.mark.skipif(not os.environ.get("FASTKAM_DATA"), reason="FASTKAM_DATA names no folder")
def test_glass():
    t = fk.targets.glass_classification(n_importance=10)
    assert t.X.shape == (214, 9)
    np.testing.assert_allclose(np.cov(t.X.T), np.eye(9), atol=1e-9)
    rng = np.random.default_rng(9)
    theta, u = rng.standard_normal(9), rng.standard_normal((10, 214))
    expected = logsumexp(log_weights(t.X, t.labels, theta, u, FORMS[0])) - np.log(10)
    assert t.estimate(theta, u) == pytest.approx(expected + log_prior(theta, 5.0), abs=1e-8)
    assert t.laplace(theta) == pytest.approx(laplace(t.X, t.labels, theta, FORMS[0]), abs=1e-8)
    assert repr(t).startswith("<glass: GaussianProcessClassification d=9, ")
