"""Comparison of samplers: evaluations and CPU seconds until every coordinate has ESS 400.

    python -m bench.samplers [--only gradient_free|gradient] [--quick]

Four chains from N(0, I) without a search, as many steps of warm-up as draws, default parameters.
A run is doubled, from 1000 draws, until bulk and tail ESS of every coordinate are 400, R-hat at
most 1.02, and the mean, where it is known, within 5 standard errors; to 256 000 draws a chain, or
the first run that takes 4 CPU seconds. The median of three seeds.
"""

import time
import warnings
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from fastkam.samplers import SAMPLERS

LONGEST = 8
TARGETS = {
    "Gaussian, d = 2": lambda: fk.targets.Gaussian(np.zeros(2), [[1.0, 0.9], [0.9, 1.0]]),
    "Gaussian, scales 0.1 to 10, d = 10": lambda: fk.targets.Gaussian(
        np.zeros(10), np.geomspace(0.01, 100, 10)),
    "correlated Gaussian": fk.targets.correlated_gaussian,
    "Student, 5 degrees, d = 5": lambda: fk.targets.StudentT(5, 5.0),
    "Gaussian, scales 0.01 to 1, d = 100": fk.targets.neal_gaussian,
    "banana, mild, d = 8": fk.targets.banana,
    "banana, strong, d = 8": lambda: fk.targets.banana(b=0.1),
    "ring, d = 2": fk.targets.ring,
    "flower, d = 8": fk.targets.Flower,
    "two modes, d = 2": fk.targets.two_mode,
    "five components, d = 2": fk.targets.five_component,
    "double banana, d = 2": fk.targets.double_banana,
    "eight modes, d = 4": fk.targets.basis_vectors,
}
LEFT_OUT = {"cholam", "ckam", "kpca", "scout"}  # no defaults for any scale, or slower than others
GRADIENT = ("mala", "fishermala", "barker", "automala", "gadmala", "hmc", "nuts")


def contenders(gradient):
    """Name -> sampler, where there is a gradient or none."""
    found = {name: SAMPLERS[name]() for name in SAMPLERS
             if (name in GRADIENT if gradient else not SAMPLERS[name]().needs_gradient)
             and name not in LEFT_OUT}
    if gradient:
        found |= {"jumps around nuts": fk.ModeJumping(sampler=fk.NUTS())}
    return found | {"jumps around pt": tempered(gradient)}


def tempered(gradient):
    """Mode jumping around few replicas with a wide reference."""
    inner = fk.HMC(n_steps=2) if gradient else "ram"
    return fk.ModeJumping(sampler=fk.ParallelTempering(
        sampler=inner, n_replicas=5, min_beta=0.02, reference_scale=100.0))


def is_enough(target, result):
    x = result.draws
    if np.ptp(x, axis=1).min() == 0:
        return False
    for j in np.argsort(-x.std((0, 1))):        # of wide coordinates, where most fail, first
        one = x[:, :, j:j + 1]
        ess = fk.diagnostics.ess_bulk(one)[0]
        if min(ess, fk.diagnostics.ess_tail(one)[0]) < 400 or fk.diagnostics.r_hat(one)[0] > 1.02:
            return False
        off = 0 if target.mean is None else np.abs(one.mean() - target.mean[j])
        if off > 5 * one.std() / np.sqrt(ess):
            return False
    return True


def effort(target, sampler, seed, longest):
    """(evaluations, CPU seconds) of the first run that is long enough; infinite where none is."""
    x0 = np.random.default_rng(seed).standard_normal((4, target.dim))
    for k in range(longest + 1):
        n = 1000 * 2**k
        begun = time.process_time()
        result = fk.sample(target, x0, sampler=sampler, search=False, draws=n, tune=n, chains=4,
                           seed=seed, keep_warmup=False, progress=False, threads=1)
        seconds = time.process_time() - begun
        if is_enough(target, result):
            return result.evaluations, seconds
        if seconds > 4:
            break
    return np.inf, np.inf


def cell(evaluations, seconds):
    return "-" if np.isinf(evaluations) else f"{evaluations / 1e3:,.0f}k, {1e3 * seconds:,.0f} ms"


def main():
    chosen = options(__file__, __doc__, quick="one seed, at most 2^5 times as long",
                     only=("gradient_free", "gradient"))
    warnings.simplefilter("ignore", fk.SamplingWarning)     # of chains that hardly move
    for kind in [chosen.only] if chosen.only else ("gradient_free", "gradient"):
        compare(kind, chosen)


def compare(kind, chosen):
    """Write one table."""
    seeds, longest = ([1], 5) if chosen.quick else ([1, 2, 3], LONGEST)
    samplers = contenders(kind == "gradient")
    rows, all_efforts = [], {name: [] for name in samplers}
    for label, make in TARGETS.items():
        target, row = make(), [label]
        for name, sampler in samplers.items():
            found = [effort(target, sampler, seed, longest) for seed in seeds]
            evaluations, seconds = np.median(found, axis=0)
            all_efforts[name].append(evaluations)
            row.append(cell(evaluations, seconds))
        print(*row, sep=" | ", flush=True)
        rows.append(row)
    best = np.min(list(all_efforts.values()), axis=0)
    with np.errstate(invalid="ignore"):
        ratios = {name: np.array(values) / best for name, values in all_efforts.items()}
    rows.append(["never got there", *(f"{np.isinf(values).sum()} of {len(values)}"
                                      for values in all_efforts.values())])
    rows.append(["evaluations against the best, median where it got there",
                 *(f"{np.median(r[np.isfinite(r)]):.1f}" if np.isfinite(r).any() else "-"
                   for r in ratios.values())])
    title = "with" if kind == "gradient" else "without"
    text = heading(f"Samplers {title} a gradient", f"python -m bench.samplers --only {kind}",
                   chosen) + (
        "\nThousands of evaluations, with gradients where these are used (four chains, warm-up "
        "among them), and CPU milliseconds until "
        f"bulk and tail ESS of every coordinate are 400; median of {len(seeds)} seeds; - where "
        f"{2 ** longest}000 draws, or 4 CPU seconds, were not enough.\n\n")
    text += table(["", *samplers], rows)
    write(Path(__file__).parent / chosen.folder.name / f"samplers-{kind}.md", text)


if __name__ == "__main__":
    main()
