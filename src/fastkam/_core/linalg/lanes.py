"""Points and rows in blocks of eight, one in each lane of the vector loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

LANES = 8


def blocked(rows: ArrayLike) -> NDArray[np.float64]:
    """Return the rows (n, d) in blocks (ceil(n / 8), d, 8), padded with zeros."""
    rows = np.asarray(rows, dtype=float)
    n, d = rows.shape
    blocks = -(-n // LANES)
    padded = np.zeros((blocks * LANES, d))
    padded[:n] = rows
    return np.ascontiguousarray(padded.reshape(blocks, LANES, d).transpose(0, 2, 1))
