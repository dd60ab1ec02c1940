"""Is what a run says true? Every sampler and coupling on posteriors with exact moments.

    python -m bench.validation [--quick] [--sampler WORD ...] [--posterior WORD ...]
    python -m bench.validation bias [--quick]
    python -m bench.validation table [--quick]

Four chains from points twice as wide as the posterior. Then the bias of each schedule at long run
lengths, for samplers that go on learning. Each run is a line of validation.jsonl beside the tables;
what is there is left out, unless --again, so that a call goes on where an earlier one has ended.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from bench.papers.record import commit, heading, write
from bench.validation.posteriors import POSTERIORS
from bench.validation.report import bias, report
from bench.validation.runs import contenders, run
from fastkam.schedules import SCHEDULES

DRAWS, SEEDS = (10_000, 2000), (10, 1)          # in full, quick: draws of a chain, seeds
LONG, LONG_SEEDS = (250_000, 40_000), (10, 2)
LEARNERS = ("ram", "am", "rbam", "arwm", "cholam", "dram", "kam", "kpca", "ckam", "barker",
            "automala", "fishermala", "gadrwm", "dm", "pt", "jumps")
EDGES = ("half normal: a hard bound, d = 2", "banana, d = 2",
         "two normals 4 apart, weights 3 and 7, d = 2")
KEY = ("sampler", "posterior", "seed", "schedule", "draws")


def read(path):
    """All runs in the file; of those made again the last."""
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else []
    return {tuple(row[name] for name in KEY): row for row in rows}


def plan(chosen):
    """The runs to be made, as values of KEY, seed by seed."""
    quick, found = int(chosen.quick), contenders()
    is_bias = chosen.what == "bias"
    samplers = [name for name in (LEARNERS if is_bias else found) if wanted(name, chosen.sampler)]
    names = [name for name in (EDGES if is_bias else POSTERIORS) if wanted(name, chosen.posterior)]
    seeds = chosen.seeds or (LONG_SEEDS if is_bias else SEEDS)[quick]
    draws = (LONG if is_bias else DRAWS)[quick]
    for seed in range(chosen.seed, chosen.seed + seeds):
        for sampler in samplers:
            for name in names:
                for schedule in SCHEDULES if is_bias else ("finite",):
                    yield sampler, name, seed, schedule, draws


def wanted(name, words):
    return any(word in name for word in words)


def measure(chosen, path):
    """Make the runs that are not in the file, and append them to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made, found = {} if chosen.again else read(path), contenders()
    posteriors = {}
    for key in plan(chosen):
        if key in made:
            continue
        sampler, name, seed, schedule, draws = key
        if name not in posteriors:
            posteriors[name] = POSTERIORS[name]()
        known = posteriors[name]
        row = run(known, found[sampler](known), seed, draws, schedule)
        with path.open("a") as file:
            file.write(json.dumps(dict(zip(KEY, key, strict=True)) | {"commit": commit()} | row)
                       + "\n")
        print(*key, *(row.get(k) for k in ("r_hat", "ess", "failed")), sep=" | ", flush=True)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("runs", "bias", "table"), default="runs")
    parser.add_argument("--quick", action="store_true",
                        help="one seed or two, fewer draws; results go to results-quick")
    for option in ("--sampler", "--posterior"):
        parser.add_argument(option, nargs="+", metavar="WORD", default=[""],
                            help="those with one of these words in their name")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, help="how many")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    return parser.parse_args()


def main():
    chosen = parsed()
    np.seterr(all="ignore")
    folder = Path(__file__).parents[1] / ("results-quick" if chosen.quick else "results")
    files = {"runs": folder / "validation.jsonl", "bias": folder / "validation-bias.jsonl"}
    if chosen.what != "table":
        measure(chosen, files[chosen.what])
    rows, long = (list(read(path).values()) for path in files.values())
    text = heading("Is what a run says true?", "python -m bench.validation", chosen)
    if rows:
        text += f"\nFour chains of {rows[0]['draws']:,} draws.\n\n" + report(rows)
    if long:
        text += (f"\n## Bias of schedules\n\nFour chains of {long[0]['draws']:,} draws: the worst "
                 "mean error over seeds, in exact standard deviations (and in its Monte Carlo "
                 "standard errors, of which chance makes up to 4).\n\n" + bias(long))
    write(folder / "validation.md", text)


if __name__ == "__main__":
    main()
