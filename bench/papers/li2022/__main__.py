"""Figures 1 to 10: how fast each sampler's draws come to look like the target.

    python -m bench.papers.li2022 [--only two_mode] [--quick]

Ten chains of each sampler with the same number of evaluations; symmetric KL of the draws' histogram
after growing numbers of evaluations, and of CPU seconds that include Exploration. The noise gamma_t
of the paper has no published values: "paper" takes that of its authors' code, 4 falling to 1, with
the kernel active, as the paper has it; "as released" is the published code, where the kernel never
acts. The rows after it are not in the paper: cKAM with fastkam's noise, in its published form,
which is biased, and in its exact form; the same cycles with the covariance of the history instead
of the kernel's; a random walk with wide steps; parallel tempering.
"""

import time

import numpy as np

import fastkam as fk
from bench.papers.li2022 import released
from bench.papers.li2022.released import falling
from bench.papers.record import heading, options, table, write
from fastkam.diagnostics import marginal_symmetric_kl, symmetric_kl
from fastkam.schedules import Finite, Perpetual, Power, constant

CHAINS, CHECKPOINTS = 10, 10
BOUNDS = {"two_mode": [[-17, 17], [-12, 12]], "five_component": [[-6, 18], [-6, 18]],
          "mixture_32d": [-50, 50]}
STARTS = {"two_mode": [-8.0, 0.0], "five_component": [0.0, 0.0], "mixture_32d": np.zeros(32)}
EVALUATIONS = {"two_mode": 2_000_000, "five_component": 1_000_000, "mixture_32d": 480_000}
COLUMNS = ["sampler", "KL after a tenth", "KL at the end", "occupancy error", "min ESS",
           "CPU seconds", "µs an evaluation"]


def samplers(name, n):
    """Name -> (sampler, schedule, fraction of the steps that give draws, evaluations a step)."""
    d = len(STARTS[name])
    wide = d == 32
    cycle, beta = (8000, 0.6) if wide else (1000, 0.4)
    matern = fk.kernels.Matern(2.0, 4.0)
    learning = Perpetual(gain=Power(k=0.75, offset=0.0))
    g_am, g_rb = (0.01, 0.001) if name != "two_mode" else (0.1, 0.1)
    cycles = {"metric": "identity", "cycle": cycle, "exploration_fraction": beta,
              "subsample": 100 if wide else 50, "kernel": matern}
    kept = 1 - int(beta * cycle) / cycle
    rungs = 16 if wide else 8

    def ckam(**options):
        return fk.CyclicalKernelAdaptiveMetropolis(**(cycles | options))

    code = falling(4.0, 1.0, 0.55, cycle)
    return {
        "RW": (fk.RandomWalk(proposal_cov=2.38**2 / d if wide else 15.0), Finite(), 1, 1),
        "AM": (fk.AdaptiveMetropolis(), Perpetual(gain=constant(g_am)), 1, 1),
        "RBAM": (fk.RaoBlackwellizedAdaptiveMetropolis(scale=1.0),
                 Perpetual(gain=constant(g_rb)), 1, 1),
        "GAM": (fk.GlobalAdaptiveMetropolis(),
                Perpetual(gain=Power(k=0.75, offset=1.0)), 1, 1),
        "KAM, paper": (fk.KernelAdaptiveMetropolis(
            metric="identity", kernel=matern, subsample=30, step_size=2 * 2.38 / np.sqrt(d),
            gamma=falling(4.0, 1.0, 0.55, n)), learning, 1, 1),
        "cKAM, paper": (ckam(gamma=code), Perpetual(), kept, 1),
        "cKAM, as released": (released.ckam(d, cycle, beta), Perpetual(), kept, 1),
        "cKAM, own noise, as published": (ckam(), Perpetual(), kept, 1),
        "cKAM, own noise, exact": (ckam(), Finite(), kept, 1),
        "the cycles without the kernel": (ckam(kernel=fk.kernels.Linear()), Perpetual(), kept, 1),
        "RW, wide": (
            fk.RandomWalk(proposal_cov=15 * 2.38**2 / d if wide else 100.0), Finite(), 1, 1),
        "parallel tempering": (fk.ParallelTempering(n_replicas=rungs), Finite(), 1, rungs),
    }


