"""Bounds of parameters, in several forms."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_list, counted, shown

Array = NDArray[np.float64]


def pair(name: str, value: Any) -> tuple[Array, Array]:
    """(low, high) of a pair of numbers, arrays or None."""
    try:
        low, high = value
        low = np.asarray(-np.inf if low is None else low, dtype=float)
        high = np.asarray(np.inf if high is None else high, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a pair (low, high) of numbers or None, not "
                        f"{shown(value)}") from None
    try:
        low, high = np.broadcast_arrays(low, high)
    except (ValueError, RuntimeError):  # the latter beyond 32 dimensions
        raise ValueError(f"{name} must have low and high of one shape, not {low.shape} and "
                         f"{high.shape}") from None
    if not (low < high).all():
        i = np.unravel_index(int(np.argmin(low < high)), low.shape)
        raise ValueError(f"{name} must have low below high, not {low[i]} and {high[i]}")
    return low, high


def bounds_by_name(bounds: Any) -> dict[str, tuple[Array, Array]]:
    """{name: (low, high)} of a dict of bounds."""
    if not all(isinstance(name, str) for name in bounds):
        raise TypeError("bounds must have the names of parameters as its keys, not "
                        f"{shown(bounds)}")
    return {name: pair(f"bounds[{name!r}]", value) for name, value in bounds.items()}


def of_scipy(bounds: Any) -> bool:
    """Whether these are scipy.optimize.Bounds, whose module takes long to import."""
    loaded = sys.modules.get("scipy.optimize")
    return loaded is not None and isinstance(bounds, loaded.Bounds)


def number_of_bounds(bounds: Any) -> int | None:
    """Number of coordinates of the bounds, if these determine it."""
    if of_scipy(bounds):
        n = np.size(np.broadcast_arrays(bounds.lb, bounds.ub)[0])
        return n if n > 1 else None
    if bounds is None or isinstance(bounds, Mapping):
        return None
    try:
        return len(check_list("bounds", bounds))
    except TypeError:
        raise TypeError("bounds must be a dict by the names of parameters, a list of (low, high), "
                        f"an array (d, 2) or scipy.optimize.Bounds, not {shown(bounds)}") from None


def bounds_in_order(bounds: Any, d: int) -> tuple[Array, Array]:
    """low and high (d,) from bounds of each coordinate."""
    if of_scipy(bounds):
        low, high = pair("bounds", (bounds.lb, bounds.ub))
        if low.size not in (1, d):
            raise ValueError(f"bounds has {low.size} coordinates, but x0 has {d}")
        return np.broadcast_to(low, d), np.broadcast_to(high, d)
    rows = list(bounds)
    if isinstance(bounds, tuple) and len(rows) == 2 and len(
            lengths := {len(row) for row in rows if isinstance(row, (list, np.ndarray))}) == 1 and (
            lengths == {d} and not any(isinstance(row, tuple) for row in rows)):
        raise ValueError("bounds must be a list of pairs (low, high), one per coordinate, not the "
                         f"pair of all low and all high ones, {shown(bounds)}: give "
                         "scipy.optimize.Bounds(low, high), or list(zip(low, high))")
    if len(rows) == 2 and all(row is None or isinstance(row, Real) for row in rows):
        raise ValueError("bounds must be a list of pairs (low, high), one per coordinate, as "
                         f"[{shown(tuple(rows))}], not {shown(bounds)}")
    if len(rows) != d:
        raise ValueError(f"bounds has {counted(len(rows), 'pair')} (low, high), but x has "
                         f"{counted(d, 'coordinate')}")
    pairs = [pair(f"bounds[{i}]", row) for i, row in enumerate(rows)]
    if any(low.ndim for low, _ in pairs):
        raise ValueError("bounds must be pairs of numbers, one a coordinate; those of arrays are "
                         "given by name")
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])
