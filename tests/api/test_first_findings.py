"""Findings and starts of first calls: a wrong sign within bounds, a start on a wall."""

import warnings

import numpy as np
import pytest
from scipy import stats

import fastkam as fk


def quietly(f, x0=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return fk.sample(f, x0, progress=False, **{"seed": 1} | options)


def kinds(result):
    return [one.kind for one in result.warnings]


def test_a_wrong_sign_within_bounds_is_warned_of():
    """A negative log likelihood drives all draws into a corner of the prior's support."""
    def negative(mu, sigma):
        return 25 * (mu - 1) ** 2 / sigma**2 + 50 * np.log(sigma)

    prior = {"mu": stats.uniform(-5, 10), "sigma": stats.uniform(0.01, 10)}
    with pytest.warns(fk.SamplingWarning, match=r"corner of the bounds, near \(-5, 0.01\)"):
        fk.sample(negative, prior=prior, seed=1, progress=False)


@pytest.mark.parametrize(("f", "bounds"), [
    (lambda x: 100.0 * x[0] - 0.5 * x[1] ** 2, [(0, 1), (-10, 10)]),
    (lambda x: -1000.0 * x[0], [(0, 1)]),       # no failure in a thousand trials
    (lambda x: float(8 * x @ x), [(-1, 1), (-1, 1)]),
])
def test_draws_at_a_bound_are_not(f, bounds):
    result = quietly(f, np.full(len(bounds), 0.5), bounds=bounds)
    assert "improper" not in kinds(result)


@pytest.mark.parametrize("sampler", ["auto", "am"])
@pytest.mark.parametrize("x0", [[0.0], [0.0, 0.0]])
def test_a_start_on_a_wall(x0, sampler):
    """The density is 0 on one side of the start at any distance; the other side has the scale."""
    def f(x):
        return -float(x.sum()) if x.min() >= 0 else -np.inf

    result = quietly(f, x0, sampler=sampler)
    np.testing.assert_allclose(result.scales, 1, rtol=0.9)
    np.testing.assert_allclose(result.draws.mean(axis=(0, 1)), 1, atol=0.15)


def test_a_start_in_the_corner_of_a_box():
    result = quietly(lambda x: 0.0 if 0 <= x.min() <= x.max() <= 1 else -np.inf, [0.0, 0.0])
    np.testing.assert_allclose(result.draws.mean(axis=(0, 1)), 0.5, atol=0.05)


def test_a_t_prior_some_of_whose_degrees_are_infinite():
    result = quietly(lambda a: 0.0, prior={"a": stats.t([5, np.inf])})
    np.testing.assert_allclose(result["a"].std(axis=(0, 1)), [np.sqrt(5 / 3), 1], rtol=0.15)


@pytest.mark.parametrize(("options", "mend"), [
    ({"bounds": ([0, 0], [1, 1])}, "scipy.optimize.Bounds"),
    ({"bounds": (np.zeros(2), np.ones(2))}, "scipy.optimize.Bounds"),
    ({"bounds": ([0, 1], [2, 3])}, "scipy.optimize.Bounds"),
])
def test_all_low_and_all_high_bounds_are_no_pairs(options, mend):
    with pytest.raises(ValueError, match=mend):
        quietly(lambda x: 0.0, [0.5, 0.5], **options)


@pytest.mark.parametrize("bounds", [[[0, 1], [2, 3]], ((0, 1), (2, 3)), [(0, 1), (2, 3)]])
def test_pairs_are(bounds):
    result = quietly(lambda x: 0.0, [0.5, 2.5], bounds=bounds, draws=50, tune=50)
    assert ((result.draws > [0, 2]) & (result.draws < [1, 3])).all()


@pytest.mark.parametrize(("options", "message"), [
    ({"prior": {"a": "normal"}}, r"write scipy.stats.norm\(...\)"),
    ({"prior": {"a": "norm"}}, r"write scipy.stats.norm\(...\)"),
    ({"prior": {"a": 2.0}}, r"leave it out of prior and give kwargs=\{.a.: 2.0\}"),
    ({"prior": {"a": "gama"}}, "did you mean 'gamma'"),
    ({"prior": {"a": stats.norm()}, "transforms": {"a": "logg"}}, "did you mean 'log'"),
])
def test_near_names(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        quietly(lambda a: 0.0, **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"tune": 2**45}, "tune must fit into memory, not 35184372088832 states"),
    ({"sampler": fk.KernelAdaptiveMetropolis(history_size=2**47)}, "history_size=140737488355328"),
])
def test_what_does_not_fit_into_memory_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        quietly(lambda x: -0.5 * float(x @ x), [0.0, 0.0], **{"sampler": "am"} | options)


@pytest.mark.parametrize("seed", range(3))
def test_a_density_that_overflows_shows_no_warnings_of_the_search(seed):
    """A wrong sign: walkers climb to the largest numbers, where all log densities are equal."""
    def negative(mu, sigma):
        with np.errstate(all="ignore"):
            return 25 * (mu - 1) ** 2 / sigma**2 + 50 * np.log(sigma)

    prior = {"mu": stats.uniform(-5, 10), "sigma": stats.halfnorm(0, 3)}
    with pytest.raises(fk.SamplingError, match="is its sign wrong"):
        fk.sample(negative, prior=prior, seed=seed, progress=False)
