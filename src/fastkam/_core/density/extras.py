"""Extras: named numbers and arrays that a user's function returns beside the log density."""

import sys
from math import prod

import numpy as np

LARGEST = 2**63 - 1  # integer
TYPES = {"f": "f8", "i": "i8", "u": "i8", "b": "b1"}  # {kind of an array: stored type}


def fields_of(extras, lead=()):
    """Return {name: (shape, type)} of a dict of extras; `lead` are the common leading axes."""
    fields = {}
    for name, value in extras.items():
        array = as_array(name, value)
        if not isinstance(name, str) or array.dtype.kind not in TYPES:
            raise TypeError("extras must be numbers or arrays of them by names, not "
                            f"{name!r}: {value!r:.100}")
        if array.shape[: len(lead)] != lead:
            raise TypeError(f"extras of a vectorized function must have a row for each of the "
                            f"{lead[0]} points, and {name!r} has shape {array.shape}")
        fields[name] = (array.shape[len(lead):], TYPES[array.dtype.kind])
    return fields


def as_array(name, value):
    """Return a value of extras as an array, with NaN for masked elements."""
    if not is_masked(value):
        try:
            return np.asarray(value)
        except ValueError:  # a list of lists of different lengths
            raise TypeError("extras must be numbers or arrays of them by names, not "
                            f"{name!r}: {value!r:.100}") from None
    array = np.ma.asarray(value)
    if array.dtype.kind != "f":
        raise TypeError(f"extras of integers must have no masked elements, and {name!r} is {value}")
    return array.filled(np.nan)


def is_masked(value):
    """Return whether a value has masked elements.

    There are none unless numpy.ma was imported, which takes as long as several chains.
    """
    return "numpy.ma" in sys.modules and np.ma.is_masked(value)


def width(fields):
    """Number of doubles in a row."""
    return sum(prod(shape) for shape, _ in fields.values())


def packed(extras, fields, lead=()):
    """Return extras as rows (*lead, width(fields)); raise TypeError if their fields differ."""
    if extras.keys() != fields.keys():
        raise TypeError(f"extras must have the same names at every point: {list(fields)}, and now "
                        f"{list(extras)}")
    parts = []
    for name, (shape, kind) in fields.items():
        array = as_array(name, extras[name])
        type_now = TYPES.get(array.dtype.kind)
        if array.shape != (*lead, *shape) or type_now is None or (
                kind != "f8" and type_now not in (kind, "b1")):
            raise TypeError(f"extras must be alike at every point: {name!r} was {kind} of shape "
                            f"{shape}, and is now {array.dtype} of shape {array.shape[len(lead):]}")
        if array.dtype.kind == "u" and kind != "f8" and (array > LARGEST).any():
            raise TypeError(f"extras of integers must be at most 2**63 - 1, and {name!r} is "
                            f"{array.max()}: return it as a float")
        array = np.ascontiguousarray(array, dtype="f8" if kind == "f8" else "i8")
        parts.append(array.view("f8").reshape(*lead, -1))
    return np.concatenate(parts, axis=-1) if parts else np.empty((*lead, 0))


def unpacked(rows, fields):
    """Return {name: (*lead, *shape)} from rows (*lead, width(fields))."""
    found, start = {}, 0
    for name, (shape, kind) in fields.items():
        some = np.ascontiguousarray(rows[..., start : start + prod(shape)])
        if kind != "f8":
            some = some.view("i8").astype(kind)
        found[name] = some.reshape(*rows.shape[:-1], *shape)
        start += prod(shape)
    return found
