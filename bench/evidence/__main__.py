"""log evidence where it is known: coverage of the intervals, and the same by nested samplers.

    FASTKAM_NESTED=ENVIRONMENT/bin/python python -m bench.evidence [--only PART] [--seeds N]

Each density of `densities.py` by `fk.sample(loglike, prior=prior, seed=seed)` and
`result.log_evidence()`, with nothing else. Its calls are all evaluations of the likelihood, those
of the search and of the bridge included. Where the variable names an environment, the same
likelihoods and priors go to dynesty, nautilus, UltraNest and pocoMC, whose settings are in
`nested.py`, 90 s of CPU time at most for a run. With FASTKAM_NESTED_RUNS their results are kept in
that file, and a second call continues.
"""

import json
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.evidence.densities import CASES
from bench.evidence.nested import NOT_RUN, PACKAGES, ROOT, answer
from bench.papers.record import heading, options, table, write

FILE = ROOT / "bench" / "samplers.py"  # results are in bench/results
SEEDS, SEEDS_BESIDE, SECONDS = 100, 8, 90
ENOUGH = 0.02       # the root mean square error that is compared
BUDGETS = 4000, 8000, 16_000, 32_000, None  # evaluations of a run; None: as many as it likes
KEPT = "FASTKAM_NESTED_RUNS"
COMMAND = "python -m bench.evidence"
LEVELS = {"95 %": 1.96, "68 %": 1.0}


def ours(name, seed, budget=None):
    """Return the result of a run of fastkam, with at most `budget` evaluations if given."""
    case, begun = CASES[name](), time.process_time()
    stop = None if budget is None else fk.stop.Evaluations(budget)
    result = fk.sample(case.loglike, prior=case.prior, vectorized=True, seed=seed, threads=1,
                       stop=stop, progress=False)
    found = result.log_evidence()
    return {"value": found.value, "error": found.error, "notes": len(found.notes),
            "calls": int(result.evaluations + found.evaluations), "k_hat": found.k_hat,
            "seconds": time.process_time() - begun,
            "frozen": found.estimates.get("bridge sampling with the run's own q")}


def runs_of(name, seeds, seconds):
    """Return the results of runs of fastkam on a density, one for each seed."""
    warnings.simplefilter("ignore")
    found, begun = [], time.process_time()
    for seed in seeds:
        if time.process_time() - begun > seconds:
            break
        found.append(ours(name, seed))
    return found


def cheapest(name, seeds):
    """(budget, runs) of the smallest budget whose root mean square error is small enough.

    Those of the last budget where none is.
    """
    warnings.simplefilter("ignore")
    truth = CASES[name]().truth
    for budget in BUDGETS:
        runs = [ours(name, seed, budget) for seed in seeds]
        if rms(truth, runs) <= ENOUGH:
            break
    return budget, runs


def rms(truth, runs):
    return float(np.sqrt(np.mean([(run["value"] - truth) ** 2 for run in runs])))


def of_others(seeds):
    """{(package, name): results} of other packages, in one process at a time."""
    path = os.environ.get(KEPT)
    lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
    kept = {(one["package"], one["case"], one["seed"]): one["answer"]
            for one in map(json.loads, lines)}
    found = {}
    for seed in seeds:
        for name in CASES:
            for package in PACKAGES:
                key = package, name, seed
                if key not in kept:
                    kept[key] = answer(package, name, seed, SECONDS)
                    line = json.dumps(dict(zip(("package", "case", "seed"), key, strict=True),
                                           answer=kept[key]))
                    print(line, flush=True)
                    if path and kept[key] != {"failed": NOT_RUN}:
                        with open(path, "a") as file:
                            file.write(line + "\n")
                found.setdefault((package, name), []).append(
                    kept[key] or {"failed": f"> {SECONDS} s"})
    return found


def coverage_row(name, truth, runs):
    """A density's row in the first table."""
    off = np.array([run["value"] - truth for run in runs])
    z = off / [run["error"] for run in runs]
    frozen = [run["frozen"] for run in runs if run["frozen"]]
    own = np.mean([abs(v - truth) < 1.96 * e for v, e in frozen]) if frozen else np.nan
    said = np.array([run["notes"] > 0 for run in runs])
    wrong = np.abs(z) > 1.96
    return [name, f"{truth:.3f}", str(len(runs)), *(f"{100 * np.mean(np.abs(z) < most):.0f} %"
                                    for most in LEVELS.values()),
            f"{np.sqrt(np.mean(z**2)):.2f}", f"{np.sqrt(np.mean(off**2)):.4f}",
            f"{np.mean(off):+.4f}", f"{np.abs(z).max():.1f}",
            f"{np.median([run['calls'] for run in runs]):,.0f}", f"{said.sum()}",
            f"{(wrong & said).sum()} of {wrong.sum()}",
            "-" if not frozen else f"{100 * own:.0f} %"]


