"""A check of whether a function returns the same log density at the same point twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

REPEATED = 4  # evaluations
LEAST, RELATIVE = 0.01, 2e-7  # difference, more than rounding to 24 bits explains
RANDOM = "the log density is random"  # how the line of the search begins


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
