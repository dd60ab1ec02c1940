"""Traces, with histograms and rank bars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastkam.arguments import check_integer, checked_names, counted
from fastkam.plots.foreign import check_backend, drawn_by_arviz
from fastkam.plots.select import (
    MOST_BINS,
    MOST_COUNTED,
    MOST_POINTS,
    chosen,
    circles_of,
    not_finite,
    outside,
    range_of,
    spaced,
    thinned,
    widened,
)
from fastkam.plots.style import (
    GRAY,
    color_of,
    dots,
    explain,
    few_ticks,
    finite,
    grid,
    panels,
    quiet,
    say,
    thousands,
    title,
)
from fastkam.plots.truths import Truths, beyond, mark, reaching, true_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastkam.result import Result

MOST_BARS = 8  # chains with a row of bars each; more are an image with a row each
BINS = 20  # bins of ranks
LEAST_RANKED = 5  # draws of a chain for each bin of ranks


@checked_names
def plot_trace(
    result: Result,
    var_names: str | Iterable[str] | None = None,
    *,
    truths: Truths = None,
    most: int = 8,
    bins: int = 40,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    backend: Literal["matplotlib", "arviz"] | None = None,
) -> Figure:
    """Each coordinate against the draw's number, its histogram and its ranks, one color per chain.

    Chains that agree have rank bars of equal height: each bar is the number of a chain's draws
    among those of all chains with ranks in that interval, in units of the expected number. One
    chain is compared with itself: its first half with its second. If there are more than
    eight chains, each is a row of an image, in which darker is higher.

    Parameters
    ----------
    result : Result
    var_names : str or list of str, optional
        Parameters, extras, or single elements of these such as "theta[1]"; by default all
        coordinates or, if there are more than `most`, those with the smallest effective sample
        sizes.
    truths : dict or array (d,), optional
        True values, as dashed lines: {name: value} of parameters, extras or single elements of
        these, or the values of all coordinates; NaN or None where a value is not known. One that is
        far from all draws is in a note below the figure.
    most : int
        Number of coordinates shown if none are named.
    bins : int
        Bars of the histogram, at most 2000.
    ax : array of Axes, optional
        To draw into, three for each coordinate.
    figsize : tuple of two float, optional
        Inches.
    backend : {"matplotlib", "arviz"}, optional
        "arviz" has arviz-plots draw its own trace figure; "matplotlib" by default.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    For long chains only every k-th draw is shown, and the figure says so; it also says how many
    draws are not finite. These have no ranks. The axes leave out draws that lie far from all others
    and up to 2 % of the draws at each end of heavy tails, and the title says how many there are. A
    periodic coordinate is shown over its period.
    """
    bins = check_integer("bins", bins, least=1, most=MOST_BINS)
    what = chosen(result, var_names, most)
    true = true_values(result, truths, what.labels)
    if check_backend(backend, ax, true) == "arviz":
        return drawn_by_arviz("plot_trace", result, what, figsize)
    size = (9.0, 1.45 * len(what.labels) + 0.6)
    figure, axes = grid(len(what.labels), 3, size, ax=ax, figsize=figsize, width_ratios=[3, 1, 1.5])
    every, limits, circles = 1, [], circles_of(result, what.labels)
    own = len(axes[0, 0].lines)  # of the user
    for i, (row, label) in enumerate(zip(axes, what.labels, strict=True)):
        every = trace_row(row[:2], what.draws[:, :, i], label, bins, circle=circles[i])
        row[1].sharey(row[0])
        if not np.isnan(true[i]):
            row[0].set_ylim(reaching(row[0].get_ylim(), true[i]))
        limits.append(row[0].get_ylim())
        for one in row[:2]:
            mark(one, y=true[i])
        row[1].tick_params(labelleft=False)
        few_ticks(row[0], whole=True)
        rank_bars(row[2], what.draws[:, :, i])
    name_chains(axes[0, 0], axes[0, 0].lines[own : own + len(what.draws)])
    axes[-1, 0].set_xlabel("draw", fontsize=8)
    axes[0, 1].set_title("histogram", fontsize=9)
    axes[0, 2].set_title("ranks", fontsize=9)
    for row in axes[:-1]:
        for one in row:
            one.tick_params(labelbottom=False)
    say(figure, ax, [what.note, spaced(every), not_finite(what.draws),
                     beyond(true, limits, what.labels)])
    return figure


def name_chains(axes, lines):
    """Write above axes which of the lines is which chain, unless there are one or many."""
    if 1 < len(lines) <= MOST_BARS:
        names = [f"chain {k}" if k == 0 else str(k) for k in range(len(lines))]
        legend = axes.legend(
            lines, names, loc="lower right", bbox_to_anchor=(1, 1.03), ncols=len(lines),
            fontsize=7, frameon=False, handlelength=1, handletextpad=0.4, columnspacing=0.9,
            borderpad=0, borderaxespad=0)
        for line in legend.get_lines():
            line.set_linewidth(2)


def trace_row(axes, x, label, bins, first=0, circle=None):
    """Draw the traces (chains, draws) and the histograms into two axes; return the spacing.

    The draws are counted from `first` on. `circle` has the ends of a periodic coordinate.
    """
    shown, every = thinned(x, MOST_POINTS)
    known, _ = thinned(x, max(1, MOST_COUNTED // len(x)))
    limits = range_of(finite(known), bins) if circle is None else circle
    away = outside(known[:, :, None], limits[None])
    cut = away > 0 or circle is not None
    edges = np.linspace(limits[0], limits[1], bins + 1) if cut else edges_of(finite(known), bins)
    # chains at the same place hide each other less if the lines are thin
    width = 0.5 if shown.shape[1] > 300 else 0.8
    steps = first + np.arange(x.shape[1])[::every]
    if not len(finite(known)):
        explain(axes[0], "not finite")
    for k, (line, values) in enumerate(zip(shown, known, strict=True)):
        axes[0].plot(steps, line, lw=width, alpha=0.8, color=color_of(k), **dots(len(steps)))
        inside = finite(values)
        if ((inside >= edges[0]) & (inside <= edges[-1])).any():
            axes[1].hist(inside, edges, histtype="step", orientation="horizontal",
                         density=True, lw=1, color=color_of(k))
    title(axes[0], label, f" ({away} of {counted(known.size, 'draw')} outside)" if away else "")
    axes[0].margins(x=0.01)
    if cut:
        axes[0].set_ylim(limits)
    if len(steps) == 1:
        axes[0].set_xlim(steps[0] - 0.5, steps[0] + 0.5)
    thousands(axes[0].xaxis)
    axes[1].set_xticks([])
    for one in axes:
        quiet(one)
    return every


def edges_of(x, bins):
    """The edges of bins for the finite numbers x, few or none of which may be different."""
    low, high = (x.min(), x.max()) if len(x) else (0.0, 0.0)
    half = 0.5 if low == high else 0.0
    low, high = widened(low - half, high + half, bins)
    return np.linspace(low, high, bins + 1)


@checked_names
def plot_rank(
    result: Result,
    var_names: str | Iterable[str] | None = None,
    *,
    most: int = 9,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    backend: Literal["matplotlib", "arviz"] | None = None,
) -> Figure:
    """The ranks of each chain's draws among those of all, one histogram per chain.

    If chains agree, every bar has about the height 1, which is the expected number of draws. A
    chain with larger values has bars that rise to the right, and a chain with a wider distribution
    has high bars at both ends.

    Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021).
    Rank-normalization, folding, and localization: an improved R-hat. Bayesian Analysis 16, 667-718.

    Parameters
    ----------
    result : Result
        One chain is compared with itself: its first half with its second.
    var_names, most, figsize, backend
        As in `plot_trace`.
    ax : array of Axes, optional
        One for each coordinate.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    At least ten draws a chain are needed, 20 of a single one. Draws that are not finite have no
    ranks, and the figure says how many there are.
    """
    what = chosen(result, var_names, most)
    if check_backend(backend, ax) == "arviz":
        return drawn_by_arviz("plot_rank", result, what, figsize)
    height = 0.7 + 0.28 * min(max(2, len(what.draws)), MOST_BARS)
    figure, axes = panels(len(what.labels), (2.7, height), ax=ax, figsize=figsize)
    every = 1
    for i, (one, label) in enumerate(zip(axes, what.labels, strict=True)):
        every = rank_bars(one, what.draws[:, :, i])
        title(one, label)
        one.set_xlabel("rank", fontsize=8)
    say(figure, ax, [what.note, f"ranks of {spaced(every)}" if every > 1 else "",
                     not_finite(what.draws)])
    return figure


def rank_bars(axes, x):
    """Draw stacked histograms of the ranks of x (chains, draws); return the spacing of draws.

    Draws that are not finite have no ranks. If there are no bars to compare, a text says why.
    """
    x, every = thinned(x, max(1, MOST_COUNTED // len(x)))
    names = [str(k) for k in range(len(x))]
    if len(x) == 1 and x.shape[1] > 1:
        half = x.shape[1] // 2
        x, names = x[:, -2 * half:].reshape(2, half), ["1st half", "2nd half"]
    known, values, chains = np.isfinite(x), finite(x), len(x)
    bins = min(BINS, values.size // (LEAST_RANKED * chains))
    if bins < 2 or (values == values[0]).all():
        explain(axes, "not finite" if not values.size else "too few draws" if bins < 2
                else "never moves")
        axes.set(xticks=[], yticks=[])
        quiet(axes)
        return every
    # equal draws are in random order
    order = np.lexsort((np.random.default_rng(0).random(values.size), values))
    ranks = np.full(x.shape, np.nan)
    ranks[known] = np.argsort(order) + 1
    edges = np.linspace(0.5, values.size + 0.5, bins + 1)
    heights = np.array([np.histogram(finite(row), edges)[0] * bins / max(1, len(finite(row)))
                        for row in ranks])
    if chains > MOST_BARS:
        axes.imshow(heights, aspect="auto", cmap="Greys", vmin=0, vmax=2, origin="lower",
                    extent=(edges[0], edges[-1], -0.5, chains - 0.5), interpolation="nearest")
        axes.set_ylabel("chain", fontsize=7)
    else:
        # one unit per chain: the expected height is half of it; bars above twice that are cut off
        for k, row in enumerate(heights):
            axes.stairs(k + np.minimum(row, 1.9) / 2, edges, baseline=k, fill=True, alpha=0.75,
                        color=color_of(k))
            axes.axhline(k + 0.5, color=GRAY, lw=0.7, ls=":")
        axes.set_ylim(0, chains)
        axes.set_yticks(np.arange(chains) + 0.5, names)
        axes.set_ylabel("chain", fontsize=7)
    axes.set_xlim(edges[0], edges[-1])
    axes.tick_params(labelsize=7)
    axes.set_xticks([edges[0], edges[-1]], ["low", "high"])
    # none if they are hidden, as within shared axes
    for label, side in zip(axes.get_xticklabels(), ("left", "right"), strict=False):
        label.set_horizontalalignment(side)
    quiet(axes)
    return every
