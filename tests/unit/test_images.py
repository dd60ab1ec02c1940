"""Images of a point in which symmetric densities have other modes."""

import numpy as np
import pytest

from fastkam.search.images import MOST_EXCHANGED, images_of, permutations_of_labels


def rows(array):
    return {tuple(row) for row in array.tolist()}


def test_labels_of_two_components_of_two_parameters():
    assert rows(permutations_of_labels(4)) == {(2, 3, 0, 1), (1, 0, 3, 2)}


def test_one_more_parameter_comes_first_or_last():
    assert rows(permutations_of_labels(5)) == {
        (2, 3, 0, 1, 4), (1, 0, 3, 2, 4), (0, 3, 4, 1, 2), (0, 2, 1, 4, 3)}


def test_three_means_and_three_standard_deviations():
    found = rows(permutations_of_labels(6))
    assert (1, 0, 2, 4, 3, 5) in found  # means and sds, labels 0 and 1
    assert (2, 1, 0, 5, 4, 3) in found
    assert (2, 3, 0, 1, 4, 5) in found  # (mean, sd) of each


@pytest.mark.parametrize("d", [1, 2, 3, 8, 30, 150])
def test_they_exchange_and_are_few(d):
    found = permutations_of_labels(d)
    for one in found:
        np.testing.assert_array_equal(one[one], np.arange(d))
        assert (one != np.arange(d)).sum() >= 4
    x = np.random.default_rng(1).normal(size=d)
    images = images_of(x, np.random.default_rng(2))
    assert len(images) <= 1 + d + 2 * MOST_EXCHANGED
    assert not (images == x).all(axis=1).any()
    assert len(images_of(x, np.random.default_rng(2), 3)) <= 1 + d + 6


def test_images_of_a_point_on_an_axis_are_other_points():
    images = images_of(np.array([0.0, 2.0, 2.0]), np.random.default_rng(1))
    assert rows(images) == {(0.0, -2.0, -2.0), (0.0, -2.0, 2.0), (0.0, 2.0, -2.0),
                            (2.0, 0.0, 2.0), (2.0, 2.0, 0.0)}
