"""Figures of mixing: autocorrelation, and effective sample sizes of the first draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import check_integer, checked_names
from fastkam.diagnostics.draws import autocorrelation
from fastkam.plots.foreign import check_backend, drawn_by_arviz
from fastkam.plots.select import chosen
from fastkam.plots.style import (
    COLORS,
    GRAY,
    PALE,
    explain,
    few_ticks,
    look_of,
    panels,
    quiet,
    say,
    thousands,
    title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastkam.result import Result

MOST_LAGS = 100
MOST_CORRELATED = 100_000  # draws of a chain, the last ones
POINTS, FEW_POINTS = 20, 6  # sizes at which the effective sample size is computed
MOST_QUICK = 2_000_000  # most numbers for which POINTS sizes are used
ENOUGH = 400  # effective draws


@checked_names
def plot_autocorr(
    result: Result,
    var_names: str | Iterable[str] | None = None,
    *,
    max_lag: int | None = None,
    most: int = 9,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    backend: Literal["matplotlib", "arviz"] | None = None,
) -> Figure:
    """Autocorrelation of each chain's draws at lags up to `max_lag`.

    The gray band holds 95 % of the values for independent draws.

    Parameters
    ----------
    result : Result
    var_names, most, figsize, backend
        As in `plot_trace`.
    max_lag : int, optional
        By default 100, or a third of the draws if that is less.
    ax : array of Axes, optional
        One for each coordinate.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Only the last 100 000 draws of longer chains are used, and the figure says so.
    """
    what = chosen(result, var_names, most, least=3)
    draws = what.draws
    if max_lag is not None:
        max_lag = check_integer("max_lag", max_lag, least=1, most=draws.shape[1] - 1)
    if check_backend(backend, ax) == "arviz":
        return drawn_by_arviz("plot_autocorr", result, what, figsize)
    used = draws[:, -MOST_CORRELATED:]
    n = used.shape[1]
    lags = min(max_lag or min(MOST_LAGS, max(2, n // 3)), n - 1)
    figure, axes = panels(len(what.labels), (2.7, 1.9), ax=ax, figsize=figsize)
    band = 1.96 / np.sqrt(n)
    for i, (one, label) in enumerate(zip(axes, what.labels, strict=True)):
        one.axhspan(-band, band, color=PALE, lw=0)
        one.axhline(0, color=GRAY, lw=0.6)
        moves = False
        for k, chain in enumerate(used[:, :, i]):
            rho = autocorrelation(chain)[: lags + 1]
            moves |= bool(np.isfinite(rho).any())
            one.plot(np.arange(lags + 1), rho, lw=1.1, alpha=0.9, **look_of(k))
        title(one, label)
        one.set_xlim(0, lags)
        one.set_ylim(max(-1.02, min(one.get_ylim()[0], -0.15)), 1.02)
        one.set_yticks([0, 0.5, 1.0])
        if not moves:
            known = np.isfinite(used[:, :, i]).all()
            explain(one, "never moves" if known else "not finite")
        one.set_xlabel("lag (draws)", fontsize=8)
        few_ticks(one, y=0, whole=True)
        quiet(one)
    cut = f"of the last {n} draws" if n < draws.shape[1] else ""
    say(figure, ax, [what.note, cut])
    return figure


@checked_names
def plot_ess(
    result: Result,
    var_names: str | Iterable[str] | None = None,
    *,
    most: int = 9,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    backend: Literal["matplotlib", "arviz"] | None = None,
) -> Figure:
    """Effective sample size, in the bulk and the tails, of the first draws of all chains.

    It is proportional to the number of draws if the chains have mixed. The dotted line is at 400.

    Parameters
    ----------
    result : Result
    var_names, most, figsize, backend
        As in `plot_trace`.
    ax : array of Axes, optional
        One for each coordinate.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    All draws are used, at 20 sizes; at six if they are more than 2 000 000 numbers.
    """
    what = chosen(result, var_names, most, least=4)
    if check_backend(backend, ax) == "arviz":
        return drawn_by_arviz("plot_ess_evolution", result, what, figsize)
    x = np.ascontiguousarray(what.draws[:])
    n = x.shape[1]
    points = POINTS if x.size <= MOST_QUICK else FEW_POINTS
    sizes = np.unique(np.linspace(max(4, n / points), n, points).astype(int))
    with np.errstate(all="ignore"):
        found = [measure(np.ascontiguousarray(x[:, :size])) for size in sizes]
    figure, axes = panels(len(what.labels), (2.7, 1.9), ax=ax, figsize=figsize)
    for k, (one, label) in enumerate(zip(axes, what.labels, strict=True)):
        for name, color, mark in (("bulk", COLORS[0], "o"), ("tail", COLORS[1], "s")):
            values = [columns[COLUMNS.index(f"ess_{name}"), k] for columns in found]
            one.plot(sizes, values, mark, ls="-" if mark == "o" else "--", ms=3, lw=1.1,
                     color=color, label=name)
        if not np.isfinite([columns[COLUMNS.index("ess_bulk"), k] for columns in found]).any():
            still = bool((x[:, :, k] == x[:, :1, k]).all())
            explain(one, "never moves" if still else "not finite")
        one.axhline(ENOUGH, color=GRAY, lw=0.8, ls=":")
        title(one, label)
        one.set_xlim(0, n * 1.03)
        one.set_ylim(0)
        one.set_xlabel("draws a chain", fontsize=8)
        few_ticks(one, whole=True)
        thousands(one.xaxis)
        thousands(one.yaxis)
        quiet(one)
    axes[0].set_ylabel("effective draws", fontsize=8)
    axes[0].legend(fontsize=7, frameon=False, loc="upper left")
    say(figure, ax, [what.note])
    return figure
