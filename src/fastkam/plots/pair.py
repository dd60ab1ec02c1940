"""Draws of pairs of coordinates: all pairs with their marginals, or one over a density."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import (
    check_flag,
    check_integer,
    check_list,
    checked_names,
    counted,
    near,
    real_array,
    shown,
)
from fastkam.diagnostics.distances import check_bounds
from fastkam.plots.foreign import check_backend, drawn_by_arviz
from fastkam.plots.select import (
    MOST_BINS,
    MOST_COUNTED,
    MOST_POINTS,
    WIDE,
    check_some,
    chosen,
    circles_of,
    drawable,
    not_finite,
    outside,
    range_of,
    thinned,
    widened,
)
from fastkam.plots.style import (
    color_of,
    explain,
    few_ticks,
    finite,
    grid,
    plain,
    quiet,
    say,
    size_of_points,
)
from fastkam.plots.truths import Truths, beyond, mark, reaching, true_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fastkam.result import Result

MASSES = (0.5, 0.9, 0.99)  # masses within the contours of a density
OF_DRAWS = (0.5, 0.9)  # masses within the contours of draws
CELLS = 60  # per axis for the density of draws
LEAST_CONTOURS = 50  # draws that are needed for contours
SHORTEST = 0.5067  # standard deviations: the interval that holds a fifth of a normal distribution
FEW_LETTERS = 14  # letters of a label beside a small panel


@checked_names
def plot_pair(
    result: Result,
    var_names: str | Iterable[str] | None = None,
    *,
    truths: Truths = None,
    most: int = 5,
    bins: int = 30,
    equal: bool = False,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
    backend: Literal["matplotlib", "arviz"] | None = None,
) -> Figure:
    """Draws of each pair of coordinates with contours of their density, and the marginals.

    The contours hold 50 % and 90 % of the draws.

    Parameters
    ----------
    result : Result
    var_names, truths, most
        As in `plot_trace`.
    bins : int
        Bars of the marginals' histograms, at most 2000.
    equal : bool
        Whether all coordinates have the same scale, so that a circle is one.
    ax : array of Axes, optional
        k^2 axes for k coordinates, row by row; those above the diagonal are hidden.
    figsize, backend
        As in `plot_trace`.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    At most 4000 points are drawn, and at most 200 000 draws are counted. If a few draws lie far
    from all others, they are outside the axes, and so are up to 2 % of the draws at each end if the
    tails are so heavy that the histogram would be a single bar. The figure says how many there are;
    it also says how many are not finite. A periodic coordinate is shown over its period, and its
    contours go on at the other end.
    """
    what = chosen(result, var_names, most)
    bins = check_integer("bins", bins, least=1, most=MOST_BINS)
    equal = check_flag("equal", equal)
    true = true_values(result, truths, what.labels)
    if check_backend(backend, ax, true) == "arviz":
        return drawn_by_arviz("plot_pair", result, what, figsize)
    k = len(what.labels)
    side = max(3.4, min(11.0, 1.7 * k + 0.5))
    figure, axes = grid(k, k, (side, side), ax=ax, figsize=figsize)
    x, _ = thinned(what.draws, max(1, MOST_COUNTED // len(what.draws)))
    circles = circles_of(result, what.labels)
    limits = np.array([
        reaching(range_of(finite(x[:, :, i]), max(bins, CELLS)), true[i]) if circle is None
        else circle for i, circle in enumerate(circles)])
    if equal:
        half = np.max(limits[:, 1] - limits[:, 0]) / 2
        middle = limits.mean(axis=1)
        limits = np.stack([middle - half, middle + half], axis=1)
    wraps = np.array([circle is not None and bool((circle == limits[i]).all())
                      for i, circle in enumerate(circles)])
    for i in range(k):
        for j in range(k):
            if j > i:
                axes[i, j].set_visible(False)
            elif i == j:
                marginal(axes[i, i], x[:, :, i], limits[i], bins)
                mark(axes[i, i], true[i])
            else:
                scatter(axes[i, j], x[:, :, [j, i]], limits[[j, i]])
                if not np.isfinite(x[:, :, [j, i]]).all(axis=-1).any():
                    explain(axes[i, j], "not finite")
                density_of_draws(axes[i, j], x[:, :, [j, i]], limits[[j, i]], wraps[[j, i]])
                mark(axes[i, j], true[j], true[i])
    frame(axes, what.labels)
    if ax is None:
        figure.align_labels()
    away = outside(x, limits)
    say(figure, ax, [
        what.note, f"{away} of {counted(x[:, :, 0].size, 'draw')} outside the axes" if away else "",
        not_finite(x), beyond(true, limits, what.labels)])
    return figure


def frame(axes, labels):
    """Set ticks and labels only at the left and lower edge of a triangle of panels."""
    k = len(labels)
    for i in range(k):
        for j in range(i + 1):
            one = axes[i, j]
            few_ticks(one, 4, 4 if i != j else 0)
            one.tick_params(labelsize=7)
            one.tick_params(axis="x", labelrotation=30 if k > 2 else 0)
            if i < k - 1:
                one.tick_params(labelbottom=False)
            else:
                one.set_xlabel(plain(labels[j], FEW_LETTERS), fontsize=8)
            if j > 0:
                one.tick_params(labelleft=False)
            elif i > 0:
                one.set_ylabel(plain(labels[i], FEW_LETTERS), fontsize=8)


def marginal(axes, x, limits, bins):
    """Draw the histogram of all chains, and the outline of each."""
    edges = np.linspace(limits[0], limits[1], bins + 1)
    pooled = finite(x)
    if len(pooled):
        axes.hist(pooled, edges, density=True, color="0.85")
    else:
        explain(axes, "not finite")
    for k, chain in enumerate(x if len(x) > 1 else []):
        inside = finite(chain)
        if ((inside >= edges[0]) & (inside <= edges[-1])).any():
            axes.hist(inside, edges, density=True, histtype="step", lw=0.8,
                      color=color_of(k))
    axes.set_xlim(limits)
    axes.set_yticks([])
    quiet(axes, "left")


def density_of_draws(axes, x, limits, wraps=(False, False)):
    """Draw the contours that hold OF_DRAWS of the draws x (chains, n, 2), by a smoothed histogram.

    Its levels are quantiles of the smoothed density at the draws, of which those outside the limits
    have none. The standard deviation of the smoothing is n^(-1/6) of that of the draws (Scott).
    `wraps` (2,) says which coordinates are periodic: the density is then smoothed across the ends.
    """
    from scipy.ndimage import gaussian_filter, map_coordinates

    points = x.reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < LEAST_CONTOURS or not (np.ptp(points, axis=0) > 0).all():
        return
    counts, *_ = np.histogram2d(points[:, 0], points[:, 1], bins=CELLS, range=limits)
    if not counts.any():
        return
    cell = (limits[:, 1] - limits[:, 0]) / CELLS
    spread = np.array([scale_of(values) for values in points.T])
    width = np.clip(0.9 * len(points) ** (-1 / 6) * spread / cell, 0.7, CELLS / 10)
    density = gaussian_filter(counts, width, mode=["wrap" if one else "constant" for one in wraps])
    more = np.array(wraps, int)  # cells beyond each end
    density = np.pad(density, [(one, one) for one in more], mode="wrap")
    middles = [low + (np.arange(CELLS + 2 * one) - one + 0.5) * step
               for (low, _), one, step in zip(limits, more, cell, strict=True)]
    inside = ((points >= limits[:, 0]) & (points <= limits[:, 1])).all(axis=1)
    at = np.zeros(len(points))
    at[inside] = map_coordinates(density, ((points[inside] - limits[:, 0]) / cell - 0.5 + more).T,
                                 order=1, mode="nearest")
    lines(axes, middles, density.T, np.quantile(at, 1 - np.array(OF_DRAWS)))


def scale_of(values):
    """The scale of values (n,): the standard deviation if they are normal.

    It is taken from the shortest interval that holds a fifth of the values, so that the distance
    between separate modes does not matter, or from the central 68 % if these are narrower.
    """
    values = np.sort(values)
    held = max(1, int(0.2 * len(values)))
    shortest = (values[held:] - values[:-held]).min() / SHORTEST
    return min(shortest, np.subtract(*np.quantile(values, [0.84, 0.16])) / 2)


@checked_names
def plot_2d(
    result: Result,
    pair: Sequence[int | str] = (0, 1),
    *,
    logp: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    truths: Truths = None,
    bounds: ArrayLike | None = None,
    bins: int = 200,
    equal: bool = False,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Draws of two coordinates, over the contours of a density of these two.

    Parameters
    ----------
    result : Result
    pair : tuple of two
        The coordinates, by their numbers or their labels; or extras, or elements of these, by name.
    logp : callable, optional
        ``logp(X) -> (k,)`` for X (k, 2): their log density up to a constant. Its contours hold
        50 %, 90 % and 99 % of the mass within the bounds. NaN is -inf.
    truths
        As in `plot_trace`.
    bounds : array (2, 2), optional
        Limits of the axes; by default those of all draws, with a margin.
    bins : int
        Grid points per axis for the contours, at most 2000.
    equal : bool
        Whether both axes have the same scale, so that a circle is one.
    ax : Axes, optional
        To draw into.
    figsize : tuple of two float, optional
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    If some draws are not finite, the figure says how many there are.
    """
    draws = check_some(result)
    pair = check_pair(result, pair, extras=True)
    bins, equal = check_integer("bins", bins, least=2, most=MOST_BINS), check_flag("equal", equal)
    if logp is not None and not callable(logp):
        raise TypeError(f"logp must be a function, not {shown(logp)}")
    draws, labels = columns(result, draws, pair)
    draws, true = drawable(draws), true_values(result, truths, labels)
    limits = (np.array([*map(reaching, whole_range(draws, bins), true)]) if bounds is None
              else check_bounds(bounds, 2))
    figure, axes = grid(1, 1, size_of(limits, equal), ax=ax, figsize=figsize)
    scatter(axes[0, 0], draws, limits, logp, bins)
    mark(axes[0, 0], *true)
    axes[0, 0].set(xlabel=plain(labels[0]), ylabel=plain(labels[1]))
    if equal:
        axes[0, 0].set_aspect("equal", adjustable="box")
    say(figure, ax, [not_finite(draws), beyond(true, limits, labels)])
    return figure


