"""The normal approximation of a density that has a gradient."""

import numpy as np
import pytest
from scipy.special import digamma, expit, polygamma

from fastkam.search import newton
from fastkam.search.newton import by_regression, normal_by_gradients, widened
from fastkam.search.quadratic import Quadratic

D = 25
SD = np.geomspace(1e-3, 1e3, D)
FACTOR = SD[:, None] * (np.eye(D) + np.tril(np.random.default_rng(4).normal(0, 0.2, (D, D)), -1))
PRECISION = np.linalg.inv(FACTOR @ FACTOR.T)
MODE = 5 * SD
ROUND = np.linspace(1, 20, D)  # shapes of gamma variables


def normal(x):
    z = np.linalg.solve(FACTOR, (x - MODE).T)
    return 7.0 - 0.5 * (z * z).sum(axis=0)


def slopes_of_normal(x):
    return -(x - MODE) @ PRECISION


def skewed(x):
    """Logarithms of gamma variables."""
    return x @ ROUND - np.exp(x).sum(axis=1)


def slopes_of_skewed(x):
    return ROUND - np.exp(x)


def made(f, slopes, x, scales=1.0, seed=1):
    return normal_by_gradients(f, slopes, x, float(f(x[None])[0]), np.full(len(x), scales),
                               np.random.default_rng(seed))


@pytest.mark.parametrize("away", [0.0, 3.0, 1e4])
def test_a_normal_density_is_its_own_approximation(away):
    """Wherever Newton's method begins, and whatever the units."""
    x = MODE + away * SD * np.random.default_rng(2).standard_normal(D)
    found, accepted = normal_by_gradients(
        normal, slopes_of_normal, x, float(normal(x[None])[0]), SD, np.random.default_rng(1))
    assert accepted > 0.999
    assert (np.abs(found.mean - MODE) < 1e-4 * SD).all()
    assert (np.abs(found.factor - FACTOR) < 1e-4 * SD[:, None]).all()
    assert found.height == pytest.approx(7.0, abs=1e-3)


def test_the_approximation_is_where_the_mass_is():
    """The mode and the curvature there describe a skewed density less well than its moments."""
    found, accepted = made(skewed, slopes_of_skewed, np.full(D, 3.0))
    sd = np.sqrt((found.factor**2).sum(axis=1))
    mean, right = digamma(ROUND), np.sqrt(polygamma(1, ROUND))
    at_mode = Quadratic(np.log(ROUND), np.diag(ROUND**-0.5), 0.0)
    before = widened(skewed, at_mode, np.random.default_rng(1))[1]
    assert accepted > before + 0.1
    assert (np.abs(found.mean - mean) < 0.1 * right)[2:].all()
    assert (np.abs(np.log(sd / right)) < 0.15)[2:].all()


def test_a_regression():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, D))
    y = rng.random(300) < expit(X[:, 0])

    def f(b):
        e = b @ X.T
        return (y * e - np.logaddexp(0, e)).sum(axis=1) - (b * b).sum(axis=1) / 8

    def slopes(b):
        return (y - expit(b @ X.T)) @ X - b / 4

    assert made(f, slopes, np.zeros(D))[1] > 0.6
    assert made(f, slopes, np.full(D, 20.0))[1] > 0.6  # where the curvature is nearly that of b / 4


@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_a_normal_density_give_it_at_once(seed):
    off = Quadratic(MODE + SD, 0.5 * np.diag(SD), 0.0)
    found = by_regression(slopes_of_normal, off, np.random.default_rng(seed))
    assert (np.abs(found.mean - MODE) < 1e-6 * SD).all()
    assert (np.abs(found.factor - FACTOR) < 1e-6 * SD[:, None]).all()


def test_the_acceptance_is_that_of_independent_proposals(monkeypatch):
    """For N(0, 1.3^2), from N(0, 1); its estimate is a mean over few points."""
    monkeypatch.setattr(newton, "WIDER", (1.0,))
    x, y = np.random.default_rng(1).standard_normal((2, 200_000))
    exact = np.minimum(1, np.exp((y**2 - (1.3 * x) ** 2) / 2 * (1 - 1 / 1.3**2))).mean()
    here = Quadratic(np.zeros(1), np.eye(1), 0.0)
    found = [widened(lambda x: -0.5 * (x[:, 0] / 1.3) ** 2, here, np.random.default_rng(seed))[1]
             for seed in range(400)]
    assert np.mean(found) == pytest.approx(exact, abs=0.02)


def test_a_wider_approximation_is_taken_if_it_is_better():
    here = Quadratic(np.zeros(1), np.eye(1), 0.0)
    found, accepted = widened(lambda x: -0.5 * (x[:, 0] / 1.5) ** 2, here,
                              np.random.default_rng(1))
    assert found.factor[0, 0] in (1.25, 1.5)
    assert accepted > 0.85


@pytest.mark.parametrize(("f", "slopes"), [
    (lambda x: 0.5 * x[:, 0] ** 2 - 0.5 * (x[:, 1:] ** 2).sum(axis=1),
     lambda x: np.column_stack([x[:, 0], -x[:, 1:]])),
    (lambda x: 0 * x[:, 0], lambda x: 0 * x),
    (lambda x: x.sum(axis=1), lambda x: 0 * x + 1),
    (lambda x: -0.5 * (x[:, 1:] ** 2).sum(axis=1),
     lambda x: np.column_stack([0 * x[:, 0], -x[:, 1:]])),
    (lambda x: -0.5 * (x * x).sum(axis=1), lambda x: np.where(x[:, :1] > 0.2, np.nan, -x)),
    (lambda x: -0.5 * (x * x).sum(axis=1), lambda x: x),
], ids=["saddle", "constant", "slope", "flat direction", "NaN", "wrong sign"])
def test_densities_without_a_curved_mode_have_none(f, slopes):
    assert made(f, slopes, np.full(6, 0.1)) is None
