"""The first answer of other packages and of fastkam: `python -m bench.first_answer.peers`.

`python -m bench.peers.environments emcee pints pymc` builds their environments first. Each package
is called as its own first example does (`peer_job.py`) on the same forty densities; a run is right
where every mean and standard deviation is within a tenth of the standard deviation of the truth.
"""

import json
import os
import subprocess
from pathlib import Path

from bench.first_answer.densities import CASES
from bench.first_answer.peer_job import PEERS
from bench.papers.record import heading, options, table, write
from bench.peers.environments import ROOT, python_of

FILE = Path(__file__).parents[1] / "samplers.py"  # results are in bench/results


def runs_of(peer, seeds):
    """The runs of one package, a dict each."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [python_of(peer), "-m", "bench.first_answer.peer_job", peer, str(seeds)],
        cwd=ROOT, env=os.environ | one_thread, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def counted(runs):
    """Return the counts of runs: right / not, with / without a warning; or why there are none."""
    made = [run for run in runs if "right" in run]
    if not made:
        return runs[0]["reason"]
    right = sum(run["right"] for run in made)
    told = sum(run["told"] and not run["right"] for run in made)
    return f"{right} / {told} / {len(made) - right - told}"


def thousands(runs):
    """The median of evaluations, in thousands."""
    made = sorted(run["evaluations"] for run in runs if "right" in run)
    return f"{made[len(made) // 2] / 1000:,.0f}" if made else ""


def main():
    chosen = options(FILE, __doc__, quick="one seed")
    seeds = 1 if chosen.quick else 3
    found = {peer: runs_of(peer, seeds) for peer in PEERS}
    rows = []
    for name in CASES:
        row = [name]
        for runs in found.values():
            some = [run for run in runs if run["name"] == name]
            row += [counted(some), thousands(some)]
        rows.append(row)
    totals = ["all"]
    for runs in found.values():
        totals += [counted(runs), thousands(runs)]
    failed = {(run["name"], peer, run["reason"]) for peer, runs in found.items() for run in runs
              if "right" in run and "reason" in run}
    columns = ["density", *(text for peer in PEERS for text in (peer, "1000 evaluations"))]
    errors = ["Runs that ended with an error:\n",
              table(["density", "package", "error"], [list(one) for one in sorted(failed)])]
    write(chosen.folder / "first_answer_peers.md", "\n".join([
        heading("The first answer, and that of others", "python -m bench.first_answer.peers",
                chosen),
        f"Of {seeds} seeds: right (each mean and standard deviation within a tenth of the standard "
        "deviation of the truth) / not, and said / wrong without a word.\n",
        table(columns, [*rows, totals]), *(errors if failed else [])]))


if __name__ == "__main__":
    main()
