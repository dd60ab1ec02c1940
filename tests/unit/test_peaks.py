"""Peaks of a density among scattered points."""

import numpy as np
import pytest
from scipy.spatial import KDTree

from fastkam.search.peaks import OUTER, peaks


@pytest.mark.parametrize(("n", "d", "k"), [(40, 1, 3), (700, 2, 12), (900, 5, 20)])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_they_are_higher_than_their_nearest_neighbors(n, d, k, unit):
    rng = np.random.default_rng(d)
    x = rng.normal(3.0, unit * np.geomspace(1, 1e3, d), (n, d))
    logp = rng.normal(size=n)
    logp[::5] = -np.inf
    logp[7] = np.nan
    low, high = np.quantile(x, OUTER, axis=0)
    y = (x - (low + high) / 2) / (high - low)
    _, neighbors = KDTree(y).query(y, k + 1)
    known = np.where(np.isfinite(logp), logp, -np.inf)
    expected = np.flatnonzero(known > known[neighbors[:, 1:]].max(axis=1))
    found = peaks(x, logp, k)
    assert sorted(found) == list(expected)
    assert (np.diff(logp[found]) < 0).all()


def test_only_the_first_of_equal_points_is_a_peak():
    x = np.linspace(0, 1, 30)[:, None]
    assert list(peaks(x, np.zeros(30), 3)) == [0]
    assert list(peaks(np.ones((30, 2)), np.zeros(30), 3)) == [0]


def test_there_are_none_without_a_density():
    assert len(peaks(np.zeros((5, 1)), np.full(5, -np.inf), 2)) == 0


def test_a_narrow_mode_has_one_although_the_highest_points_are_in_a_wide_one():
    rng = np.random.default_rng(1)
    x = rng.uniform(-10, 10, (4500, 3))

    def narrow(X):
        return -50 * ((X + 5) ** 2).sum(axis=1) - 3 * np.log(0.1)

    wide = -0.5 * ((x - 5) ** 2).sum(axis=1)
    logp = np.logaddexp(wide, narrow(x))
    in_narrow = np.flatnonzero(narrow(x) > wide)
    assert not np.isin(np.argsort(-logp)[:100], in_narrow).any()
    found = peaks(x, logp, 12)
    assert np.isin(found, in_narrow).any()
    assert len(found) < 12
