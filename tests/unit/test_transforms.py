"""Transforms: values, inverses, log Jacobians and gradients, also where exp would overflow."""

import itertools

import numpy as np
import pytest
from scipy import stats

from fastkam._core.density.space import Space

INF = float("inf")


def row(kind, n_z, n_x, low=-INF, high=INF, inner="identity"):
    return kind, inner, 3, n_z, n_x, low, high, None


SCALARS = {
    "identity": row("identity", 2, 2), "bounded": row("identity", 1, 1, -9.0, 9.0),
    "log": row("log", 2, 2, 1.5), "upper": row("upper", 1, 1, -INF, -2.0),
    "interval": row("interval", 3, 3, -1.0, 4.0), "periodic": row("periodic", 1, 1, -1.0, 2.0),
    "reflect": row("reflect", 1, 1, 0.5, 1.5)}
VECTORS = {
    "simplex": row("simplex", 3, 4, 0.0, 1.0), "simplex of two": row("simplex", 1, 2, 0.0, 1.0),
    "ordered": row("ordered", 4, 4), "ordered positive": row("ordered", 3, 3, 0.0, INF, "log"),
    "ordered negative": row("ordered", 3, 3, -INF, 0.0, "upper"),
    "ordered between": row("ordered", 3, 3, -1.0, 2.0, "interval"),
    "correlation": row("cholesky_corr", 6, 16), "correlation of two": row("cholesky_corr", 1, 4)}
ALL = SCALARS | VECTORS


def free(kind, x):
    """The coordinates of x (..., n_x) with respect to which its density is one."""
    if kind.startswith("simplex"):
        return x[..., :-1]
    if kind.startswith("correlation"):
        n = round(np.sqrt(x.shape[-1]))
        return x[..., np.ravel_multi_index(np.tril_indices(n, -1), (n, n))]
    return x


def slopes(f, z, h=1e-5):
    """Central differences (n, n_z) of f at z."""
    steps = h * np.eye(len(z))
    return np.stack([(f(z + s) - f(z - s)) / (2 * h) for s in steps], axis=-1)


def points(name, n=20):
    rng = np.random.default_rng(len(name))
    return rng.normal(size=(n, ALL[name][3])) * rng.choice([0.3, 1.5], size=(n, 1))


@pytest.mark.parametrize("name", ALL)
def test_the_inverse(name):
    space, z = Space([ALL[name]]), points(name)
    x, _ = space.constrain(z)
    back, invalid = space.unconstrain(x)
    assert (invalid == -1).all()
    np.testing.assert_allclose(space.constrain(back)[0], x, rtol=1e-12, atol=1e-13)
    if name not in ("periodic", "reflect"):
        np.testing.assert_allclose(back, z, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ALL)
def test_the_log_jacobian_is_that_of_differences(name):
    """Apart from the weights of periods."""
    space = Space([ALL[name]])
    low, high = ALL[name][5:7]
    periods = {"periodic": 1, "reflect": 2}.get(name)  # in units of high - low
    for z in points(name):
        matrix = slopes(lambda z: free(name, space.constrain(z[None])[0][0]), z)
        log_jacobian = space.constrain(z[None])[1][0]
        if periods:
            g = stats.norm((low + high) / 2, 1.35 * periods * (high - low))
            log_jacobian -= g.logpdf(z[0]) + np.log(high - low)
        np.testing.assert_allclose(np.linalg.slogdet(matrix)[1], log_jacobian, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_the_gradient_is_carried_through(name):
    """The gradient is of a sum of log(1 + x^2), and of the log Jacobian."""
    space = Space([ALL[name]])
    weights = 1 + np.arange(ALL[name][4])

    def f(z):
        x, log_jacobian = space.constrain(z[None])
        return np.log1p((weights * x[0]) ** 2).sum() + log_jacobian[0]

    for z in points(name):
        x = space.constrain(z[None])[0][0]
        found = space.pull_back(z, 2 * weights**2 * x / (1 + (weights * x) ** 2))
        expected = slopes(f, z)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [30.0, 700.0])
def test_extremes_are_finite(name, size):
    """No NaN, and finite log Jacobians and gradients wherever x is finite."""
    space, n = Space([ALL[name]]), ALL[name][3]
    for signs in itertools.product((-1.0, 0.0, 1.0), repeat=n):
        z = size * np.array(signs)
        x, log_jacobian = space.constrain(z[None])
        assert not np.isnan(np.append(x, log_jacobian)).any()
        if np.isfinite(log_jacobian[0]):
            assert np.isfinite(x).all()
            if name in ("log", "upper", "interval"):
                assert ((x > ALL[name][5]) & (x < ALL[name][6])).all()
            assert np.isfinite(space.pull_back(z, np.zeros(ALL[name][4]))).all()
        else:
            assert name.startswith("ordered") or name == "bounded"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_have_density_zero(name, value):
    z = np.zeros((1, ALL[name][3]))
    z[0, -1] = value
    _, log_jacobian = Space([ALL[name]]).constrain(z)
    assert log_jacobian[0] == -np.inf or np.isnan(log_jacobian[0])


