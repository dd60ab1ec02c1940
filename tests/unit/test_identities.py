"""Moments implied by gradients: exact where they must be, with a correct error elsewhere."""

import numpy as np
import pytest

from fastkam.diagnostics import implied_moments
from fastkam.diagnostics.identities import (
    degree_for,
    disagreeing,
    fewest_draws,
    monomials,
    stein_functions,
)

CHAINS = 4
MEAN = np.array([3.0, -100.0, 0.01])
FACTOR = np.array([[2.0, 0, 0], [30.0, 10.0, 0], [0.001, 0.001, 0.002]])


def in_chains(z):
    return z.reshape(CHAINS, -1, z.shape[1])


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (0.7, 0.0), (1.3, 0.5), (0.9, -1.0)])
def test_moments_of_a_normal_density_are_exact_whatever_the_draws_are(factor, shift):
    """The draws are too narrow, too wide and beside the density."""
    rng = np.random.default_rng(1)
    z = factor * rng.standard_normal((400, 3)) + shift
    x = MEAN + z @ FACTOR.T
    implied = implied_moments(in_chains(z), in_chains(-z), in_chains(x))
    sd = np.sqrt((FACTOR**2).sum(axis=1))
    assert np.allclose(implied[:, 0], MEAN, rtol=0, atol=1e-9 * np.abs(MEAN).max() + 1e-9 * sd)
    assert np.allclose(implied[:, 2], sd, rtol=1e-7)
    assert (implied[:, 1] < 1e-6 * sd).all()
    assert (implied[:, 3] < 1e-6 * sd).all()


def test_moments_of_a_banana_are_exact():
    """x1 = z1, x2 = z2 + b (z1^2 - 1): the fields of degree 3 suffice."""
    rng, b = np.random.default_rng(1), 0.4
    z = 0.8 * rng.standard_normal((600, 2))
    x = np.column_stack([z[:, 0], z[:, 1] + b * (z[:, 0] ** 2 - 1)])
    gradients = np.column_stack([-z[:, 0] + z[:, 1] * 2 * b * z[:, 0], -z[:, 1]])
    implied = implied_moments(in_chains(x), in_chains(gradients), in_chains(x))
    assert np.allclose(implied[:, 0], 0, atol=1e-8)
    assert np.allclose(implied[:, 2], [1, np.sqrt(1 + 2 * b**2)], rtol=1e-7)


def test_slopes_of_monomials():
    rng = np.random.default_rng(1)
    z, h = rng.standard_normal((5, 3)), 1e-6
    values, slopes = monomials(z, 3)
    assert values.shape == (5, 20)
    for k in range(3):
        step = h * np.eye(3)[k]
        change = (monomials(z + step, 3)[0] - monomials(z - step, 3)[0]) / (2 * h)
        assert np.allclose(slopes[:, :, k], change, atol=1e-8)


def test_the_degree_grows_with_the_draws():
    assert [degree_for(n, 2) for n in (35, 36, 72, 120, 10**6)] == [0, 1, 2, 3, 3]
    assert degree_for(fewest_draws(7), 7) == 1
    assert degree_for(fewest_draws(7) - 1, 7) == 0


def logistic(rng, n):
    """Independent coordinates of the logistic distribution, of mean 0 and sd pi / sqrt(3)."""
    z = rng.logistic(size=(n, 2))
    return z, -np.tanh(z / 2)


def modes(rng, n):
    """Two overlapping modes: no polynomial is exact."""
    side = rng.choice([-1.5, 1.5], n)
    z = rng.standard_normal((n, 2))
    z[:, 0] += side
    gradients = -z.copy()
    gradients[:, 0] += 1.5 * np.tanh(1.5 * z[:, 0])
    return z, gradients


DENSITIES = {"logistic": (logistic, np.pi / np.sqrt(3) * np.ones(2)),
             "modes": (modes, np.array([np.sqrt(1 + 1.5**2), 1]))}


