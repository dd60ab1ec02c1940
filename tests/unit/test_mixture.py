"""The compiled mixture against scipy: within one block of 8 components, and in several."""

import copy

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from fastkam._core.numerics.mixture import expect, nearest, packed
from fastkam.samplers import modes
from fastkam.search.mixture import Mixture

NEGLIGIBLE = 1e-4       # a smaller share of a state is left out


@pytest.fixture(params=[(1, 1), (3, 2), (8, 3), (20, 4)], ids=lambda size: f"{size[0]}-{size[1]}")
def mixture(request):
    """Weights, means, factors of the covariances, and 30 states."""
    K, d = request.param
    rng = np.random.default_rng(K)
    C = rng.standard_normal((K, d, d))
    factors = np.linalg.cholesky(C @ C.transpose(0, 2, 1) + np.eye(d))
    return rng.dirichlet(np.ones(K)), rng.standard_normal((K, d)), factors, rng.standard_normal(
        (30, d))


def normal_log_densities(means, factors, states, widening=1.0):
    """log N(x; m_k, widening C_k) of all states and components (n, K)."""
    return np.array([stats.multivariate_normal(mean, widening * L @ L.T).logpdf(states)
                     for mean, L in zip(means, factors, strict=True)]).T


def test_the_expectation_is_that_of_the_responsibilities(mixture):
    weights, means, factors, states = mixture
    terms = np.log(weights) + normal_log_densities(means, factors, states)
    total = logsumexp(terms, axis=1)
    r = np.exp(terms - total[:, None])
    r[r < NEGLIGIBLE] = 0
    n, sums, squares, log_likelihood = expect(states, weights, means, factors)
    np.testing.assert_allclose(n, r.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(sums, r.T @ states, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(squares, np.einsum("nk,ni,nj->kij", r, states, states), rtol=1e-9,
                               atol=1e-9)
    constant = 0.5 * states.shape[1] * np.log(2 * np.pi)
    assert log_likelihood == pytest.approx((total + constant).sum(), rel=1e-9)


def test_the_density_has_the_tails_of_each_component(mixture):
    """The first component is Student's t, the others have a tenth of their weight twice as wide."""
    weights, means, factors, states = mixture
    terms = np.logaddexp(np.log(0.9) + normal_log_densities(means, factors, states),
                         np.log(0.1) + normal_log_densities(means, factors, states, 4.0))
    terms[:, 0] = stats.multivariate_t(means[0], factors[0] @ factors[0].T, df=3).logpdf(states)
    np.testing.assert_allclose(packed(weights, means, factors).log_densities(states),
                               logsumexp(np.log(weights) + terms, axis=1), rtol=1e-9)


def test_the_nearest_component_is_that_of_the_least_mahalanobis_distance(mixture):
    _, means, factors, states = mixture
    squares = np.array([(np.linalg.solve(L, (states - mean).T) ** 2).sum(axis=0)
                        for mean, L in zip(means, factors, strict=True)])
    least, k = nearest(states, means, factors)
    np.testing.assert_allclose(least, squares.min(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(k, squares.argmin(axis=0))


def test_a_component_whose_weight_is_too_small_for_a_number_is_left_out():
    one = Mixture(*modes.with_wide(np.ones(1), np.zeros((1, 2)), np.eye(2)[None]))
    more = one.extended(np.array([1.0, 0.0]), np.ones((2, 2)), np.array([np.eye(2)] * 2), 0.2)
    assert more.n == 2
    np.testing.assert_allclose(more.weights[1:] / more.weights[1:].sum(), [0.8, 0.2])


def test_a_mixture_is_copied_after_its_density_was_computed():
    q = Mixture(*modes.with_wide(np.ones(1), np.zeros((1, 2)), np.eye(2)[None]))
    before = q.log_density(np.ones((1, 2)))
    assert copy.deepcopy(q).log_density(np.ones((1, 2))) == before
