"""The first answer: is it right, or does it say that it is not?

    python -m bench.first_answer [--quick]

Each of forty densities by `fk.sample(f, x0, seed=seed)`, or with a prior in place of x0, and
nothing else, ten seeds. A run is right where every mean and standard deviation is within 4 Monte
Carlo standard errors and a tenth of the standard deviation of the truth. It says that it is not
where it warns. The rest are wrong without a warning.
"""

import time
import warnings
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.first_answer.densities import CASES
from bench.papers.record import heading, options, table, write

COLUMNS = ["density", "right", "not, and said", "wrong without a word", "right, with a warning",
           "evaluations", "CPU s", "ESS"]
FILE = Path(__file__).parents[1] / "samplers.py"  # results are in bench/results


def is_right(columns, mean, sd, with_sd=True):
    """Whether a summary's means, and standard deviations where `with_sd`, are near the truth."""
    off, wide = np.abs(columns["mean"] - mean), np.abs(columns["sd"] - sd)
    near = (wide < 4 * columns["mcse_sd"]) & (wide < 0.1 * sd) | ~np.asarray(with_sd)
    return bool(((off < 4 * columns["mcse_mean"]) & (off < 0.1 * sd) & near).all())


def judge(case, seed):
    """(right, told, evaluations, CPU seconds, least ESS) of one run."""
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fk.sample(case.f, case.x0, seed=seed, progress=False, check_gradient=False,
                           **case.options)
    seconds = time.process_time() - begun
    columns = result.summary()
    told = any(issubclass(one.category, fk.SamplingWarning) for one in caught)
    ess = min(columns["ess_bulk"].min(), columns["ess_tail"].min())
    return is_right(columns, case.mean, case.sd), told, result.evaluations, seconds, ess


def share(k, n):
    """k of n in percent."""
    return f"{100 * k / n:.1f} %"


def row_of(name, runs):
    """(row of the table, the four counts in it) of what `judge` returned of each seed."""
    right, told = np.array([run[:2] for run in runs]).astype(bool).T
    counts = np.array([right.sum(), (~right & told).sum(), (~right & ~told).sum(),
                       (right & told).sum()])
    evaluations, seconds, ess = np.median([run[2:] for run in runs], axis=0)
    row = [name, *map(str, counts), f"{evaluations:,.0f}", f"{seconds:.2g}", f"{ess:.0f}"]
    print(*row, sep=" | ", flush=True)
    return row, counts


def text_of(totals):
    """Return the shares of all runs in a sentence."""
    right, said, silent, _ = totals
    n = right + said + silent
    return (f"{n} runs: {share(right, n)} right, {share(said, n)} not and said so, "
            f"{share(silent, n)} wrong without a word.\n")


def main():
    chosen = options(FILE, __doc__, quick="two seeds")
    seeds = range(chosen.seed, chosen.seed + (2 if chosen.quick else 10))
    rows, totals = [], np.zeros(4, int)
    for name, case in CASES.items():
        row, counts = row_of(name, [judge(case, seed) for seed in seeds])
        rows.append(row)
        totals += counts
    write(chosen.folder / "first_answer.md", "\n".join([
        heading("The first answer", "python -m bench.first_answer", chosen),
        text_of(totals), table(COLUMNS, [*rows, ["all", *map(str, totals), "", "", ""]])]))


if __name__ == "__main__":
    main()
