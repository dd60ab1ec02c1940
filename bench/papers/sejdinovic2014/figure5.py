"""Figure 5 of Sejdinovic et al. (2014): how well chains cover three bent targets.

    python -m bench.papers.sejdinovic2014.figure5 [--quick]

20 chains a sampler, on the bananas B(0.03, 100) and B(0.1, 100) and the flower F(10, 6, 6, 1) in 8
dimensions: mean acceptance, norm of the mean (whose truth is 0) and deviation of the 0.1, ..., 0.9
quantiles. Settings of the authors' programs where the paper is silent; the bandwidths are those
they set by hand. Two things differ on purpose: all adaptation ends with burn-in, and KAM takes both
covariances of a step from the same subsample and step size. The programs change the learned
covariance of AM every 20th step by t^(-1/2); here it changes every step by t^(-1/2) / 20.

The paper compares at equal steps. The last rows, which it has not, are of equal time: SM and AM
with as many times the steps as KAM takes CPU seconds for theirs.
"""

import time

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

CHAINS, D, START = 20, 8, 500
LEVELS = np.arange(1, 10) / 10

# the figure has bars without numbers; these are from the text of section 5.2
CLAIMS = {
    "SM": "a significantly larger norm of the mean than the others",
    "AM": "low acceptance; norm of the mean near the truth; poor quantiles",
    "AM-LS": "the acceptance aimed at (0.234); quantiles worse than AM's",
    "KAM": "the best quantiles; norm of the mean comparable or better",
}

# target, kernel length, steps, burn-in, AM's first covariance
TARGETS = {
    "B(0.03, 100)": (fk.targets.banana(b=0.03, V=100.0, d=D), 5.0, 40_000, 20_000, 100.0),
    "B(0.1, 100)": (fk.targets.banana(b=0.1, V=100.0, d=D), 10.0, 80_000, 40_000, 100.0),
    "F(10, 6, 6, 1)": (fk.targets.Flower(r0=10.0, A=6.0, w=6, s2=1.0, d=D), 5.0, 120_000,
                       60_000, 1.0),
}


def samplers(length, variances, history, start=START):
    """{name: (sampler, schedule)}, as in the paper; `variances` are AM's first."""
    d = len(variances)
    learn = {"target_cov": variances, "mean": np.zeros(d), "scale": 2.38**2 / d}
    power = fk.schedules.Power
    am = fk.schedules.Finite(gain=power(c=1 / 20, k=0.5), start=start)
    kam = fk.KernelAdaptiveMetropolis(
        metric="identity", kernel=fk.kernels.Gaussian(length), subsample=1000,
        step_size=np.sqrt(0.1), gamma=0.2, renewal=1.0, history_size=history,
    )
    return {
        "SM": (fk.RandomWalk(proposal_cov=2.38**2 / d), "finite"),
        "AM": (fk.AdaptiveMetropolis(**learn), am),
        "AM-LS": (fk.GlobalAdaptiveMetropolis(**learn), am),
        "KAM": (kam, fk.schedules.Finite(gain=power(c=0.5, k=0.5), start=start)),
    }


def interval(values):
    """The mean over chains and its 80 % interval, as text."""
    return f"{values.mean():.3f} ± {1.28 * values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def measure(target, sampler, schedule, steps, burn_in, seed, times=1):
    """Acceptance, norm of the mean and quantile deviations (%), a chain; and the CPU seconds.

    With `times` as many steps, of which as many draws are kept.
    """
    begun = time.process_time()
    result = fk.sample(
        target, np.zeros(D), sampler=sampler, schedule=schedule, draws=steps - burn_in, thin=times,
        tune=times * burn_in, chains=CHAINS, seed=seed, keep_warmup=False, progress=False,
        search=False,
    )
    seconds = time.process_time() - begun
    deviation = fk.diagnostics.quantile_deviation(*target.quantile_region(result.draws), LEVELS)
    error = np.linalg.norm(result.draws.mean(axis=1), axis=1)
    return result.acceptance, error, 100 * deviation, seconds


def section(name, chosen):
    """The text of one target."""
    target, length, steps, burn_in, first = TARGETS[name]
    if chosen.quick:
        steps, burn_in = steps // 10, burn_in // 10
    variances = np.r_[first, np.ones(D - 1)]
    rows, means, seconds = [], {}, {}
    every = samplers(length, variances, max(2000, burn_in))

    def add(label, name, times=1):
        acceptance, error, deviation, seconds[label] = measure(
            target, *every[name], steps, burn_in, chosen.seed, times)
        means[label] = deviation.mean(axis=1)
        rows.append([
            label, interval(acceptance), interval(error), interval(means[label]),
            *(f"{value:.1f}" for value in deviation.mean(axis=0)), f"{seconds[label]:.2g}",
            CLAIMS.get(label, ""),
        ])

    for label in every:
        add(label, label)
    for label in ("SM", "AM"):
        add(f"{label}, KAM's time", label, max(1, round(seconds["KAM"] / seconds[label])))
    text = f"\n## {name}, {steps} steps of which {burn_in} burn-in\n\n"
    text += table(["", "acceptance", "norm of mean", "mean quantile deviation, %",
                   *(f"{level:.1f}" for level in LEVELS), "CPU seconds, all chains", "the paper"],
                  rows)
    text += "\nKAM's mean quantile deviation less that of the others, with 80 % intervals: "
    text += ", ".join(f"{label} {difference(means['KAM'], means[label])}"
                      for label in means if label != "KAM") + ".\n"
    return text


def difference(one, other):
    """The difference of two means over chains and its 80 % interval, as text."""
    error = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / len(one))
    return f"{one.mean() - other.mean():+.2f} ± {1.28 * error:.2f}"


def main():
    chosen = options(__file__, __doc__, quick="a tenth of the steps")
    text = heading("Sejdinovic et al. (2014), figure 5",
                   "python -m bench.papers.sejdinovic2014.figure5", chosen)
    text += (
        f"\nMeans over {CHAINS} chains with 80 % intervals, as in the paper; quantile deviations "
        "in percent (the paper's bars show tenths of that, and acceptance and a tenth of the "
        "norm of the mean on the same axis). AM-LS learns scale and covariance with one gain here, "
        "a twentieth of the programs': its acceptance has not reached 0.234 when burn-in ends.\n"
    )
    text += "".join(section(name, chosen) for name in TARGETS)
    write(chosen.folder / "figure5.md", text)


if __name__ == "__main__":
    main()
