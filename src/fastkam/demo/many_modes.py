"""Demonstration: sixteen separate modes, from one starting point, by the default call.

    pi(x) = sum_k w_k N(x; m_k, s_k^2 I),   w_k proportional to 1, 2, 3, 4, 1, 2, ...

The modes lie on a spiral, each some 5 from the nearest, with standard deviations 0.18 to 0.42.
"""

from __future__ import annotations

import numpy as np

from fastkam.demo import peer, report
from fastkam.diagnostics.checks import convergence
from fastkam.plots.style import new_figure, size_of_points

K = 16
NUMBER = np.arange(K)
ANGLES = NUMBER * np.pi * (3 - np.sqrt(5))  # of sunflower seeds
MODES = 3 * np.sqrt(NUMBER + 0.5)[:, None] * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
SDS = np.array([0.42, 0.28, 0.18])[NUMBER % 3]
WEIGHTS = (1 + NUMBER % 4) / (1 + NUMBER % 4).sum()
START = [0.0, 0.0]
LOG_HEIGHTS = np.log(WEIGHTS / SDS**2)


def logp(x):
    """The log density at x (2,), up to a constant."""
    terms = LOG_HEIGHTS - 0.5 * np.square(x - MODES).sum(axis=1) / SDS**2
    highest = terms.max()
    return highest + np.log(np.exp(terms - highest).sum())


def mode_of(x):
    """The mode to which each row of x (n, 2) belongs most likely."""
    distances = np.square(x[:, None] - MODES).sum(axis=2)
    return np.argmax(LOG_HEIGHTS - 0.5 * distances / SDS**2, axis=1)


def run(folder, *, seed, quick):
    """Sample, print what is seen, write figure and draws to `folder`."""
    report.heading("Sixteen modes, from one starting point, by the default call")
    print("fk.sample(logp, [0, 0]): a Python function, no gradient, nothing said of the modes.")
    draws = 500 if quick else None  # as many steps as the draws need
    result = report.sampled(logp, START, draws=draws, names=["x", "y"], seed=seed)
    other = peer.emcee_run(logp, START, result.evaluations, seed)
    table(result, other)
    report.say(f"{judged(result)} {report.speed(result)}")
    report.say(peer.about(other))
    print()
    report.save(result, lambda: figure(result, other), folder, "many-modes")
    return result


def shares(draws):
    """The share of the draws (chains, n, 2) in each mode, (K,)."""
    flat = draws.reshape(-1, 2)
    return np.bincount(mode_of(flat), minlength=K) / len(flat)


def missed(draws):
    """The total variation distance of the shares of the modes from the truth."""
    return np.abs(shares(draws) - WEIGHTS).sum() / 2


def table(result, other):
    """Print how many modes were found, and how right their shares are."""
    runs = {"fastkam": (result.draws, result.seconds)}
    if other is not None:
        runs["emcee"] = (other.draws, other.seconds)
    rows = [
        ["modes found", "16", *(str(int((shares(x) > 0).sum())) for x, _ in runs.values())],
        ["probability in the wrong mode", "0", *(f"{missed(x):.3f}" for x, _ in runs.values())],
        ["mean of x", f"{WEIGHTS @ MODES[:, 0]:.2f}",
         *(f"{x[..., 0].mean():.2f}" for x, _ in runs.values())],
        ["seconds", "", *(f"{seconds:.1f}" for _, seconds in runs.values())],
    ]
    report.table(["", "truth", *runs], rows)


def judged(result):
    """Summarize the run, as a text: R-hat alone cannot see a mode that no chain visits."""
    found = int((shares(result.draws) > 0).sum())
    if found < K:
        return f"{K - found} of the {K} modes were not found: means and shares are wrong."
    return f"All modes were found. {convergence(result.summary())}"


def figure(result, other):
    """The draws of both, over circles that hold 99 % of each mode."""
    from matplotlib.patches import Circle

    panels = {"fastkam, default call": result.draws}
    if other is not None:
        panels["emcee, as many evaluations"] = other.draws
    drawn = new_figure(4.6 * len(panels) + 0.4, 4.8)
    for axes, (title, draws) in zip(drawn.subplots(1, len(panels), squeeze=False).flat,
                                    panels.items(), strict=True):
        flat = draws.reshape(-1, 2)[:: max(1, draws[..., 0].size // 4000)]
        axes.plot(*flat.T, ".", ms=size_of_points(len(flat)), mew=0, alpha=0.5, color="#0072B2",
                  rasterized=True)
        for mode, sd in zip(MODES, SDS, strict=True):
            axes.add_patch(Circle(mode, sd * np.sqrt(-2 * np.log(0.01)), fill=False, lw=0.8))
        found = int((shares(draws) > 0).sum())
        axes.set_title(f"{title}: {found} of {K} modes,\n{missed(draws):.0%} of the probability in "
                       "the wrong one", fontsize=10)
        axes.set(xlim=(-14, 14), ylim=(-14, 14), xlabel="x", ylabel="y", aspect="equal")
    return drawn
