"""Calls until the error is that of 400 independent draws: a learned surrogate, auto, emcee.

`python -m bench.costly [--quick] [--emcee]` with emcee in its own environment (`python -m
bench.peers.environments emcee`). A posterior's runs of several seeds give one number: the calls
after which the root mean square error, over runs and coordinates, of means and of standard
deviations stays below that of 400 independent draws.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from bench.costly.densities import CASES
from bench.costly.runs import Curve, auto, calls_until, learnt
from bench.papers.record import heading, options, table, write
from bench.peers.environments import ROOT, python_of

FILE = Path(__file__).parents[1] / "samplers.py"  # results stand in bench/results
SEEDS, AUTO_SEEDS, EMCEE_SEEDS, QUICK_SEEDS = 10, 3, 1, 2
WORKERS = 2


def curves_of(make, seeds):
    """{name: its curves}, made by processes."""
    with ProcessPoolExecutor(WORKERS) as pool:
        tasks = {name: [pool.submit(make, name, seed) for seed in range(seeds)] for name in CASES}
        return {name: [task.result() for task in some] for name, some in tasks.items()}


def of_emcee(seeds):
    """{name: its curves} by emcee; none where it is not installed."""
    if not Path(python_of("emcee")).exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "curves")
        subprocess.run([python_of("emcee"), "-m", "bench.costly.peer_job", file, str(seeds)],
                       cwd=ROOT, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        with open(file, "rb") as opened:
            found = pickle.load(opened)
    return {name: [Curve(*one) for one in some] for name, some in found.items()}


def shown(calls, curves):
    """A number of calls; of what has not come so far, more than the most."""
    if not curves:
        return ""
    if np.isinf(calls):
        return f"> {max(curve.calls[-1] for curve in curves):,.0f}"
    return f"{calls:,.0f}"


def main():
    chosen = options(FILE, __doc__, quick=f"{QUICK_SEEDS} seeds")
    seeds = [QUICK_SEEDS] * 3 if chosen.quick else [SEEDS, AUTO_SEEDS, EMCEE_SEEDS]
    found = [curves_of(learnt, seeds[0]), curves_of(auto, seeds[1]), of_emcee(seeds[2])]
    rows, needed, intervals, within = [], [], [], 0
    for name, case in CASES.items():
        fourth = np.maximum(np.median([one.fourth for one in found[1][name]], axis=0), 1.5)
        calls = [calls_until(some.get(name, []), case, fourth) if some.get(name) else np.inf
                 for some in found]
        first = [int(one.calls[0]) for one in found[0][name]]
        share = np.mean([one.covered for one in found[0][name]])
        rows.append([name, str(case.d), f"{np.median(first):,.0f}",
                     *(shown(n, some.get(name, []))
                       for n, some in zip(calls, found, strict=True)),
                     f"{100 * share:.0f} %"])
        needed.append(calls[0])
        intervals.append(share)
        within += calls[0] <= calls[1] / 10
    columns = ["posterior", "d", "calls before the draws, median", "learned surrogate", "auto",
               "emcee", "90 % intervals with the mean"]
    some = f"{seeds[0]}, {seeds[1]} and {seeds[2]}"
    write(chosen.folder / "costly.md", "\n".join([
        heading("Calls of a costly density", "python -m bench.costly", chosen),
        f"Of {some} seeds. Calls after which the root mean square error, over seeds and "
        "coordinates, of means and of standard deviations stays below that of 400 independent "
        "draws.\n",
        table(columns, rows),
        f"Median {np.median(needed):,.0f} calls, most {max(needed):,.0f}; at most a tenth of the "
        f"calls of auto on {within} of {len(CASES)}; coverage of all nominal 90 % intervals "
        f"{100 * np.mean(intervals):.0f} %.\n"]))


if __name__ == "__main__":
    sys.exit(main())
