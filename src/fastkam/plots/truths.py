"""True values of parameters, beside draws of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from fastkam.arguments import real_array, shown

LINE = {"color": "black", "lw": 1.2, "ls": "--"}
Truths = Mapping[str, ArrayLike | None] | ArrayLike | Sequence[float | None] | None
NEAR = 1  # times the width of an axis: truths up to there widen it


def true_values(result, truths, labels):
    """The true value of each of these labels, (k,); NaN where none is given.

    `truths` is None, {name: value} of parameters, extras or single elements of these, or a value
    for each coordinate, (d,). None and NaN are unknown.
    """
    known: dict[str, float] = {}
    if isinstance(truths, Mapping):
        for name, value in truths.items():
            if not isinstance(name, str) or name not in result:
                raise ValueError(f"truths has {shown(name)}, and "
                                 f"{result.known_beside(name, ', '.join(result.keys()[:20]))}")
            known |= values_by_label(f"truths[{name!r}]", value, result.labels_of(name),
                                     result[name].shape[2:])
    elif truths is not None:
        known = values_by_label("truths", truths, result.state.layout.labels, (result.d,))
    return np.array([known.get(label, np.nan) for label in labels])


def values_by_label(name, value, labels, shape):
    """{label: value} of a value of that shape."""
    if value is None:
        return {}
    found = real_array(name, value)     # None among numbers is NaN
    if found.size == 1 == len(labels):
        found = found.reshape(shape)
    if found.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {found.shape}; it may have NaN "
                         "where the truth is unknown")
    if np.isinf(found).any():
        raise ValueError(f"{name} must be finite, or NaN where the truth is unknown, not "
                         f"{shown(value)}")
    return dict(zip(labels, found.ravel().tolist(), strict=True))


def reaching(limits, truth):
    """Limits of an axis that include the truth, if it is not far beyond them."""
    low, high = limits
    width = high - low
    if np.isnan(truth) or not low - NEAR * width <= truth <= high + NEAR * width:
        return limits
    margin = 0.05 * width
    return np.array([low if truth > low + margin else truth - margin,
                     high if truth < high - margin else truth + margin])


def mark(axes, x=np.nan, y=np.nan):
    """Draw lines at the true values along the axes, which keep their limits."""
    for value, limits, line in ((x, axes.get_xlim(), axes.axvline),
                                (y, axes.get_ylim(), axes.axhline)):
        if limits[0] <= value <= limits[1]:
            line(value, **LINE)


def beyond(truths, limits, labels):
    """A note on the truths that are outside of the limits (k, 2); "" if there are none."""
    lost = [f"{label} = {truth:.4g}" for label, truth, (low, high) in zip(
        labels, truths, limits, strict=True) if truth < low or truth > high]
    return f"true {', '.join(lost)} outside the axes" if lost else ""
