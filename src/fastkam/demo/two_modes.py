"""Demonstration: cyclical kernel adaptive Metropolis between two distant modes."""

from __future__ import annotations

import numpy as np

import fastkam as fk
from fastkam.demo import report
from fastkam.diagnostics import mode_occupancy, summary
from fastkam.diagnostics.checks import verdict
from fastkam.plots.pair import scatter
from fastkam.plots.style import new_figure
from fastkam.plots.trace import trace_row

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
    result = report.sampled(target, START, sampler="ckam", **options)
    walk = report.sampled(target, START, sampler=fk.RandomWalk(proposal_cov=WIDE_STEP**2),
                          **options)

    table(result, target)
    report.say(judged(result, target))
    report.say(report.speed(result))
    report.say(compared(result, walk, target))
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


def judged(result, target):
    """What the run is worth, in words: R-hat alone cannot see a mode that no chain visits."""
    modes = occupancy(result, target)
    if not modes.switches.any():
        return (
            f"No chain has left its first mode. R-hat, {result.summary()['r_hat'].max():.3f}, "
            "cannot see a mode that no chain visits: mean and sd are wrong."
        )
    counts = ", ".join(map(str, modes.switches))
    return (
        f"{verdict(result.summary())} Changes of mode between kept draws: {counts}. "
        f"The share of mode 1 is off by {missed(result, target):.3f}."
    )


def missed(result, target):
    """How far the share of a mode, over all chains, is from its truth; the greatest of these."""
    modes = occupancy(result, target)
    return np.abs(modes.fraction.mean(axis=0) - modes.weights).max()


def compared(result, walk, target):
    """What a plain random walk with wide steps does on the same target, in words."""
    known = walk.summary()
    words = (
        f"As many steps of a plain random walk with steps of sd {WIDE_STEP:.0f}: least ESS "
        f"{known['ess_bulk'].min():.0f}, R-hat at most {known['r_hat'].max():.3f}, the share of "
        f"mode 1 off by {missed(walk, target):.3f}, in {walk.seconds:.2g} s"
    )
    if worth(walk, target) > worth(result, target):
        words += (
            ": on this target the walk is the better choice. In two dimensions steps can be wide "
            "enough to cross 16 now and then; in many they cannot."
        )
    return words.removesuffix(".") + "."


def worth(result, target):
    """Effective draws a second; nothing for a run that saw one mode only."""
    if not occupancy(result, target).switches.any():
        return 0.0
    return result.summary()["ess_bulk"].min() / result.seconds


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
