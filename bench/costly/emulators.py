"""Calls and errors of packages that emulate a costly density: GPry and PyVBMC.

`python -m bench.costly.emulators [--quick] [--seeds N]`, with the packages in their environments
(`python -m bench.peers.environments gpry pyvbmc`). A package whose environment does not exist is
left out. GPry, which takes minutes a run, has one seed, in up to four dimensions. Each run of a
package is a line of costly_emulators.jsonl beside the table; what is there is not run again.

An error of 1 is that of 400 independent draws: the root mean square error over coordinates, of
means or of standard deviations, whichever is larger. The learned surrogate makes all of its 2000
calls. A run is wrong if a mean is off by more than 0.2 standard deviations, or a standard deviation
by more than 20 %; a wrong run is silent if it gives no warning, or says that it has converged.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bench.costly.densities import CASES
from bench.costly.runs import Curve, learned, squares_of
from bench.papers.record import heading, options, table, write
from bench.peers.environments import python_of
from bench.peers.launch import PeerError, command

FILE = Path(__file__).parents[1] / "samplers.py"        # results are in bench/results
PACKAGES = ("pyvbmc", "gpry")
SEEDS, WORKERS = 3, 2
MOST_SEEDS, MOST_D = {"gpry": 1}, {"gpry": 4}           # GPry takes minutes a run
SECONDS = 1200                                          # after which a run is ended
WRONG = 0.2


def run(package, name, seed):
    """Return a dictionary with the result, or with the error, of one run."""
    try:
        said = command(python_of(package), "-m", "bench.costly.emulator_job", json.dumps(
            {"package": package, "posterior": name, "seed": seed}), timeout=SECONDS)
    except PeerError as error:
        return {"error": str(error)}
    return json.loads(said.splitlines()[-1])


def runs_of(packages, seeds, path):
    """Return {(package, posterior): runs}, made by two processes where the file does not have them.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    made = {(row["package"], row["posterior"], row["seed"]): row for row in rows}
    wanted = [(package, name, seed + 1) for package in packages for name, case in CASES.items()
              if case.d <= MOST_D.get(package, case.d)
              for seed in range(min(seeds, MOST_SEEDS.get(package, seeds)))]
    missing = [key for key in wanted if key not in made]
    with ThreadPoolExecutor(WORKERS) as pool:
        for key, row in zip(missing, pool.map(lambda key: run(*key), missing), strict=True):
            made[key] = dict(zip(("package", "posterior", "seed"), key, strict=True)) | row
            with path.open("a") as file:
                file.write(json.dumps(made[key]) + "\n")
            print(*key, row.get("calls", row.get("error")), sep=" | ", flush=True)
    found = {}
    for key in wanted:
        found.setdefault(key[:2], []).append(made[key])
    return found


def of_fastkam(name, seed):
    """Return what `run` returns, and the curve, of a run with a learned surrogate."""
    begun = os.times()
    curve = learned(name, seed)
    ended = os.times()
    return {"calls": int(curve.calls[-1]), "mean": curve.mean[-1], "sd": curve.sd[-1],
            "converged": not curve.told, "curve": curve,
            "seconds": ended.user + ended.system - begun.user - begun.system}


def error_of(made, case, fourth):
    """The error of one run, in units of that of 400 independent draws."""
    one = Curve([made["calls"]], np.array([made["mean"]]), np.array([made["sd"]]))
    return float(np.sqrt(max(squares.max() for squares in squares_of(one, case, fourth))))


def wrong(made, case):
    off = np.abs(np.array(made["mean"]) - case.mean) / case.sd
    return off.max() > WRONG or np.abs(np.array(made["sd"]) / case.sd - 1).max() > WRONG


def cells(runs, case, fourth):
    """Return the columns of one package: calls, error, wrong and silent runs, and seconds."""
    done = [one for one in runs if "error" not in one]
    if not done:
        return ["-", runs[0]["error"][:60] if runs else "", "", ""]
    errors = [error_of(one, case, fourth) for one in done]
    off = [one for one in done if wrong(one, case)]
    silent = sum(one["converged"] for one in off)
    return [f"{np.median([one['calls'] for one in done]):,.0f}",
            f"{np.median(errors):.2f}" + (f" (most {max(errors):.1f})" if len(done) > 1 else ""),
            f"{len(off)} of {len(done)}" + (f", {silent} silent" if off else ""),
            f"{np.median([one['seconds'] for one in done]):.0f}"]


def total(package, found):
    """A sentence on all runs of a package, from {(package, posterior): runs}."""
    done = [(one, CASES[name]) for (of, name), runs in found.items() if of == package
            for one in runs if "error" not in one]
    off = [one for one, case in done if wrong(one, case)]
    return (f"{package}: {len(done)} runs, {len(off)} of them wrong, "
            f"{sum(one['converged'] for one in off)} of these silent.")


def main():
    chosen = options(FILE, __doc__, quick="one seed", seeds=SEEDS)
    seeds = 1 if chosen.quick else chosen.seeds
    packages = [one for one in PACKAGES if Path(python_of(one)).exists()]
    found = runs_of(packages, seeds, chosen.folder / "costly_emulators.jsonl")
    rows, columns = [], ["posterior", "d"]
    for name, case in CASES.items():
        ours = found["fastkam", name] = [of_fastkam(name, seed) for seed in range(seeds)]
        fourth = np.maximum(np.median([one["curve"].fourth for one in ours], axis=0), 1.5)
        rows.append([name, str(case.d)])
        for package in ("fastkam", *packages):
            rows[-1] += cells(found.get((package, name), []), case, fourth)
        print(*rows[-1], sep=" | ", flush=True)
    for package in ("fastkam", *packages):
        columns += [f"{package}: calls", "error", "wrong", "CPU s"]
    write(chosen.folder / "costly_emulators.md", "\n".join([
        heading("Packages that emulate a costly density", "python -m bench.costly.emulators",
                chosen),
        " ".join(__doc__.split("\n\n")[2].split()) + "\n",
        " ".join(total(package, found) for package in ("fastkam", *packages)) + "\n",
        table(columns, rows)]))


if __name__ == "__main__":
    main()
