"""Growth of the memory of this process with the number of runs."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Use(NamedTuple):
    """Resources of a process."""

    resident: int  # bytes, of all allocators
    traced: int  # bytes that Python and numpy hold
    objects: int  # that the collector of cycles knows
    references: int  # to None, True and False, which code in C may count wrongly
    threads: int
    files: int


def use() -> Use:
    """Return the present resources of this process, after a garbage collection."""
    for _ in range(3):
        gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Use(pages * 4096, tracemalloc.get_traced_memory()[0], len(gc.get_objects()),
               sum(map(sys.getrefcount, (None, True, False))), threading.active_count(),
               len(list(Path("/proc/self/fd").iterdir())))


def growth(run, rounds: int, per_round: int, first: int = 0) -> Use:
    """Return the growth per run: the smallest growth of any round of the second half.

    What grows in some rounds and not in others is a cache that fills or a heap in pieces; a leak
    grows in every one. The first half fills caches, and does not count. Where references become
    fewer in every round, which frees what is in use in the end, the growth is negative.
    """
    uses, seed = [use()], first
    for _ in range(rounds):
        for _ in range(per_round):
            run(seed)
            seed += 1
        uses.append(use())
    steps = np.diff(np.array(uses[len(uses) // 2:], dtype=float), axis=0) / per_round
    least, most = steps.min(axis=0), steps.max(axis=0)
    return Use(*np.where(most < 0, most, least))


# a run may leave less than this, by what is measured: of resident memory, that of a heap in pieces
MOST = Use(resident=500, traced=30, objects=0.2, references=0.2, threads=0.01, files=0.01)


# and in a round, however few its runs: a heap grows by pages; and the interpreter gives back some
# 600 references to None, which it held when it began, in the first thousand runs
ROUND = Use(resident=2**16, traced=1000, objects=2, references=2, threads=0, files=0)
RELEASED = 700


def leaks(found: Use, per_round: int) -> list[str]:
    """Return texts about excessive growth; `found` is of rounds of a given number of runs."""
    may = [most + more / per_round for most, more in zip(MOST, ROUND, strict=True)]
    fewer = (["references are released too often"]
             if found.references < -MOST.references - RELEASED / per_round else [])
    return fewer + [f"{name} grows by {value:.3g} a run" for name, value, most in
                    zip(Use._fields, found, may, strict=True) if value > most]
