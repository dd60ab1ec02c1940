"""Checks that a state from a file is one that an object can have."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.fields import Field

MOST_COUNT = 2**53  # more than any loop counts, and exact as a double
BOUNDS = {"above": (operator.gt, "above"), "least": (operator.ge, "at least"),
          "below": (operator.lt, "below"), "most": (operator.le, "at most")}


class BadField(ValueError):
    """A field with an impossible value, shape or type.

    Parameters
    ----------
    name : str
        Name of the field.
    text : str
        The condition and the actual value.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name} {text}")
        self.name, self.text = name, text

    def __reduce__(self) -> tuple[type[BadField], tuple[str, str]]:
        return BadField, (self.name, self.text)

    def within(self, name: str) -> BadField:
        """Return the same error for the field of a part."""
        return BadField(f"{name}.{self.name}", self.text)


class Step(NamedTuple):
    """The step of a chain, for ranges that depend on it.

    Parameters
    ----------
    t : int
        Number of steps made.
    under_way : bool
        Whether another step has begun.
    bit_generator : str
        Class of the chain's bit generator.
    moves : int
        Number of proposals that a kernel makes in a step.
    """

    t: int
    under_way: bool
    bit_generator: str
    moves: int = 1


def check_names(expected: Iterable[str], found: Iterable[str]) -> None:
    """Raise BadField for missing or unexpected names."""
    expected, found = list(expected), list(found)
    for name in expected:
        if name not in found:
            raise BadField(name, "is missing")
    for name in found:
        if name not in expected:
            raise BadField(name, "is not a field of this run")


def check_form(name: str, value: Any, shape: tuple[int | None, ...], dtype: Any) -> NDArray[Any]:
    """Return `value` if it is an array of that shape, None for any length, and type."""
    dtype = np.dtype(dtype)
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        raise BadField(name, f"must be an array of {dtype}, not {described(value)}")
    if len(value.shape) != len(shape) or any(
            n not in (None, m) for n, m in zip(shape, value.shape, strict=True)):
        wanted = str(shape).replace("None", "n")
        raise BadField(name, f"must have shape {wanted}, not {value.shape}")
    return value


def described(value: Any) -> str:
    """Return the type of an array, or the start of another value's repr, as text."""
    return f"one of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)[:100]


def check_state(
    table: Mapping[str, Field],
    views: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
    state: Mapping[str, Any],
) -> None:
    """Raise BadField unless a state has the fields of the table, all in their ranges.

    Parameters
    ----------
    table : dict of Field
    views : dict of ndarray
        The fields of the object to be restored, for their shapes and types.
    sizes : dict of int
        Values of bounds that are given by name, besides the numbers of the state.
    state : dict of ndarray

    Raises
    ------
    BadField
    """
    check_names(views, state)
    for name, view in views.items():
        check_form(name, state[name], view.shape, view.dtype)
    known: dict[str, Any] = dict(sizes) | {
        name: value[()] for name, value in state.items() if value.ndim == 0}
    for name in views:
        if name in table:
            check_range(name, table[name], state[name], known)


def check_range(name: str, field: Field, value: NDArray[Any], known: Mapping[str, Any]) -> None:
    """Raise BadField for a value out of its range."""
    if field.permutation and not np.array_equal(np.sort(value), np.arange(len(value))):
        raise BadField(name, f"must be a permutation of 0 to {len(value) - 1}, not {short(value)}")
    if field.finite and not np.isfinite(value).all():
        raise BadField(name, f"must be finite, not {first(value, np.isfinite(value))}")
    for bound, (holds, words) in BOUNDS.items():
        limit = getattr(field, bound)
        if bound == "most" and limit is None and value.dtype.kind == "i" and (
                field.least is not None and field.below is None):
            limit = MOST_COUNT
        if limit is None:
            continue
        of = f" ({limit})" if isinstance(limit, str) else ""
        limit = known[limit] if isinstance(limit, str) else limit
        good = holds(value, limit)  # false for NaN
        if not np.all(good):
            raise BadField(name, f"must be {words} {limit}{of}, not {first(value, good)}")


def first(value: NDArray[Any], good: NDArray[np.bool_]) -> str:
    """Return the first bad element and its index."""
    if value.ndim == 0:
        return str(value[()])
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"{value[at]} at index {at[0] if len(at) == 1 else at}"


def short(value: NDArray[Any]) -> str:
    """Return a short text for an array."""
    return np.array2string(value, threshold=8)
