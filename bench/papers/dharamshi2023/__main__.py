"""Tables 1 to 4: three targets of several modes and a sparse regression, beside the paper's rows.

    python -m bench.papers.dharamshi2023 [--only double_banana] [--quick]

20 chains of each sampler, from uniform starts on (-5, 5)^d (of the regression: near the least
squares, with scales around 1), as many steps as in the paper. The rows
"as released" are of the authors' code: an adaptive random walk of one Gaussian ("aRWM" is the
mixture of two of its source), a swap that copies one state over the other, and a finite form whose
reverse factor is that of the current point. They are in Python, so that their seconds do not
compare with the others'. The finite rows are of the draws after adaptation alone;
the paper's are of both phases. The last rows are not in the paper.
"""

import time

import numpy as np

import fastkam as fk
from bench.papers.dharamshi2023 import released
from bench.papers.dharamshi2023.published import PUBLISHED
from bench.papers.record import heading, options, table, write
from fastkam.schedules import Finite, Perpetual, constant

CHAINS = 20
RUNS = {  # kept, burn-in; of the finite forms: draws, adaptation, bank
    "double_banana": (50_000, 1000, 20_000, 30_000, 1000),
    "basis_vectors": (40_000, 2000, 20_000, 20_000, 1000),
    "banana_bunch": (100_000, 1000, 50_000, 50_000, 5000),
    "horseshoe": (45_000, 5000, 45_000, 45_000, 1000),
}
COLUMNS = ["sampler", "acceptance", "distance of the mean", "of the second moment", "ESJD",
           "occupancy error", "min ESS", "evaluations", "CPU seconds", "paper: acceptance",
           "distances", "ESJD"]


def tempering(rungs, scheme, variance):
    return fk.ParallelTempering(
        sampler=fk.RandomWalk(proposal_cov=variance), n_replicas=rungs, betas=np.linspace(1, 0.1,
                                                                                          rungs),
        scheme=scheme, tune_betas=False, reference="flat")


def samplers(name):
    """Name -> (sampler, schedule, key of the steps in `steps_of`)."""
    sparse = name == "horseshoe"
    variance, bold, many = (0.03**2, 0.1**2, 10) if sparse else (1.0, 9.0, 5)
    factor = {"proposal_cov": variance, "rejection_factor": 0.5} if sparse else {}
    bank = RUNS[name][4]
    dm = fk.DivergenceMinimization(**factor)
    banked = fk.DivergenceMinimization(bank_size=bank, **factor)
    finite = released.DivergenceMinimization(bank_size=bank, **factor)
    scout = fk.RandomWalk(proposal_cov=bold)
    forever, ending = Perpetual(), Finite()
    follow = Perpetual(gain=constant(2e-6)) if sparse else forever     # of scales of some 0.03

    def copying(rungs):
        return released.ParallelTempering(n_replicas=rungs, variance=variance)

    found = {
        "RWM": (fk.RandomWalk(proposal_cov=variance), ending, "paper"),
        "aRWM, as released": (released.AdaptiveRandomWalk(), forever, "paper"),
        "PT (2), as released": (copying(2), ending, "paper"),
        f"PT ({many}), as released": (copying(many), ending, "paper"),
        "MALA": (fk.MALA(), ending, "shared"),
        "DM": (dm, follow, "paper"),
        "DM finite, as released": (finite, ending, "finite"),
        "DM finite": (banked, ending, "finite"),
        "Scout": (fk.Scout(main=dm, scout=scout), follow, "paper"),
        "Scout finite": (fk.Scout(main=banked, scout=scout), ending, "finite"),
        "aRWM": (fk.AdaptiveRandomWalk(), forever, "paper"),
        "PT (2)": (tempering(2, "random", variance), ending, "paper"),
        f"PT ({many})": (tempering(many, "random", variance), ending, "paper"),
        f"PT ({many}), even-odd": (tempering(many, "even-odd", variance), ending, "paper"),
        "pt, as it comes": (fk.ParallelTempering(), ending, "shared"),
        "pt of NUTS, 4 rungs": (
            fk.ParallelTempering(sampler=fk.NUTS(), n_replicas=4), ending, "shared"),
        "RAM": (fk.RobustAdaptiveMetropolis(windows=False), ending, "shared"),
        "NUTS": (fk.NUTS(), ending, "shared"),
    }
    if sparse:
        for label in ("DM finite, as released", "Scout finite", "DM finite", "pt of NUTS, 4 rungs"):
            del found[label]
    return found


