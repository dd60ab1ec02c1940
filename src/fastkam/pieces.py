"""Work on many rows in several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


def in_pieces(work: Callable[[int, int], Any], n: int, threads: int) -> None:
    """Call ``work(begin, end)`` for as many pieces of the rows 0 .. n - 1 as there are threads."""
    edges = np.linspace(0, n, min(threads, max(n, 1)) + 1).astype(int).tolist()
    if len(edges) == 2:
        work(0, n)
        return
    with ThreadPoolExecutor(len(edges) - 1) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))
