"""Demonstration: a long bent ridge by the default call.

    x ~ N(0, 10^2),   y = (x^2 - 100) / 10 + e,   z ~ N(0, 1),   e ~ N(0, 1)

The banana of Haario, H., Saksman, E. and Tamminen, J. (1999), Adaptive proposal distribution for
random walk Metropolis algorithm, Computational Statistics 14, 375-395, with its strong bend.
"""

from __future__ import annotations

import numpy as np

from fastkam.demo import peer, report
from fastkam.diagnostics.checks import convergence
from fastkam.plots.pair import scatter
from fastkam.plots.style import new_figure

NAMES = ["x", "y", "z"]
START = [0.0, 0.0, 0.0]
# Var y = Var(x^2) / 100 + 1, and the variance of the square of N(0, v) is 2 v^2
SDS = np.array([10.0, np.sqrt(201.0), 1.0])
BOUNDS = np.array([[-33.0, 33.0], [-16.0, 90.0]])


def logp(x):
    """The log density at x (3,), up to a constant."""
    e = x[1] - (x[0] ** 2 - 100) / 10
    return -0.5 * (x[0] ** 2 / 100 + e**2 + x[2] ** 2)


def run(folder, *, seed, quick):
    """Sample, print what is seen, write figure and draws to `folder`."""
    report.heading("A long bent ridge, by the default call")
    print("fk.sample(logp, [0, 0, 0]): the ridge is a parabola some 60 long and 1 wide.")
    draws = 500 if quick else None  # as many steps as the draws need
    result = report.sampled(logp, START, draws=draws, names=NAMES, seed=seed)
    other = peer.emcee_run(logp, START, result.evaluations, seed)
    table(result, other)
    report.say(f"{convergence(result.summary())} {report.speed(result)}")
    report.say(peer.about(other))
    print()
    report.save(result, lambda: figure(result, other), folder, "ridge")
    return result


def table(result, other):
    """Print the standard deviations beside the truth, with the standard errors of ours."""
    runs = {"fastkam": result.draws} | ({} if other is None else {"emcee": other.draws})
    errors = result.summary()["mcse_sd"]
    rows = [[f"sd of {name}", f"{SDS[i]:.2f}", *(f"{x[..., i].std():.2f}" for x in runs.values()),
             f"{errors[i]:.2f}"] for i, name in enumerate(NAMES)]
    reach = [f"{(np.abs(x[..., 0]) > 20).mean():.3f}" for x in runs.values()]
    rows.append(["probability of |x| > 20", "0.046", *reach, ""])
    report.table(["", "truth", *runs, "our standard error"], rows)


def figure(result, other):
    """Draws of x and y of both, over the density's contours."""
    panels = {"fastkam, default call": result.draws}
    if other is not None:
        panels["emcee, as many evaluations"] = other.draws[::4]
    drawn = new_figure(4.6 * len(panels) + 0.4, 4)

    def marginal(points):
        return logp(np.stack([points[:, 0], points[:, 1], np.zeros(len(points))]))

    for axes, (title, draws) in zip(drawn.subplots(1, len(panels), squeeze=False).flat,
                                    panels.items(), strict=True):
        scatter(axes, draws[..., :2], BOUNDS, marginal, 600)
        axes.set_title(title, fontsize=10)
        axes.set(xlabel="x", ylabel="y")
    return drawn