def calls_needed(run):
    """The calls after which the error that a run states is small enough.

    Errors of nested sampling, and of the draws after it, fall as 1 / sqrt(calls); fewer calls than
    those of the run are not counted, which most of them need to find the density.
    """
    return run["calls"] * max(1.0, run["error"] / ENOUGH) ** 2


def cell(truth, runs):
    """|error|, the stated one, and calls of another package on a density."""
    done = [run for run in runs if "value" in run]
    if not done:
        return runs[0]["failed"]
    return (f"{rms(truth, done):.3f} ({np.median([run['error'] for run in done]):.3f}), "
            f"{np.median([run['calls'] for run in done]):,.0f}")


def comparison_row(name, truth, budget, runs, others):
    """A density's row in the second table."""
    calls = float(np.median([run["calls"] for run in runs]))
    off = rms(truth, runs)
    row = [name, f"{off:.3f} ({np.median([run['error'] for run in runs]):.3f}), {calls:,.0f}",
           "default" if budget is None else f"{budget:,}"]
    row += [cell(truth, others[package, name]) for package in PACKAGES]
    needed = {package: np.median([calls_needed(run) for run in others[package, name]])
              for package in PACKAGES if all("value" in run for run in others[package, name])}
    if not needed or off > ENOUGH:
        return [*row, "-" if not needed else min(needed, key=needed.get),
                "-" if not needed else f"{min(needed.values()):,.0f}",
                "-" if not needed else "not reached"]
    best = min(needed, key=needed.get)
    return [*row, best, f"{needed[best]:,.0f}", f"{needed[best] / calls:.1f}"]


def coverage(chosen, pool, seeds):
    """The first table."""
    futures = {name: pool.submit(runs_of, name, seeds, chosen.seconds) for name in CASES}
    found, truths = {}, {}
    for name, future in futures.items():
        found[name], truths[name] = future.result(), CASES[name]().truth
        print(name, json.dumps(found[name]), flush=True)
    covered = np.mean([abs(run["value"] - truths[name]) < 1.96 * run["error"]
                       for name in CASES for run in found[name]])
    return [
        f"\n## Coverage\n\nUp to {len(seeds)} seeds each, as many as there was time for. Calls "
        "are medians. Nominal intervals of 95 % have the truth in "
        f"{100 * covered:.1f} % of all runs. z is the error in standard errors; \"notes\" are runs "
        "with a note that gives a reason to doubt the value, and how many of those outside of "
        "their 95 % interval have one. The last column is the coverage of the bridge with the "
        "run's own q, without further evaluations.\n",
        table(["density", "truth", "seeds", *LEVELS, "rms z", "rms error", "mean error",
               "largest z", "calls", "notes", "outside, with notes", "own q, 95 %"],
              [coverage_row(name, truths[name], found[name]) for name in CASES])]


def beside(pool, seeds, seeds_of_others):
    """The second table."""
    futures = {name: pool.submit(cheapest, name, seeds) for name in CASES}
    found = {}
    for name, future in futures.items():
        found[name] = future.result()
        print(name, *found[name], flush=True)
    others = of_others(seeds_of_others)
    rows = [comparison_row(name, CASES[name]().truth, *found[name], others) for name in CASES]
    return [
        "\n## Beside nested samplers\n\nRoot mean square error (in brackets the median of the "
        "standard errors that the package states) and median calls of the likelihood. fastkam: "
        f"`stop=fk.stop.Evaluations(n)` with the smallest n of {BUDGETS[0]:,}, 8,000, 16,000, "
        f"32,000 and the default, after which the error of {len(seeds)} seeds is at most {ENOUGH}; "
        f"others: {len(seeds_of_others)} seed(s). \"Needed\" is how many calls the best of them "
        "needs, those of its run times (stated error / 0.02)^2 where that is above 1; the last "
        f"column is that over the calls of fastkam. \"> {SECONDS} s\" is more CPU time than "
        "a run was given.\n",
        table(["density", "fastkam", "n", *PACKAGES, "best of these", "needed",
               "needed / calls of fastkam"], rows)]


def main():
    chosen = options(FILE, __doc__, quick="five seeds", only=("coverage", "others"), seeds=SEEDS)
    seeds = range(chosen.seed, chosen.seed + (5 if chosen.quick else chosen.seeds))
    part = f" --only {chosen.only}" if chosen.only else ""
    text = [heading("log evidence", COMMAND + part, chosen), __doc__.split("\n\n")[2].strip()]
    with ProcessPoolExecutor(2) as pool:
        if chosen.only != "others":
            text += coverage(chosen, pool, seeds)
        if chosen.only != "coverage":
            text += beside(pool, seeds[:SEEDS_BESIDE], range(1, 2))
    name = f"evidence_{chosen.only}.md" if chosen.only else "evidence.md"
    write(chosen.folder / name, "\n".join(text))


if __name__ == "__main__":
    main()
