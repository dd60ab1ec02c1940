"""Rates of the verdict "wrong", on runs whose truth is known.

    python -m bench.verdict [--quick] [--seeds N] [--only PART]

Pairs of a target with known moments and a sampler, half of them traps (`cases.py`). A run is wrong
where a mean or a standard deviation is off by more than 5 of the Monte Carlo standard errors that
its summary states; right where none is, and none by more than 0.1 true standard deviations; and
rough where its stated errors are so large that it is within them and further off. Flagged is a run
whose verdict is not ok. Thresholds were set on the pairs of one half, which the name decides.

Seeds are made one after the other, until --seconds have passed. With the variable
FASTKAM_VERDICT_RUNS the runs are kept in that file, and a second call continues.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.papers.record import heading, options, table, write
from bench.verdict.bias import bias_text
from bench.verdict.cases import CASES
from bench.verdict.cost import cost_text
from bench.verdict.runs import SCOUTED, judge, kind_of

SEEDS, AT_ONCE = 5, 16
KEPT = "FASTKAM_VERDICT_RUNS"
COMMAND = "python -m bench.verdict"
FILE = Path(__file__).parents[1] / "verdict.py"  # results are in bench/results
RULES = {"R-hat <= 1.01, ESS >= 400, no divergences": lambda run: not run["usual"],
         "verdict()": lambda run: run["status"] != "ok",
         f"verdict(evaluations={SCOUTED})": lambda run: run["scouted"] != "ok"}


def rate(runs, rule):
    """12 of 40 (30 %)"""
    if not runs:
        return "-"
    n = sum(map(rule, runs))
    return f"{n} of {len(runs)} ({100 * n / len(runs):.1f} %)"


def rates(runs):
    """The table of a set of runs: a row a rule, a column a kind of run."""
    by_kind = {kind: [run for run in runs if kind_of(run) == kind]
               for kind in ("wrong", "right", "rough")}
    within = by_kind["right"] + by_kind["rough"]
    return table(["flagged by", "wrong", "right", "rough", "right or rough"],
                 [[name, *(rate(some, rule) for some in (*by_kind.values(), within))]
                  for name, rule in RULES.items()])


def case_rows(runs):
    """A row a pair."""
    rows = []
    for name, case in CASES.items():
        some = [run for run in runs if run["name"] == name]
        if not some:
            continue
        kinds = Counter(kind_of(run) for run in some)
        said = Counter(kind for run in some for kind in set(run["scouted_kinds"]))
        rows.append([
            name, case.group, case.half,
            ", ".join(f"{kinds[kind]} {kind}" for kind in ("wrong", "right", "rough")
                      if kinds[kind]),
            f"{min(run['z'] for run in some):.1f} to {max(run['z'] for run in some):.1f}",
            *(f"{sum(map(rule, some))}" for rule in RULES.values()),
            ", ".join(f"{kind} {n}" for kind, n in said.most_common()) or "-"])
    return rows


def group_rows(runs):
    """A row a trap: how many wrong runs, and how many of them each rule flags."""
    rows = []
    for group in dict.fromkeys(case.group for case in CASES.values()):
        some = [run for run in runs if run["group"] == group]
        wrong = [run for run in some if kind_of(run) == "wrong"]
        rows.append([group, f"{len({run['name'] for run in some})}", f"{len(some)}",
                     *(rate(wrong, rule) for rule in RULES.values())])
    return rows


def gathered(seeds, seconds):
    """All runs, a seed of every pair after the other, as far as there is time.

    Where the variable names a file, those that are in it are not made again, and new ones are
    added.
    """
    path, begun = os.environ.get(KEPT), time.monotonic()
    lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
    runs = [json.loads(line) for line in lines]
    done = {(run["name"], run["seed"]) for run in runs}
    jobs = [(name, seed) for seed in seeds for name in CASES if (name, seed) not in done]
    with ProcessPoolExecutor(2) as pool:
        for start in range(0, len(jobs), AT_ONCE):
            if time.monotonic() - begun > seconds:
                break
            for run in pool.map(judge, *zip(*jobs[start : start + AT_ONCE], strict=True)):
                runs.append(run)
                print(json.dumps(run), flush=True)
                if path:
                    with open(path, "a") as file:
                        file.write(json.dumps(run) + "\n")
    return runs


def verdicts(chosen):
    """The text of the results file."""
    seeds = range(chosen.seed, chosen.seed + (1 if chosen.quick else chosen.seeds))
    runs = gathered(seeds, chosen.seconds)
    halves = {half: [run for run in runs if run["half"] == half] for half in ("kept", "set")}
    pairs = {half: len({run["name"] for run in some}) for half, some in halves.items()}
    return [
        heading("Verdicts on runs of which the truth is known", f"{COMMAND} --only verdicts",
                chosen),
        __doc__.split("\n\n")[2].strip(),
        f"\n## The half that was kept for this report: {pairs['kept']} pairs\n",
        rates(halves["kept"]),
        f"## The half on which thresholds were set: {pairs['set']} pairs\n",
        rates(halves["set"]), "## All\n", rates(runs),
        "## The default call: a density and a start, or a prior, and nothing else\n",
        rates([run for run in runs if CASES[run["name"]].is_default]),
        "## Wrong runs by trap, and how many are flagged\n",
        table(["trap", "pairs", "runs", *RULES], group_rows(runs)),
        "## Each pair\n\nz is the worst error of a run in its stated standard errors, from the "
        "best seed to the worst; then the runs that each rule flags, and the findings of the "
        "last.\n",
        table(["pair", "trap", "half", "runs", "z", "R-hat, ESS, divergences", "verdict",
               "scouted", "findings"], case_rows(runs))]


def main():
    chosen = options(FILE, __doc__, quick="one seed", only=("verdicts", "bias", "cost"),
                     seeds=SEEDS)
    if chosen.only in (None, "verdicts"):
        write(chosen.folder / "verdict.md", "\n".join(verdicts(chosen)))
    for part, title, text in (("bias", "The bias of stopping by a rule", bias_text),
                              ("cost", "The cost of verdicts", cost_text)):
        if chosen.only in (None, part):
            top = heading(title, f"{COMMAND} --only {part}", chosen)
            write(chosen.folder / f"verdict_{part}.md", "\n".join([top, text(chosen.quick)]))


if __name__ == "__main__":
    main()
