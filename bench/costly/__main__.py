"""Calls until the error is that of 400 independent draws: a learned surrogate, auto, emcee.

`python -m bench.costly [--quick] [--seeds N] [--only learned]`, with emcee in its own environment
(`python -m bench.peers.environments emcee`). A posterior's runs of several seeds give one number:
the calls after which the root mean square error, over runs and coordinates, of means and of
standard deviations stays below that of 400 independent draws. Further tables are of densities on
which nothing was tuned, of nine more, and of eight with wide priors. A run is silent if an estimate
is off by more than four of its errors and no warning is given.
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
from bench.costly.further import FURTHER
from bench.costly.priors import WITH_PRIORS
from bench.costly.runs import Curve, auto, calls_until, learned
from bench.costly.unseen import UNSEEN
from bench.papers.record import heading, options, table, write
from bench.peers.environments import ROOT, python_of

FILE = Path(__file__).parents[1] / "samplers.py"  # results are in bench/results
SEEDS, AUTO_SEEDS, EMCEE_SEEDS, QUICK_SEEDS = 10, 3, 1, 2
WORKERS = 2


def curves_of(make, seeds, cases=CASES):
    """{name: its curves}, made by processes."""
    with ProcessPoolExecutor(WORKERS) as pool:
        tasks = {name: [pool.submit(make, name, seed) for seed in range(seeds)] for name in cases}
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
    """Return a number of calls as text; "more than" the largest if it was not reached."""
    if not curves:
        return ""
    if np.isinf(calls):
        return f"> {max(curve.calls[-1] for curve in curves):,.0f}"
    return f"{calls:,.0f}"


def calls_table(found):
    """The table of the posteriors, and a line about it."""
    rows, needed, within = [], [], 0
    for name, case in CASES.items():
        known = found[1].get(name) or found[0][name]
        fourth = np.maximum(np.median([one.fourth for one in known], axis=0), 1.5)
        calls = [calls_until(some.get(name, []), case, fourth) if some.get(name) else np.inf
                 for some in found]
        rows.append([name, str(case.d), *learned_columns(found[0][name]),
                     *(shown(n, some.get(name, []))
                       for n, some in zip(calls, found, strict=True))])
        needed.append(calls[0])
        within += bool(found[1]) and calls[0] <= calls[1] / 10
    columns = [*COLUMNS, "learned surrogate", "auto", "emcee"]
    line = f"Median {np.median(needed):,.0f} calls, most {max(needed):,.0f}"
    if found[1]:
        line += f"; at most a tenth of the calls of auto on {within} of {len(CASES)}"
    return table(columns, rows), line + ". " + summary_of(found[0])


def further_table(found, cases):
    """The table of densities that are not among the posteriors, and a line about it."""
    rows = []
    for name, case in cases.items():
        curves = found[name]
        fourth = np.maximum(np.median([one.fourth for one in curves], axis=0), 1.5)
        rows.append([name, str(case.d), *learned_columns(curves),
                     shown(calls_until(curves, case, fourth), curves)])
    return table([*COLUMNS, "learned surrogate"], rows), summary_of(found)


COLUMNS = ["posterior", "d", "runs with weights", "calls before the draws, median",
           "90 % intervals with the mean", "with the sd", "runs off by 4 errors", "of these silent"]


def learned_columns(curves):
    """Return the columns of the runs of a posterior."""
    off = [one for one in curves if not one.worst <= 4]
    return [f"{sum(one.weighted for one in curves)} of {len(curves)}",
            f"{np.median([one.calls[0] for one in curves]):,.0f}",
            f"{100 * np.mean([one.covered for one in curves]):.0f} %",
            f"{100 * np.mean([one.sds_covered for one in curves]):.0f} %",
            str(len(off)), str(sum(not one.told for one in off))]


def summary_of(found):
    """A text about the coverage and the warnings of all runs."""
    curves = [one for some in found.values() for one in some]
    off = [one for one in curves if not one.worst <= 4]
    return (f"Nominal 90 % intervals have the mean in "
            f"{100 * np.mean([one.covered for one in curves]):.0f} % of cases and the standard "
            f"deviation in {100 * np.mean([one.sds_covered for one in curves]):.0f} %; {len(off)} "
            f"of {len(curves)} runs have an estimate that is off by more than four of its errors, "
            f"and {sum(not one.told for one in off)} of these give no warning.")


def main():
    chosen = options(FILE, __doc__, quick=f"{QUICK_SEEDS} seeds", only=("learned",), seeds=SEEDS)
    most = QUICK_SEEDS if chosen.quick else chosen.seeds
    seeds = [most, min(most, AUTO_SEEDS), min(most, EMCEE_SEEDS)]
    if chosen.only:
        seeds[1:] = [0, 0]
    further = further_table(curves_of(learned, seeds[0], FURTHER), FURTHER)
    print(*further, sep="\n", flush=True)
    wide = further_table(curves_of(learned, seeds[0], WITH_PRIORS), WITH_PRIORS)
    print(*wide, sep="\n", flush=True)
    unseen = further_table(curves_of(learned, seeds[0], UNSEEN), UNSEEN)
    print(*unseen, sep="\n", flush=True)
    found = [curves_of(learned, seeds[0]), curves_of(auto, seeds[1]) if seeds[1] else {},
             of_emcee(seeds[2]) if seeds[2] else {}]
    some = f"{seeds[0]}, {seeds[1]} and {seeds[2]}"
    calls = calls_table(found)
    write(chosen.folder / "costly.md", "\n".join([
        heading("Calls of a costly density", "python -m bench.costly", chosen),
        f"Of {some} seeds. Calls after which the root mean square error, over seeds and "
        "coordinates, of means and of standard deviations stays below that of 400 independent "
        "draws.\n", calls[0], calls[1] + "\n",
        "## Densities on which nothing was tuned\n", unseen[0], unseen[1] + "\n",
        "## Nine more (see `bench/costly/further.py`)\n", further[0], further[1] + "\n",
        "## Wide priors, from which the chains start\n", wide[0], wide[1] + "\n"]))


if __name__ == "__main__":
    sys.exit(main())
