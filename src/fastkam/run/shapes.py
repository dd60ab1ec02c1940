"""The layout of a point: names and shapes of parameters, and names of dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product, zip_longest
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_integer, counted, real_array, shown

OF_ARVIZ = ("chain", "draw")
RESERVED = ("", "lp", *OF_ARVIZ)  # names that tables of results have for others


@dataclass(frozen=True)
class Layout:
    """The parameters of a point, in their order.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Shape of each parameter.
    dims : dict of str to list of str
        Names of the dimensions of some of the parameters and extras.
    coords : dict of str to ndarray, shape (n,)
        Values along some of the dimensions.
    """

    shapes: dict[str, tuple[int, ...]]
    dims: dict[str, list[str]]
    coords: dict[str, NDArray[Any]]

    def __post_init__(self) -> None:
        if taken := [name for name in self.shapes if name in RESERVED]:
            raise ValueError(f"names must not have {taken}, which tables of results use for "
                             "others: rename them")
        check_slashes("names", self.shapes)
        if len(set(labels := self.labels)) < len(labels):
            twice = next(one for one in labels if labels.count(one) > 1)
            raise ValueError(f"names must give each coordinate a label of its own, and {twice!r} "
                             "is the label of two: rename one")
        check_slashes("dims", {dim for some in self.dims.values() for dim in some})

    def split(self, draws: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """{name: (..., *shape)} of an array (..., d)."""
        parts, start = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            parts[name] = draws[..., start : start + size].reshape(*draws.shape[:-1], *shape)
            start += size
        return parts

    def join(self, what: str, x: Mapping[str, Any]) -> NDArray[np.float64]:
        """An array (..., d) of a dict of arrays (..., *shape); `what` is the argument's name."""
        for labels in (self.labels, self.numbered):
            if set(x) == set(labels) != set(self.shapes):  # as in a Series of a summary
                each = (real_array(f"{what}[{name!r}]", x[name]) for name in labels)
                return np.stack(np.broadcast_arrays(*each), axis=-1)
        unknown = [name for name in x if name not in self.shapes]
        if missing := [name for name in self.shapes if name not in x]:
            there = f"; {unknown} are no parameters" if unknown else ""
            raise ValueError(f"{what} must have every parameter, and {missing} are missing{there}")
        if unknown:
            raise ValueError(f"{what} names {unknown}, and the parameters are {list(self.shapes)}")
        parts = []
        for name, shape in self.shapes.items():
            value = real_array(f"{what}[{name!r}]", x[name])
            if value.shape[value.ndim - len(shape):] != shape:
                raise ValueError(f"{what}[{name!r}] must have shape (..., "
                                 f"{', '.join(map(str, shape))}), not {value.shape}")
            parts.append(value.reshape(*value.shape[: value.ndim - len(shape)], prod(shape)))
        try:
            front = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        except ValueError:
            raise ValueError(f"{what} has parameters for different numbers of points") from None
        return np.concatenate([np.broadcast_to(part, (*front, part.shape[-1])) for part in parts],
                              axis=-1)

    @property
    def labels(self) -> list[str]:
        """A label for each coordinate: "mu", "theta[A]" by the values in coords, or "beta[1, 2]".
        """
        return [label for name, shape in self.shapes.items()
                for label in self.labels_of(name, shape)]

    @property
    def numbered(self) -> list[str]:
        """A label for each coordinate with the indices of each: "mu", "theta[0]", "beta[1, 2]"."""
        return [label for name in self.shapes for label in self.numbered_of(name)]

    def numbered_of(self, name: str) -> list[str]:
        """The labels of a parameter's coordinates by their indices."""
        return labeled(name, [[str(i) for i in range(n)] for n in self.shapes[name]])

    def labels_of(self, name: str, shape: tuple[int, ...]) -> list[str]:
        """The labels of a parameter's or an extra's elements; by indices where coords repeat."""
        labels = labeled(name, self.ticks(name, shape))
        if len(set(labels)) < len(labels):
            return labeled(name, [[str(i) for i in range(n)] for n in shape])
        return labels

    def ticks(self, name: str, shape: tuple[int, ...]) -> list[list[str]]:
        """Labels along each dimension of a parameter: the values in coords, or indices."""
        dims = self.dims.get(name, [])
        return [[tick(value) for value in self.coords[dim]] if dim in self.coords
                else [str(i) for i in range(n)]
                for n, dim in zip_longest(shape, dims[: len(shape)])]

    @property
    def positions(self) -> list[str]:
        """A name by position for each coordinate, in addition to its label.

        It is the label itself where some value in coords looks like an integer, which a position
        could be confused with.
        """
        return [label for name, shape in self.shapes.items()
                for label in (self.labels_of(name, shape) if self.has_integers(name)
                              else self.numbered_of(name))]

    def has_integers(self, name: str) -> bool:
        """Whether some value in the coords of a parameter looks like an integer."""
        return any(tick(value).strip().lstrip("+-").isdecimal() for dim in self.dims.get(name, [])
                   for value in self.coords.get(dim, ()))

    def places(self, name: str) -> list[int]:
        """The indices of the coordinates of that name: a parameter's, or one by label or position.

        Empty if there are none; a parameter's own name has priority.
        """
        start = 0
        for known, shape in self.shapes.items():
            size = prod(shape)
            if known == name:
                return list(range(start, start + size))
            start += size
        close = name.replace(", ", ",")  # "M[0,1]" is "M[0, 1]"
        for labels in (self.labels, self.positions):
            for i, label in enumerate(labels):
                if label.replace(", ", ",") == close:
                    return [i]
        return []


