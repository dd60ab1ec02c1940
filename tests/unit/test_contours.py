"""Contours of draws: the share of the draws that they hold, and the width of their smoothing."""

import numpy as np
import pytest
from test_plots import with_draws

import fastkam as fk
from fastkam.plots import pair

pytest.importorskip("matplotlib")


def normal(correlation):
    z = np.random.default_rng(1).standard_normal((4, 2000, 2))
    z[..., 1] = correlation * z[..., 0] + np.sqrt(1 - correlation**2) * z[..., 1]
    return z


def banana():
    z = normal(0.0) * [4.0, 1.0]
    z[..., 1] += 0.25 * z[..., 0] ** 2
    return z


def two_modes(share=0.3, apart=12.0):
    z = normal(0.0)
    z[:, : int(share * z.shape[1])] += apart
    return z


CASES = {"normal": normal(0.0), "correlation 0.95": normal(0.95),
         "correlation 0.999": normal(0.999),
         "banana": banana(), "two modes": two_modes(), "equal modes": two_modes(0.5),
         "far modes": two_modes(0.4, 40.0), "lognormal": np.exp(normal(0.0))}


def contours_of(x):
    """The contours of a pair of coordinates: [paths at each level]."""
    from matplotlib.path import Path

    (drawn,) = fk.plots.plot_pair(with_draws(x)).axes[2].collections
    return [[Path(part) for part in level] for level in drawn.allsegs]


def inside(paths, points):
    """Whether points (n, 2) are within an odd number of closed curves."""
    return np.sum([path.contains_points(points) for path in paths], axis=0) % 2 == 1


@pytest.mark.parametrize("case", CASES)
def test_contours_hold_half_and_nine_tenths_of_the_draws(case):
    x = CASES[case]
    shares = sorted(inside(paths, x.reshape(-1, 2)).mean() for paths in contours_of(x))
    np.testing.assert_allclose(shares, sorted(pair.OF_DRAWS), atol=0.02)


def test_smoothing_does_not_depend_on_the_distance_of_modes():
    for share in (0.3, 0.5):
        near, far = (pair.scale_of(two_modes(share, apart)[..., 0].ravel())
                     for apart in (10.0, 1000.0))
        assert near == pytest.approx(far, rel=1e-9)
        assert 0.8 < far < 2.2
    assert pair.scale_of(normal(0.0)[..., 0].ravel()) == pytest.approx(1.0, abs=0.05)
    assert pair.scale_of(np.repeat([1.0, 2.0], 50)) == 0.0


def test_contours_of_the_same_draws_are_the_same():
    one, two = (contours_of(banana()) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        for first, second in zip(a, b, strict=True):
            np.testing.assert_array_equal(first.vertices, second.vertices)
