"""The kernels as they are and as a commit has them, for each instruction set, in one run.

`python -m bench.perf.versions --before COMMIT` writes bench/results/versions.md.
"""

import argparse
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from bench.papers.record import heading, table, write
from bench.perf import floor, test_kernel_gradient, test_nearest, test_normal_density, test_rank_one
from bench.perf.measure import calls, elapsed

ROUNDS = 31
COLUMNS = ["", "floor, ns", "AVX-512: before", "after", "after / before", "after / floor",
           "AVX2: before", "after", "after / before", "after / floor"]
PARTS = {
    "pass": (test_kernel_gradient, [("Gaussian", d, 1000) for d in (2, 4, 8, 16, 32, 64, 128)]),
    "density": (test_normal_density, [(d,) for d in test_normal_density.SIZES]),
    "update": (test_rank_one, [(d,) for d in test_rank_one.SIZES]),
    "look-up": (test_nearest, [(d, 2500) for d in test_nearest.SIZES]),
}
NOTE = """
CPU nanoseconds of one call from C, one thread; medians of {rounds} rounds in which the sides take
turns; a ratio is the median of the rounds' ratios. *before*: {before}. *floor*: the loops of
`bench/perf/floor`, compiled for this machine with all it has and without checks.
"""


def archived(commit):
    """The source files of a commit, in a folder of their own."""
    root = floor.ROOT
    packed = subprocess.run(["git", "archive", commit, "src"], capture_output=True, check=True,
                            cwd=root).stdout
    folder = Path(tempfile.mkdtemp(prefix="fastkam-before"))
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
    return folder


def row(module, given, before):
    """One kernel at one size."""
    cases = {(tree, level): module.case(*given, repeat=floor.repeat(level, tree))
             for level in ("avx512", "avx2") for tree in (before, floor.ROOT)}
    functions = [next(iter(cases.values())).floor, *(case.fastkam for case in cases.values())]
    times = [calls(function) for function in functions]
    seconds = np.array([[elapsed(f, n) for f, n in zip(functions, times, strict=True)]
                        for _ in range(ROUNDS)])
    bare, *sides = 1e9 * np.median(seconds, axis=0)
    cells = [cases[floor.ROOT, "avx512"].label, f"{bare:.4g}"]
    for k in (1, 3):
        cells += [f"{sides[k - 1]:.4g}", f"{sides[k]:.4g}",
                  f"{np.median(seconds[:, k + 1] / seconds[:, k]):.2f}",
                  f"{np.median(seconds[:, k + 1] / seconds[:, 0]):.2f}"]
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="a commit")
    parser.add_argument("--only", choices=PARTS)
    chosen = parser.parse_args()
    chosen.quick, chosen.seed = False, 1
    before = archived(chosen.before)
    text = heading("The kernels of two commits", f"python -m bench.perf.versions --before "
                   f"{chosen.before}", chosen)
    text += NOTE.format(rounds=ROUNDS, before=chosen.before)
    for name, (module, sizes) in PARTS.items():
        if chosen.only in (None, name):
            rows = [row(module, given, before) for given in sizes]
            text += f"\n## {module.TITLE}\n\n" + table(COLUMNS, rows)
    if chosen.only:
        print(text)
    else:
        write(Path(__file__).parents[1] / "results" / "versions.md", text)


main()
