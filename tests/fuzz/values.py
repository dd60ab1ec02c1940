"""Odd arguments: of any kind, and near one that is good."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import pathlib

import numpy as np

HUGE = 10**400  # beyond any float
LONG = 10**5000  # more digits than Python prints


class Planted(Exception):
    """Raised by arguments that misbehave: a function may pass it on."""


class RaisesAsArray:
    """An array that cannot be read."""

    def __array__(self, dtype=None, copy=None):
        raise Planted


class RaisesInRepr:
    """Something that cannot be printed."""

    def __repr__(self):
        raise Planted


class Column:
    """A data frame's column, as numpy sees it: an index and values, but not a sequence."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.index = range(7, 7 + len(self.values))

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, label):
        return self.values[label - 7]  # by label, not by place


class AsFloat:
    """A number by conversion alone."""

    def __float__(self):
        return 0.5


class AsIndex:
    """An integer by conversion alone."""

    def __index__(self):
        return 2


class Pair:
    """A sequence of two numbers that is no list."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return (0.5, 0.5)[i]


class Callable:
    """A density that is no function."""

    def __call__(self, x):
        return -0.5 * float(x @ x)


class Subclass(np.ndarray):
    """An array of a class of its own."""


def nested(depth):
    """A list in a list in a list."""
    found = []
    for _ in range(depth):
        found = [found]
    return found


def in_itself():
    """A list that is its own element."""
    found = [1.0]
    found.append(found)
    return found


def in_itself_alone():
    """A list of nothing but itself."""
    found = []
    found.append(found)
    return found


def read_only(array):
    array.flags.writeable = False
    return array


SCALARS = [
    None, True, False, -1, 0, 1, 2, 3, 7, 1000, 2**31, 2**40, 2**62, 2**63, 2**64, -2**63, HUGE,
    -HUGE, LONG, -LONG, 0.5, 0.999, 1.0, 2.5, -0.0, -0.5, 1e-310, 5e-324, 1e-16, 1e16, 1e308,
    -1e308, math.nan, math.inf, -math.inf, 1 + 2j, decimal.Decimal("0.3"), decimal.Decimal("sNaN"),
    fractions.Fraction(1, 3), datetime.timedelta(1), Ellipsis, NotImplemented]
NUMPY_SCALARS = [
    np.float32(0.5), np.float64(2.0), np.longdouble(0.5), np.int8(3), np.uint64(2**64 - 1),
    np.int64(-1), np.bool_(True), np.datetime64("2001-01-01"), np.timedelta64(3, "D"),
    np.complex128(1j), np.str_("ram"), np.bytes_(b"ram"), np.float64("nan"), np.array(0.5),
    np.array(2), np.array(None)]
TEXTS = ["", "x", "ram", "kam", "auto", "finite", "median", "identity", "10min", "1e400s", "nan",
         "åß\u202e\U0001f40d", "\x00", "\ud800", "a\nb", "x" * 100_000, b"", b"ram", bytearray(3),
         "../..", "/", "{}", "%s %d", "{name!r}", "0", "-1"]
CONTAINERS = [
    lambda: [], lambda: [1], lambda: [0.5, 0.5], lambda: [[]], lambda: [1, [2]],
    lambda: [[1, 2], [3]],
    lambda: (), lambda: (0.5,), lambda: (0, 1), lambda: {}, lambda: {"a": 1}, lambda: {"a": [1.0]},
    lambda: {"åß": 0.5}, lambda: {1: 2}, lambda: {None: None}, lambda: {"": ""}, lambda: {1.0, 2.0},
    lambda: frozenset(), lambda: range(2), lambda: iter([1.0, 2.0]),
    lambda: (x for x in (1.0, 2.0)),
    lambda: nested(50), lambda: nested(5000), in_itself, in_itself_alone,
    lambda: [None, None], lambda: ["a", "b"],
    lambda: [HUGE, 1], lambda: [math.nan, 1.0], lambda: [0.0] * 100_000, lambda: ["x"] * 100_000,
    lambda: [{}], lambda: [RaisesInRepr()], lambda: [(0, 1), (0, 1)], lambda: [(1, 0), (0, 1)],
    lambda: [(-math.inf, math.inf)] * 2, lambda: [1 + 1j, 2.0], lambda: [True, False],
    lambda: memoryview(b"abcd"), lambda: np.zeros(2).data]
ARRAYS = [
    lambda: np.array([]), lambda: np.zeros((0, 2)), lambda: np.zeros((2, 0)), lambda: np.zeros(2),
    lambda: np.zeros((2, 2)), lambda: np.zeros((1, 1, 2)), lambda: np.ones((1,) * 64),
    lambda: np.eye(2), lambda: -np.eye(2), lambda: np.array([math.nan, 1.0]),
    lambda: np.array([math.inf, 0.0]), lambda: np.array([1e308, -1e308]),
    lambda: np.array([5e-324, 1e-310]), lambda: np.array([0.5, 0.5], dtype=object),
    lambda: np.array([None, "x"], dtype=object), lambda: np.array(["a", "b"]),
    lambda: np.array([b"a", b"b"]), lambda: np.array([1j, 1.0]), lambda: np.array([True, False]),
    lambda: np.array([HUGE, 1], dtype=object), lambda: np.array([[1.0, 2.0], [3.0]], dtype=object),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]), lambda: np.ma.masked_array([1.0, 2.0]),
    lambda: np.ma.masked, lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    lambda: np.zeros(2, dtype="M8[s]"), lambda: np.zeros(2, dtype="V3"),
    lambda: np.matrix([[1.0, 0.0], [0.0, 1.0]]), lambda: np.array([1.0, 2.0]).view(Subclass),
    lambda: np.arange(4.0)[::2], lambda: np.arange(2.0)[::-1], lambda: np.eye(2, order="F"),
    lambda: np.ones(2, dtype=">f8"), lambda: np.ones(2, dtype="f2"), lambda: np.ones(2, "g"),
    lambda: np.ones(2, dtype="i1"), lambda: np.broadcast_to(0.5, (2,)),
    lambda: np.broadcast_to(0.5, (2**20, 2**20)), lambda: np.broadcast_to(0.5, (2, 2**40)),
    lambda: read_only(np.zeros(2)), lambda: read_only(np.zeros((2, 2))), lambda: np.zeros(50_000),
    lambda: np.frombuffer(b"\0" * 17, np.uint8)[1:].view(float), lambda: Column([0.5, 0.5]),
    lambda: Column([[0.5, 0.5]]), RaisesAsArray, lambda: np.full((4, 2), math.nan),
    lambda: np.random.default_rng(1).normal(size=(2, 30, 2))]
FUNCTIONS = [
    lambda: (lambda: 0.0), lambda: (lambda x: 0.0), lambda: (lambda x: None),
    lambda: (lambda x: "x"), lambda: (lambda x: math.nan), lambda: (lambda x: -math.inf),
    lambda: (lambda x: math.inf), lambda: (lambda x: HUGE), lambda: (lambda x: x),
    lambda: (lambda x: (0.0, x)), lambda: (lambda x: (0.0, x, x)), lambda: (lambda x: (0.0, {})),
    lambda: (lambda x: (0.0, {"a": np.zeros(3)})), lambda: (lambda x: {}), lambda: (lambda x: 1j),
    lambda: (lambda *x: raises()), lambda: (lambda x, y: 0.0), lambda: (lambda **more: {"a": 1.0}),
    lambda: (lambda x: np.float32(0)), lambda: (lambda x: np.array([0.0])),
    lambda: (lambda x: np.zeros((2, 2))), lambda: print, lambda: len]
OBJECTS = [
    object, AsFloat, AsIndex, RaisesInRepr, lambda: int, lambda: np, lambda: np.ndarray,
    lambda: Planted, lambda: pathlib.Path("x"), lambda: pathlib.Path("none/such"),
    lambda: np.random.default_rng(1), lambda: np.random.SeedSequence(1),
    lambda: np.random.RandomState(1), lambda: np.random.PCG64(1), lambda: slice(None),
    lambda: datetime.date(2001, 1, 1), lambda: np.dtype(float), lambda: np.add,
    Pair, Callable]


def raises():
    raise Planted


def odd(rng):
    """Something of any kind."""
    kind = rng.integers(8)
    if kind < 2:
        return chosen(rng, SCALARS)
    if kind == 2:
        return chosen(rng, NUMPY_SCALARS)
    if kind == 3:
        return chosen(rng, TEXTS)
    return chosen(rng, (CONTAINERS, ARRAYS, FUNCTIONS, OBJECTS)[kind - 4])()


def chosen(rng, some):
    """One of some."""
    return some[rng.integers(len(some))]


# ---- near a good value ----


def near(rng, value):
    """A value that differs from a good one in one respect."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size < 10**6:
        return near_array(rng, value)
    if isinstance(value, (bool, type(None))):
        return odd(rng)
    if isinstance(value, (int, float)):
        return near_number(rng, value)
    if isinstance(value, str):
        return chosen(rng, [value.upper(), value + " ", value[:-1], value.encode(errors="replace"),
                            [value],
                            np.str_(value), value + "\x00", value * 2])
    if isinstance(value, dict):
        return near_dict(rng, value)
    if isinstance(value, (list, tuple)) and len(value):
        return near_list(rng, value)
    return odd(rng)


