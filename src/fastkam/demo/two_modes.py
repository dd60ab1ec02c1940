"""Demonstration: cyclical kernel adaptive Metropolis between two distant modes."""

from __future__ import annotations

import numpy as np

import fastkam as fk
from fastkam.demo import report
from fastkam.diagnostics import mode_occupancy, summary
from fastkam.plots import new_figure, scatter, trace_row

START = (-8.0, 0.0)  # the middle of the left mode
BOUNDS = np.array([[-13.0, 14.0], [-5.5, 5.5]])
WIDE_STEP = 10.0  # sd of the random walk that is set beside it


def run(folder, *, seed, quick):
    """Sample, print what is seen, write figure and draws to `folder`."""
    report.heading("Two modes, 16 apart: cyclical kernel adaptive Metropolis (cKAM)")
    print("1/2 N((-8, 0), I/2) + 1/2 N((8, 0), 2 I); every chain starts in the left mode.")
    target = fk.targets.two_mode()
    draws, tune = (5_000, 50_000) if quick else (20_000, 200_000)
    options = {"draws": draws, "tune": tune, "thin": 20, "chains": 4, "names": ["x", "y"],
               "seed": seed, "keep_warmup": False}
    result = fk.sample(target, START, sampler="ckam", **options)
    walk = fk.sample(target, START, sampler=fk.RandomWalk(cov=WIDE_STEP**2), **options)

    table(result, target)
    print(report.verdict(result.summary()))
    print(report.speed(result))
    print(f"Between kept draws: {switches(result, target)}.")
    print(compared(result, walk, target))
    print()
    report.save(result, lambda: figure(result, target), folder, "two-modes")
    return result


def table(result, target):
    """Print each coordinate beside its truth, and the modes."""
    known = summary(result.draws, ["x", "y"])
    truth_sd = np.sqrt(np.diag(target.cov))
    rows = [
        [label, *(f"{value:.2f}" for value in (
            known["mean"][i], target.mean[i], known["sd"][i], truth_sd[i])),
         f"{known['ess_bulk'][i]:.0f}", f"{known['r_hat'][i]:.3f}"]
        for i, label in enumerate(known.labels)
    ]
    report.table(["", "mean", "truth", "sd", "truth", "ESS", "R-hat"], rows)
    modes = occupancy(result, target)
    rows = [
        [f"in mode {k + 1}", f"{modes.fraction[:, k].mean():.3f}", f"{modes.weights[k]:.3f}",
         "  ".join(f"{value:.3f}" for value in modes.fraction[:, k])]
        for k in range(len(modes.weights))
    ]
    print(report.indented(report.aligned([["", "fraction", "truth", "each chain"], *rows])) + "\n")


def occupancy(result, target):
    """The fractions of the draws in each mode, a chain a row."""
    return mode_occupancy(result.draws, target.mode_of, target.mode_weights)


def switches(result, target):
    """How often the chains changed the mode, in words."""
    counts = occupancy(result, target).switches
    return f"{counts.sum()} changes of mode (a chain: {', '.join(map(str, counts))})"


def compared(result, walk, target):
    """What a plain random walk with wide steps does on the same target, in words."""
    x, name = walk.summary(), f"a plain random walk with steps of sd {WIDE_STEP:.0f}"
    left = occupancy(walk, target).fraction[:, 0].mean()
    rates = [some.summary()["ess_bulk"].min() / some.seconds for some in (result, walk)]
    words = (
        f"As many steps of {name}: {left:.3f} of the draws in mode 1, R-hat at most "
        f"{x['r_hat'].max():.3f},\nleast ESS {x['ess_bulk'].min():.0f} in {walk.seconds:.2g} s"
    )
    if rates[1] > rates[0]:
        return words + ": on this target the walk is the better choice. It knows nothing of the\n" \
            "modes, but 16 is a distance that such steps can cross in two dimensions."
    return words + "."


def figure(result, target):
    """Draws over the density's contours, and the trace of x."""
    drawn = new_figure(9, 6)
    grid = drawn.add_gridspec(2, 4, height_ratios=[3, 2])
    above = drawn.add_subplot(grid[0, :])
    scatter(above, result.draws, BOUNDS, target.logp)
    above.set(xlabel="x", ylabel="y", title="cKAM draws; contours hold 50, 90 and 99 % of the mass")
    trace = drawn.add_subplot(grid[1, :3])
    trace_row([trace, drawn.add_subplot(grid[1, 3], sharey=trace)], result.draws[:, :, 0], "x", 60)
    trace.set_xlabel("draw")
    return drawn
