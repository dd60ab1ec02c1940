"""Figures of ranks: the distribution function with its band, or histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam.arguments import check_integer, check_list, check_number, near, shown
from fastkam.plots.style import grid, plain
from fastkam.testing.ranks import band, counts_below

if TYPE_CHECKING:
    from fastkam.testing.report import Calibration

MOST_PANELS, MOST_COLUMNS = 16, 4
PANEL, HEIGHT, ALONE = 2.6, 2.1, 2.0  # inches
BINS = 20
KINDS = ("ecdf", "histogram")
RIGHT, WRONG, BAND = "C0", "C3", "0.87"


def plot_ranks(found: Calibration, kind: str, names: str | Sequence[str] | None,
               columns: int | None, width: float | None, ax: Any, figsize: Any) -> Any:
    """The figure of `Calibration.plot`, which describes the parameters."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    wanted = list(found.p_values)[:MOST_PANELS] if names is None else names
    wanted = [wanted] if isinstance(wanted, str) else check_list("names", wanted)
    for name in wanted:
        if not isinstance(name, str) or name not in found.ranks:
            raise ValueError(f"names has {shown(name)}, and ranks are of {', '.join(found.ranks)}"
                             f"{near(name, found.ranks)}")
    if not wanted:
        raise ValueError("there are no ranks to plot")
    if columns is None:
        columns = min(MOST_COLUMNS, int(np.ceil(np.sqrt(len(wanted)))))
    columns = min(check_integer("columns", columns, least=1), len(wanted))
    rows = -(-len(wanted) // columns)
    natural = PANEL * columns + (ALONE if columns == 1 else 0)
    if width is not None and (ax is not None or figsize is not None):
        raise ValueError("width excludes ax and figsize, which fix it")
    width = natural if width is None else check_number("width", width, above=0)
    size = width, (HEIGHT * rows + 0.3) * max(0.7, min(1.3, width / natural))
    shape = (rows, columns) if ax is None else (1, len(wanted))
    shared = {"sharex": True, "sharey": True}
    figure, panels = grid(*shape, size, ax=ax, figsize=figsize, **shared)
    draw, rate = (DRAW[kind], found.false_alarm_rate / len(found.ranks))
    wrong = set(found.deviating)
    for axes, name in zip(panels.flat, wanted, strict=False):
        draw(axes, found.ranks[name], found.draws, rate, WRONG if name in wrong else RIGHT)
        axes.set_title(f"{plain(name)}, p = {found.p_values[name]:.2g}", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels.flat[len(wanted):]:
        axes.set_visible(False)
    across, up = "rank / draws", "ECDF - uniform" if kind == "ecdf" else "fits / expected"
    if ax is None:
        figure.supxlabel(across, fontsize=8)
        figure.supylabel(up, fontsize=8)
    for axes in panels.flat if ax is not None else ():
        axes.set_xlabel(across, fontsize=8)
        axes.set_ylabel(up, fontsize=8)
    return figure


def draw_ecdf(axes: Any, ranks: Any, L: int, rate: float, color: str) -> None:
    """The distribution function of ranks less that of uniform ones, over its band."""
    n = len(ranks)
    z = np.arange(1, L + 1) / (L + 1)
    low, high = band(n, L, rate)
    ends = np.concatenate([[0], z, [1]])
    edges = [np.concatenate([[0], part / n - z, [0]]) for part in (low, high)]
    axes.fill_between(ends, *edges, color=BAND, lw=0)
    axes.axhline(0, color="0.5", lw=0.6)
    axes.plot(ends, np.concatenate([[0], counts_below(ranks, L) / n - z, [0]]), color=color, lw=1.2)
    axes.set_xlim(0, 1)


def draw_histogram(axes: Any, ranks: Any, L: int, rate: float, color: str) -> None:
    """Ranks in bins of nearly equal numbers of values, over the range of the count in each."""
    from scipy.stats import binom

    n = len(ranks)
    bins = min(BINS, L + 1, max(2, n // 10))
    edges = np.round(np.linspace(0, L + 1, bins + 1)).astype(int)
    share = np.diff(edges) / (L + 1)
    expected = n * share
    low, high = (binom.ppf(q, n, share) for q in (rate / bins / 2, 1 - rate / bins / 2))
    places = edges / (L + 1)
    axes.stairs(high / expected, places, baseline=low / expected, fill=True, color=BAND)
    axes.axhline(1, color="0.5", lw=0.6)
    axes.stairs(np.histogram(ranks, edges - 0.5)[0] / expected, places, color=color, lw=1.2)
    axes.set_xlim(0, 1)
    axes.set_ylim(0)


DRAW = {"ecdf": draw_ecdf, "histogram": draw_histogram}