def near_number(rng, value):
    """A number of another size or type."""
    changes = [lambda: -value, lambda: value + 1, lambda: value - 1, lambda: value * 10**6,
               lambda: float(value), lambda: int(value), lambda: np.float32(value),
               lambda: np.array(value), lambda: np.array([value]), lambda: [value],
               lambda: str(value), lambda: complex(value), lambda: value * 1e300,
               lambda: value * 1e-300, lambda: value * 2**70, lambda: decimal.Decimal(value),
               lambda: fractions.Fraction(value), lambda: np.int64(value), lambda: bool(value)]
    try:
        return chosen(rng, changes)()
    except (ArithmeticError, ValueError):  # the change is not possible
        return odd(rng)


def near_list(rng, value):
    """A list with an element changed, left out, or twice."""
    found, at = list(value), rng.integers(len(value))
    change = rng.integers(5)
    if change == 0:
        found.pop(at)
    elif change == 1:
        found.append(found[at])
    elif change == 2:
        return tuple(found) if isinstance(value, list) else found
    else:
        found[at] = odd(rng) if change == 3 else near(rng, found[at])
    return type(value)(found) if type(value) in (list, tuple) else found


def near_dict(rng, value):
    """A dict with an entry more or less, or another value of one."""
    found = dict(value)
    name = chosen(rng, list(found)) if found else "a"
    change = rng.integers(4)
    if change == 0:
        found.pop(name, None)
    elif change == 1:
        found[chosen(rng, ["more", "", 1, None, "åß", name if isinstance(name, str) else "x"])] = (
            odd(rng))
    else:
        found[name] = odd(rng) if change == 2 else near(rng, found.get(name))
    return found


