"""The look-up of the nearest of s points, in its two forms and beside scipy's k-d tree.

`pytest bench/perf/test_nearest.py -q` prints nanoseconds a query. Points and queries are standard
normal. The choice of the form by s and d in `_core/numerics/nearest.pyx` was read off this table.
`python -m bench.perf.versions` measures it as called from C, beside a bare look-up.
"""

import ctypes

import numpy as np
import pytest
from scipy.spatial import cKDTree

from bench.perf import floor
from bench.perf.measure import Case
from bench.perf.test_overhead import medians
from fastkam._core.numerics.nearest import NearestIndex

QUERIES = 200
TITLE = "Look-up of the nearest of s points"
SIZES = [2, 4, 8, 16, 42, 128]
SIDE = 64       # queries in turn, called from C


def case(d, s, repeat=None):
    """Queries among s points in d dimensions; `repeat` as `floor.repeat()` gives it."""
    repeat = repeat or floor.repeat()
    rng = np.random.default_rng(1)
    points, x = rng.standard_normal((s, d)), rng.standard_normal((SIDE, d))
    ours, bare = np.empty(SIDE), np.empty(SIDE)
    kept, is_tree = [ours, points], NearestIndex(points).is_tree    # the indices point at these
    index = ctypes.c_void_p(repeat.new_index(*floor.arguments(s, d, points, int(is_tree))))
    floors = floor.kernels()
    bare_index = ctypes.c_void_p(floors.floor_index(*floor.arguments(s, d, points)))

    def find(times):
        kept[0] = ours
        repeat.repeat_find(*floor.arguments(times), index, *floor.arguments(x, ours))

    def find_bare(times):
        kept[0] = bare
        floors.floor_find(*floor.arguments(times), bare_index, *floor.arguments(x, bare))

    return Case(f"d {d}, s {s}", find, find_bare, answer=lambda: kept[0])


def cases():
    for d in SIZES:
        for s in (500, 2500, 10_000):
            yield case(d, s)


@pytest.mark.parametrize("d", SIZES)
def test_the_floor_finds_the_same(d):
    measured = case(d, 500)
    found = []
    for function in (measured.fastkam, measured.floor):
        function(SIDE)
        found.append(measured.answer().copy())
    np.testing.assert_array_equal(*found)


def nanoseconds(s, d):
    """(tree, filter, scipy in one call, scipy by a call each, the form chosen) for one query."""
    rng = np.random.default_rng(1)
    points, x = rng.standard_normal((s, d)), rng.standard_normal((QUERIES, d))
    out = np.empty(QUERIES, np.int64)
    tree, filtered, tree_of_scipy = (
        NearestIndex(points, True), NearestIndex(points, False), cKDTree(points))
    times = medians(
        lambda: tree.find_all(x, out), lambda: filtered.find_all(x, out),
        lambda: tree_of_scipy.query(x), lambda: [tree_of_scipy.query(at) for at in x], rounds=9)
    np.testing.assert_array_equal(out, tree_of_scipy.query(x)[1])
    return *(1e9 / QUERIES * times), "tree" if NearestIndex(points).is_tree else "filter"


@pytest.mark.parametrize("d", [2, 4, 6, 8, 10, 12, 42])
def test_nearest(report, d):
    for s in (100, 500, 2500, 10_000):
        tree, filtered, many, single, chosen = nanoseconds(s, d)
        report(f"d {d:2} s {s:6}: tree {tree:7.0f}, filter {filtered:6.0f} ({chosen}); cKDTree "
               f"{many:7.0f} in one call, {single:7.0f} a call")
