"""A test for points of another mode: a step towards the known one lowers the density.

If a density has one mode and falls off from it on all sides, a step towards the mode raises it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TOWARDS = 0.05, 0.1, 0.2, 0.4  # steps, as parts of the way
LEAST_DROP = 1.0  # of the log density


def is_apart(
    evaluate: Callable[[Array], Array], x: Array, logp: Array, mode: Array
) -> NDArray[np.bool_]:
    """Mask of points x (n, d) from which steps towards `mode` (n, d) lower the log density (n,).
    """
    # a short step stays within a narrow mode, a longer one leads across it or beyond
    lowest = np.min([evaluate(x + step * (mode - x)) for step in TOWARDS], axis=0)
    return np.asarray(lowest < logp - LEAST_DROP)
