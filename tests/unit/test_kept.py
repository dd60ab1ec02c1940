"""The store of extras: the same rows on both ways in, the last points, a copy's fields."""

import numpy as np
import pytest

from fastkam._core.density.extras import fields_of, packed, unpacked
from fastkam._core.density.kept import KEPT, Kept

FIRST = {"a": 1.5, "n": 3, "ok": True, "v": np.arange(3.0), "m": np.eye(2), "k": np.arange(2)}
# values that have a way of their own, and neighbors that have not
REALS = (-0.0, np.nan, np.inf, np.float64(2.5), 7, True, np.float32(0.1), np.array(0.5),
         np.int64(4), 2**62, np.uint8(3))
INTEGERS = (0, -(2**63), 2**63 - 1, np.int64(-5), np.int32(6), True, np.bool_(1), np.uint16(9),
            np.array(8))
LOGICALS = (False, np.bool_(1), np.bool_(0), np.array(True))
VECTORS = (np.zeros(3), np.arange(6.0)[::2], np.arange(3), [1, 2, 3.5], (True, False, True),
           np.ones(3, np.float32), np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
           np.arange(3.0).astype(">f8"))
COUNTS = (np.array([3, -4]), np.array([3, -4], np.int8), [5, 2**62], np.arange(4)[::2],
          [True, False], np.array([1, 2], np.uint64), np.array([7, 8], ">i8"))
MATRICES = (np.arange(4.0).reshape(2, 2), np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
            np.arange(4.0).reshape(2, 2).T)
ODD = [
    *({"a": value} for value in REALS), *({"n": value} for value in INTEGERS),
    *({"ok": value} for value in LOGICALS), *({"v": value} for value in VECTORS),
    *({"m": value} for value in MATRICES), *({"k": value} for value in COUNTS),
]
REFUSED = [
    {"a": "1.5"}, {"a": None}, {"a": 1j}, {"a": np.zeros(1)}, {"n": 1.0}, {"n": 2**63},
    {"n": 2**64}, {"n": -(2**63) - 1}, {"n": np.uint64(2**63)}, {"n": np.float64(1)}, {"ok": 1},
    {"ok": 1.0}, {"v": np.zeros(4)}, {"v": np.zeros((1, 3))}, {"v": 1.0}, {"m": np.zeros((2, 3))},
    {"m": np.zeros(4)}, {"k": np.zeros(2)}, {"n": np.ma.masked_array(3, True)},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_the_same_row_for_all_forms_of_a_value(odd):
    kept, extras = Kept(), FIRST | odd
    kept.put(b"first", FIRST)
    kept.put(b"second", extras)
    assert kept.fields == fields_of(FIRST)
    np.testing.assert_array_equal(
        kept.get(b"second").view("i8"), packed(extras, kept.fields).view("i8"))
    np.testing.assert_array_equal(unpacked(kept.get(b"first")[None], kept.fields)["k"], [[0, 1]])


@pytest.mark.parametrize("odd", REFUSED, ids=str)
def test_values_of_another_kind_are_refused(odd):
    kept = Kept()
    kept.put(b"first", FIRST)
    with pytest.raises(TypeError):
        packed(FIRST | odd, kept.fields)
    with pytest.raises(TypeError):
        kept.put(b"second", FIRST | odd)
    assert kept.get(b"second") is None


def test_names_may_change_their_order_and_nothing_else():
    kept = Kept()
    kept.put(b"first", FIRST)
    kept.put(b"second", dict(reversed(FIRST.items())))
    np.testing.assert_array_equal(
        kept.get(b"second").view("i8"), kept.get(b"first").view("i8"))
    other = {"b" if name == "a" else name: value for name, value in FIRST.items()}
    for extras in (other, FIRST | {"b": 1.0}, dict(list(FIRST.items())[1:])):
        with pytest.raises(TypeError, match="the same names at every point"):
            kept.put(b"third", extras)


def test_a_row_is_a_copy():
    buffer, kept = np.zeros(2), Kept()
    for i in range(3):
        buffer[:] = i
        kept.put(b"%d" % i, {"y": buffer})
    assert [kept.get(b"%d" % i).tolist() for i in range(3)] == [[0, 0], [1, 1], [2, 2]]


def test_the_last_points_are_stored_and_others_are_dropped():
    kept = Kept()
    for i in range(5 * KEPT):
        kept.put(b"%d" % i, {"y": float(i)})
        kept.get(b"0")  # becomes the newest
    assert all(kept.get(b"%d" % i) is not None for i in (0, *range(4 * KEPT, 5 * KEPT)))
    assert all(kept.get(b"%d" % i) is None for i in range(1, 3 * KEPT - 1))


def test_all_points_of_a_call_are_stored():
    kept, n = Kept(), 3 * KEPT
    for call in range(5):
        kept.put_rows([b"%d/%d" % (call, i) for i in range(n)], {"y": np.arange(n) + call * 0.5})
    for call in (3, 4):
        rows = [kept.get(b"%d/%d" % (call, i)) for i in range(n)]
        np.testing.assert_array_equal(np.ravel(rows), np.arange(n) + call * 0.5)
    assert kept.get(b"0/0") is None


def test_the_original_learns_the_fields():
    original = Kept()
    copy = Kept(original)
    assert original.fields is None
    copy.put(b"x", {"y": 1.0})
    assert original.fields == {"y": ((), "f8")}
    assert original.get(b"x") is None
    with pytest.raises(TypeError, match="must be alike"):
        original.put(b"x", {"y": np.zeros(2)})
