"""Peaks of a density among scattered points, from each of which another mode may be found.

A point is a peak if its density is higher than at all of the points nearest to it. Even a narrow
mode beside a wide one has a peak, where it contains only one of the points: the highest points
are all in the wide mode. Törn, A. and Viitanen, S. (1992). Topographical global optimization. In
Recent Advances in Global Optimization, 384-398. Princeton University Press.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import product

Array = NDArray[np.float64]

ROWS = 256  # of the matrix of distances, which are computed at once
OUTER = 0.1, 0.9  # levels of the quantiles whose distance is the unit of a coordinate


def peaks(x: Array, logp: Array, k: int) -> NDArray[np.intp]:
    """Indices of the points x (n, d) that are higher than the k nearest, the highest first.

    Points without a density, where the log density (n,) is not finite, are lower than all others.
    Of points of the same density only the first can be one.
    """
    order = np.argsort(-np.where(np.isfinite(logp), logp, -np.inf), kind="stable")
    finite = int(np.isfinite(logp).sum())
    low, high = np.quantile(x, OUTER, axis=0)
    y = (x[order] - (low + high) / 2) / np.where(high > low, high - low, 1.0)
    squares = (y**2).sum(axis=1)
    found = []
    for begin in range(0, finite, ROWS):
        rows = np.arange(begin, min(begin + ROWS, finite))
        # squared distances, less the squared length of the row's point
        away = squares - 2 * product(y[rows], y.T)
        np.put_along_axis(away, rows[:, None], np.inf, axis=1)
        among = np.where(rows < rows[:, None], away[:, rows], np.inf)
        higher = np.minimum(away[:, :begin].min(axis=1, initial=np.inf), among.min(axis=1))
        nearer = (away < higher[:, None]).sum(axis=1)
        found.append(rows[nearer >= k])
    return np.asarray(order[np.concatenate(found)] if found else np.zeros(0, np.intp))
