"""Checks of whether a function returns the same log density at the same point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

REPEATED = 4  # evaluations
LEAST, RELATIVE = 0.01, 1e-5  # difference that rounding does not explain; relative to log densities
RANDOM = "the log density is random"  # how the line of the search begins


def differ(first: Array, second: Array) -> NDArray[np.bool_]:
    """Mask of the log densities (n,) that differ by more than rounding."""
    with np.errstate(invalid="ignore"):
        by = np.abs(first - second)
        return (first != second) & ~(by <= LEAST + RELATIVE * np.abs(second))


def check_rows(evaluate: Callable[[Array], Array], x: Array) -> None:
    """Refuse a function of many points whose value at a point depends on the other points.

    Parameters
    ----------
    evaluate : callable
    x : array (2, d)
        Two points.

    Raises
    ------
    ValueError
    """
    together, alone = evaluate(x), np.array([evaluate(one[None])[0] for one in x])
    if differ(together, alone).any() and not differ(evaluate(x), together).any():
        raise ValueError(
            "the function must return, for points X (k, d), k values that each depend on one row "
            f"alone; it returned {together[0]:.6g} and {together[1]:.6g} for two points together, "
            f"and {alone[0]:.6g} and {alone[1]:.6g} for each alone: sum over axis=1, or leave out "
            "vectorized=True")


def differences(evaluate: Callable[[Array], Array], x: Array, logp: Array) -> list[str]:
    """Evaluate the density again: a line if it is not the same at the same point, or none.

    Parameters
    ----------
    evaluate : callable
    x : array (n, d)
        Points; the first four, or fewer in turn.
    logp : array (n,)
        The log densities there, from before.
    """
    x, logp = np.resize(x, (REPEATED, x.shape[1])), np.resize(logp, REPEATED)
    again = evaluate(x)
    rows = np.isfinite(again) & differ(again, logp)
    if not rows.any():
        return []
    by = np.abs(again - logp)[rows].max()
    return [f"{RANDOM}: two values at one point differ by {by:.2g}"]
