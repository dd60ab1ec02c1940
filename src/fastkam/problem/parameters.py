"""The parameters of a Problem: each with its prior, or within its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_integer, shown
from fastkam.problem.bounds import bounds_by_name, bounds_in_order, number_of_bounds
from fastkam.problem.priors import ParameterPrior, flat_prior, parameter_prior
from fastkam.run.shapes import (
    Layout,
    check_coords,
    check_dims,
    check_layout,
    check_mapping,
    check_names,
    check_shape,
)

Array = NDArray[np.float64]


def from_prior(
    prior: Any, bounds: Any, dims: Any = None, coords: Any = None
) -> dict[str, ParameterPrior]:
    """The prior of each parameter; parameters without one may have bounds.

    A univariate prior without a shape has that of its dimensions in `coords`.
    """
    if not isinstance(prior, Mapping) or not prior or not all(
            isinstance(name, str) for name in prior):
        raise TypeError("prior must be a dict of distributions by the names of parameters, not "
                        f"{shown(prior)}")
    named, known = shapes_of_dims(dims, coords)
    found = {name: parameter_prior(name, value, known.get(name)) for name, value in prior.items()}
    for name, one in found.items():
        check_dims_of(name, one.shape, named.get(name, []), known.get(name))
    if bounds is None:
        return found
    if not isinstance(bounds, Mapping):
        raise TypeError("bounds must be a dict by the names of parameters where there is a prior, "
                        f"not {shown(bounds)}")
    for name, (low, high) in bounds_by_name(bounds).items():
        if name not in found:
            raise ValueError(f"bounds names {name!r}, and the parameters are {list(found)}")
        if not found[name].flat:
            raise ValueError(f"bounds[{name!r}] cannot be given for a parameter that has a "
                             f"prior: give a truncated distribution as prior[{name!r}]")
        found[name] = bounded(name, found[name].shape, low, high)
    return found


def shapes_of_dims(
    dims: Any, coords: Any
) -> tuple[dict[str, list[str]], dict[str, tuple[int, ...]]]:
    """The dimensions of each name, and its shape where all of them are in `coords`."""
    named = {name: check_dims(name, some) for name, some in check_mapping("dims", dims).items()}
    lengths = {dim: len(check_coords(dim, values))
               for dim, values in check_mapping("coords", coords).items()}
    return named, {name: tuple(lengths[dim] for dim in some) for name, some in named.items()
                   if some and all(lengths.get(dim) for dim in some)}


def check_dims_of(
    name: str, shape: tuple[int, ...], dims: list[str], known: tuple[int, ...] | None
) -> None:
    """Refuse a prior whose shape is not that of its dimensions, which is None if unknown."""
    if known is not None and shape != known:
        size = known[0] if len(known) == 1 else known
        raise ValueError(f"prior[{name!r}] has the shape {shape}, and its dimensions {dims} have "
                         f"the shape {known} in coords: give one distribution with the second "
                         f"shape, such as (stats.norm(), {size}), or other coords")
    if dims and not shape:
        raise ValueError(f"dims[{name!r}] has {dims}: give their values in coords, or the shape "
                         f"of {name!r} in prior, as (stats.norm(), 3)")


def bounded(name: str, shape: tuple[int, ...], low: Array, high: Array) -> ParameterPrior:
    """A flat prior, the constant 1, within bounds that fit a shape."""
    try:
        return flat_prior(shape, np.broadcast_to(low, shape), np.broadcast_to(high, shape))
    except ValueError:
        raise ValueError(f"bounds[{name!r}] has shape {low.shape}, and {name!r} {shape}") from None


def from_bounds(
    bounds: Any, names: Any, shapes: Any, dims: Any, coords: Any, dim: int | None
) -> tuple[dict[str, ParameterPrior], Layout]:
    """A flat prior for each parameter within its bounds; the layout."""
    by_name = bounds_by_name(bounds) if isinstance(bounds, Mapping) else None
    shapes, dims, coords = (check_mapping(name, value) for name, value in (
        ("shapes", shapes), ("dims", dims), ("coords", coords)))
    if by_name and names is None and not shapes:
        names = list(by_name)
        shapes = {name: low.shape for name, (low, _) in by_name.items()
                  if low.shape or name not in dims}
    d = number_of_bounds(bounds)
    if dim is not None:
        d = check_integer("dim", dim, least=1)
    if d is None:
        d = size_of(names, shapes, dims, coords)
    if d < 1:
        raise ValueError("bounds, or names and shapes, must describe at least one coordinate")
    layout = check_layout(names, shapes, dims, coords, d)
    if by_name is not None:
        if unknown := [name for name in by_name if name not in layout.shapes]:
            raise ValueError(f"bounds names {unknown}, and the parameters are "
                             f"{list(layout.shapes)}")
        none = (np.array(-np.inf), np.array(np.inf))
        return {name: bounded(name, shape, *by_name.get(name, none))
                for name, shape in layout.shapes.items()}, layout
    low, high = (np.full(d, -np.inf), np.full(d, np.inf)) if bounds is None else bounds_in_order(
        bounds, d)
    found, start = {}, 0
    for name, shape in layout.shapes.items():
        some = slice(start, start + prod(shape))
        found[name] = flat_prior(shape, low[some].reshape(shape), high[some].reshape(shape))
        start += prod(shape)
    return found, layout


def size_of(names: Any, shapes: Any, dims: Any, coords: Any) -> int:
    """Number of coordinates that the names and shapes of parameters describe."""
    if names is None and not shapes and not dims:
        raise ValueError("dim must be given: nothing else says how many coordinates x has")
    total = 0
    for name in check_names(names, shapes, dims):
        shape = check_shape(name, shapes[name]) if name in shapes else [
            len(check_coords(dim, coords.get(dim, []))) for dim in
            check_dims(name, dims.get(name, []))]
        total += prod(shape)
    return total
