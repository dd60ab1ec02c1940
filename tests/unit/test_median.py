"""The median is numpy's."""

import numpy as np
import pytest

from fastkam.numerics.median import median


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (8, 3), (5, 4)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_the_median_is_numpys(shape, axis):
    x = np.random.default_rng(1).standard_normal(shape)
    assert np.array_equal(median(x, axis), np.median(x, axis))
    x.flat[0] = -np.inf
    assert np.array_equal(median(x, axis), np.median(x, axis))
