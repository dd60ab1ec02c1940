"""Our normals are numpy's, bit for bit, from every bit generator, the rare cases included."""

import numpy as np
import pytest

from fastkam._core.engine.rng import standard_normal


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_the_random_numbers_are_those_of_numpy(name):
    ours, theirs = getattr(np.random, name)(5), getattr(np.random, name)(5)
    draws = standard_normal(ours, 1_000_000)  # 7 000 of them leave the quick way, 270 to the tail
    expected = np.random.Generator(theirs).standard_normal(1_000_000)
    np.testing.assert_array_equal(draws.view(np.int64), expected.view(np.int64))
    assert ours.random_raw() == theirs.random_raw()
    assert abs(expected).max() > 3.6541528853610088  # where the tail begins


def test_no_random_number_is_drawn_for_an_empty_request():
    assert standard_normal(np.random.PCG64(1), 0).shape == (0,)
