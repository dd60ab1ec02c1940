"""The share of each mode in the first draws, and the mode in which each chain was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastkam.arguments import check_array, check_list, checked_names, counted, real_array, shown
from fastkam.diagnostics.draws import check_probabilities, mode_indices
from fastkam.plots.select import MOST_COUNTED, check_some, spaced, thinned
from fastkam.plots.style import (
    COLORS,
    LINES,
    color_of,
    dots,
    few_ticks,
    grid,
    quiet,
    say,
    thousands,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastkam.result import Result

MOST_NAMED = 7  # modes with a color and a line each
MOST_MODES = 10_000


@checked_names
def plot_modes(
    result: Result,
    modes: ArrayLike | Callable[..., Any] | None = None,
    *,
    weights: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """The share of each mode among the first draws, and the mode of each draw.

    The upper panel shows the share among all draws so far: thick lines are those of all chains,
    thin lines those of single chains, and dotted lines the true weights. The lower panel shows the
    mode of each draw, in one row per chain.

    Parameters
    ----------
    result : Result
    modes : callable or array (k, d), optional
        ``modes(x)`` is the index (n,) of the mode to which each row of x (n, d) belongs; an array
        has a center in each row, and a draw belongs to the nearest, in units of the draws' standard
        deviations. By default those that the result's target defines, as the mixtures of
        `fastkam.targets` do.
    weights : array (k,), optional
        True probabilities of the modes; by default those of the target, if it has any.
    names : list of k str, optional
        Names of the modes; "mode 0", "mode 1", ... by default.
    ax : array of Axes, optional
        Two.
    figsize : tuple of two float, optional
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the modes are not given and the target does not define them.

    Notes
    -----
    If there are more than seven modes, the seven with the largest shares have a line each, and the
    others have one together. A center that is nearest to no draw has the share 0; otherwise the
    draws give no information on a mode that no chain has visited.
    """
    draws = check_some(result)
    kept, every = thinned(draws, max(1, MOST_COUNTED // len(draws)))
    mode_of, true, least = described(result, kept, modes, weights)
    index = mode_indices("modes", mode_of, kept, MOST_MODES)
    k = max(int(index.max()) + 1, least)
    if true is not None and len(true) <= index.max():
        raise ValueError(f"weights must be one per mode, of which there are at least "
                         f"{index.max() + 1}, not {len(true)}")
    labels = named(names, k)
    index, true, labels, note = most_frequent(index, true, labels)
    figure, axes = grid(2, 1, (6.5, 3.2 + 0.14 * min(20, len(draws))), ax=ax, figsize=figsize,
                        sharex=ax is None, height_ratios=[3, 0.6 + 0.14 * min(20, len(draws))])
    steps = np.arange(1, kept.shape[1] + 1) * every
    courses(axes[0, 0], index, steps, true, labels)
    picture(axes[1, 0], index, steps, len(labels))
    say(figure, ax, [note, spaced(every)])
    return figure


def described(result, kept, modes, weights):
    """(mode_of, weights), from the arguments or the result's target; least number of modes."""
    target = result.target
    if modes is None:
        modes = getattr(target, "mode_of", None)
        if modes is None:
            raise ValueError("modes must be given: a function that returns the index of the mode "
                             "of each row of x (n, d), or an array of their centers")
        if weights is None:
            weights = getattr(target, "mode_weights", None)
    if weights is not None:
        weights = check_probabilities(weights)
    if callable(modes):
        return modes, weights, 0 if weights is None else len(weights)
    centers = real_array("modes", modes)
    if centers.ndim != 2 or centers.shape[1] != result.d or not len(centers):
        raise ValueError(f"modes must be a function or centers (k, {result.d}), not of shape "
                         f"{centers.shape}")
    centers = check_array("modes", centers)
    if weights is not None and len(weights) != len(centers):
        raise ValueError(f"weights must be one per mode, of which there are {len(centers)}, not "
                         f"{len(weights)}")
    scale = kept.reshape(-1, result.d).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def nearest(x):
        distances = [np.square((x - center) / scale).sum(axis=1) for center in centers]
        return np.argmin(distances, axis=0)

    return nearest, weights, len(centers)


def named(names, k):
    """A name for each of k modes."""
    if names is None:
        return [f"mode {i}" for i in range(k)]
    names = check_list("names", names)
    if len(names) != k or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be {k} texts, one per mode, not {shown(names)}")
    return names


def most_frequent(index, weights, labels):
    """The same with the modes of small share combined into one, if there are many."""
    k = len(labels)
    if k <= MOST_NAMED:
        return index, weights, labels, ""
    counts = np.bincount(index.ravel(), minlength=k)
    first = np.sort(np.argsort(-counts, kind="stable")[: MOST_NAMED - 1])
    new = np.full(k, len(first))
    new[first] = np.arange(len(first))
    if weights is not None:
        weights = np.append(weights[first], weights.sum() - weights[first].sum())
    visited = int((counts > 0).sum())
    rest = k - len(first)
    return (new[index], weights, [*(labels[i] for i in first), f"{rest} others"],
            f"{visited} of {counted(k, 'mode')} visited")


def courses(axes, index, steps, weights, labels):
    """Draw the running share of each mode, of all chains and of each."""
    # no more points than can be seen
    shown = np.unique(np.geomspace(1, len(steps), 400).astype(int)) - 1
    shown = np.union1d(shown, np.linspace(0, len(steps) - 1, 400).astype(int))
    most = 0.0
    for i, label in enumerate(labels):
        share = np.cumsum(index == i, axis=1)[:, shown] / (shown + 1)
        most = max(most, share[:, len(shown) // 10:].max())
        for chain in share if len(share) <= 20 else []:
            axes.plot(steps[shown], chain, lw=0.5, alpha=0.45, color=color_of(i),
                      **dots(len(shown)))
        axes.plot(steps[shown], share.mean(axis=0), lw=2,
                  label=f"{label}: {share[:, -1].mean():.3f}"
                  + (f" ({weights[i]:.3f})" if weights is not None else ""),
                  color=color_of(i), ls=LINES[i % len(LINES)], **dots(len(shown)))
        if weights is not None:
            axes.axhline(weights[i], color=color_of(i), lw=1.2, ls=(0, (1, 2)))
    most = max(most, 0.0 if weights is None else weights.max())
    axes.set(ylim=(-0.02 * most, 1.06 * most), ylabel="share of the draws")
    axes.yaxis.label.set_size(8)
    heading = "share" + (" (truth, dotted)" if weights is not None else "")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5),
                title=heading, title_fontsize=7, alignment="left")
    quiet(axes)


def picture(axes, index, steps, k):
    """Draw the mode of each draw, in one row per chain."""
    from matplotlib.colors import ListedColormap

    every = max(1, index.shape[1] // 2000)
    colors = ListedColormap([COLORS[i % len(COLORS)] for i in range(k)])
    axes.imshow(index[:, ::every], aspect="auto", cmap=colors, vmin=-0.5, vmax=k - 0.5,
                extent=(steps[0], max(steps[-1], steps[0] + 1), len(index) - 0.5, -0.5),
                interpolation="nearest")
    axes.set_ylabel("chain", fontsize=8)
    axes.set_xlabel("draw", fontsize=8)
    axes.set_yticks(np.unique(np.linspace(0, len(index) - 1, 4).astype(int)))
    few_ticks(axes, y=0, whole=True)
    thousands(axes.xaxis)
    quiet(axes, "left")
