"""What a package adds to a call of a Python density."""

import numpy as np

from bench.papers.record import table

FORMS = {"python": "one point", "many": "64 points", "gradient": "with gradient"}
REFERENCE = {"python": "ram", "many": "ram, 64 chains", "gradient": "nuts, one chain"}


def measure(contest, options):
    seeds = range(options.seed, options.seed + (1 if options.quick else 3))
    answers = contest.rounds("overhead", "overhead", seeds, budget=1 if options.quick else 2)
    rows = []
    for package, name, info in contest.entrants("overhead"):
        if (package, name) not in answers:
            continue
        mine = answers[package, name]
        above = np.array([answer["above"] for answer in mine])
        ours = answers.get(("fastkam", REFERENCE[info["kind"]]))
        ratio = "" if ours is None else (
            f"{np.median(above / [answer['above'] for answer in ours]):.3g}")
        rows.append([package, name, FORMS[info["kind"]], f"{np.median(above):,.0f}",
                     f"{np.median([answer['bare'] for answer in mine]):,.0f}", ratio])
    return (
        "Nanoseconds of CPU an evaluation above those of the bare call, -x'x/2 in two dimensions: "
        "everything a step does is in it, proposal and storing too. Evaluations are counted. "
        "Chains or walkers: 64 for ensembles and for densities of 64 points at once. The last "
        f"column divides by fastkam's {', '.join(f'`{name}`' for name in REFERENCE.values())}, in "
        f"the same round. Medians; rounds: {len(seeds)}.\n\n"
    ) + table(["package", "sampler", "the density takes", "ns above the bare call",
               "the bare call", "times fastkam's"], rows)