@pytest.mark.parametrize("name", DENSITIES)
def test_the_errors_are_correct(name):
    """No more than 6.5 % of 200 moments are further than 4 standard errors from the truth.

    The larger of the two errors has at least the three degrees of freedom of four chains, with
    which Student's t is beyond 4 in 2.8 % of cases: of 200 more than 6.5 % with probability 0.002.
    """
    draw, sd = DENSITIES[name]
    far, alarms = 0, 0
    for seed in range(50):
        z, gradients = draw(np.random.default_rng(seed), 2400)
        implied = implied_moments(in_chains(z), in_chains(gradients), in_chains(z))
        off = np.abs(implied[:, [0, 2]] - np.column_stack([np.zeros(2), sd]))
        far += (off > 4 * implied[:, [1, 3]] + 1e-9).sum()  # of which rounding is no part
        alarms += bool(len(disagreeing(implied, in_chains(z))))
    assert far <= 0.065 * 200
    assert alarms == 0


@pytest.mark.parametrize("name", DENSITIES)
def test_too_few_draws_of_a_part_are_detected(name):
    """Nearly all draws beyond 1.5 standard deviations are missing, which every sample shows."""
    draw, sd = DENSITIES[name]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        z, gradients = draw(rng, 3000)
        kept = (np.abs(z) < 1.5 * sd).all(axis=1) | (rng.random(len(z)) < 0.1)
        z, gradients = z[kept][:1200], gradients[kept][:1200]
        implied = implied_moments(in_chains(z), in_chains(gradients), in_chains(z))
        assert len(disagreeing(implied, in_chains(z)))


@pytest.mark.parametrize("name", DENSITIES)
def test_a_wrong_identity_is_detected(monkeypatch, name):
    """Without the divergence of the fields, good draws disagree with what is implied."""
    draw, sd = DENSITIES[name]

    def without(z, gradients, degree):
        values, _ = monomials(z, degree)
        return (values[:, :, None] * gradients[:, None, :]).reshape(len(z), -1)

    z, gradients = draw(np.random.default_rng(1), 600)
    assert stein_functions(z, gradients, 2).shape == without(z, gradients, 2).shape
    monkeypatch.setattr("fastkam.diagnostics.identities.stein_functions", without)
    implied = implied_moments(in_chains(z), in_chains(gradients), in_chains(z))
    wrong = ~(np.abs(implied[:, 2] - sd) < np.maximum(4 * implied[:, 3], 0.1 * sd))
    assert wrong.any()


def test_a_variance_that_is_not_positive_gives_nan():
    """Gradients that have nothing to do with the draws."""
    rng = np.random.default_rng(2)
    z = rng.standard_normal((400, 1))
    implied = implied_moments(in_chains(z), in_chains(z), in_chains(z))  # of the wrong sign
    assert np.isnan(implied[0, 2])
    assert not len(disagreeing(implied, in_chains(z)))


@pytest.mark.parametrize(("change", "message"), [
    ({"draws": np.zeros((4, 30, 1))}, "draws must spread"),
    ({"draws": np.ones((1, 100, 1)), "gradients": np.ones((1, 100, 1))}, "draws must have shape"),
    ({"draws": np.ones((4, 100))}, "draws must have shape"),
    ({"draws": np.full((4, 30, 1), np.nan)}, "draws must be finite"),
    ({"gradients": np.zeros((4, 30, 2))}, "gradients must have the shape of draws"),
    ({"draws": np.ones((4, 2, 1)), "gradients": np.ones((4, 2, 1))}, "at least 12 in all"),
    ({"x": np.zeros((4, 29, 1))}, "x must have shape"),
    ({"x": np.zeros((4, 30, 0))}, "x must have shape"),
])
def test_arguments(change, message):
    good = np.random.default_rng(1).standard_normal((4, 30, 1))
    with pytest.raises(ValueError, match=message):
        implied_moments(**{"draws": good, "gradients": -good} | change)
