"""The look-up of the nearest of s points, in its two forms and beside scipy's k-d tree.

`pytest bench/perf/test_nearest.py -q` prints nanoseconds a query. Points and queries are standard
normal. The choice of the form by s and d in `_core/nearest.pyx` was read off this table.
"""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from bench.perf.test_overhead import medians, report  # noqa: F401
from fastkam._core.nearest import NearestIndex

QUERIES = 1000


@pytest.mark.parametrize("d", [2, 4, 6, 8, 10, 12, 42])
def test_nearest(report, d):  # noqa: F811
    rng = np.random.default_rng(1)
    lines = []
    for s in (100, 500, 2500, 10_000):
        points, x = rng.standard_normal((s, d)), rng.standard_normal((QUERIES, d))
        out = np.empty(QUERIES, np.int64)
        forms = [NearestIndex(points, is_tree) for is_tree in (True, False)]
        scipys = cKDTree(points)
        tree, filtered, many, single = medians(
            lambda: forms[0].find_all(x, out), lambda: forms[1].find_all(x, out),
            lambda: scipys.query(x), lambda: [scipys.query(at) for at in x[:20]], rounds=9)
        np.testing.assert_array_equal(out, scipys.query(x)[1])
        tree, filtered, many = 1e9 / QUERIES * np.array([tree, filtered, many])
        chosen = "tree" if NearestIndex(points).is_tree else "filter"
        lines.append(f"d {d:2} s {s:6}: tree {tree:7.0f}, filter {filtered:6.0f} ({chosen}); cKDTree "
                     f"{many:7.0f} in one call, {1e9 / 20 * single:7.0f} a call")
    report("\n".join(lines))
