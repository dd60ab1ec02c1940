"""Our normals and exponentials are numpy's, bit for bit, the rare cases included."""

import numpy as np
import pytest

from fastkam._core.engine.rng import in_turns, is_in_line, standard_normal

KINDS = ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"]


@pytest.mark.parametrize("name", KINDS)
def test_the_random_numbers_are_those_of_numpy(name):
    ours, theirs = getattr(np.random, name)(5), getattr(np.random, name)(5)
    draws = standard_normal(ours, 1_000_000)  # 7 000 of them leave the quick way, 270 to the tail
    expected = np.random.Generator(theirs).standard_normal(1_000_000)
    np.testing.assert_array_equal(draws.view(np.int64), expected.view(np.int64))
    assert ours.random_raw() == theirs.random_raw()
    assert abs(expected).max() > 3.6541528853610088  # where the tail begins


@pytest.mark.parametrize("name", KINDS)
def test_normals_and_exponentials_are_those_of_numpy_one_by_one(name):
    ours, theirs = getattr(np.random, name)(6), np.random.Generator(getattr(np.random, name)(6))
    draws = in_turns(ours, 200_000)
    expected = np.array([(theirs.standard_normal(), theirs.standard_exponential())
                         for _ in range(200_000)])
    np.testing.assert_array_equal(draws.view(np.int64), expected.view(np.int64))
    assert ours.random_raw() == theirs.bit_generator.random_raw()
    assert expected[:, 1].max() > 7.69711747013104972  # where the tail begins


def test_the_default_generator_is_drawn_from_without_a_call():
    """numpy's own state is where bits.h expects it: otherwise steps would only be slower."""
    assert is_in_line()


def test_no_random_number_is_drawn_for_an_empty_request():
    assert standard_normal(np.random.PCG64(1), 0).shape == (0,)
