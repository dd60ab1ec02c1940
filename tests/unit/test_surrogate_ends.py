"""The ends of a density along each coordinate, which a surrogate follows."""

import numpy as np
import pytest

from fastkam.surrogate import ends, regression
from fastkam.surrogate.checking import outside
from fastkam.surrogate.density import Support, process_density
from fastkam.surrogate.ends import Ends, drop, highest


def normal(X):
    return -0.5 * (X * X).sum(axis=1)


def arm(X):
    """A standard normal density, and a bent arm up to x_0 = 9 with one percent of the mass."""
    bend = (X[:, 1] - 0.02 * X[:, 0] ** 2) / 0.5
    off = np.maximum(0, -X[:, 0]) + np.maximum(0, X[:, 0] - 9)
    return np.logaddexp(normal(X), -5 - 0.5 * bend**2 - 0.5 * (off / 0.3) ** 2)


def walled(X):
    return np.where(X[:, 0] < 1.5, normal(X), -np.inf)


def followed(f, d, *, rounds=40):
    """The ends of f, and the points and log densities of all calls."""
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((25 * d, d)), 2 * rng.standard_normal((5 * d, d))])
    y = f(X)
    found, center, factor = Ends.of(d), np.zeros(d), np.eye(d)
    for _ in range(rounds):
        some = np.isfinite(y)
        process = regression.fit(X[some], y[some], center, factor)
        density = process_density(process, Support.of(X, y))
        new = found.propose(density, X[some], y[some], center, factor)
        if not len(new):
            return found, X, y
        values = f(new)
        found.tell(new, values, y.max())
        X, y = np.vstack([X, new]), np.concatenate([y, values])
    raise AssertionError("the ends were not found")


@pytest.mark.parametrize("d", [1, 2, 5])
def test_ends_of_a_normal_density(d):
    found, X, _ = followed(normal, d)
    end = np.sqrt(2 * drop(d))
    assert found.unknown == 0
    assert (np.abs(found.known) <= 1.05 * end).all()  # the maximum of all calls is a little lower
    assert (np.abs(found.known) > 0.8 * end).all()
    assert len(X) <= 30 * d + 2 * d * 3


def banana(X):
    return -0.125 * X[:, 0] ** 2 - 2 * (X[:, 1] - 0.3 * X[:, 0] ** 2) ** 2


def test_a_bent_ridge_is_followed_to_both_ends():
    """Points near the middle of it foresee its ends where it has already bent away."""
    _, X, y = followed(banana, 2)
    x = X[y > y.max() - drop(2)][:, 0]
    assert x.min() < -6.3
    assert x.max() > 6.3


def test_a_surrogate_that_is_believed_too_easily_loses_the_ridge(monkeypatch):
    """The planted mistake: any point that has fallen is an end as foreseen."""
    monkeypatch.setattr(ends, "RIGHT", 1.0)
    _, X, y = followed(banana, 2)
    x = X[y > y.max() - drop(2)][:, 0]
    assert min(-x.min(), x.max()) < 5


def test_a_thin_arm_is_followed_to_its_end():
    found, X, y = followed(arm, 2)
    assert X[y > y.max() - drop(2)][:, 0].max() > 8
    assert 8 < found.known[0, 1] < 11


def test_points_straight_ahead_lose_the_arm(monkeypatch):
    """The planted mistake: points are not where the surrogate is largest."""
    monkeypatch.setattr(ends, "SIDEWAYS", 0.0)
    _, X, y = followed(arm, 2)
    assert X[y > y.max() - drop(2)][:, 0].max() < 8


def test_a_wall_is_an_end():
    found, _, _ = followed(walled, 2)
    assert 1.2 <= found.known[0, 1] < 1.5


def test_an_end_is_unknown_again_where_a_point_beyond_is_high():
    found, X, y = followed(normal, 2)
    density = process_density(
        regression.fit(X, y, np.zeros(2), np.eye(2)), Support.of(X, y))
    X, y = np.vstack([X, [6.0, 0]]), np.append(y, -1.0)
    new = found.propose(density, X, y, np.zeros(2), np.eye(2))
    assert found.asked == [(0, 1)]
    assert new[0, 0] > 6
    assert found.unknown == 1


def test_high_points_outside_the_draws_are_counted():
    rng = np.random.default_rng(3)
    draws = rng.standard_normal((1000, 2))
    X = np.array([[0.0, 0], [3.0, 0], [6.0, 0], [0, -5.0], [0, 0.5]])
    y = np.array([0.0, -3, -3, -3, -0.1])
    assert outside(X, y, draws, normal(draws)) == 2
    assert outside(X[:2], y[:2], draws, normal(draws)) == 0
    assert outside(X, y - [0, 0, 1, 1, 0], draws, normal(draws)) == 0  # they are not high
    far = np.vstack([draws, [9.0, 9.0]])  # one of the heavy-tailed components
    assert outside(X, y, far, normal(far)) == 2


def test_the_highest_point_of_a_correlated_density():
    """Given x_0, the mean of x_1 is half of it."""
    rng = np.random.default_rng(2)
    L = np.array([[2.0, 0], [1, 0.1]])
    X = rng.standard_normal((40, 2)) @ L.T
    y = -0.5 * (np.linalg.solve(L, X.T) ** 2).sum(axis=0)
    process = regression.fit(X, y, np.zeros(2), L)
    density = process_density(process, Support.of(X, y))
    for step in (-3.0, 0.5, 4.0):
        point = highest(density, np.array([1.0, 0.55]), 0, step, L)
        np.testing.assert_allclose(point, [1 + step, 0.5 * (1 + step)], atol=0.02)
        assert point[0] == 1 + step
