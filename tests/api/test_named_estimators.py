"""Estimates of functions that take parameters by name, and data from args and kwargs."""

import functools
import pickle

import densities
import numpy as np
import pytest
from same import assert_same
from scipy import stats

import fastkam as fk

DATA = np.array([0.3, -1.2, 0.8])
PRIOR = {"mu": (stats.norm(), 2), "sigma": stats.halfnorm()}
OPTIONS = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "sampler": "ram", "progress": False,
           "diagnose": False}
estimator = fk.Target.from_estimator


def estimate(mu, sigma, data, u):
    """Normal observations with random effects, of which u are draws."""
    z = (data - mu[0] - mu[1] * u) / sigma
    return float(-0.5 * z @ z - len(z) * np.log(sigma))


def by_name(mu, sigma, u, data):
    return estimate(mu, sigma, data, u)


def by_other_names(mu, sigma, *, data, xi):
    return estimate(mu, sigma, data, xi)


def noise_first(xi, mu, sigma, data):
    return estimate(mu, sigma, data, xi)


def of_array(x, u, data):
    return estimate(x[:2], x[2], data, u)


def noise_last(x, data, u):
    return estimate(x[:2], x[2], data, u)


def of_unusual_names(p, xi, data=DATA):
    return estimate(p[:2], p[2], data, xi)


def of_all(u, **parameters):
    return estimate(**parameters, u=u)


EXPECTED = fk.sample(estimator(lambda x, u: of_array(x, u, DATA), 3, 3), prior=PRIOR, **OPTIONS)


@pytest.mark.parametrize(("f", "further"), [
    (by_name, {"kwargs": {"data": DATA}}),
    (by_name, {"args": (DATA,)}),
    (by_other_names, {"kwargs": {"data": DATA}}),
    (noise_first, {"kwargs": {"data": DATA}}),
    (of_array, {"args": (DATA,)}),
    (of_array, {"kwargs": {"data": DATA}}),
    (noise_last, {"args": (DATA,)}),
    (noise_last, {"kwargs": {"data": DATA}}),
    (of_unusual_names, {}),
    (of_unusual_names, {"args": (DATA,)}),
    (of_all, {"kwargs": {"data": DATA}}),
])
def test_each_form_is_the_same_estimate(f, further):
    assert_same(fk.sample(estimator(f, n_aux=3), prior=PRIOR, **further, **OPTIONS), EXPECTED)


def noise_by_default(x, data=DATA, u=None):
    return of_array(x, u, data)


def noise_of_keyword(x, n=16, *, u):
    assert n == 16
    return of_array(x, u, DATA)


def options_first(x, noisy=True, noise=0.0, *, u):
    assert noisy is True
    assert noise == 0.0
    return of_array(x, u, DATA)


@pytest.mark.parametrize("f", [
    noise_by_default, noise_of_keyword, options_first,
    functools.partial(lambda x, data, u: of_array(x, u, data), data=DATA)])
@pytest.mark.parametrize("dim", [None, 3])
def test_the_noise_is_not_taken_for_data(f, dim):
    assert_same(fk.sample(estimator(f, dim, 3), prior=PRIOR, **OPTIONS), EXPECTED)


def test_a_generator_with_a_default():
    def f(mu, sigma, noisy=True, rng=None):
        assert noisy is True
        return estimate(mu, sigma, DATA, rng.standard_normal(3))

    def of_x(x, n=16, rng=None):
        assert n == 16
        return f(x[:2], x[2], rng=rng)

    assert_same(fk.sample(estimator(f), prior=PRIOR, **OPTIONS),
                fk.sample(estimator(of_x, 3), prior=PRIOR, **OPTIONS))


def test_an_argument_with_a_default_is_not_the_noise():
    """Here `noise` is a standard deviation."""
    def f(mu, sigma, noise=1.0, *, key):
        assert noise == 1.0
        return estimate(mu, sigma, DATA, key)

    assert_same(fk.sample(estimator(f, n_aux=3), prior=PRIOR, **OPTIONS), EXPECTED)


def test_extras_of_an_estimate_are_no_gradient():
    def f(mu, sigma, u):
        return by_name(mu, sigma, u, DATA), {"mu": mu}

    with pytest.raises(ValueError, match=r"extras must not have the names \['mu'\]"):
        fk.sample(estimator(f, n_aux=3), prior=PRIOR, **OPTIONS)


