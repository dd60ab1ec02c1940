"""Normal approximations of modes, for their mass.

A normal density with the curvature at a mode has the mass of the mode if that is nearly normal. A
mode that is bent ends where its curvature does not let it, and no curvature tells the width of a
plateau: scales along the principal axes, and along the coordinates, do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, eigen
from fastkam._core.numerics.elementary import log
from fastkam.search.scales import find_scales

Array = NDArray[np.float64]
Gradient = Callable[[Array], tuple[float, Array]]

SHORT = 0.1  # steps for the curvature, in units of those that change log p by 1
LONG = 2.0  # length of an axis, in the same units, from which its scale is looked for


class Budget(Protocol):
    """A density that may be evaluated a number of times."""

    def __call__(self, z: Array) -> Array:
        """Return the log densities (n,) at the rows of z (n, d)."""

    def take(self, n: int) -> None:
        """Count n evaluations."""


def approximation(
    evaluate: Budget, gradient: Gradient | None, z: Array, value: float, scales: Array
) -> Array | None:
    """Return the factor of the precision of a normal approximation, or None on a plateau.

    In units of the scales, an axis of it is long if coordinates are correlated, or if the mode
    is bent, whose density ends before: such an axis is as long as the density is along it.
    """
    try:
        factor = scales[:, None] * precision(evaluate, gradient, z, value, scales)
    except ValueError:
        return None
    values, axes = eigen(factor @ factor.T)
    lengths = 1 / np.sqrt(values)
    some = np.flatnonzero(lengths > LONG)
    if len(some):
        steps = scales[:, None] * axes[:, some] * lengths[some]
        reach, _ = find_scales(
            lambda u: evaluate(z + u @ steps.T), np.zeros(len(some)), value)
        lengths[some] *= reach / math.sqrt(2)
    return np.asarray(axes / lengths / scales[:, None])


def curvature(
    evaluate: Budget, gradient: Gradient | None, z: Array, value: float, lengths: Array
) -> Array:
    """Return minus the second derivatives (d, d) at z (d,), in units of the steps (d,)."""
    d = len(z)
    if gradient is not None:
        evaluate.take(2 * d)
        slopes = [gradient(z - step)[1] - gradient(z + step)[1] for step in np.diag(lengths)]
        found = np.array(slopes) * lengths / 2
        return np.asarray((found + found.T) / 2)
    i, j = np.triu_indices(d, 1)
    axes = np.eye(d)
    steps = np.concatenate([axes, axes[i] + axes[j]]) * lengths
    even = (evaluate(z + steps) + evaluate(z - steps)) / 2 - value
    found = np.diag(-2 * even[:d])
    found[i, j] = found[j, i] = even[i] + even[j] - even[d:]
    return found


def precision(
    evaluate: Budget, gradient: Gradient | None, z: Array, value: float, scales: Array
) -> Array:
    """Return the factor L of the precision L L' of a normal approximation at a mode (d,).

    The steps of its differences are a tenth of `scales` (d,), along which the log density
    changes by about 1: in units of these a parabola has the curvature 2. Half of that is the
    least along a coordinate: in a neck that has no end, the density is flatter here than within
    the step. 2 is added if the log density does not fall off on all sides; ValueError if it
    then still does not.
    """
    lengths = SHORT * scales
    matrix = curvature(evaluate, gradient, z, value, lengths)
    matrix[np.diag_indices(len(z))] = np.maximum(np.diag(matrix), SHORT**2)
    try:
        factor = cholesky(matrix)
    except ValueError:
        factor = cholesky(matrix + 2 * SHORT**2 * np.eye(len(z)))
    return np.asarray(factor) / lengths[:, None]


def log_mass(value: float, factor: Array) -> float:
    """Return the log integral of a normal density that is exp(value) at its mode."""
    return value + 0.5 * len(factor) * float(log(2 * np.pi)) - float(np.linalg.slogdet(factor)[1])
