"""Work on many rows in several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def in_pieces(work: Callable[[int, int], Any], n: int, threads: int) -> None:
    """Call ``work(begin, end)`` for as many pieces of the rows 0 .. n - 1 as there are threads."""
    count = min(threads, n)
    if count < 2:
        work(0, n)
        return
    from concurrent.futures import ThreadPoolExecutor

    edges = [n * k // count for k in range(count + 1)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


def first_in_pieces(work: Callable[[int, int], int], n: int, threads: int) -> int:
    """The smallest index that ``work`` returns for a piece, or -1 if it always returns -1."""
    if threads == 1:
        return work(0, n)
    found: list[int] = []
    in_pieces(lambda begin, end: found.append(work(begin, end)), n, threads)
    return min((i for i in found if i >= 0), default=-1)
