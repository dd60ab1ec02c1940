"""A step of every sampler in two builds of fastkam, which take turns.

    python -m bench.perf.turns TREE PYTHON

TREE is a checkout of the commit before, PYTHON the interpreter in which it is installed. The table
is bench/results/turns.md. Each build measures by the `Steps` of its own tree.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
DIMENSIONS = (2, 8, 32, 128)
SECONDS, ROUNDS = 0.02, 11
NOTE = """
CPU nanoseconds of a step of one chain on a built-in normal density, draws stored, one thread,
default parameters; medians of {rounds} rounds in which two processes take turns on one core; the
ratio is the median of the rounds' ratios, divided by that of the evaluations a step makes.
*before*: {before}. Over all cells the median of the ratios is {median:.3f}; {over} of {count} are
above 1.03.
"""


def serve():
    """Make chains and steps as the lines of standard input say."""
    from bench.perf.steps import Steps, built_in
    from fastkam.samplers import SAMPLERS
    from fastkam.schedules import Perpetual

    steps = None
    for line in sys.stdin:
        command, *words = line.split()
        if command == "samplers":
            print(*SAMPLERS, flush=True)
        elif command == "make":
            name, d, phase = words[0], int(words[1]), words[2]
            sampler = SAMPLERS[name]()
            learning = {"schedule": Perpetual().compiled(sampler, d, 0)}
            steps = Steps(built_in(d), sampler, np.zeros(d),
                          **learning if phase == "learning" else {})
            n = 64
            while (seconds := steps.go(n)) < SECONDS / 5 and n < 300_000:
                n *= 2
            print(max(1, min(400_000, int(n * SECONDS / max(seconds, 1e-9)))), flush=True)
        else:
            n = int(words[0])
            evaluations = -sum(chain.n_evaluations for chain in steps.chains)
            seconds = steps.go(n)
            evaluations += sum(chain.n_evaluations for chain in steps.chains)
            print(1e9 * seconds / n, evaluations / n, flush=True)


class Build:
    """A process that makes steps by one build."""

    def __init__(self, python, tree):
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [python, __file__, "--serve"], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=os.environ | single | {"PYTHONPATH": str(tree)})

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        found = self.process.stdout.readline().split()
        if not found:
            raise RuntimeError(f"a build ended at {words}: see its traceback above")
        return found

    def go(self, n):
        return [float(word) for word in self.ask("go", n)]


def cell(builds, name, d, phase):
    """(ns before, ns after, ratio)"""
    n = min(int(build.ask("make", name, d, phase)[0]) for build in builds)
    rounds = np.empty((ROUNDS, 2, 2))
    for k in range(ROUNDS):
        for side in (0, 1) if k % 2 else (1, 0):
            rounds[k, side] = builds[side].go(n)
    ns, evaluations = np.median(rounds, axis=0).T
    ratio = np.median(rounds[:, 1, 0] / rounds[:, 0, 0]) * evaluations[0] / evaluations[1]
    return ns[0], ns[1], ratio


def main():
    from bench.papers.record import heading, table, write

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree")
    parser.add_argument("python")
    parser.add_argument("--only", nargs="+", metavar="SAMPLER", help="print these alone")
    chosen = parser.parse_args()
    chosen.quick, chosen.seed = False, 1
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    text = heading("A step in two builds", "python -m bench.perf.turns TREE PYTHON", chosen)
    before = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=chosen.tree, text=True,
                            capture_output=True, check=True).stdout.strip()
    builds = Build(chosen.python, chosen.tree), Build(sys.executable, ROOT)
    had, has = (build.ask("samplers") for build in builds)
    rows, ratios = [], []
    for name in chosen.only or [name for name in had if name in has]:
        row = [f"`{name}`"]
        for d in DIMENSIONS:
            for phase in ("learning", "learned"):
                old, new, ratio = cell(builds, name, d, phase)
                row.append(f"{old:,.0f}, {new:,.0f}, {ratio:.2f}")
                ratios.append(ratio)
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    columns = ["before, after, ratio"] + [f"d = {d}, {phase}" for d in DIMENSIONS
                                          for phase in ("learning", "learned")]
    text += NOTE.format(rounds=ROUNDS, before=before, median=np.median(ratios),
                        over=sum(ratio > 1.03 for ratio in ratios), count=len(ratios))
    text += "\n" + table(columns, rows)
    if not chosen.only:
        write(ROOT / "bench" / "results" / "turns.md", text)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