def parts(name, x):
    """Return the index of the set of each point, among sets of equal probability; their number."""
    if name == "double_banana":     # symmetric about x_2 = -25
        return (x[..., 1] > -25).astype(int), 2
    if name == "horseshoe":
        return np.zeros(x.shape[:-1], int), 1
    axis = np.abs(x).argmax(-1)
    sign = np.take_along_axis(x, axis[..., None], -1)[..., 0] > 0
    return 2 * axis + sign, 2 * x.shape[-1]


def errors(name, target, x):
    """Distances of the mean and of the second moment, (chains,) each; the occupancy's error."""
    if name == "horseshoe":
        p = len(target.coefficients)
        off = np.linalg.norm(x[..., :p].mean(1) - target.coefficients, axis=1)
        return off, np.full(len(x), np.nan), np.full(len(x), np.nan)
    where, n = parts(name, x)
    occupancy = np.stack([(where == k).mean(1) for k in range(n)])
    return (np.linalg.norm(x.mean(1) - target.mean, axis=1),
            np.linalg.norm((x**2).mean(1) - target.second_moment, axis=1),
            np.abs(n * occupancy - 1).max(0))


def steps_of(name, split):
    """Draws, and the steps before them.

    "paper": those of the paper's samplers without a phase of adaptation; "shared": as many steps in
    all, of which more are warm-up; "finite": those of the paper's finite forms.
    """
    kept, burn, draws, tune, _ = RUNS[name]
    if split == "finite":
        return draws, tune
    if split == "shared" and kept > tune:
        return kept - tune, burn + tune
    return kept, burn


def measure(name, target, sampler, schedule, split, *, quick, seed):
    """One row: means over the chains, with standard deviations between them."""
    draws, tune = steps_of(name, split)
    if quick:
        draws, tune = draws // 10, tune // 10
    rng = np.random.default_rng(seed)
    x0 = rng.uniform(-5, 5, (CHAINS, target.dim))
    if name == "horseshoe":     # whose start the paper does not state
        x0 *= 0.01
        x0[:, :20] += np.linalg.lstsq(target.X, target.y)[0]
    begun = time.process_time()
    result = fk.sample(target, x0, sampler=sampler, schedule=schedule, draws=draws, tune=tune,
                       chains=CHAINS, seed=seed, keep_warmup=False, progress=False, threads=1,
                       search=False)
    seconds = time.process_time() - begun
    x = result.draws
    mean, second, occupancy = errors(name, target, x)
    jumps = (np.diff(x, axis=1) ** 2).sum(-1).mean(1)
    ess = np.median([fk.diagnostics.ess_bulk(chain[None]).min() for chain in x])
    return [spread(result.acceptance), spread(mean), spread(second), spread(jumps),
            spread(occupancy), f"{ess:,.0f}", f"{result.evaluations / CHAINS:,.0f}",
            f"{seconds / CHAINS:.3g}"]


def spread(values):
    return "" if np.isnan(values).all() else f"{values.mean():.3g} ({values.std(ddof=1):.2g})"


def published(row):
    if row is None:
        return ["", "", ""]
    acceptance, mean, second, jump = row
    return [f"{acceptance:.3f}", f"{mean:g}" if second is None else f"{mean:g}, {second:g}",
            f"{jump:g}"]


def main():
    chosen = options(__file__, __doc__, quick="a tenth of the steps", only=RUNS)
    for number, name in enumerate(RUNS, 1):
        if chosen.only not in (None, name):
            continue
        target, rows = fk.targets.TARGETS[name](), []
        for label, (sampler, schedule, split) in samplers(name).items():
            row = [label, *measure(name, target, sampler, schedule, split, quick=chosen.quick,
                                   seed=chosen.seed)]
            rows.append(row + published(PUBLISHED[name].get(label)))
            print(name, *row, sep=" | ", flush=True)
        kept, burn, draws, tune, bank = RUNS[name]
        drawn, warm = steps_of(name, "shared")
        text = heading(f"Table {number}: {name}",
                       f"python -m bench.papers.dharamshi2023 --only {name}", chosen) + (
            f"\nMeans over {CHAINS} chains, in brackets standard deviations between chains; "
            f"{burn:,} + {kept:,} steps, of the finite forms {tune:,} of adaptation and {draws:,} "
            f"draws, a bank of {bank:,}; of MALA, pt, RAM and NUTS, which adapt, {warm:,} of "
            f"warm-up and {drawn:,} draws. Occupancy error: the largest relative error of "
            "the share of a part (halves, or the axis and sign of the largest coordinate). Min "
            "ESS: bulk, of one chain, the median. Evaluations and CPU seconds: of one chain, all "
            "steps.\n\n") + table(COLUMNS, rows)
        write(chosen.folder / f"{name}.md", text)


if __name__ == "__main__":
    main()