def labeled(name: str, ticks: list[list[str]]) -> list[str]:
    """The labels of a parameter: its name with the ticks along each of its dimensions."""
    return [f"{name}[{', '.join(index)}]" if index else name for index in product(*ticks)]


def tick(value: Any) -> str:
    """A value in coords as a part of a label."""
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def check_layout(names: Any, shapes: Any, dims: Any, coords: Any, d: int) -> Layout:
    """The Layout of d coordinates that the arguments of `sample` describe; by default one vector.

    A parameter without a shape gets that of its dimensions in `coords`; without dimensions it is a
    number. Where the parameters are named, `dims` may also name the dimensions of extras, which
    `check_extras` compares with them.
    """
    shapes, dims, coords = (check_mapping(name, value) for name, value in (
        ("shapes", shapes), ("dims", dims), ("coords", coords)))
    dims = {name: check_dims(name, value) for name, value in dims.items()}
    coords = {name: check_coords(name, value) for name, value in coords.items()}
    whole = names is None and not shapes and not dims
    mend = "" if names is not None else "; if dims has extras, name the parameters in names"
    names = check_names(names, shapes, dims)
    if unknown := sorted(set(shapes) - set(names)):
        raise ValueError(f"shapes names {unknown}, which names does not")
    if unknown := sorted(set(coords) - {dim for some in dims.values() for dim in some}):
        raise ValueError(f"coords names {unknown}, which are no dimensions in dims")
    if taken := sorted({dim for some in dims.values() for dim in some} & set(names)):
        raise ValueError(f"dims must not have the names of parameters, as {taken} do")
    if whole:
        return Layout({"x": (d,)}, {}, {})
    found = {name: check_shape(name, shapes[name]) if name in shapes else
             shape_from(name, dims.get(name, []), coords, mend) for name in names}
    size = sum(int(np.prod(shape)) for shape in found.values())
    if size != d:
        some = counted(size, "coordinate")
        one = f"; for one array give shapes={ {names[0]: d} }" if found == {names[0]: ()} else ""
        raise ValueError(f"names and shapes describe {some}, but x0 has {d}: the parameters would "
                         f"be {found}, each with its shape{one}{mend}")
    check_sizes(found, {name: some for name, some in dims.items() if name in found}, coords)
    return Layout(found, dims, coords)


def check_mapping(name: str, value: Any) -> dict[str, Any]:
    """A dict with names as its keys, or None, as a dict."""
    if not isinstance(value, (Mapping, type(None))) or not all(
            isinstance(key, str) for key in value or ()):
        raise TypeError(f"{name} must be a dict with names as its keys, not {shown(value)}")
    return dict(value or {})


def check_names(names: Any, shapes: dict[str, Any], dims: dict[str, Any]) -> list[str]:
    """The parameters' names: by default those of `shapes` and `dims`, or "x"."""
    if names is None:
        names = list(shapes) + [name for name in dims if name not in shapes]
        if shapes and len(names) > len(shapes):
            raise ValueError(f"names must be given, in the order of the parameters in x: dims has "
                             f"{names[len(shapes):]}, which shapes does not have")
        names = names or ["x"]
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable) or getattr(names, "ndim", 1) == 0:
        raise TypeError(f"names must be a list of strings, not {shown(names)}")
    names = list(names)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"names must be different strings, not {shown(names)}")
    return names


