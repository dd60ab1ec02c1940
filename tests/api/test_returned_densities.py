"""A function that returns a density in place of its logarithm is reported, however small it is."""

import threading
import time
import warnings

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

Y = np.random.default_rng(0).normal(1.0, 1.0, 20)  # the likelihood is 1e-13 at most


def likelihood(mu, sigma=1.0):
    return float(np.prod(stats.norm.pdf(Y, mu, sigma)))


CALLS = {
    "prior": (likelihood, {"prior": {"mu": stats.norm(0, 10)}}),
    "two parameters": (likelihood, {"prior": {"mu": stats.norm(0, 10),
                                              "sigma": stats.halfnorm(scale=3)}}),
    "flat prior": (likelihood, {"prior": {"mu": stats.uniform(-5, 10)}}),
    "bounds": (lambda x: likelihood(x[0]), {"x0": [0.0], "bounds": [(-10, 10)]}),
    "neither": (lambda x: likelihood(x[0]), {"x0": [0.0]}),
    "a named sampler": (likelihood, {"prior": {"mu": stats.norm(0, 10)}, "sampler": "ram"}),
    "no search": (likelihood, {"prior": {"mu": stats.norm(0, 10)}, "sampler": "ram",
                               "search": False}),
}


def kinds(f, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return [one.kind for one in fk.sample(f, seed=1, progress=False, **options).warnings]


@pytest.mark.parametrize("name", CALLS)
def test_a_small_density_is_reported(name):
    f, options = CALLS[name]
    assert kinds(f, **options) == ["not_a_logarithm"]


@pytest.mark.parametrize("sampler", ["auto", "ram"])
@pytest.mark.parametrize("f", [lambda mu: 0.0, lambda mu: -0.5 * (mu - 1) ** 2,
                               lambda mu: 1e-6 * np.sin(mu)])
def test_a_log_likelihood_is_not(f, sampler):
    prior = {"mu": stats.norm(0, 10)}
    assert "not_a_logarithm" not in kinds(f, prior=prior, sampler=sampler)


def test_evaluations_of_the_function_alone_are_counted():
    calls = [0]

    def counted(mu):
        calls[0] += 1
        return likelihood(mu)

    with pytest.warns(fk.SamplingWarning, match="return its logarithm"):
        result = fk.sample(counted, prior={"mu": stats.norm(0, 10)}, seed=1, progress=False)
    assert 0 <= calls[0] - result.evaluations <= 10


@pytest.mark.parametrize("options", [{"sampler": "ram"}, {}])
@pytest.mark.parametrize("budget", [2000, 20_000])
def test_a_budget_is_kept(budget, options):
    calls = [0]

    def counted(mu):
        calls[0] += 1
        return likelihood(mu)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        fk.sample(counted, prior={"mu": stats.norm(0, 10)}, seed=1, progress=False, budget=budget,
                  **options)
    assert calls[0] <= budget


def test_a_budget_is_used_but_for_one_call():
    calls = [0]

    def counted(x):
        calls[0] += 1
        return -0.5 * float(x @ x), -x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        fk.sample(counted, np.zeros(2), sampler="mala", chains=1, tune=50, seed=1, progress=False,
                  budget=500)
    assert 499 <= calls[0] <= 500


@pytest.mark.parametrize("options", [{"surrogate": "learn"}, {"sampler": "ram", "tune": 50}],
                         ids=["learned surrogate", "named sampler"])
@pytest.mark.parametrize("budget", [200, 230])
def test_a_budget_includes_the_calls_that_try_threads(options, budget):
    """A slow function that releases the GIL, of which no surrogate is found."""
    calls, lock = [0], threading.Lock()

    def slow(x):
        with lock:
            calls[0] += 1
        time.sleep(0.005)
        z = x - 3
        return -0.5 * (z[0]**2 / 0.01 + (z[1] - z[0]**2)**2 / 0.001 + 4 * z[2]**2 + z[3]**2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        fk.sample(slow, prior={"x": (stats.norm(0, 10), 4)}, seed=1, progress=False, budget=budget,
                  **options)
    assert 0.9 * budget < calls[0] <= budget
