"""log evidence where it is known: coverage of the intervals, and the same by nested samplers.

    FASTKAM_NESTED=ENVIRONMENT/bin/python python -m bench.evidence [--only PART] [--seeds N]

Each density of `densities.py` by `fk.sample(loglike, prior=prior, seed=seed)` and
`result.log_evidence()`, with nothing else. Its calls are all evaluations of the likelihood, those
of the search and of the bridge included. Where the variable names an environment, the same
likelihoods and priors go to dynesty, nautilus, UltraNest and pocoMC with their defaults, one seed
each, 60 s of CPU time at most.
"""

import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import fastkam as fk
from bench.evidence.densities import CASES
from bench.evidence.nested import PACKAGES, ROOT, answer
from bench.papers.record import heading, options, table, write

FILE = ROOT / "bench" / "samplers.py"  # results stand in bench/results
SEEDS, SEEDS_BESIDE, SECONDS = 100, 5, 60
COMMAND = "python -m bench.evidence"
LEVELS = {"95 %": 1.96, "68 %": 1.0}


def ours(name, seed):
    """What a run of fastkam has found."""
    case, begun = CASES[name](), time.process_time()
    result = fk.sample(case.loglike, prior=case.prior, vectorized=True, seed=seed, threads=1,
                       progress=False)
    found = result.log_evidence()
    return {"value": found.value, "error": found.error, "notes": len(found.notes),
            "calls": result.evaluations + found.evaluations, "k_hat": found.k_hat,
            "seconds": time.process_time() - begun,
            "frozen": found.estimates.get("bridge sampling with the run's own q")}


def runs_of(package, name, seeds, seconds):
    """What the runs of a package on a density have found, one a seed."""
    warnings.simplefilter("ignore")
    if package != "fastkam":
        return [answer(package, name, seeds[0], SECONDS)]
    found, begun = [], time.process_time()
    for seed in seeds:
        if time.process_time() - begun > seconds:
            break
        found.append(ours(name, seed))
    return found


def gathered(packages, seeds, seconds):
    """{(package, name): answers}"""
    with ProcessPoolExecutor(2) as pool:
        futures = {(package, name): pool.submit(runs_of, package, name, seeds, seconds)
                   for package in packages for name in CASES}
        found = {}
        for (package, name), future in futures.items():
            found[package, name] = future.result()
            print(package, name, json.dumps(found[package, name]), flush=True)
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


def cell(truth, runs):
    """|error| and calls of a package on a density."""
    done = [run for run in runs if "value" in run]
    if not done:
        return runs[0]["failed"]
    off = np.sqrt(np.mean([(run["value"] - truth) ** 2 for run in done]))
    return (f"{off:.3f} ({np.median([run['error'] for run in done]):.3f}), "
            f"{np.median([run['calls'] for run in done]):,.0f}")


def comparison_row(name, truth, found):
    """A density's row in the second table."""
    row = [name]
    for package in ("fastkam", *PACKAGES):
        row.append(cell(truth, found[package, name]) if (package, name) in found else "-")
    good = [np.median([run["calls"] for run in runs]) for (package, of), runs in found.items()
            if of == name and package != "fastkam" and all("value" in run for run in runs)]
    calls = np.median([run["calls"] for run in found["fastkam", name]])
    return [*row, f"{min(good) / calls:.2f}" if good else "-"]


def main():
    chosen = options(FILE, __doc__, quick="five seeds", only=("coverage", "others"), seeds=SEEDS)
    seeds = range(chosen.seed, chosen.seed + (5 if chosen.quick else chosen.seeds))
    if chosen.only == "others":
        seeds = seeds[:SEEDS_BESIDE]
    others = () if chosen.only == "coverage" else tuple(PACKAGES)
    found = gathered(("fastkam", *others), seeds, chosen.seconds)
    truths = {name: make().truth for name, make in CASES.items()}
    covered = np.mean([abs(run["value"] - truths[name]) < 1.96 * run["error"]
                       for name in CASES for run in found["fastkam", name]])
    part = f" --only {chosen.only}" if chosen.only else ""
    text = [
        heading("log evidence", COMMAND + part, chosen),
        __doc__.split("\n\n")[2].strip(),
        f"\n## Coverage\n\nUp to {len(seeds)} seeds each, as many as there was time for. Calls "
        "are medians. Nominal intervals of 95 % have the truth in "
        f"{100 * covered:.1f} % of all runs. z is the error in standard errors; \"notes\" are runs "
        "with a note on what speaks against the value, and how many of those outside of their 95 % "
        "interval have one. The last column is the coverage of the bridge with the run's own q, "
        "without further evaluations.\n",
        table(["density", "truth", "seeds", *LEVELS, "rms z", "rms error", "mean error",
               "largest z", "calls", "notes", "outside, with notes", "own q, 95 %"],
              [coverage_row(name, truths[name], found["fastkam", name]) for name in CASES])]
    if chosen.only != "coverage":
        text += [
            "## Beside nested samplers\n\nRoot mean square error (in brackets the standard error "
            "that the package states, median) and calls of the likelihood, median. The last column "
            "is the fewest calls of another package over those of fastkam, whatever its error.\n",
            table(["density", "fastkam", *PACKAGES, "calls, fewest of others / fastkam"],
                  [comparison_row(name, truths[name], found) for name in CASES])]
    name = f"evidence_{chosen.only}.md" if chosen.only else "evidence.md"
    write(chosen.folder / name, "\n".join(text))


if __name__ == "__main__":
    main()
