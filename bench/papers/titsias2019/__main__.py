"""Tables 1 to 6: Neal's Gaussian and six logistic regressions, beside the paper's numbers.

    python -m bench.papers.titsias2019 [--only neal] [--quick]

20 000 steps of warm-up and 20 000 draws from x0 ~ N(0, I), ten repeats, as in the paper; ESS by its
own estimator, the least, median and largest over coordinates. The data sets are read from the
folder FASTKAM_DATA. Beside the samplers of the paper stand those that came after it. "AM, as
released" is in Python: its seconds do not compare with the others'.
"""

import time

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from bench.papers.titsias2019 import released
from bench.papers.titsias2019.published import PUBLISHED
from fastkam.schedules import Finite, Power

STEPS, REPEATS = 20_000, 10
LEAPFROG = {"neal": 20, "caravan": 10}  # of the HMC that the paper reports; 5 for the others
COLUMNS = ["sampler", "CPU seconds", "of which the density", "acceptance", "min ESS", "median",
           "max", "min ESS / s", "paper: acceptance", "min, median, max ESS"]


def constant(c):
    return Finite(gain=Power(c=c, k=0.0))


def samplers(name):
    """Name -> (sampler, schedule, name in the paper or None)."""
    leapfrog = LEAPFROG.get(name, 5)
    hmc = fk.HMC(metric="fixed", n_steps=leapfrog, jitter=0.0, target_acceptance=0.7)
    langevin = fk.MALA(step_size=np.sqrt(0.5 / DIMENSIONS[name]), target_acceptance=0.54)
    return {
        "gadMALAf": (fk.GradientAdaptiveMALA(), Finite(), "gadMALAf"),
        "gadMALAe": (fk.GradientAdaptiveMALA(exact=True), Finite(), "gadMALAe"),
        "gadRWM": (fk.GradientAdaptiveRandomWalk(), Finite(), "gadRWM"),
        "AM, as released": (released.AdaptiveMetropolis(), Finite(), "AM"),
        "MALA": (langevin, constant(0.005 / 0.54), "MALA"),
        "RWM": (fk.RandomWalk(target_acceptance=0.25), constant(0.02), "RWM"),
        f"HMC, {leapfrog} steps": (hmc, Finite(), f"HMC-{leapfrog}"),
        "NUTS": (fk.NUTS(), Finite(), "NUTS"),
        "Fisher MALA": (fk.FisherAdaptiveMALA(), Finite(), None),
        "Barker, dense": (fk.BarkerProposal(metric="dense"), Finite(), None),
        "autoMALA": (fk.AutoMALA(metric="diagonal"), Finite(), None),
        "RAM": (fk.RobustAdaptiveMetropolis(windows=False), Finite(), None),
        "DRAM": (fk.DelayedRejectionAdaptiveMetropolis(), Finite(), None),
    }


DIMENSIONS = {"neal": 100, "australian": 15, "heart": 14, "pima": 8, "ripley": 3, "german": 25,
              "caravan": 86}


def target_of(name):
    return fk.targets.neal_gaussian() if name == "neal" else fk.targets.logistic_regression(name)


def seconds_of_density(target, needs_gradient):
    """Return the time of one evaluation of the compiled density, from a run with little else."""
    d = target.dim
    walk = fk.HMC(metric="fixed", step_size=1e-6, n_steps=1000, jitter=0.0) if needs_gradient else (
        fk.RandomWalk(proposal_cov=1e-12))
    calls = 20_000 if d < 80 or not hasattr(target, "X") else 2000
    begun = time.process_time()
    result = fk.sample(target, np.zeros(d), sampler=walk, tune=0, chains=1, progress=False,
                       draws=calls // 1000 if needs_gradient else calls, check_gradient=False,
                       search=False)
    return (time.process_time() - begun) / result.evaluations


def measure(target, sampler, schedule, steps, repeats, seed):
    """Seconds, acceptance, evaluations, and min, median, max ESS, (repeats, 6)."""
    rows = []
    for seed_ in np.random.SeedSequence(seed).spawn(repeats):
        x0 = np.random.default_rng(seed_).standard_normal(target.dim)
        begun = time.process_time()
        result = fk.sample(target, x0, sampler=sampler, schedule=schedule, draws=steps, tune=steps,
                           chains=1, seed=seed_, keep_warmup=False, progress=False,
                           check_gradient=False, search=False)
        seconds = time.process_time() - begun
        ess = fk.diagnostics.ess_range(result.draws)
        rows.append([seconds, result.acceptance[0], result.evaluations, *np.ravel(ess)])
    return np.array(rows)


def experiment(name, steps, repeats, seed):
    """The rows of one target's table."""
    target, rows = target_of(name), []
    density = {needed: seconds_of_density(target, needed) for needed in (False, True)}
    for label, (sampler, schedule, known) in samplers(name).items():
        found = measure(target, sampler, schedule, steps, repeats, seed)
        seconds, acceptance, evaluations, least, middle, most = found.mean(axis=0)
        alone = density[sampler.needs_gradient] * evaluations
        speed = found[:, 3] / found[:, 0]
        row = [label, f"{seconds:.3g}", f"{100 * alone / seconds:.0f} %", f"{acceptance:.3f}",
               f"{least:,.0f}", f"{middle:,.0f}", f"{most:,.0f}",
               f"{speed.mean():,.0f} ({speed.std(ddof=1) if repeats > 1 else 0:,.0f})"]
        paper = PUBLISHED[name].get(known)
        row += ["", ""] if paper is None else [
            "" if paper[1] is None else f"{paper[1]:.3f}",
            ", ".join(f"{value:,.0f}" for value in paper[2:5])]
        print(name, *row, sep=" | ", flush=True)
        rows.append(row)
    return rows


def main():
    chosen = options(__file__, __doc__, quick="2 repeats of 4000 steps, of caravan 200",
                     only=DIMENSIONS)
    for name in [chosen.only] if chosen.only else DIMENSIONS:
        steps, repeats = (STEPS, REPEATS) if not chosen.quick else (
            200 if name == "caravan" else 4000, 2)
        rows = experiment(name, steps, repeats, chosen.seed)
        title = "Neal's Gaussian" if name == "neal" else name.capitalize()
        command = f"python -m bench.papers.titsias2019 --only {name}"
        text = heading(f"{title}, d = {DIMENSIONS[name]}", command, chosen) + (
            f"\nMeans over {repeats} repeats of {steps:,} steps of warm-up and as many draws; "
            "min ESS / s with its standard deviation. \"Of which the density\": the same number of "
            "evaluations of the compiled density, and of its gradient where the sampler uses it, "
            "alone.\n\n") + table(COLUMNS, rows)
        write(chosen.folder / f"{name}.md", text)


if __name__ == "__main__":
    main()
