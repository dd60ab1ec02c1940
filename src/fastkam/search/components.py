"""Components of a density whose parameters can be exchanged, as those of a mixture can."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.look import EXCHANGED, listed
from fastkam.search.images import tables_of_labels

Array = NDArray[np.float64]
Order = NDArray[np.intp]
Evaluate = Callable[[Array], Array]

SAME = 1e-9  # difference of log densities, relative
LOWER = 3.0  # log density halfway, below that of a point: there are two modes
MOST_COMPARED = 5  # components that are exchanged with the first
NUMBERED = re.compile(r"(.*?)_?(\d+)")


@dataclass(frozen=True, eq=False, repr=False)
class Components:
    """K components.

    Attributes
    ----------
    K : int
    order : callable
        ``order(permutation)`` returns the order (n_x,) of the elements of x in which component k
        has the parameters that component ``permutation[k]`` had.
    """

    K: int
    order: Callable[[Sequence[int]], Order]

    def exchange(self, k: int) -> Order:
        """Return the order in which the first component and the k-th are exchanged."""
        permutation = list(range(self.K))
        permutation[0], permutation[k] = k, 0
        return self.order(permutation)


def components_of(shapes: dict[str, tuple[int, ...]]) -> list[Components]:
    """Return what may be components of parameters of these shapes, first the largest K.

    These are parts of a single vector; those of all parameters that have the same number K as their
    first axis; and parameters with numbers in their names.
    """
    found: list[Components] = []
    places, n = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        places[name] = np.arange(n, n + size).reshape(shape)
        n += size
    if len(shapes) == 1 and places[next(iter(shapes))].ndim == 1:
        found += [of_table(table, n) for table in tables_of_labels(n)]
    for K in sorted({shape[0] for shape in shapes.values() if shape and shape[0] > 1}):
        found.append(of_arrays([own for own in places.values() if own.ndim and len(own) == K], n))
    numbered: dict[str, list[str]] = {}
    for name in shapes:
        if parts := NUMBERED.fullmatch(name):
            numbered.setdefault(parts[1], []).append(name)
    alike = [names for names in numbered.values()
             if len(names) > 1 and len({shapes[name] for name in names}) == 1]
    for K in sorted({len(names) for names in alike}):
        columns = [np.array([places[name].ravel() for name in names])
                   for names in alike if len(names) == K]
        found.append(of_table(np.concatenate(columns, axis=1), n))
    return sorted(found, key=lambda some: -some.K)


def of_table(table: Order, n: int) -> Components:
    """Return the components of which each has a row (b,) of places in a vector of n elements."""

    def order(permutation: Sequence[int]) -> Order:
        new = np.arange(n)
        new[table] = table[list(permutation)]
        return new

    return Components(len(table), order)


def of_arrays(arrays: list[Order], n: int) -> Components:
    """Return the components along all axes of arrays (K, ...) that have K elements."""
    K = len(arrays[0])

    def order(permutation: Sequence[int]) -> Order:
        new = np.arange(n)
        for own in arrays:
            moved = own
            for axis in np.flatnonzero(np.array(own.shape) == K):
                moved = moved.take(permutation, axis=axis)
            new[own] = moved
        return new

    return Components(K, order)


def leading_away(
    components: Components, x: Array, values: Array, evaluate: Evaluate
) -> Order | None:
    """Return an exchange that leads to another mode; None unless all components can be exchanged.

    Parameters
    ----------
    components : Components
    x : array (m, n_x)
        Points, first the one from which an exchange may lead to another mode.
    values : array (m,)
        Log densities there.
    evaluate : callable
        Log densities (k,) at points (k, n_x).
    """
    found = None
    for k in range(1, min(components.K, MOST_COMPARED)):
        order = components.exchange(k)
        images = x[:, order]
        if not (same(values[:1], evaluate(images[:1])) and same(values[1:], evaluate(images[1:]))):
            return None
        if found is None and (images[0] != x[0]).any():
            halfway = evaluate((x[:1] + images[:1]) / 2)
            found = None if halfway[0] > values[0] - LOWER else order
    return found


def same(one: Array, other: Array) -> bool:
    """Return whether log densities are the same up to rounding."""
    return bool((np.abs(one - other) <= SAME * np.maximum(1, np.abs(one))).all())


def line_of(labels: list[str], order: Order) -> str:
    """Return the line for an exchange: of which elements, with which."""
    first = [i for i, j in enumerate(order) if i < j]
    names = [[labels[i] for i in some] for some in (first, order[first])]
    shown = [listed(some[:4], len(some)) for some in names]
    return f"{EXCHANGED} {shown[0]} with {shown[1]}"
