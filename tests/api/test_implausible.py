"""Searches do not go far beyond the prior, where functions have no digits left, at once."""

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.search.implausible import DEPTH, Implausible

LINE = "does the function lose its digits there?"


def without_digits(a):
    """Return a log likelihood with the rounding error of a sum of terms a x, from 1e16 on."""
    error = np.where(a > 1e16, a * 1e-16 * np.sin(a), 0.0)
    return (error - 0.5 * ((np.log(a) - 0.3) / 0.3) ** 2).sum()


@pytest.mark.parametrize("d", [6, 12])
def test_a_search_does_not_stay_where_a_function_has_no_digits(d):
    """70 standard deviations of the prior of log a are enough for that."""
    mean, sd = 0.3 / 0.09 / (1 / 0.09 + 1 / 0.25), (1 / 0.09 + 1 / 0.25) ** -0.5
    for seed in (0, 1):
        result = fk.sample(without_digits, prior={"a": (stats.lognorm(0.5), d)}, draws=2000,
                           seed=seed, progress=False)
        assert result.verdict().status == "ok"
        assert result.evaluations < 50_000  # 300 000 if walkers go there
        z = (np.log(result["a"]) - mean) / sd
        np.testing.assert_allclose(z.mean(axis=(0, 1)), 0, atol=0.15)
        np.testing.assert_allclose(z.std(axis=(0, 1)), 1, atol=0.15)
        assert sum(LINE in line for line in result.search) == 1


def test_a_look_beyond_the_draws_may_find_such_places():
    """The draws are right, and the warning says what to look at."""
    with pytest.warns(fk.SamplingWarning, match="the function may have lost its digits there"):
        result = fk.sample(without_digits, prior={"a": (stats.lognorm(0.5), 12)}, seed=0,
                           progress=False)
    assert [one.kind for one in result.warnings] == ["unvisited"]
    assert result["a"].max() < 10


@pytest.mark.parametrize("sd", [0.01, 0.0001])
def test_a_density_far_from_its_prior_is_found(sd):
    """250 or 500 standard deviations of the prior away, where its log is below -60 000."""
    def log_likelihood(m):
        return -0.5 * (((m - 5) / sd) ** 2).sum()

    precision = 1 / 0.01**2 + 1 / sd**2
    for seed in (1, 2):
        result = fk.sample(log_likelihood, prior={"m": (stats.norm(0, 0.01), 2)}, seed=seed,
                           progress=False)
        assert result.verdict().status == "ok"
        assert result.evaluations < 30_000
        z = (result["m"] - 5 / sd**2 / precision) * precision**0.5
        np.testing.assert_allclose(z.mean(axis=(0, 1)), 0, atol=0.15)
        assert not any(LINE in line for line in result.search)


def test_points_may_be_twice_as_deep_as_the_best():
    def log_prior(z):
        return -0.5 * (z**2).sum(axis=1)

    some = Implausible(lambda n, rng: rng.standard_normal((n, 2)), log_prior)
    start = np.array([3e4])     # the first point may be anywhere
    some.remove(np.array([[200.0, 0.0]]), start)
    assert start[0] == 3e4
    # depths of the best, 20 000, and of these points
    X = np.array([[100.0, 0], [200, 190], [200, 210], [0, 290]])
    values = np.full(4, 4e4)
    some.remove(X, values)
    np.testing.assert_array_equal(values, [4e4, 4e4, -np.inf, -np.inf])
    assert some.n == 0
    assert some.highest == 4e4


def test_points_near_the_prior_are_not_removed_and_higher_ones_far_away_are_counted():
    some = Implausible(lambda n, rng: rng.standard_normal((n, 1)), lambda z: -0.5 * z[:, 0] ** 2)
    some.remove(np.zeros((1, 1)), np.zeros(1))
    far = (2 * (DEPTH + 10)) ** 0.5
    X = np.array([[1.0], [-far], [far], [far], [np.nan]])
    values = np.array([-1.0, -5.0, 11.0, 9.0, -np.inf])
    some.remove(X, values)
    np.testing.assert_array_equal(values, [-1.0, -np.inf, -np.inf, -np.inf, -np.inf])
    assert some.n == 1          # the other one is not much higher
    some.remove(np.full((1, 1), 0.5), np.full(1, 2.0))
    assert some.n == 0          # that has been reached in the meantime
