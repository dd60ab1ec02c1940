"""The factor bank: the nearest point, in both forms, against distances to all points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fastkam as fk
from fastkam._core.numerics.nearest import NearestIndex


def by_brute_force(points, x):
    """Squares summed in the order of the coordinates; argmin returns the lowest index of equals."""
    out = []
    for at in x:
        distance = np.zeros(len(points))
        for k in range(points.shape[1]):
            distance += (at[k] - points[:, k]) ** 2
        out.append(np.argmin(distance))
    return np.array(out)


def find(points, x, is_tree):
    out = np.full(len(x), -1)
    NearestIndex(np.ascontiguousarray(points), is_tree).find_all(np.ascontiguousarray(x), out)
    return out


@pytest.mark.parametrize("is_tree", [True, False])
@pytest.mark.parametrize(("s", "d"), [
    (1, 1), (2, 1), (15, 2), (16, 2), (17, 3), (255, 2), (256, 2), (257, 2), (4096, 1), (4097, 2),
    (5000, 3), (300, 8), (1000, 7), (333, 42), (50, 200)])
def test_nearest(s, d, is_tree):
    rng = np.random.default_rng(s + d)
    points = rng.standard_normal((s, d)) * 10.0 ** rng.integers(-3, 4, d)
    x = np.concatenate([points[:50], points[:50] + 1e-6 * rng.standard_normal((min(s, 50), d)),
                        2 * points.std(axis=0) * rng.standard_normal((200, d))])
    np.testing.assert_array_equal(find(points, x, is_tree), by_brute_force(points, x))


@pytest.mark.parametrize("is_tree", [True, False])
@pytest.mark.parametrize("far", [30.0, 1e3, 1e7, 1e12])
def test_points_and_queries_beyond_the_grid(far, is_tree):
    """Few points far away leave the grid as it is; among these, too, the nearest is found."""
    rng = np.random.default_rng(5)
    points = rng.standard_normal((700, 9))
    points[::90] *= far
    x = np.concatenate([points + 0.1 * rng.standard_normal(points.shape),
                        far * rng.standard_normal((50, 9)), rng.standard_normal((50, 9))])
    np.testing.assert_array_equal(find(points, x, is_tree), by_brute_force(points, x))


@pytest.mark.parametrize("is_tree", [True, False])
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_ties(is_tree, data):
    """On a coarse lattice most points are several and most distances equal."""
    d = data.draw(st.integers(1, 4))
    s = data.draw(st.integers(1, 400))
    points = data.draw(arrays(float, (s, d), elements=st.integers(-3, 3), fill=st.just(0.0)))
    x = data.draw(arrays(float, (5, d), elements=st.sampled_from([-9, -1, -0.5, 0, 0.5, 2])))
    np.testing.assert_array_equal(find(points, x, is_tree), by_brute_force(points, x))


@pytest.mark.parametrize("is_tree", [True, False])
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-530, 2.0**-60, 2.0**60, 2.0**430, 2.0**530,
                                   2.0**1020])
def test_scales(is_tree, scale):
    """A power of 2 changes no comparison, however large or small the squares are."""
    rng = np.random.default_rng(3)
    points, x = rng.standard_normal((600, 3)), rng.standard_normal((50, 3))
    points[300:350] = points[:50]           # two of each: the first is found
    x[:5] = points[:5]
    expected = by_brute_force(points, x)
    np.testing.assert_array_equal(find(scale * points, scale * x, is_tree), expected)
    far = np.array([[1e18, -1e19, 1e17], [1e3, 2e5, -1e7]])
    if scale < 2.0**900:
        np.testing.assert_array_equal(find(scale * points, scale * far, is_tree),
                                      by_brute_force(points, far))
    for power in (-900, 900):
        metric = np.diag([2.0**power, 2.0 ** (power + 2), 2.0 ** (power - 4)])
        bank = fk.CholeskyBank(points * scale, [np.eye(3)] * 600, metric=metric)
        np.testing.assert_array_equal(
            bank.lookup(x * scale), by_brute_force(points * np.sqrt(np.diag(metric) / metric[0, 0]),
                                                   x * np.sqrt(np.diag(metric) / metric[0, 0])))


@pytest.mark.parametrize("is_tree", [True, False])
def test_scales_that_differ(is_tree):
    points = np.array([[1e160, 0.0], [1e160, 1e150], [-1e300, 1e-160], [0.0, 3e-170], [0.0, 1e-200],
                       [1.0, 1.0]])
    x = [[9e159, 1e150], [-9e299, 5.0], [0.0, 1e-180], [0.0, 2e-170], [1e100, 0.0], [0.0, 0.0]]
    np.testing.assert_array_equal(find(points, np.array(x), is_tree), [0, 2, 4, 3, 3, 4])


@pytest.mark.parametrize("is_tree", [True, False])
def test_far_from_the_origin(is_tree):
    """Single precision alone would see one point only."""
    rng = np.random.default_rng(4)
    points = 1e9 + rng.standard_normal((500, 5))
    points[0] = -1e9
    x = 1e9 + rng.standard_normal((100, 5))
    np.testing.assert_array_equal(find(points, x, is_tree), by_brute_force(points, x))


@pytest.mark.parametrize("is_tree", [True, False])
def test_no_index_is_out_of_bounds_for_any_query(is_tree):
    points = np.random.default_rng(5).standard_normal((100, 2))
    x = np.array([[np.nan, 0], [np.inf, 0], [-np.inf, np.nan], [1e300, 1e300]])
    assert set(find(points, x, is_tree)) <= set(range(100))
    assert set(find(1e200 * points, x, is_tree)) <= set(range(100))


def test_mahalanobis():
    rng = np.random.default_rng(6)
    points, x = rng.standard_normal((300, 3)), rng.standard_normal((40, 3))
    A = rng.standard_normal((3, 3))
    M = A @ A.T + np.eye(3)
    bank = fk.CholeskyBank(points, np.broadcast_to(np.eye(3), (300, 3, 3)), metric=M)
    r = x[:, None] - points
    expected = np.einsum("nsi,ij,nsj->ns", r, M, r).argmin(axis=1)
    np.testing.assert_array_equal(bank.lookup(x), expected)


def test_lookup():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    factors = np.array([[[1.0, 7.0], [2.0, 3.0]]] * 3)
    bank = fk.CholeskyBank(points, factors)
    points[:] = 99
    assert bank.lookup([0.1, 0.2]) == 0
    assert isinstance(bank.lookup([0.1, 0.2]), int)
    out = np.empty(2, np.int64)
    assert bank.lookup([[0.9, 0.0], [0.5, 0.0]], out=out) is out
    np.testing.assert_array_equal(out, [1, 0])
    assert bank.lookup(np.empty((0, 2))).shape == (0,)
    np.testing.assert_array_equal(bank.lookup([[[0.9, 0.0]], [[0.5, 0.0]]]), [[1], [0]])
    assert len(bank) == 3
    assert repr(bank) == "<CholeskyBank of 3 factors, d = 2>"
    np.testing.assert_array_equal(bank.factors[0], [[1, 0], [2, 3]])


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"points": []}, ValueError, r"points must have shape \(s, d\), not \(0,\)"),
    ({"points": [[0.0, np.nan]]}, ValueError, "points must be finite, not nan"),
    ({"factors": np.ones((1, 2))}, ValueError, r"factors must have shape \(1, 2, 2\)"),
    ({"metric": "manhattan"}, ValueError, "metric must be \"euclidean\" or a matrix, not 'manha"),
    ({"metric": -np.eye(2)}, ValueError, "metric must be positive definite"),
])
def test_bad_arguments_are_refused(change, error, message):
    given = {"points": [[0.0, 0.0]], "factors": [np.eye(2)], "metric": "euclidean"} | change
    with pytest.raises(error, match=message):
        fk.CholeskyBank(given["points"], given["factors"], metric=given["metric"])


@pytest.mark.parametrize(("x", "out", "error", "message"), [
    ([0.0], None, ValueError, r"x must have shape \(\.\.\., 2\), not \(1,\)"),
    ([0.0, np.inf], None, ValueError, "x must be finite, not inf"),
    ([[0.0, 0.0]], np.empty(1), TypeError, "out must be a writable, contiguous int64 array of sh"),
])
def test_places_that_are_refused(x, out, error, message):
    with pytest.raises(error, match=message):
        fk.CholeskyBank([[0.0, 0.0]], [np.eye(2)]).lookup(x, out=out)
