"""A density in units of given scales, and the mixture that a search fits."""

import densities
import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam._core.density.scaled import ScaledTarget
from fastkam.search.mixture import Mixture

SCALES = np.array([3.0, 1e-4])


def scaled(target):
    return ScaledTarget(fk.as_target(target, 2, gradient=True), SCALES)


def test_values_and_gradients():
    target, z = scaled(densities.python_pair), np.array([0.3, -0.7])
    value, gradient = densities.python_pair(SCALES * z)
    assert target.logp(z) == value
    found, slope = target.logp_grad(z)
    assert found == value
    np.testing.assert_array_equal(slope, SCALES * gradient)


def test_many_points_at_once():
    many = ScaledTarget(fk.as_target(densities.vectorized, 2, vectorized=True), SCALES)
    Z = np.random.default_rng(1).standard_normal((700, 2))  # more than fit on the stack
    np.testing.assert_array_equal(many.logp(Z), densities.vectorized(SCALES * Z))


def test_more_dimensions_than_fit_on_the_stack():
    d = 600
    scales = np.geomspace(0.1, 10, d)
    target = ScaledTarget(fk.as_target(lambda x: -0.5 * float(x @ x), d), scales)
    z = np.linspace(-1, 1, d)
    assert target.logp(z) == -0.5 * float((scales * z) @ (scales * z))


def test_products_with_the_hessian():
    H = np.array([[2.0, 0.5], [0.5, 1.0]])
    made = fk.Target.from_python(lambda x: (-0.5 * float(x @ H @ x), -H @ x), 2, gradient=True,
                                 hvp=lambda x, v: -H @ v)
    v = np.array([1.0, 2.0])
    np.testing.assert_allclose(ScaledTarget(made, SCALES).hvp([0.0, 0.0], v),
                               -SCALES * (H @ (SCALES * v)))


def test_estimates():
    made = fk.Target.from_estimator(lambda x, u: float(x.sum() + u.sum()), 2, n_aux=3)
    target = ScaledTarget(made, SCALES)
    assert target.n_aux == 3
    assert target.estimate([1.0, 1.0], [1.0, 2.0, 3.0]) == SCALES.sum() + 6.0


def test_an_exception_is_that_of_the_function():
    def f(x):
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        ScaledTarget(fk.as_target(f, 2), SCALES).logp([0.0, 0.0])


def test_scales_of_another_dimension():
    with pytest.raises(ValueError, match=r"scales must have shape \(2,\)"):
        ScaledTarget(fk.as_target(densities.python, 2), [1.0, 2.0, 3.0])


def test_the_density_of_a_mixture_with_tails():
    rng = np.random.default_rng(3)
    means = rng.standard_normal((3, 2))
    factors = np.array([np.linalg.cholesky(C @ C.T + np.eye(2))
                        for C in rng.standard_normal((3, 2, 2))])
    weights = np.array([0.05, 0.5, 0.45])
    X = 3 * rng.standard_normal((20, 2))
    covs = factors @ factors.transpose(0, 2, 1)
    expected = weights[0] * stats.multivariate_t.pdf(X, means[0], covs[0], df=3)
    for k in (1, 2):
        expected += weights[k] * (0.9 * stats.multivariate_normal.pdf(X, means[k], covs[k])
                                  + 0.1 * stats.multivariate_normal.pdf(X, means[k], 4 * covs[k]))
    q = Mixture(weights, means, factors)
    np.testing.assert_allclose(q.log_density(X), np.log(expected), rtol=1e-12)


def test_the_draws_of_a_mixture_have_its_density():
    """Importance weights 1 / q times a known density have its integral as their mean: |z| < 4.5.

    The false-alarm rate is 7e-6. Draws without their tails, say, would be noticed.
    """
    q = Mixture(np.array([0.3, 0.7]), np.array([[0.0], [2.0]]), np.array([[[2.0]], [[0.7]]]))
    x = q.draw(200_000, np.random.default_rng(5))
    w = np.exp(stats.norm(0.5, 4.0).logpdf(x[:, 0]) - q.log_density(x))
    z = (w.mean() - 1) / (w.std() / np.sqrt(len(w)))
    assert abs(z) < 4.5
    without = np.where(np.abs(x[:, 0] - 2) > 2.5, 0.0, w)
    assert abs((without.mean() - 1) / (without.std() / np.sqrt(len(w)))) > 4.5
