"""The ladder of parallel tempering: inverse temperatures, swap rates and round trips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam.arguments import checked_names
from fastkam.diagnostics.tempering import tempering
from fastkam.plots.style import COLORS, GRAY, few_ticks, grid, look_of, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastkam.result import Result

MOST_LINES = 8  # chains with a line each


@checked_names
def plot_ladder(
    result: Result,
    *,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Inverse temperatures of the rungs, swap rates between neighbors, and round trips.

    Rates that are nearly equal along the ladder are the aim of its tuning; one that is much lower
    than the others is where the exchange is blocked. The number of round trips is how often a state
    has come from the hottest rung to the coldest.

    Parameters
    ----------
    result : Result
        A result of a sampler that tempers: see `fastkam.tempering`.
    ax : array of Axes, optional
        Three.
    figsize : tuple of two float, optional
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    TypeError, ValueError
        If it is not a Result, or its sampler has no ladder.
    """
    known = tempering(result)
    figure, axes = grid(1, 3, (9, 2.7), ax=ax, figsize=figsize)
    ladder, rates, trips = axes.flat
    rungs = np.arange(known.ladder.shape[1])
    few = len(known.ladder) <= MOST_LINES
    for k, (betas, swaps) in enumerate(zip(known.ladder, known.swap_rates, strict=True)):
        look = look_of(k) if few else {"color": GRAY, "alpha": 0.5}
        ladder.plot(rungs, betas, "o", ms=3, lw=1, **look | {"ls": look.get("ls", "-")})
        rates.plot(rungs[:-1] + 0.5, swaps, "o", ms=3, lw=1, **look | {"ls": look.get("ls", "-")})
    positive = known.ladder[known.ladder > 0]
    if positive.max() > 20 * positive.min():
        ladder.set_yscale("symlog", linthresh=float(positive.min()), linscale=0.5)
    ladder.set_xlabel("rung", fontsize=8)
    ladder.set_title("inverse temperature", loc="left", fontsize=9)
    rates.set(ylim=(0, 1.02), xlim=ladder.get_xlim())
    rates.set_xlabel("between rungs", fontsize=8)
    rates.set_title("swap rate", loc="left", fontsize=9)
    trips.bar(np.arange(len(known.round_trips)), known.round_trips, color=COLORS[0], width=0.7)
    trips.set_xlabel("chain", fontsize=8)
    trips.set_title("round trips", loc="left", fontsize=9)
    trips.set_ylim(0, max(1, known.round_trips.max() * 1.05))
    from matplotlib.ticker import MaxNLocator

    for one in axes.flat:
        few_ticks(one)
        one.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        quiet(one)
    trips.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure
