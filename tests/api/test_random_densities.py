"""Densities that are random: two values at the same point differ, and no estimate was declared."""

import random

import numpy as np
import pytest
from scipy import stats

import fastkam as fk


def noisy(sd, *, gradient=False):
    """Return a normal log density with errors of this standard deviation."""
    rng = np.random.default_rng(5)

    def logp(x):
        value = -0.5 * x @ x + sd * rng.standard_normal()
        return (value, -x) if gradient else value

    return logp


@pytest.fixture
def kinds():
    """The kinds of the findings on a run."""
    def of(*args, **kwargs):
        with pytest.warns() if kwargs.pop("warns", True) else np.errstate():
            result = fk.sample(*args, seed=3, progress=False, **kwargs)
        return [one.kind for one in result.warnings]
    return of


@pytest.mark.parametrize("kwargs", [
    {}, {"sampler": "am", "draws": 500}, {"prior": {"x": (stats.norm(0, 2), 2)}},
    {"surrogate": "learn"}, {"vectorized": True}],
    ids=["default", "named sampler", "prior", "learned surrogate", "vectorized"])
def test_a_random_density_is_reported(kinds, kwargs):
    f = one = noisy(0.5)
    if "vectorized" in kwargs:
        def f(X):
            return np.array([one(x) for x in X])
    assert "random" in kinds(f, *([] if "prior" in kwargs else [[0.1, 0.1]]), **kwargs)


def test_a_density_that_is_zero_at_random_is_reported(kinds):
    """Approximate Bayesian computation without `Target.from_estimator`."""
    rng = np.random.default_rng(3)

    def simulated(x):
        return 0.0 if abs(rng.normal(x[0], 3.0)) < 1.0 else -np.inf

    with pytest.warns(fk.SamplingWarning, match="of two values at one point one is finite"):
        assert "random" in kinds(simulated, [0.0], warns=False)


@pytest.mark.parametrize("kwargs", [
    {}, {"sampler": "am", "draws": 500}, {"surrogate": "learn"},
    {"sampler": "am", "draws": 500, "spread": "points", "executor": 1}],
    ids=["default", "named sampler", "learned surrogate", "points"])
def test_a_random_density_is_reported_although_calls_are_kept(kinds, kwargs, tmp_path):
    assert "random" in kinds(noisy(0.5), [0.1, 0.1], evaluations=tmp_path / "calls.fk", **kwargs)


def test_a_random_density_is_reported_if_its_calls_are_in_a_file(kinds, tmp_path):
    """The next job does not make a call again that the file has."""
    random.seed(7)  # of no generator in the closure, by whose state the function is recognized

    def f(x):
        return -0.5 * x @ x + random.gauss(0.0, 0.5)

    run = {"sampler": "am", "draws": 500, "evaluations": tmp_path / "calls.fk"}
    assert "random" in kinds(f, [0.1, 0.1], **run)
    made = len(fk.Evaluations(tmp_path / "calls.fk"))
    assert "random" in kinds(f, [0.1, 0.1], **run)
    assert len(fk.Evaluations(tmp_path / "calls.fk")) < 1.02 * made


@pytest.mark.parametrize("f", [
    lambda X: np.full(len(X), -0.5 * np.sum(X**2)),
    lambda X: -0.5 * ((X - X.mean(axis=0)) ** 2).sum(axis=1),
    lambda X: np.cumsum(-0.5 * (X**2).sum(axis=1)),
    lambda X: np.full(len(X), -0.5 * (X[0] ** 2).sum())],
    ids=["sum of all", "centered by all", "cumulated", "first of all"])
def test_a_vectorized_density_that_depends_on_the_other_points_is_reported(kinds, f):
    assert "random" in kinds(f, np.zeros(3), vectorized=True)


@pytest.mark.parametrize("d", [2, 20])
def test_a_random_density_with_a_gradient_is_reported(kinds, d):
    assert "random" in kinds(noisy(0.5, gradient=True), np.zeros(d))


def test_a_random_density_is_reported_with_a_start_for_each_chain(kinds):
    starts = np.random.default_rng(1).standard_normal((4, 2))
    assert "random" in kinds(noisy(0.5), starts, sampler="ram", draws=500)


@pytest.mark.parametrize("scale", [1e-6, 0.0])
def test_rounding_is_not_reported(kinds, scale):
    assert kinds(noisy(scale), [0.1, 0.1], warns=False) == []


def test_rounding_of_large_numbers_is_not_reported(kinds):
    """Rounding of numbers with 24 bits, for example, is relative to the number."""
    f = noisy(0.05)
    assert kinds(lambda x: -1e6 + f(x), [0.1, 0.1], warns=False) == []


def test_a_random_density_of_large_numbers_is_reported(kinds):
    f = noisy(0.5)
    assert "random" in kinds(lambda x: -1e6 + f(x), [0.1, 0.1])


def test_a_declared_estimate_is_not_reported():
    target = fk.Target.from_estimator(
        lambda x, u: -0.5 * x @ x + 0.5 * u[0], 2, n_aux=1)
    result = fk.sample(target, [0.1, 0.1], draws=1000, seed=3, progress=False, diagnose=False)
    assert "random" not in [one.kind for one in result.warnings]


def test_a_function_that_fails_at_times_is_not_reported():
    calls = [0]

    def flaky(x):
        calls[0] += 1
        if calls[0] % 50 == 0:
            raise ValueError("no convergence")
        return -0.5 * x @ x

    result = fk.sample(flaky, [0.1, 0.1], draws=1000, seed=3, progress=False, on_error="reject",
                       diagnose=False)
    assert "random" not in [one.kind for one in result.warnings]
