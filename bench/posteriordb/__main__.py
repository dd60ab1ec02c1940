"""The default call on posteriors of posteriordb, against its reference draws.

    python -m bench.posteriordb --data FOLDER [--quick] [--seeds N] [--posterior WORD ...]

FOLDER is a checkout of posteriordb or its folder posterior_database. Each of 25 posteriors is
written as a user would, as a log likelihood with priors, and is sampled by
`fk.sample(loglike, prior=prior, seed=seed)`, where all priors are proper, and with x0, a point at
which Stan could start. A run is right where each mean and standard deviation is within 4 standard
errors, of the run and of the reference together, or within a tenth of the standard deviation. It
says that it is not where it has warnings or its verdict is not ok. The rest are wrong without a
word.
"""

import argparse
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, table, write
from bench.posteriordb import others, regressions, series  # noqa: F401, which register
from bench.posteriordb.database import POSTERIORS, Database
from bench.posteriordb.runs import Reference, run

SEEDS = 3
FORMS = {True: "prior", False: "x0"}


def counts(records):
    """(right, not and said, wrong without a word)."""
    right, told = (np.array([one[key] for one in records], bool) for key in ("right", "told"))
    return right.sum(), (~right & told).sum(), (~right & ~told).sum()


def cells(records):
    """The columns of one form."""
    if not records:
        return ["", "", "", ""]
    off, wide = (max(one[key] for one in records) for key in ("off", "wide"))
    return [" / ".join(map(str, counts(records))),
            f"{np.median([one['evaluations'] for one in records]):,.0f}",
            f"{off:.2f}", f"{wide:.2f}"]


def headline(name, records):
    """The shares of the runs, in a line."""
    n, (right, said, silent) = len(records), counts(records)
    warned, both = (sum(one["right"] and one[key] for one in records) for key in ("told", "both"))
    right, said, silent = (f"{100 * k / n:.1f} %" for k in (right, said, silent))
    return (f"{name}, {n} runs: {right} right, {said} not and said so, {silent} wrong without a "
            f"word. Of the right ones {warned} have a warning; {both} runs are within both limits.")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, metavar="FOLDER", help="a checkout of posteriordb")
    parser.add_argument("--quick", action="store_true",
                        help="one seed; results go to results-quick")
    parser.add_argument("--posterior", nargs="+", metavar="WORD", default=[""],
                        help="those with one of these words in their name")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, help="how many")
    chosen = parser.parse_args()
    chosen.all_seeds = 1 if chosen.quick else SEEDS
    chosen.seeds = chosen.seeds or chosen.all_seeds
    return chosen


def main():
    chosen = parsed()
    np.seterr(all="ignore")
    database = Database(chosen.data)
    rows, remarks, made = [], [], {True: [], False: []}
    for name, one in POSTERIORS.items():
        if not any(word in name for word in chosen.posterior):
            continue
        loglike, options = one.make(database.data(one.data))
        problem, reference = fk.Problem(loglike, **options), Reference(*database.draws(one.draws))
        row = [name, str(problem.dim)]
        for from_prior, form in FORMS.items():
            records = []
            for seed in range(chosen.seed, chosen.seed + chosen.seeds):
                if from_prior and not problem.has_prior:
                    continue
                found = run(loglike, options, reference, seed, from_prior=from_prior)
                records.append(found)
                if found["told"] or not found["right"]:
                    remarks.append([
                        name, form, str(seed), "yes" if found["right"] else "no",
                        f"{max(found['off'], found['wide']):.2f}, {found['worst']}",
                        f"{found['evaluations']:,}",
                        ", ".join([found["status"], *found["kinds"]])])
            row += cells(records)
            made[from_prior] += records
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    command = "python -m bench.posteriordb --data FOLDER"
    if chosen.posterior != [""]:
        command += " --posterior " + " ".join(chosen.posterior)
    columns = ["right / not and said / wrong without a word", "evaluations", "error of a mean",
               "of an sd"]
    folder = Path(__file__).parents[1] / ("results-quick" if chosen.quick else "results")
    write(folder / "posteriordb.md", "\n".join([
        heading("Posteriors of posteriordb", command, chosen),
        headline("Both forms", made[True] + made[False]) + "\n",
        *(headline(title, made[form]) + "\n"
          for form, title in ((True, "From the prior"), (False, "From one point x0"))
          if made[form]),
        "Evaluations of the likelihood are medians, errors the largest of all parameters and "
        "seeds, in standard deviations of the reference. Without proper priors a posterior is "
        "sampled from x0 only.\n",
        table(["posterior", "d", *(f"{form}: {column}" for form in FORMS.values()
                                   for column in columns)], rows),
        *(["Runs that are not right, or are not called ok:\n",
           table(["posterior", "from", "seed", "right", "largest error", "evaluations", "verdict"],
                 remarks)] if remarks else [])]))


if __name__ == "__main__":
    main()
