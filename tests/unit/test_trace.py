"""Summaries of draws and statistics over all chains."""

import numpy as np
import pytest

from fastkam.run import trace


@pytest.mark.parametrize("rows", [1, 6, 7, 8, 20])
def test_acceptance_is_a_mean_over_all_blocks(monkeypatch, rows):
    """The mean is over the rows that every chain has, in complete blocks or not."""
    monkeypatch.setattr(trace, "BLOCK", 7)
    kept = trace.Trace(2, 25, 1)
    kept.log_ratio[:] = np.random.default_rng(1).normal(size=(2, 25))
    kept.counts[:] = rows, rows + 2
    expected = np.minimum(np.exp(kept.log_ratio[:, :rows]), 1).mean(axis=1)
    np.testing.assert_allclose(kept.acceptance, expected, rtol=1e-14)
