"""Initial inverse temperatures of replica exchange: equal ratios, and 0 for a reference."""

import numpy as np
import pytest

import fastkam as fk


@pytest.mark.parametrize("n", [2, 3, 6])
def test_equal_ratios_down_to_the_least(n):
    flat = fk.ParallelTempering(n_replicas=n, reference="flat")
    np.testing.assert_allclose(flat.first_ladder(), np.geomspace(1, 0.01, n))
    least = fk.ParallelTempering(n_replicas=n, reference="flat", min_beta=0.2)
    np.testing.assert_allclose(least.first_ladder(), np.geomspace(1, 0.2, n))


@pytest.mark.parametrize("n", [3, 6])
def test_the_last_rung_is_the_reference(n):
    ladder = fk.ParallelTempering(n_replicas=n).first_ladder()
    np.testing.assert_allclose(ladder, [*np.geomspace(1, 0.01, n - 1), 0])