def size_of(bounds, equal):
    """(width, height) in inches of one panel: with equal scales, in the proportion of bounds."""
    if not equal:
        return 6, 5
    width, height = np.diff(bounds, axis=1)[:, 0]
    scale = min(5.2 / width, 4.6 / height)
    return max(2.6, scale * width + 0.8), max(2.0, scale * height + 0.6)


def whole_range(draws, bins):
    """Bounds (2, 2) that hold all draws, with a margin and room for `bins` bins."""
    ends = [(values.min(), values.max()) if len(values) else (-1.0, 1.0)
            for values in (finite(draws[:, :, k]) for k in range(2))]
    low, high = np.array(ends).T
    margin = WIDE * np.where(high > low, high - low, 1.0)
    return np.stack(widened(low - margin, high + margin, bins), axis=1)


def scatter(axes, draws, bounds, logp=None, bins=200):
    """Draw the points (chains, draws, 2), and the contours of logp, into axes."""
    shown, _ = thinned(draws, max(1, MOST_POINTS // len(draws)))
    size = size_of_points(shown[..., 0].size)
    for k, chain in enumerate(shown):
        axes.plot(*chain.T, ".", ms=size, alpha=0.55, mew=0, color=color_of(k), rasterized=True)
    if logp is not None:
        contours(axes, logp, bounds, bins)
    axes.set(xlim=bounds[0], ylim=bounds[1])


def contours(axes, logp, bounds, bins):
    """The lines of the density that hold MASSES of its mass on a grid within the bounds."""
    places = [np.linspace(low, high, bins) for low, high in bounds]
    points = np.stack(np.meshgrid(*places), axis=-1)
    try:
        values = real_array("logp(X)", logp(points.reshape(-1, 2)))
    except Exception as error:
        error.add_note(f"raised by logp, which was called with points of shape {(bins * bins, 2)}")
        raise
    if values.shape != (bins * bins,):
        raise ValueError(f"logp must return ({bins * bins},) numbers, not {values.shape}")
    values = np.where(np.isnan(values), -np.inf, values).reshape(bins, bins)
    if not np.isfinite(values.max()):
        raise ValueError(f"logp must be below +inf, and finite somewhere within the bounds, where "
                         f"its maximum is {values.max()}: give other bounds=, or mend logp")
    density = np.exp(values - values.max())
    lines(axes, places, density, holding(density, MASSES))


def holding(density, masses):
    """The levels of a density on a grid above which it has these shares of its mass."""
    descending = np.sort(density, axis=None)[::-1]
    held = np.cumsum(descending) / descending.sum()
    last = len(descending) - 1
    return [descending[min(np.searchsorted(held, mass), last)] for mass in masses]


def lines(axes, places, density, levels):
    """Draw the contours of a density on a grid at these levels."""
    axes.contour(*places, density, np.unique(levels), colors="black", linewidths=0.8)


def check_pair(result, pair, *, extras=False):
    """The indices of two coordinates, given as numbers or labels; with `extras`, names of these."""
    try:
        listed = check_list("pair", pair)
    except TypeError:
        raise TypeError("pair must be two coordinates, by number or label, as (0, 1), not "
                        f"{shown(pair)}") from None
    named = extras and result.extras and any(isinstance(one, str) for one in listed)
    if result.d < 2 and not named:
        raise ValueError("result must have two coordinates, and has one: fk.plots.plot_trace "
                         "shows one")
    if len(listed) != 2:
        raise ValueError(f"pair must be two coordinates, not {shown(pair)}")
    found = [check_one(result, one, extras) for one in listed]
    if found[0] == found[1]:
        raise ValueError(f"pair must be two different coordinates, not {shown(pair)}")
    return found


def check_one(result, one, extras):
    """The index of a coordinate, given as a number or a label, or the name of an extra."""
    if not isinstance(one, str):
        return check_coordinate(one, result.d)
    known, is_extra = result.state.layout.labels, of_extra(result, one)
    if is_extra and not extras:
        raise ValueError(f"pair must name single coordinates, and {one!r} is an extra, of which "
                         "there are no proposals: fk.plots.plot_2d shows it")
    places = result.state.layout.places(one)
    labels = result.labels_of(one) if is_extra else [known[i] for i in places]
    if len(labels) != 1:
        names = [*known, *(result.extras if extras else ())]
        has = (f"{one!r} has {len(labels)}: {labels[0]}, ..." if labels else
               f"{one!r} is none{near(one, names)}")
        raise ValueError(f"pair must name single coordinates, and {has}")
    return one if is_extra else places[0]


def of_extra(result, name):
    """Whether this is the name of an extra, or of an element of one."""
    return isinstance(name, str) and result.places(name)[1] is not None


def columns(result, draws, pair):
    """The draws (chains, n, 2) of a pair that `check_pair` returned, and their labels."""
    labels = result.state.layout.labels
    if not any(isinstance(one, str) for one in pair):
        return draws[:, :, pair], [labels[i] for i in pair]
    parts = [result.selected(one) if isinstance(one, str) else (draws[:, :, [one]], [labels[one]])
             for one in pair]
    return np.concatenate([x for x, _ in parts], axis=2), [some[0] for _, some in parts]


def check_coordinate(index, d):
    """`index` as one of 0 ... d - 1."""
    try:
        index = check_integer("pair", index, least=0)
    except TypeError:
        raise TypeError("pair must have numbers or labels of coordinates, as (0, 1), not "
                        f"{shown(index)}") from None
    if index >= d:
        raise ValueError(f"pair must name coordinates below {d}, not {index}")
    return index