def test_a_generator_by_name():
    def f(mu, sigma, rng):
        return estimate(mu, sigma, DATA, rng.standard_normal(3))

    def of_x(x, rng):
        return f(x[:2], x[2], rng)

    assert_same(fk.sample(estimator(f), prior=PRIOR, **OPTIONS),
                fk.sample(estimator(of_x, 3), prior=PRIOR, **OPTIONS))


def test_many_points_by_name():
    def f(mu, sigma, u):
        return np.array([estimate(*one) for one in zip(mu, sigma, [DATA] * len(u), u, strict=True)])

    assert_same(fk.sample(estimator(f, n_aux=3, vectorized=True), prior=PRIOR, **OPTIONS), EXPECTED)


@pytest.mark.parametrize("x0", [np.ones(3), {"mu": np.ones(2), "sigma": 1.0}])
def test_the_dimension_is_that_of_x0(x0):
    f = by_name if isinstance(x0, dict) else of_array
    result = fk.sample(estimator(f, n_aux=3, blocks=3), x0, kwargs={"data": DATA},
                       bounds={"sigma": (0, 10)} if isinstance(x0, dict) else
                       [(None, None)] * 2 + [(0, 10)], **OPTIONS)
    assert result.draws.shape == (2, 60, 3)
    assert result.target.is_estimate
    assert result.target.blocks == 3


def test_numba_by_name(tmp_path):
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(mu, sigma, u, data):
        z = (data - mu[0] - mu[1] * u) / sigma
        return -0.5 * z @ z - len(z) * np.log(sigma)

    found = fk.sample(estimator(f, n_aux=3), prior=PRIOR, kwargs={"data": DATA}, **OPTIONS)
    np.testing.assert_allclose(found.draws, EXPECTED.draws, rtol=1e-9)


def test_pickle_and_processes():
    problem = fk.Problem(estimator(by_name, n_aux=3), PRIOR, kwargs={"data": DATA})
    assert_same(fk.sample(pickle.loads(pickle.dumps(problem)), **OPTIONS), EXPECTED)
    assert_same(fk.sample(problem, executor=2, **OPTIONS), EXPECTED)


@pytest.mark.parametrize(("f", "options", "further", "says"), [
    (by_name, {"n_aux": 3}, {}, "by_name takes 'data', which is no parameter"),
    (lambda mu, sigm, u: 0.0, {"n_aux": 3}, {},
     r"no argument 'sigma', .* takes 'sigm', which is none \(are they the same\?\)"),
    (by_name, {"n_aux": 3}, {"args": (DATA, 1)}, "args has 2 arguments, and .* has room for 1"),
    (by_name, {"n_aux": 3, "blocks": 4}, {}, "blocks must be at most n_aux = 3, not 4"),
    (lambda mu, sigma: 0.0, {"n_aux": 3}, {}, "has no argument for its noise, such as u or rng"),
    (lambda mu, sigma, y: 0.0, {"n_aux": 3}, {"kwargs": {"y": 1}},
     "has no argument for its noise, such as u or rng, beside the parameters and what is in"),
    (lambda x, y: 0.0, {"n_aux": 3}, {"kwargs": {"y": 1}}, "for its noise, .* beside x and what"),
    (lambda mu, sigma, y, key: 0.0, {"n_aux": 3}, {"args": (1,)},
     "must show which argument takes the noise, .* it could be 'y' or 'key'"),
    (densities.python, {"n_aux": 3}, {}, r"f must be a function f\(x, u\), a point"),
    (3, {}, {}, "f must be a function or a pointer, not 3"),
])
def test_bad_arguments(f, options, further, says):
    with pytest.raises((TypeError, ValueError), match=says):
        fk.sample(estimator(f, **options), prior=PRIOR, **further, **OPTIONS)


def test_a_known_estimator_takes_no_further_arguments():
    with pytest.raises(TypeError, match="kwargs is for functions of Python and numba, not for"):
        fk.sample(estimator(of_unusual_names, 3, 3), prior=PRIOR, kwargs={"a": 1}, **OPTIONS)
