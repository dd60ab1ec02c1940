"""Residuals of log drops: points of another mode stand out, and tails do not."""

import numpy as np
import pytest

from fastkam.search.outliers import residuals


def tails(d, n, seed):
    """Points in all directions; drops that are a power in coordinate 0, and normal in others."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    z = u * np.exp(rng.uniform(np.log(5), np.log(35), (n, 1)))
    drop = 0.5 * (z[:, 1:] ** 2).sum(axis=1) + 4 * np.log1p(z[:, 0] ** 2)
    return z, drop * np.exp(0.05 * rng.standard_normal(n))


@pytest.mark.parametrize("d", [2, 5, 10, 20])
def test_few_points_of_another_mode_stand_out(d):
    """A third of the drop that is expected there, where tails elsewhere have a tenth."""
    for seed in range(5):
        z, drop = tails(d, 3000, seed)
        others = np.flatnonzero(np.abs(z[:, 0]) < 0.3 * np.linalg.norm(z, axis=1))[:4]
        drop[others] /= 3
        found = residuals(z, drop, np.zeros(3000, int))
        assert (np.argsort(found)[:20, None] == others).any(axis=0).all(), (d, seed)
        assert (found[others] < -2.5).all()


def test_each_mode_has_its_own_tails():
    """Points of one mode do not hide those of another, nor do few points of a third."""
    (z, drop), (y, other) = tails(3, 500, 1), tails(3, 500, 2)
    few = tails(3, 9, 3)
    groups = np.repeat([0, 2, 3], [500, 500, 9])
    drops = np.concatenate([drop, 100 * other, few[1]])
    found = residuals(np.concatenate([z, y, few[0]]), drops, groups)
    alone = residuals(y, 100 * other, np.zeros(500, int))
    np.testing.assert_allclose(found[500:1000], alone, rtol=1e-6, atol=1e-6)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("n", [0, 1, 7, 40])
@pytest.mark.parametrize("d", [1, 4])
def test_few_points(d, n):
    z, drop = tails(max(d, 2), n, 1)
    found = residuals(z[:, :d] + 5, drop + 1, np.zeros(n, int))
    assert found.shape == (n,)
    assert np.isfinite(found).all()


def test_points_in_a_plane_and_equal_drops():
    z, drop = tails(3, 400, 1)
    z[:, 2] = 0
    assert np.isfinite(residuals(z, drop, np.zeros(400, int))).all()
    np.testing.assert_array_equal(np.abs(residuals(z, np.ones(400), np.zeros(400, int))) < 10, True)


def test_many_points_of_another_mode_do_not_pass_for_tails():
    """Least squares alone would follow them."""
    z, drop = tails(3, 2000, 6)
    others = np.flatnonzero(z[:, 1] > 0.8 * np.linalg.norm(z, axis=1))
    assert 100 < len(others) < 400
    drop[others] /= 1000
    found = residuals(z, drop, np.zeros(2000, int))
    assert (found[others] < -2.5).mean() > 0.9
