"""Figures 1 to 5: one banana, by an adaptive random walk and by divergence minimization.

    python -m bench.papers.dharamshi2023.banana [--quick]

20 chains of each sampler from uniform starts on (-5, 5)^2; 1000 + 30 000 steps, of the finite forms
15 000 of adaptation and 15 000 draws, of which the second half of adaptation leaves a bank of 1000.
The paper's aRWM is "aRWM, as released", one Gaussian of the weighted sum of two covariances, where
its source has the mixture of two Gaussians, "aRWM". The rows "as released" are in Python: their
seconds do not compare with the others'. The last rows are not in the paper.
"""

import time

import numpy as np

import fastkam as fk
from bench.papers.dharamshi2023 import released
from bench.papers.record import heading, options, table, write
from fastkam.schedules import Finite, Perpetual, constant

CHAINS, KEPT, BURN = 20, 30_000, 1000
ADAPTATION, DRAWS, BANK = 15_000, 15_000, 1000
PLACES = [[-5.0, -24.0], [-2.5, -5.0], [0.0, 1.0], [2.5, -5.0], [5.0, -24.0]]
BOUNDS = [[-12, 12], [-110, 12]]
COLUMNS = ["sampler", "acceptance", "ESJD", "left half, %", "mean of x_1", "of x_2",
           "x_1 outside (-6, 6), %", "min ESS", "evaluations", "CPU seconds", "paper: acceptance",
           "ESJD", "left half, %", "mean"]
PUBLISHED = {
    "aRWM, as released": ["0.0895", "7.3", "", ""],
    "DM": ["0.7225", "2.4", "", ""],
    "DM finite, as released": ["0.5593", "", "51", "(0.31, -8.04)"],
}


def samplers():
    """Name -> (sampler, schedule)."""
    weights = {"proposal_cov": 1.0, "entropy_weight": 0.95, "bank_size": BANK}
    step = constant(0.003)
    return {
        "aRWM, as released": (released.AdaptiveRandomWalk(), Perpetual()),
        "aRWM": (fk.AdaptiveRandomWalk(), Perpetual()),
        "DM": (fk.DivergenceMinimization(**weights), Perpetual(gain=step)),
        "DM finite, as released": (released.DivergenceMinimization(**weights), Finite(gain=step)),
        "DM finite": (fk.DivergenceMinimization(**weights), Finite(gain=step)),
        "RAM": (fk.RobustAdaptiveMetropolis(windows=False), Finite()),
        "NUTS": (fk.NUTS(), Finite()),
    }


def run(target, sampler, schedule, shorter, seed):
    """The result, and CPU seconds of a chain."""
    tune, draws = (ADAPTATION, DRAWS) if isinstance(schedule, Finite) else (BURN, KEPT)
    x0 = np.random.default_rng(seed).uniform(-5, 5, (CHAINS, 2))
    begun = time.process_time()
    result = fk.sample(target, x0, sampler=sampler, schedule=schedule, draws=draws // shorter,
                       tune=tune // shorter, chains=CHAINS, seed=seed, keep_warmup=False,
                       progress=False, threads=1, search=False)
    return result, (time.process_time() - begun) / CHAINS


def row_of(label, result, seconds):
    x = result.draws
    ess = np.median([fk.diagnostics.ess_bulk(chain[None]).min() for chain in x])
    return [label, spread(result.acceptance), spread(fk.diagnostics.esjd(x)),
            spread(100 * (x[:, :, 0] < 0).mean(axis=1)), spread(x[:, :, 0].mean(axis=1)),
            spread(x[:, :, 1].mean(axis=1)),
            spread(100 * (np.abs(x[:, :, 0]) > 6).mean(axis=1)), f"{ess:,.0f}",
            f"{result.evaluations / CHAINS:,.0f}", f"{seconds:.2g}",
            *PUBLISHED.get(label, [""] * 4)]


def spread(values):
    return f"{values.mean():.3g} ({values.std(ddof=1):.2g})"


def ellipse(center, factor, radius=2.0):
    """The points `radius` standard deviations from the center, (2, 100)."""
    angle = np.linspace(0, 2 * np.pi, 100)
    return np.reshape(center, (2, 1)) + radius * factor @ [np.cos(angle), np.sin(angle)]


def proposals(label, result):
    """(center, factor) of proposals of the first chain: at its end, or from its bank."""
    state = result.states[0]
    if label.startswith("aRWM"):
        return [(result.draws[0, -1], np.asarray(state["kernel.L"]))]
    points = np.asarray(state["kernel.bank_x"])[:int(state["kernel.banked"])]
    factors = np.asarray(state["kernel.bank_C"]).transpose(0, 2, 1)
    nearest = [np.argmin(((points - place) ** 2).sum(axis=1)) for place in PLACES]
    return [(points[k], np.tril(factors[k])) for k in nearest]


def plot(path, target, results):
    """Draws of one chain and contours of proposals, two standard deviations wide."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from fastkam.plots.pair import contours

    figure, axes = plt.subplots(2, 3, figsize=(11, 7), sharex=True, sharey=True,
                                layout="constrained")
    for column, label in zip(axes.T, ("aRWM, as released", "DM", "DM finite"), strict=True):
        draws = results[label].draws[0]
        column[0].plot(*draws.T, ".", ms=2, alpha=0.4, mew=0)
        column[0].set_title(label)
        if label != "DM":
            for center, factor in proposals(label, results[label]):
                column[1].plot(*ellipse(center, factor), color="C3")
                column[1].plot(*center, ".", color="C3")
    for axis in axes.flat:
        contours(axis, target.logp, np.array(BOUNDS, dtype=float), 200)
        axis.set(xlim=BOUNDS[0], ylim=BOUNDS[1])
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=70)
    print(f"written to {path}")


def main():
    chosen = options(__file__, __doc__, quick="a tenth of the steps")
    target, shorter = fk.targets.hard_banana(), 10 if chosen.quick else 1
    results, rows = {}, []
    for label, (sampler, schedule) in samplers().items():
        results[label], seconds = run(target, sampler, schedule, shorter, chosen.seed)
        rows.append(row_of(label, results[label], seconds))
        print(*rows[-1], sep=" | ", flush=True)
    truth = ["truth", "", "", "50", "0", "-8", "4.55", *[""] * 7]
    text = heading("Figures 1 to 5: one banana", "python -m bench.papers.dharamshi2023.banana",
                   chosen)
    text += (
        f"\nMeans over {CHAINS} chains, in brackets standard deviations between chains; "
        f"{BURN // shorter:,} + {KEPT // shorter:,} steps, of those that learn under the finite "
        f"schedule {ADAPTATION // shorter:,} + {DRAWS // shorter:,}. The paper's numbers are each "
        "of one run. Min ESS: bulk, of one chain, the median. Evaluations and CPU seconds: of one "
        "chain, all steps. The picture, banana.png, has the draws of one chain over the target, "
        "and below them proposals at two standard deviations: the last of aRWM, and of the exact "
        "form of DM those of five entries of its bank.\n\n") + table(COLUMNS, [*rows, truth])
    plot(chosen.folder / "banana.png", target, results)
    write(chosen.folder / "banana.md", text)


if __name__ == "__main__":
    main()