def near_array(rng, value):
    """An array with one element, its type, shape, order or class changed."""
    change = rng.integers(6)
    if change == 0 and value.size:
        found = np.array(value, dtype=float)
        found.reshape(-1)[rng.integers(found.size)] = chosen(
            rng, [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, -1.0, 0.5, 1e-200])
        return found
    if change == 1:
        dtype = chosen(rng, ["f4", "f2", "g", ">f8", "i8", "u1", "c16", "O", "U9", "S9", "?"])
        with np.errstate(all="ignore"):
            return np.nan_to_num(value).astype(dtype)
    if change == 2:
        return chosen(rng, shapes(value))()
    if change == 3:
        return chosen(rng, [
            lambda: value[::-1], lambda: np.asfortranarray(value), lambda: value.T,
            lambda: value.tolist(),
            lambda: np.ma.masked_array(value, rng.random(value.shape) < 0.3),
            lambda: value.view(Subclass), lambda: read_only(value.copy()),
            lambda: Column(value) if value.ndim else value, lambda: unaligned(value),
            lambda: value.repeat(2, 0)[::2] if value.ndim else value])()
    if change == 4:
        return value * chosen(rng, [1e300, 1e-300, -1.0, 0.0, 1e-12, 1e12])
    return odd(rng)


def shapes(value):
    """Functions that return the array with another shape."""
    found = [lambda: value[None], lambda: value[..., None], lambda: value.reshape(-1),
             lambda: np.concatenate([value.reshape(-1), value.reshape(-1)])]
    if value.ndim:
        found += [lambda: value[:-1], lambda: value[..., :-1], lambda: value[:0],
                  lambda: value[..., :0], lambda: value[0], lambda: value[:1],
                  lambda: np.broadcast_to(value, (3, *value.shape))]
    return found


def unaligned(value):
    """The same numbers at an address that is no multiple of 8."""
    memory = np.zeros(value.nbytes + 1, np.uint8)[1:]
    found = memory.view(value.dtype).reshape(value.shape)
    found[...] = value
    return found