def test_hard_bounds():
    space = Space([row("identity", 1, 1, -1.0, 2.0)])
    x, log_jacobian = space.constrain(np.array([[-1.0], [2.0], [0.0], [2.1], [-1.1]]))
    np.testing.assert_array_equal(log_jacobian, [0, 0, 0, -INF, -INF])
    np.testing.assert_array_equal(x[:, 0], [-1, 2, 0, 2.1, -1.1])


def test_points_are_wrapped_and_reflected():
    wrapped = Space([row("periodic", 1, 1, -1.0, 2.0)]).constrain(
        np.array([[-1.0], [2.0], [2.5], [-1.25], [31.0], [0.7]]))[0][:, 0]
    np.testing.assert_allclose(wrapped, [-1.0, -1.0, -0.5, 1.75, 1.0, 0.7], atol=1e-14)
    folded = Space([row("reflect", 1, 1, -1.0, 2.0)]).constrain(
        np.array([[-1.0], [2.0], [2.5], [-1.25], [5.0], [8.5]]))[0][:, 0]
    np.testing.assert_allclose(folded, [-1.0, 2.0, 1.5, -0.75, -1.0, 1.5], atol=1e-14)


@pytest.mark.parametrize(("name", "period"), [("periodic", 3.0), ("reflect", 6.0)])
def test_the_weights_of_periods_add_up_to_one(name, period):
    space, t = Space([row(name, 1, 1, -1.0, 2.0)]), np.linspace(-1, 2, 50)
    z = t[:, None] + period * np.arange(-40, 41)
    images = [z] if name == "periodic" else [z, 4.0 - z]  # reflected at 2
    for some in images:
        x, log_weight = space.constrain(some.reshape(-1, 1))
        same = x.reshape(some.shape) - t[:, None]
        assert np.minimum(np.abs(same), period - np.abs(same)).max() < 1e-12
        total = np.exp(log_weight).reshape(some.shape).sum(axis=1)
        np.testing.assert_allclose(total, 1.0 if name == "periodic" else 0.5, rtol=2e-15)


def test_a_wrapped_point_is_within_for_all_of_a_range():
    z = np.concatenate([np.linspace(-700, 700, 20_001), np.arange(-40, 40) * 3.0])[:, None]
    x = Space([row("periodic", 1, 1, 0.1, 0.4)]).constrain(z)[0]
    assert ((x >= 0.1) & (x < 0.4)).all()
    x = Space([row("reflect", 1, 1, 0.1, 0.4)]).constrain(z)[0]
    assert ((x >= 0.1) & (x <= 0.4)).all()


def test_the_middle_of_a_simplex():
    x, _ = Space([row("simplex", 4, 5, 0.0, 1.0)]).constrain(np.zeros((1, 4)))
    np.testing.assert_allclose(x, np.full((1, 5), 0.2), rtol=1e-15)


def test_a_cholesky_factor_is_one():
    space = Space([row("cholesky_corr", 10, 25)])
    z = np.random.default_rng(1).normal(size=(50, 10)) * 2
    L = space.constrain(z)[0].reshape(-1, 5, 5)
    R = L @ L.transpose(0, 2, 1)
    np.testing.assert_allclose(np.diagonal(R, axis1=1, axis2=2), 1, rtol=1e-14)
    assert (np.triu(L, 1) == 0).all()
    assert (np.linalg.eigvalsh(R) > 0).all()


@pytest.mark.parametrize(("kind", "x"), [
    (row("log", 1, 1, 0.0), [0.0]), (row("log", 1, 1, 0.0), [-1.0]),
    (row("interval", 1, 1, 0.0, 1.0), [1.0]), (row("upper", 1, 1, -INF, 0.0), [0.0]),
    (row("identity", 1, 1, 0.0, 1.0), [1.5]), (row("identity", 1, 1), [np.nan]),
    (row("simplex", 2, 3, 0.0, 1.0), [0.5, 0.5, 0.0]),
    (row("simplex", 2, 3, 0.0, 1.0), [0.5, 0.5, 0.1]),
    (row("ordered", 2, 2), [1.0, 1.0]), (row("ordered", 2, 2), [1.0, 0.0]),
    (row("cholesky_corr", 1, 4), [1.0, 0.0, 0.5, 0.5]),
    (row("cholesky_corr", 1, 4), [1.0, 0.1, 0.6, 0.8])])
def test_impossible_points_are_found(kind, x):
    space = Space([row("identity", 1, 1), kind])
    _, invalid = space.unconstrain(np.array([[0.0, *x]]))
    assert invalid[0] == 1


def test_a_density_is_that_of_its_transform():
    """Known: a Dirichlet of ones is uniform, 3! on a simplex of four; a logistic is z of (0, 1)."""
    z = np.random.default_rng(2).normal(size=(50, 1))
    _, log_jacobian = Space([row("interval", 1, 1, 0.0, 1.0)]).constrain(z)
    np.testing.assert_allclose(log_jacobian, stats.logistic.logpdf(z[:, 0]), rtol=1e-13)
    _, log_jacobian = Space([row("log", 1, 1, 0.0)]).constrain(z)
    np.testing.assert_allclose(stats.expon.logpdf(np.exp(z[:, 0])) + log_jacobian,
                               stats.gumbel_l.logpdf(z[:, 0]), rtol=1e-12)
