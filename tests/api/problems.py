"""Problems that other processes can import."""

import numpy as np
from scipy import stats

import fastkam as fk

Y = np.array([4.1, 5.3, 4.6, 3.9])
PRIOR = {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=2),
         "w": stats.dirichlet([2.0, 3.0, 4.0])}


def loglike(mu, sigma, w):
    """Return the log likelihood, with extras that show its point."""
    value = -0.5 * (((Y - mu) / sigma) ** 2).sum() - len(Y) * np.log(sigma)
    return value, {"sum": mu + sigma, "reversed": w[::-1], "big": sigma > 1, "n": 3}


def rows(mu, sigma, w):
    residual = (Y - mu[:, None]) / sigma[:, None]
    value = -0.5 * (residual**2).sum(axis=1) - len(Y) * np.log(sigma)
    return value, {"sum": mu + sigma, "reversed": w[:, ::-1], "big": sigma > 1,
                   "n": np.full(len(mu), 3)}


def with_gradient(x):
    mu, sigma = x[:2]
    residual = (Y - mu) / sigma
    gradient = np.zeros(5)
    gradient[0] = residual.sum() / sigma
    gradient[1] = ((residual**2).sum() - len(Y)) / sigma
    value = -0.5 * (residual**2).sum() - len(Y) * np.log(sigma)
    return value, gradient, {"sum": mu + sigma, "reversed": x[:1:-1], "big": sigma > 1, "n": 3}


def cv(mu, sigma, w):
    return {"cv": sigma / mu, "pair": np.stack([mu, sigma], axis=-1)}


def estimate(x, u):
    noise = 0.1 * u.sum()
    return with_gradient(x)[0] + noise - 0.01 * len(u) / 2, {
        "sum": x[0] + x[1], "reversed": x[:1:-1], "big": x[1] > 1, "n": 3, "noise": noise}


def problem(f=loglike, **options):
    return fk.Problem(f, prior=PRIOR, derived=cv, **options)


def check_extras(result, names=("sum", "reversed", "big", "n")):
    """The extras and derived quantities are those of the draws."""
    extras, shape = result.extras, result.draws.shape[:2]
    np.testing.assert_array_equal(extras["sum"], result["mu"] + result["sigma"])
    np.testing.assert_array_equal(extras["reversed"], result["w"][..., ::-1])
    np.testing.assert_array_equal(extras["big"], result["sigma"] > 1)
    assert (extras["n"] == 3).all()
    assert extras["n"].shape == shape
    assert (extras["big"].dtype, extras["n"].dtype) == (bool, np.int64)
    np.testing.assert_array_equal(extras["cv"], result["sigma"] / result["mu"])
    np.testing.assert_array_equal(extras["pair"][..., 1], result["sigma"])
    assert set(names) | {"cv", "pair"} == set(extras)
