"""Posteriors that people meet: evaluations to ESS 400, and whether the moments are right.

    python -m bench.posteriors [--quick] [--only default ours emcee nutpie] [--posterior WORD ...]
    python -m bench.posteriors references
    python -m bench.posteriors table

Each posterior without and with its gradient by `fk.sample(f, x0)`, by each sampler of ours, by
emcee's DEMove and by nutpie (`python -m bench.peers.environments emcee nutpie` installs them). Each
run is a line of posteriors.jsonl beside the tables; what is there is left out, unless --again.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from bench.papers.record import commit, heading, write
from bench.peers.launch import PeerError
from bench.posteriors import peers, references, runs
from bench.posteriors.densities import POSTERIORS
from bench.posteriors.report import report

PARTS = ("default", "ours", "emcee", "nutpie")
# evaluations of a run without and with a gradient, and CPU seconds
MOST, MOST_QUICK = {False: 1_000_000, True: 400_000}, {False: 200_000, True: 80_000}
SECONDS, SECONDS_QUICK = 600, 30


def contenders(part, gradient):
    """Names of the samplers of a part, with the options of `fk.sample`."""
    if part == "default":
        return {"default": {}}
    if part == "ours":
        return runs.OURS[gradient]
    return {part: None} if peers.PACKAGES[gradient] == part else {}


def one_run(name, gradient, sampler, options, seed, quick):
    most = (MOST_QUICK if quick else MOST)[gradient]
    seconds = SECONDS_QUICK if quick else SECONDS
    try:
        if options is None:
            return peers.run(sampler, name, seed, most, 12 * seconds)
        return runs.run(name, gradient, seed, most, seconds, **options)
    except Exception as error:      # a fault of one sampler is a row, and the others go on
        if isinstance(error, PeerError) and "environment" in str(error):
            raise
        return {"error": f"{type(error).__name__}: {error}"}


def read(path):
    """All runs but those that failed; of those made again the last."""
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else []
    rows = [row for row in rows if "error" not in row]
    return {(row["posterior"], row["gradient"], row["sampler"], row["seed"]): row for row in rows}


def measure(chosen, path):
    """Make the runs that are not in the file, and append them to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {} if chosen.again else read(path)
    for seed in range(chosen.seed, chosen.seed + (chosen.seeds or (3 if chosen.quick else 5))):
        for part in chosen.only:
            for name in chosen.posterior:
                for gradient in POSTERIORS[name].uses:
                    for sampler, options in contenders(part, gradient).items():
                        key = {"posterior": name, "gradient": gradient, "sampler": sampler,
                               "seed": seed}
                        if tuple(key.values()) in made:
                            continue
                        row = one_run(name, gradient, sampler, options, seed, chosen.quick)
                        with path.open("a") as file:
                            file.write(json.dumps(key | {"commit": commit()} | row) + "\n")
                        print(*key.values(), *(row.get(k) for k in (
                            "evaluations", "before", "ess", "seconds",
                            "error")), sep=" | ", flush=True)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("runs", "references", "table"),
                        default="runs")
    parser.add_argument("--quick", action="store_true",
                        help="three seeds, fewer evaluations; results go to results-quick")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--posterior", nargs="+", metavar="WORD", default=[""],
                        help="those with one of these words in their name")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, help="how many")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    chosen = parser.parse_args()
    chosen.posterior = [name for name in POSTERIORS
                        if any(word in name for word in chosen.posterior)]
    return chosen


def main():
    chosen = parsed()
    np.seterr(all="ignore")
    if chosen.what == "references":
        return references.make(chosen.posterior)
    folder = Path(__file__).parents[1] / ("results-quick" if chosen.quick else "results")
    if chosen.what == "runs":
        measure(chosen, folder / "posteriors.jsonl")
    rows = list(read(folder / "posteriors.jsonl").values())
    command = "python -m bench.posteriors"
    if chosen.only != list(PARTS):
        command += f" --only {' '.join(chosen.only)}"
    text = heading("Posteriors that people meet", command, chosen) + (
        "\nThousands of evaluations of the density until the bulk ESS of every coordinate of four "
        "chains is 400, search and warm-up included; with a gradient, each evaluation returns it. "
        "Medians over seeds; in parentheses where means or standard deviations are wrong in half "
        "of the seeds or more, - where ESS 400 was not reached.\n")
    write(folder / "posteriors.md", text + report(rows, False) + report(rows, True))


if __name__ == "__main__":
    main()