def run(name, sampler, schedule, kept, cost, n, seed):
    """Draws (chains, .., d) of n evaluations, warm-up among them, and CPU seconds of one chain."""
    learns = isinstance(schedule, Finite) and not isinstance(sampler, fk.RandomWalk)
    cycle = getattr(sampler, "cycle", 1)
    tune = max(1, int(0.2 * n / cost) // cycle) * cycle if learns else 0
    steps = n // cost - tune
    thin = max(1, steps // 100_000)
    begun = time.process_time()
    result = fk.sample(fk.targets.TARGETS[name](), STARTS[name], sampler=sampler,
                       schedule=schedule, draws=int(kept * steps) // thin, tune=tune, thin=thin,
                       chains=CHAINS, seed=seed, keep_warmup=False, progress=False, threads=1,
                       search=False)
    return result.draws, (time.process_time() - begun) / CHAINS, tune * cost


def divergence(name, target, x):
    if name != "mixture_32d":
        return symmetric_kl(x, target.logp, BOUNDS[name])
    means = 15.0 * np.arange(-2, 3)

    def marginal(t):
        return np.logaddexp.reduce(-((t[:, None] - means) ** 2) / 30, axis=1)

    return marginal_symmetric_kl(x, marginal, BOUNDS[name]).mean()


def occupancy_error(name, target, x):
    """The largest relative error of a mode's share; in 32 dimensions of each coordinate's five."""
    if name == "mixture_32d":
        where = np.clip(np.rint(x / 15), -2, 2)
        return max(np.abs(5 * (where == k).mean(0) - 1).max() for k in range(-2, 3))
    if name == "two_mode":
        where, n = (x[:, 0] > 0).astype(int), 2
    else:       # the components overlap: a fifth of the mass each, between quantiles of their sum
        exact = target.sample(400_000, seed=1).sum(1)
        where = np.digitize(x.sum(1), np.quantile(exact, [0.2, 0.4, 0.6, 0.8]))
        n = 5
    return max(abs(n * (where == k).mean() - 1) for k in range(n))


def measure(name, target, n, spec, seed):
    """One sampler: the row of the table, and its curve."""
    x, seconds, spent = run(name, *spec, n, seed)
    fractions = np.geomspace(1e-2, 1, CHECKPOINTS)
    kl = np.array([[divergence(name, target, chain[:max(2, int(f * len(chain)))])
                    for f in fractions] for chain in x])
    evaluations = spent + fractions * (n - spent)
    off = np.array([occupancy_error(name, target, chain) for chain in x])
    ess = np.median([fk.diagnostics.ess_bulk(chain[None]).min() for chain in x])
    tenth = np.argmin(np.abs(np.log(fractions / 0.1)))
    row = [middle(kl[:, tenth]), middle(kl[:, -1]), middle(off), f"{ess:,.0f}", f"{seconds:.3g}",
           f"{1e6 * seconds / n:.3g}"]
    return row, (evaluations, evaluations / n * seconds, kl)


def middle(values):
    """The median and the quartiles."""
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{median:.3g} ({low:.2g} to {high:.2g})"


def plot(path, title, curves):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for k, (label, (evaluations, seconds, kl)) in enumerate(curves.items()):
        low, median, high = np.quantile(kl, [0.25, 0.5, 0.75], axis=0)
        style = {"color": f"C{k % 10}", "linestyle": "-" if k < 10 else "--"}
        for axis, at in zip(axes, (evaluations, seconds), strict=True):
            axis.loglog(at, median, label=label, **style)
            axis.fill_between(at, low, high, alpha=0.15, color=style["color"])
    axes[0].set(title=title, xlabel="evaluations", ylabel="symmetric KL")
    axes[1].set(xlabel="CPU seconds")
    axes[1].legend(fontsize=6)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"written to {path}")


def main():
    chosen = options(__file__, __doc__, quick="a twentieth of the evaluations", only=BOUNDS)
    for name in [chosen.only] if chosen.only else BOUNDS:
        n, target = EVALUATIONS[name] // (20 if chosen.quick else 1), fk.targets.TARGETS[name]()
        rows, curves = [], {}
        for label, spec in samplers(name, n).items():
            row, curves[label] = measure(name, target, n, spec, chosen.seed)
            rows.append([label, *row])
            print(name, *rows[-1], sep=" | ", flush=True)
        text = heading(f"{name}: KL of the draws", f"python -m bench.papers.li2022 --only {name}",
                       chosen)
        text += (
            f"\nMedians and quartiles of {CHAINS} chains of {n:,} evaluations each, warm-up and "
            "Exploration among them. KL: both directions added, of a histogram, "
            + ("mean over the coordinates" if name == "mixture_32d" else "100 x 100 bins")
            + ". Occupancy error: the largest relative error of the share of a mode"
            + (", of fifths of the mass by the sum of the coordinates" if name == "five_component"
               else "") + ".\n\n") + table(COLUMNS, rows)
        plot(chosen.folder / f"{name}.png", name, curves)
        write(chosen.folder / f"{name}.md", text)


if __name__ == "__main__":
    main()
