"""Mixtures fitted to states: their components, how many there are, and states without any."""

import numpy as np
import pytest

from fastkam.samplers import modes
from fastkam.targets import GaussianMixture

COVS = [[[0.5, 0.3], [0.3, 0.5]], [[2.0, 0.0], [0.0, 1.0]], [[1.0, -0.5], [-0.5, 1.0]]]
THREE = GaussianMixture([[-6, 0], [6, 0], [0, 9]], COVS, weights=[0.5, 0.3, 0.2])


def ordered(fitted):
    """Weights, means and covariances of the modes, by their first coordinate."""
    weights, means, factors = fitted
    order = 1 + np.argsort(means[1:, 0])
    return weights[order] / weights[1:].sum(), means[order], factors[order] @ factors[
        order].transpose(0, 2, 1)


def test_three_modes_are_found_as_they_are():
    """4000 draws: standard errors are below 0.01 of weights, 0.06 of means, 0.1 of covariances."""
    weights, means, covs = ordered(modes.fit(THREE.sample(4000, 1), 2, most=8))
    order = [0, 2, 1]
    np.testing.assert_allclose(weights, THREE.weights[order], atol=0.04)
    np.testing.assert_allclose(means, THREE.modes[order], atol=0.24)
    np.testing.assert_allclose(covs, THREE.covs[order], atol=0.4)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_one_mode_is_one_component(d):
    states = np.random.default_rng(1).standard_normal((750, d))
    assert len(modes.fit(states, 1, most=8)[0]) == 2


def test_repeated_states_make_no_components():
    """A chain that accepts one proposal in ten has repeated states."""
    states = np.random.default_rng(1).standard_normal((200, 2)).repeat(10, axis=0)
    assert len(modes.fit(states, 1, most=8)[0]) == 2


def test_states_too_few_for_more_have_one_component_in_closed_form():
    """Their mean, and their covariance but for the ridge."""
    states = np.random.default_rng(1).standard_normal((30, 6)) * [1, 2, 3, 4, 5, 6] + 7
    weights, means, factors = modes.fit(states, 1, most=8)
    np.testing.assert_allclose(weights, [modes.WIDE_WEIGHT, 1 - modes.WIDE_WEIGHT])
    np.testing.assert_allclose(means, [states.mean(axis=0)] * 2)
    ridge = modes.RIDGE * np.diag(states.var(axis=0))
    for factor in factors:
        np.testing.assert_allclose(factor @ factor.T, np.cov(states.T, ddof=0) + ridge, rtol=1e-9)


def test_the_number_of_components_has_a_limit():
    assert len(modes.fit(THREE.sample(500, 1), 1, most=2)[0]) == 3


def test_a_component_without_states_is_kept():
    states = THREE.sample(1000, 1)
    states = states[THREE.mode_of(states) == 0]
    guesses = THREE.modes + 0.3
    for covs in (None, np.array([np.eye(2)] * 3)):
        weights, means, factors = modes.fit(states, 1, most=8, means=guesses, covs=covs)
        np.testing.assert_allclose(means[2:], guesses[1:], atol=1e-8)
        np.testing.assert_allclose(means[1], states.mean(axis=0), atol=0.01)
        assert (weights[2:] > 1e-3).all()
        away = factors[2] @ factors[2].T
        np.testing.assert_allclose(away, np.cov(states.T) if covs is None else covs[1], atol=0.02)


def test_the_wide_component_covers_the_others():
    weights, means, factors = modes.fit(THREE.sample(1000, 1), 1, most=8)
    assert weights[0] == modes.WIDE_WEIGHT
    assert weights.sum() == pytest.approx(1)
    z = np.linalg.solve(factors[0], (THREE.modes - means[0]).T)
    assert (np.linalg.norm(z, axis=0) < 2).all()


@pytest.mark.parametrize("states", [
    np.empty((0, 2)), np.ones((3, 2)), np.ones((100, 2)), np.c_[np.arange(100), np.ones(100)],
    1e200 * np.c_[np.arange(100), np.arange(100)]])
def test_states_without_spread_give_no_mixture(states):
    assert modes.fit(states, 1, most=8) is None


def test_states_on_a_line_or_repeated_at_any_scale_are_fitted():
    x = np.repeat(np.random.default_rng(1).standard_normal(20), 10)
    for states in (np.c_[x, x], np.c_[x, -x, x], 1e120 * np.c_[x, x**2], 1e-120 * np.c_[x, x**2]):
        weights, means, factors = modes.fit(states, 1, most=8)
        assert all(np.isfinite(found).all() for found in (weights, means, factors))
        assert (np.diagonal(factors, axis1=1, axis2=2) > 0).all()
