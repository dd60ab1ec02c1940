"""Checks of the log density at the same points twice, and a very small distance from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fastkam.search.evaluator import Evaluator

Array = NDArray[np.float64]

REPEATED = 4  # evaluations
LEAST, RELATIVE = 0.01, 2e-7  # difference, more than rounding to 24 bits explains
TINY, MOST_CHANGE = 1e-6, 1.0  # that distance, in standard deviations; a change too large for it
RANDOM = "the log density is random"  # how the line of the search begins
ROUGH = "the log density is rough"  # the same


def checked_again(evaluate: Evaluator, x: Array, logp: Array, scales: Array) -> list[str]:
    """Evaluate the density at some points again, and near them: a line on what is wrong, or none.

    The parameters are those of `roughness`.
    """
    with evaluate.watch.repeating():
        found = differences(evaluate, x, logp)
    if found or evaluate.target.is_estimate:
        return found
    return roughness(evaluate, x, logp, scales)


def differences(evaluate: Callable[[Array], Array], x: Array, logp: Array) -> list[str]:
    """Evaluate the density again: a line if it is not the same at the same point, or none.

    Parameters
    ----------
    evaluate : callable
    x : array (n, d)
        Points; the first four, or fewer in turn.
    logp : array (n,)
        The log densities there, from before, finite.
    """
    # in another order, which shows whether a value depends on the points before it
    x, logp = np.resize(x, (REPEATED, x.shape[1]))[::-1], np.resize(logp, REPEATED)[::-1]
    by = np.abs(evaluate(x) - logp)
    if not np.isfinite(by).all():
        return [f"{RANDOM}: of two values at one point one is finite, the other not"]
    by = by[by > LEAST + RELATIVE * np.abs(logp)]
    return [f"{RANDOM}: two values at one point differ by {by.max():.2g}"] if len(by) else []


def roughness(
    evaluate: Callable[[Array], Array], x: Array, logp: Array, scales: Array
) -> list[str]:
    """Evaluate the density nearby: a line if it changes far too much on both sides, or none.

    Parameters
    ----------
    evaluate, x, logp : callable, array (n, d), array (n,)
        As those of `differences`.
    scales : array (d,)
        Distances for a single point; for several the standard deviations, these at most.
    """
    if len(x) > 1:
        scales = np.minimum(x.std(axis=0), scales)
    x, logp = np.resize(x, (REPEATED, x.shape[1])), np.resize(logp, REPEATED)
    row, column = np.indices(x.shape)
    step = TINY * scales * (row + 1) / REPEATED * np.where((row + column) % 2, 1.0, -1.0)
    changes = np.abs(evaluate(x + step) - logp)
    some = np.isfinite(changes) & (changes > MOST_CHANGE)
    if not some.any():
        return []
    # of a jump the other side is smooth
    changes = np.minimum(changes[some], np.abs(evaluate((x - step)[some]) - logp[some]))
    return [f"{ROUGH}: it changes by {changes.max():.2g} within a millionth of a standard deviation"
            ] if changes.max() > MOST_CHANGE else []
