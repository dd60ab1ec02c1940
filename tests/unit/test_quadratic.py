"""The normal approximation of a search, and points that are apart from its mode."""

import numpy as np
import pytest

from fastkam.search.apart import is_apart
from fastkam.search.population import largest_drop
from fastkam.search.quadratic import (
    Quadratic,
    differences,
    fitted,
    normal_approximation,
    normal_by_differences,
)

MODE = np.array([3.0, -1.0, 20.0])
L = np.array([[2.0, 0, 0], [1.5, 0.1, 0], [-30.0, 1.0, 5.0]])


def normal(x):
    z = np.linalg.solve(L, (x - MODE).T)
    return 7.0 - 0.5 * (z * z).sum(axis=0)


def counted(f):
    def called(x):
        called.n += len(x)
        return f(x)

    called.n = 0
    return called


def around(seed, n=200, away=3.0):
    """Points on the way to the mode: the first are far away."""
    rng = np.random.default_rng(seed)
    width = np.geomspace(20, 0.5, n)[:, None]
    return MODE + away * width * (rng.standard_normal((n, 3)) @ L.T) / 3


@pytest.mark.parametrize("seed", range(5))
def test_a_normal_density_is_its_own_approximation(seed):
    x = around(seed)
    found = fitted(x, normal(x), largest_drop(3), 10)
    np.testing.assert_allclose(found.mean, MODE, atol=1e-5)
    np.testing.assert_allclose(found.factor @ found.factor.T, L @ L.T, rtol=1e-5)
    assert found.height == pytest.approx(7.0, abs=1e-6)
    np.testing.assert_allclose(found(x[-9:]), normal(x[-9:]), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_points_that_hardly_spread_along_a_direction_are_not_enough(seed):
    """Weights of points of a density that is too narrow are even, and say nothing."""
    rng = np.random.default_rng(seed)
    x = MODE + (rng.standard_normal((200, 3)) * [0.3, 1, 1]) @ L.T
    assert not fitted(x, normal(x), largest_drop(3), 10).sure
    points = [(x, normal(x))]
    found = normal_approximation(normal, points, largest_drop(3) / 2, 6, rng)
    assert len(points) > 1
    widths = np.linalg.svd(np.linalg.solve(L, found.factor))[1]
    assert 0.7 < widths.min() < widths.max() < 1.4


@pytest.mark.parametrize("seed", range(5))
def test_rounds_come_to_a_skewed_density(seed):
    """A log density that falls off twice as fast on one side, from points on its slope."""
    def skewed(x):
        z = np.linalg.solve(L, (x - MODE).T)
        return -0.5 * (np.where(z > 0, 1.4, 0.8) * z * z).sum(axis=0)

    evaluate, x = counted(skewed), around(seed) + 4 * L[:, 0]
    points = [(x, skewed(x))]
    rng = np.random.default_rng(seed)
    found = normal_approximation(evaluate, points, largest_drop(3) / 2, 6, rng)
    y = found.mean + rng.standard_normal((4000, 3)) @ found.factor.T
    weights = np.exp(skewed(y) - found(y))
    assert weights.sum() ** 2 / (weights**2).sum() > 0.3 * len(y)
    assert evaluate.n == 64 * len(points) <= 6 * 64


@pytest.mark.parametrize("seed", range(5))
def test_a_bend_and_two_modes_have_none(seed):
    def bend(x):
        return -0.5 * x[:, 0] ** 2 - 50 * (x[:, 1] - x[:, 0] ** 2) ** 2 - 0.5 * x[:, 2] ** 2

    def modes(x):
        return np.logaddexp(*(-0.5 * ((x - a) ** 2).sum(axis=1) for a in (-4, 4)))

    rng = np.random.default_rng(seed)
    for f in (bend, modes):
        x = 3 * rng.standard_normal((400, 3))
        assert normal_approximation(f, [(x, f(x))], largest_drop(3) / 2, 6, rng) is None


def test_too_few_points_and_points_in_a_plane_have_none():
    x = around(1)
    assert fitted(x[:19], normal(x[:19]), 1.0, 10) is None
    x[:, 2] = 1.0
    assert fitted(x, normal(x), largest_drop(3), 10) is None
    logp = np.where(np.arange(len(x)) < 19, 0.0, -np.inf)
    assert fitted(around(1), logp, largest_drop(3), 10) is None


@pytest.mark.parametrize("seed", range(5))
def test_points_of_another_mode_are_apart(seed):
    """Points of its own tail are not, though that is much heavier than a normal one."""
    def f(x):
        own = -np.sqrt(1 + (x * x).sum(axis=1))
        return np.logaddexp(own, -3 - 0.5 * ((x - 15) ** 2).sum(axis=1))

    rng = np.random.default_rng(seed)
    here = Quadratic(np.zeros(3), np.eye(3), -1.0)
    tail = 6 * rng.standard_normal((50, 3)) - 6
    other = 15 + rng.standard_normal((50, 3))
    assert not here.apart(f, tail, f(tail)).any()
    assert here.apart(f, other, f(other)).mean() > 0.9
    assert np.median(f(tail) - here(tail)) > 20     # only the steps show that it is a tail
    mixed = rng.permutation(np.concatenate([tail, other]))      # the likeliest are tried
    assert here.apart(f, mixed, f(mixed), most=40)[mixed[:, 0] > 10].sum() >= 36

@pytest.mark.parametrize("width", [0.02, 1.0, 30.0])
def test_steps_of_several_lengths_show_modes_of_any_width(width):
    """Modes at a distance of 20 of their widths, or of 1 for the widest."""
    def f(x):
        return np.logaddexp(-0.5 * (x**2).sum(axis=1),
                            -0.5 * ((x - at) ** 2).sum(axis=1) / width**2)

    at = 20 * width + 10
    x = np.full((1, 2), float(at))
    assert is_apart(f, x, f(x), np.zeros((1, 2))).all()
    x = np.full((1, 2), -5.0)
    assert not is_apart(f, x, f(x), np.zeros((1, 2))).any()


# ---- many dimensions ----

D = 80
SD = np.geomspace(1e-2, 1e2, D)
FACTOR = SD[:, None] * (np.eye(D) + np.tril(np.random.default_rng(4).normal(0, 0.1, (D, D)), -1))


def wide(x):
    z = np.linalg.solve(FACTOR, (x - 3.0).T)
    return 7.0 - 0.5 * (z * z).sum(axis=0)


def scales_of(cov):
    """Steps that change a normal log density by 1, from its mode."""
    return np.sqrt(2 / np.diag(np.linalg.inv(cov)))


def test_differences_at_any_point_give_a_normal_density():
    cov = FACTOR @ FACTOR.T
    x = 3.0 + FACTOR @ np.random.default_rng(1).normal(0, 4, D)
    found = differences(wide, x, float(wide(x[None])[0]), scales_of(cov))
    assert (np.abs(found.mean - 3.0) < 1e-3 * SD).all()
    assert (np.abs(found.factor - FACTOR) < 1e-3 * SD[:, None]).all()
    assert found.height == pytest.approx(7.0, abs=1e-4)


def test_the_second_round_begins_at_the_mode_of_the_first():
    """A quadratic function of slightly bent coordinates, of which the first round is not sure."""
    def f(x):
        z = x + 0.03 * np.sin(x)
        return -0.5 * (z * z).sum(axis=1)

    evaluate, x = counted(f), np.full(D, 2.0)
    rng = np.random.default_rng(1)
    logp = float(f(x[None])[0])
    assert normal_by_differences(f, x, logp, np.ones(D), 1, rng) is None
    found = normal_by_differences(evaluate, x, logp, np.ones(D), 2, rng)
    np.testing.assert_allclose(found.mean, 0, atol=0.01)
    each = (D + 1) * (D + 2) // 2 + 2 * D
    assert evaluate.n < 2 * each


@pytest.mark.parametrize("f", [
    lambda x: (x - np.exp(x)).sum(axis=1), lambda x: -(x**4).sum(axis=1),
    lambda x: np.where((x > -0.5).all(axis=1), -0.5 * (x * x).sum(axis=1), -np.inf),
    lambda x: 0.5 * (x[:, 0] ** 2) - 0.5 * (x[:, 1:] ** 2).sum(axis=1), lambda x: 0 * x[:, 0]])
def test_densities_that_are_not_normal_have_none(f):
    x = np.full(D, 0.1)
    rng = np.random.default_rng(2)
    assert normal_by_differences(f, x, float(f(x[None])[0]), np.ones(D), 2, rng) is None
