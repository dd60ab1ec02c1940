"""100 000 runs in one process: ``PYTHONPATH=tests python -m leaks 100000``.

A third of the runs go through the kinds of `runs` one by one, each for itself, so that the kind
that leaks is named; the rest are of all kinds in turn. Both must leave the memory, the number of
objects, threads and open files as they were: see `growth`. A second argument takes one kind alone.
"""

import os
import sys
import tempfile
import time
import tracemalloc

from leaks.growth import growth, leaks, use
from leaks.runs import KINDS

ROUNDS = 8


def main(n=100_000, only=None):
    """Make n runs and print what grew; the number of kinds that did."""
    os.chdir(tempfile.mkdtemp())
    tracemalloc.start()
    kinds = {name: run for name, run in KINDS.items() if only in (None, name)}
    for run in kinds.values():
        run(0)
    begun, first, broken = time.monotonic(), use(), 0
    each = max(1, n // 3 // len(kinds) // ROUNDS)
    for name, run in kinds.items():
        found = leaks(growth(run, ROUNDS, each), each)
        broken += bool(found)
        print(f"{name:22} {ROUNDS * each:6} runs: {'; '.join(found) or 'nothing grows'}",
              flush=True)
    traced = use().traced
    tracemalloc.stop()  # it takes half of the time
    runs = list(kinds.values())
    left = max(ROUNDS, n - ROUNDS * each * len(kinds))
    found = leaks(growth(lambda seed: runs[seed % len(runs)](seed), ROUNDS, left // ROUNDS),
                  left // ROUNDS)
    last = use()
    total = ROUNDS * each * len(kinds) + left // ROUNDS * ROUNDS
    print(f"{'all in turn':22} {left:6} runs: {'; '.join(found) or 'nothing grows'}")
    print(f"{total} runs in {time.monotonic() - begun:.0f} s: resident memory "
          f"{first.resident / 2**20:.1f} to {last.resident / 2**20:.1f} MB, held by Python "
          f"{first.traced / 2**20:.2f} to {traced / 2**20:.2f} MB, objects {first.objects} to "
          f"{last.objects}")
    return broken + bool(found)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:2]), *sys.argv[2:])))