def check_slashes(what: str, names: Iterable[str]) -> None:
    """Refuse names with a slash, which separates the groups of a DataTree."""
    if wrong := sorted(name for name in names if "/" in name):
        raise ValueError(f"{what} must not have a slash, which xarray and ArviZ do not take, as "
                         f"{wrong} do: rename them")


def check_names_of_extras(extras: Iterable[str], layout: Layout) -> None:
    """Refuse extras that have the names of parameters, or of dimensions and statistics."""
    check_slashes("extras", extras)
    dims = {dim for some in layout.dims.values() for dim in some}
    if taken := sorted(set(extras) & dims):
        raise ValueError(f"dims must not have the names of extras, as {taken} do: rename the "
                         "dimensions, or what the function returns")
    if taken := sorted(set(extras) & {*RESERVED, *layout.shapes}):
        raise ValueError(f"extras must not have the names {taken}, which parameters or statistics "
                         "have: rename them in what the function returns")


def check_extras(fields: Mapping[str, tuple[tuple[int, ...], str]], layout: Layout) -> None:
    """Refuse names of the extras, and dimensions that do not fit their shapes."""
    extras = {name: shape for name, (shape, _) in fields.items()}
    check_names_of_extras(extras, layout)
    if unknown := [name for name in layout.dims if name not in {*layout.shapes, *extras}]:
        raise ValueError(f"dims names {unknown}, and there are the parameters "
                         f"{list(layout.shapes)} and the extras {list(extras)}")
    check_sizes({**extras, **layout.shapes}, layout.dims, layout.coords)


def check_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape given as one integer or several, as a tuple."""
    try:
        sizes = [shape] if isinstance(shape, Integral) else list(shape)
    except TypeError:
        raise TypeError(f"shapes[{name!r}] must be a shape, not {shown(shape)}") from None
    return tuple(check_integer(f"shapes[{name!r}]", size, least=0) for size in sizes)


def check_dims(name: str, dims: Any) -> list[str]:
    """Names of dimensions given as one string or several, as a list."""
    try:
        some = [dims] if isinstance(dims, str) else list(dims)
    except TypeError:
        some = [None]
    if not all(isinstance(dim, str) for dim in some):
        raise TypeError(f"dims[{name!r}] must be a list of names of dimensions, not "
                        f"{shown(dims)}: the shape of a parameter is given as "
                        f"shapes={{{name!r}: {shown(dims)}}}")
    if len(set(some)) < len(some) or set(some) & set(OF_ARVIZ):
        raise ValueError(f"dims[{name!r}] must be different names, and neither of {OF_ARVIZ}, not "
                         f"{shown(dims)}")
    return some


def check_coords(name: str, values: Any) -> NDArray[Any]:
    """The values along a dimension, as an array (n,) that a file can hold."""
    try:
        array = np.array(values)
        if array.dtype.kind in ("O", "T") and all(isinstance(value, str) for value in array.flat):
            array = np.array(array.tolist(), str)  # those of a pandas Index, or of StringDType
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.ndim != 1 or array.dtype.kind in "OTV":
        raise TypeError(f"coords[{name!r}] must be a list of numbers, strings or dates, not "
                        f"{shown(values)}")
    return array


def shape_from(
    name: str, dims: list[str], coords: dict[str, NDArray[Any]], mend: str
) -> tuple[int, ...]:
    """The shape of a parameter that follows from the coordinates of its dimensions."""
    if missing := [dim for dim in dims if dim not in coords]:
        raise ValueError(f"dims[{name!r}] has {missing}: give their values in coords, or the shape "
                         f"of {name!r} in shapes{mend}")
    return tuple(len(coords[dim]) for dim in dims)


def check_sizes(
    shapes: dict[str, tuple[int, ...]], dims: dict[str, list[str]], coords: dict[str, NDArray[Any]]
) -> None:
    """Refuse dimensions that do not fit the shapes, or have two different lengths."""
    lengths = {dim: (len(values), f"coords has {len(values)} values")
               for dim, values in coords.items()}
    for name, some in dims.items():
        if len(some) != len(shapes[name]):
            raise ValueError(f"dims[{name!r}] must have a name for each dimension of the shape "
                             f"{shapes[name]}, not {some}")
        for dim, n in zip(some, shapes[name], strict=True):
            length, who = lengths.setdefault(dim, (n, f"{name!r} has length {n} there"))
            if n != length:
                raise ValueError(f"{name!r}, of shape {shapes[name]}, has length {n} along "
                                 f"{shown(dim)}, but {who}")
