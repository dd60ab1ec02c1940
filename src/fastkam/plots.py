"""Figures of results: traces, and draws of two coordinates over the density.

Each function returns a matplotlib Figure of its own, to show in a notebook or to save with
``figure.savefig(path)``; pyplot and its state are never touched. Needs matplotlib
(``pip install fastkam[plot]``).
"""

from __future__ import annotations

import numpy as np

from fastkam.arguments import check_integer, check_list, import_extra, real_array, shown
from fastkam.diagnostics.distances import check_bounds

ADVICE = "pip install fastkam[plot]"
MASSES = (0.5, 0.9, 0.99)  # of the density's contours
MOST_POINTS = 4000  # of a line or scatter: more cannot be distinguished


def new_figure(width, height):
    """An empty Figure, width and height in inches."""
    import_extra("matplotlib", ADVICE)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def plot_trace(result, *, most=8, bins=40):
    """Each coordinate against the draw's number, and its histogram, a colour a chain.

    Parameters
    ----------
    result : Result
    most : int
        Number of coordinates shown, the first ones.
    bins : int
        Bars of the histogram.

    Returns
    -------
    matplotlib.figure.Figure
    """
    most, bins = check_integer("most", most, least=1), check_integer("bins", bins, least=1)
    draws = check_some(result)
    labels = result.state.layout.labels[:most]
    figure = new_figure(8, 1.6 * len(labels) + 0.4)
    axes = figure.subplots(len(labels), 2, squeeze=False, width_ratios=[3, 1], sharey="row")
    for i, label in enumerate(labels):
        trace_row(axes[i], draws[:, :, i], label, bins)
    axes[-1, 0].set_xlabel("draw")
    return figure


def trace_row(axes, x, label, bins):
    """Draw the traces (chains, draws) and the histograms into a pair of axes."""
    every = max(1, x.shape[1] // MOST_POINTS)
    edges = np.histogram_bin_edges(x, bins)
    for k, chain in enumerate(x):
        axes[0].plot(np.arange(len(chain))[::every], chain[::every], lw=0.4, alpha=0.8,
                     color=f"C{k % 10}")
        axes[1].hist(chain, edges, histtype="step", orientation="horizontal", density=True,
                     color=f"C{k % 10}")
    axes[0].set_ylabel(label)
    axes[1].set_xticks([])


def plot_2d(result, pair=(0, 1), *, logp=None, bounds=None, bins=200):
    """Draws of two coordinates, over the contours of a density of these two.

    Parameters
    ----------
    result : Result
    pair : tuple of two int
        The coordinates.
    logp : callable, optional
        ``logp(X) -> (k,)`` for X (k, 2): their log density up to a constant. Its contours hold
        50 %, 90 % and 99 % of the mass within the bounds.
    bounds : array (2, 2), optional
        Where the axes begin and end; by default all draws, and a margin.
    bins : int
        Grid points an axis for the contours.

    Returns
    -------
    matplotlib.figure.Figure
    """
    draws, pair = check_some(result), check_list("pair", pair)
    if len(pair) != 2:
        raise ValueError(f"pair must be two coordinates, not {shown(pair)}")
    i, j = (check_coordinate(index, draws.shape[2]) for index in pair)
    bins = check_integer("bins", bins, least=2)
    if logp is not None and not callable(logp):
        raise TypeError(f"logp must be a function, not {shown(logp)}")
    draws = draws[:, :, [i, j]]
    if bounds is not None:
        bounds = check_bounds(bounds, 2)
    else:
        low, high = draws.min(axis=(0, 1)), draws.max(axis=(0, 1))
        margin = 0.08 * np.where(high > low, high - low, 1.0)
        bounds = np.stack([low - margin, high + margin], axis=1)
    figure = new_figure(6, 5)
    axes = figure.subplots()
    scatter(axes, draws, bounds, logp, bins)
    labels = result.state.layout.labels
    axes.set(xlabel=labels[i], ylabel=labels[j])
    return figure


def scatter(axes, draws, bounds, logp=None, bins=200):
    """Draw the points (chains, draws, 2), and the contours of logp, into axes."""
    every = max(1, draws.shape[0] * draws.shape[1] // MOST_POINTS)
    for k, chain in enumerate(draws):
        axes.plot(*chain[::every].T, ".", ms=2.5, alpha=0.5, mew=0, color=f"C{k % 10}")
    if logp is not None:
        contours(axes, logp, bounds, bins)
    axes.set(xlim=bounds[0], ylim=bounds[1])


def contours(axes, logp, bounds, bins):
    """The lines of the density that hold MASSES of its mass on a grid within the bounds."""
    grid = [np.linspace(low, high, bins) for low, high in bounds]
    points = np.stack(np.meshgrid(*grid), axis=-1)
    values = real_array("logp(X)", logp(points.reshape(-1, 2)))
    if values.shape != (bins * bins,):
        raise ValueError(f"logp must return ({bins * bins},) numbers, not {values.shape}")
    values = values.reshape(bins, bins)
    density = np.exp(values - values.max())
    descending = np.sort(density, axis=None)[::-1]
    held = np.cumsum(descending) / descending.sum()
    levels = np.unique([descending[np.searchsorted(held, mass)] for mass in MASSES])
    axes.contour(*grid, density, levels, colors="black", linewidths=0.8)


def check_coordinate(index, d):
    """`index` as one of 0 ... d - 1."""
    index = check_integer("pair", index, least=0)
    if index >= d:
        raise ValueError(f"pair must name coordinates below {d}, not {index}")
    return index


def check_some(result):
    """The draws of a result, of which there are some."""
    draws = getattr(result, "draws", None)
    if not (isinstance(draws, np.ndarray) and draws.ndim == 3 and hasattr(result, "state")):
        raise TypeError(f"result must be a Result, not {shown(result)}")
    if draws.shape[1] < 1:
        raise ValueError("the result has no draws to plot")
    return draws
