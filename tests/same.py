"""Equality of two results of the same run."""

import numpy as np


def assert_same(one, other):
    """Two results that are the same run: every draw, statistic, state and generator."""
    for a, b in ((one.trace, other.trace), (one.warmup, other.warmup)):
        assert a.counts.tolist() == b.counts.tolist()
        np.testing.assert_array_equal(a.draws, b.draws)
        for name in a.stats:
            np.testing.assert_array_equal(a.stats[name], b.stats[name], err_msg=name)
    for a, b in zip(one.states, other.states, strict=True):
        assert a.keys() == b.keys()
        for name in a.keys() - {"logp_y"}:  # that of the last point: undefined if it was rejected
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    for a, b in zip(one.state.generators, other.state.generators, strict=True):
        np.testing.assert_equal(a, b)
