"""The tables: errors in Monte Carlo standard errors, coverage, and whether R-hat and ESS were true.

A run *says good* where R-hat is at most 1.01 and all effective sample sizes are at least 400. It
is *wrong* where a mean or standard deviation is off by more than a fifth of the exact standard
deviation, four times what an effective sample size of 400 allows.
"""

import numpy as np

from bench.papers.record import table

R_HAT, ESS, WRONG = 1.01, 400, 0.2
COLUMNS = ["runs", "say good", "of these wrong", "rms |error| / MCSE of means", "of sds",
           "95 % intervals of means that cover", "of sds", "largest |error| / MCSE",
           "do not say good", "of these wrong", "failed"]


def says_good(row):
    """Whether R-hat and the effective sample sizes of a run say that it is to be relied on."""
    return row["r_hat"] <= R_HAT and row["ess"] >= ESS


def is_wrong(row):
    """Whether a mean or a standard deviation is far off."""
    return not np.max(np.abs(row["error"])) <= WRONG


def z_of(row):
    """|error| / MCSE of means (d,) and of standard deviations (d,)."""
    z = np.abs(row["error"]) / row["mcse"]
    return z[: len(z) // 2], z[len(z) // 2:]


def line(rows):
    """The numbers of COLUMNS for some runs."""
    made = [row for row in rows if "failed" not in row]
    good = [row for row in made if says_good(row)]
    bad = [row for row in made if not says_good(row)]
    cells = [str(len(rows)), str(len(good)), str(sum(map(is_wrong, good)))]
    if good:
        means, sds = (np.concatenate(part) for part in zip(*map(z_of, good), strict=True))
        cells += [f"{np.sqrt(np.mean(z**2)):.2f}" for z in (means, sds)]
        cells += [f"{100 * np.mean(z < 1.96):.1f} %" for z in (means, sds)]
        cells += [f"{max(means.max(), sds.max()):.1f}"]
    else:
        cells += ["-"] * 5
    return [*cells, str(len(bad)), str(sum(map(is_wrong, bad))), str(len(rows) - len(made))]


def by(rows, key):
    """Runs in groups."""
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def report(rows):
    """The tables of samplers and of posteriors, and the runs that were wrong though said good."""
    parts = []
    for key in ("sampler", "posterior"):
        lines = [[name, *line(group)] for name, group in by(rows, key).items()]
        parts.append(table([key, *COLUMNS], [*lines, ["all", *line(rows)]]))
    false = [row for row in rows if "failed" not in row and says_good(row) and is_wrong(row)]
    parts.append("Said good and were wrong:\n" + "".join(
        f"\n- {row['sampler']} on {row['posterior']}, seed {row['seed']}: off by "
        f"{np.max(np.abs(row['error'])):.2f} sd, R-hat {row['r_hat']}, ESS {row['ess']:.0f}"
        for row in false) if false else "No run said good and was wrong.")
    failed = {(row["sampler"], row["posterior"], row["failed"]) for row in rows if "failed" in row}
    parts += ["Failed:\n" + "".join(f"\n- {a} on {b}: {c}" for a, b, c in sorted(failed))
              ] if failed else []
    return "\n\n".join(parts) + "\n"


def bias(rows):
    """The table of schedules: the mean error over seeds that is worst, in sds and in MCSEs.

    Each cell is the largest of all means and standard deviations of all posteriors, by its number
    of Monte Carlo standard errors, those of all seeds together. "refused" is where a sampler does
    not take the schedule.
    """
    lines = []
    for sampler, own in by(rows, "sampler").items():
        cells = []
        for group in by(own, "schedule").values():
            made = [row for row in group if "failed" not in row]
            worst = max(map(pooled, by(made, "posterior").values()),
                        key=lambda pair: abs(pair[1]), default=None)
            cells.append(f"{worst[0]:+.4f} ({worst[1]:+.1f})" if worst else "refused")
        lines.append([sampler, *cells])
    return table(["sampler", *dict.fromkeys(row["schedule"] for row in rows)], lines)


def pooled(runs):
    """(error, error / MCSE) of the mean over runs of one posterior, where it is worst."""
    error = np.mean([row["error"] for row in runs], axis=0)
    mcse = np.sqrt(np.sum(np.square([row["mcse"] for row in runs]), axis=0)) / len(runs)
    at = int(np.argmax(np.abs(error) / mcse))
    return error[at], error[at] / mcse[at]
