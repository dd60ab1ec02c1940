"""Overhead of packages in a call of a Python density."""

import numpy as np

from bench.papers.record import table

FORMS = {"python": "one point", "many": "64 points", "gradient": "with gradient"}
REFERENCE = {"python": "ram", "many": "ram, 64 chains", "gradient": "nuts, one chain"}
COLUMNS = ["package", "sampler", "the density takes", "bare calls above one",
           "ns above the bare call", "ns of the bare call", "times fastkam's"]


def measure(contest, options):
    seeds = range(options.seed, options.seed + (1 if options.quick else 3))
    answers = contest.rounds("overhead", "overhead", seeds, budget=1 if options.quick else 2)
    rows = []
    for package, name, info in contest.entrants("overhead"):
        if (package, name) not in answers:
            continue
        mine = answers[package, name]
        calls = np.array([answer["calls"] for answer in mine])
        ours = answers.get(("fastkam", REFERENCE[info["kind"]]))
        ratio = "" if ours is None else (
            f"{np.median(calls / [answer['calls'] for answer in ours]):.3g}")
        rows.append([package, name, FORMS[info["kind"]], f"{np.median(calls):.3g}",
                     f"{np.median([answer['above'] for answer in mine]):,.0f}",
                     f"{np.median([answer['bare'] for answer in mine]):,.0f}", ratio])
    rows += contest.missing("overhead", len(COLUMNS))
    return (
        "What an evaluation costs above the bare call, -x'x/2 in two dimensions: everything a step "
        "does is in it, proposal and storing too. The unit is the bare call in the same process, "
        "made in turns with the runs: a processor that is slower for a while is slower for both, "
        "and so is another version of numpy. Nanoseconds of CPU stand beside it. Evaluations are "
        "counted. Chains or walkers: 64 for ensembles and for densities of 64 points at once. The "
        "last column divides the units by those of fastkam's "
        f"{', '.join(f'`{name}`' for name in REFERENCE.values())}. Medians; rounds: "
        f"{len(seeds)}.\n\n"
    ) + table(COLUMNS, rows)
