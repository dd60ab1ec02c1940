"""The kernels at every size: `python -m bench.perf` writes bench/results/kernels.md."""

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from bench.papers.record import heading, table, write
from bench.perf import (
    test_kernel_gradient,
    test_normal_density,
    test_random,
    test_rank_one,
)
from bench.perf.measure import COLUMNS

PARTS = (test_kernel_gradient, test_normal_density, test_rank_one, test_random)
NOTE = """
CPU nanoseconds of one call from C (for random numbers, of one number), one thread; medians of 21
rounds in which the sides take turns; a ratio is the median of the rounds' ratios. *floor*: the
loops of `bench/perf/floor`, compiled for this machine alone, with fused multiply-add, and without
checks. *BLAS, LAPACK*: scipy's, called from C. *numpy, scipy*: the same written in Python. *times
fastkam*: how many times longer the column before takes.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[part.__name__[16:] for part in PARTS])
    chosen = parser.parse_args()
    chosen.quick, chosen.seed = False, 1
    text = heading("The kernels", "python -m bench.perf", chosen) + NOTE
    with threadpool_limits(1, user_api="blas"):
        for part in PARTS:
            if chosen.only in (None, part.__name__[16:]):
                text += f"\n## {part.TITLE}\n\n"
                text += table(COLUMNS, [case.row() for case in part.cases()])
    if chosen.only:
        print(text)
    else:
        write(Path(__file__).parents[1] / "results" / "kernels.md", text)


main()
