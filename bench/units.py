"""Cost of correlation: ESS and R-hat at correlation 0.9999, and evaluations to ESS 400.

    python -m bench.units [--quick]

Gaussians in d dimensions of which every two coordinates have the correlation 0.9999. First every
general sampler with its defaults after a stated number of evaluations; then `ram` with and without
its windows, and `am`, until all coordinates have an ESS of 400 at an R-hat below 1.02, on these and
on other targets. Half of each run is warm-up; its length grows by a factor of sqrt 2 from run to
run. Evaluations are those of four chains, warm-up included, without those of the search before it,
the same for all. No times are measured: every run of this page gives the same figures.
"""

import warnings

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

CORRELATION = 0.9999
BUDGET = {2: 40_000, 5: 100_000}    # evaluations of all chains
LEFT_OUT = {"rwm", "mala", "hmc", "scout", "cholam"}     # no learned shape, or no defaults
TRIAL = 2000        # steps after which it is known what one takes
CHAINS, ENOUGH, MIXED, MOST = 4, 400, 1.02, 600_000
WALKS = {"am": fk.AdaptiveMetropolis(), "ram": fk.RobustAdaptiveMetropolis(),
         "ram, windows=False": fk.RobustAdaptiveMetropolis(windows=False)}


def correlated(d, correlation=CORRELATION):
    """The Gaussian of variance 1 with one correlation for all pairs."""
    return fk.targets.Gaussian(
        np.zeros(d), correlation * np.ones((d, d)) + (1 - correlation) * np.eye(d))


def heavy_tailed(d):
    """Student's t with 3 degrees of freedom and correlation 0.9."""
    precision = np.linalg.inv(0.9 * np.ones((d, d)) + 0.1 * np.eye(d))

    def logp(X):
        return -0.5 * (3 + d) * np.log1p(np.einsum("...i,ij,...j->...", X, precision, X) / 3)
    return logp


TARGETS = {     # (density, start)
    "correlation 0.9999, d = 2": lambda: (correlated(2), np.zeros(2)),
    "correlation 0.9999, d = 5": lambda: (correlated(5), np.zeros(5)),
    "correlation 0.9999, d = 20": lambda: (correlated(20), np.zeros(20)),
    "N(0, I), d = 2": lambda: (correlated(2, 0.0), np.zeros(2)),
    "from 1000 sd away, d = 5": lambda: (correlated(5, 0.9), np.full(5, 1000.0)),
    "t, 3 degrees, d = 5": lambda: (heavy_tailed(5), np.zeros(5)),
    "banana, d = 2": lambda: (fk.targets.banana(b=0.03, V=100.0, d=2), np.zeros(2)),
    "banana, d = 5": lambda: (fk.targets.banana(b=0.03, V=100.0, d=5), np.zeros(5)),
}


def run(density, x0, sampler, steps, seed):
    """(evaluations, least ESS, largest R-hat) of a run of which half is warm-up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(
            density, x0, sampler=sampler, chains=CHAINS, tune=steps // 2, draws=steps - steps // 2,
            seed=seed, vectorized=not isinstance(density, fk.Target), keep_warmup=False,
            progress=False, check_gradient=False)
    summary = result.summary()
    spent = sum(int(state["n_evaluations"]) for state in result.states)
    return spent, float(summary["ess_bulk"].min()), float(summary["r_hat"].max())


def at_budget(name, d, seed):
    """The same after BUDGET evaluations, whatever a step takes."""
    sampler, density = fk.samplers.SAMPLERS[name](), correlated(d)
    spent, _, _ = run(density, np.zeros(d), sampler, TRIAL, seed)
    steps = int(BUDGET[d] / spent * TRIAL)
    return run(density, np.zeros(d), sampler, steps, seed)


def price(make, sampler, seed):
    """Evaluations to ESS 400, by a factor of sqrt 2; infinite beyond MOST."""
    steps, spent = 500.0, 0
    while spent <= MOST:
        spent, ess, r_hat = run(*make(), sampler, int(steps), seed)
        if ess >= ENOUGH and r_hat < MIXED:
            return spent
        steps *= np.sqrt(2)
    return np.inf


def main():
    chosen = options(__file__, __doc__, quick="3 seeds in place of 20")
    seeds = range(3 if chosen.quick else 20)
    names = [name for name in fk.samplers.SAMPLERS if name not in LEFT_OUT]
    text = heading("Correlation", "python -m bench.units", chosen)
    rows = []
    for name in names:
        row = [f"`{name}`"]
        for d in BUDGET:
            found = np.array([at_budget(name, d, seed) for seed in range(3)])
            row += [f"{np.median(found[:, 0]):,.0f}".replace(",", " "),
                    f"{np.median(found[:, 1]):.0f}", f"{np.median(found[:, 2]):.3f}"]
        rows.append(row)
    text += "\n" + table(["sampler", *(f"{what}, d = {d}" for d in BUDGET
                                for what in ("evaluations", "ESS", "R-hat"))], rows)
    rows = []
    for label, make in TARGETS.items():
        row = [label]
        for sampler in WALKS.values():
            spent = np.array([price(make, sampler, seed) for seed in seeds])
            row.append(f"{np.median(spent) / 1000:.1f} ({spent.max() / 1000:.1f})")
        rows.append(row)
    text += "\nThousand evaluations to ESS 400, median (and largest) of "
    text += f"{len(seeds)} seeds:\n\n" + table(["target", *(f"`{name}`" for name in WALKS)], rows)
    write(chosen.folder / "units.md", text)


if __name__ == "__main__":
    main()
