"""Selection of the draws and the coordinates that a figure shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import check_integer, counted, described

MOST_POINTS = 4000  # points of a line or scatter plot: more cannot be distinguished
MOST_COUNTED = 200_000  # draws of a coordinate behind a histogram, a density or ranks
MOST_BINS = 2000  # of a histogram, and along each axis of the grid of a density
LARGEST = 1e307  # number on an axis: some multiples of differences are finite, too
SMALLEST = 1e-300  # width of a bar: the density within it is finite
FAR = 3  # times the range of the central 99.8 %, beyond which draws are cut off
TAIL = 3  # times the range of the central 90 %: a longer tail is cut off
DENSE = 0.25  # of the distance of the quantiles before, below which others are in a mode
CUTS = (0.001, 0.005, 0.02, 0.05)  # shares of the draws at which a tail may be cut
FEWEST_WITH_TAILS = 100  # draws: quantiles of fewer are interpolated between the last ones
WIDE = 0.08  # margin of an axis
MOST_MEASURED = 2_000_000  # numbers by which the coordinates to be shown are chosen


def check_some(result, least=1):
    """The draws of a result, (chains, draws, d); an error if they are too few."""
    draws = getattr(result, "draws", None)
    if draws is None or getattr(draws, "ndim", 0) != 3 or not hasattr(result, "state"):
        raise TypeError(f"result must be a Result, not {described(result)}")
    if getattr(result, "log_weights", None) is not None:
        raise ValueError("the draws of the result have weights, which figures do not show: plot "
                         "result.resample()")
    if draws.shape[1] < 1:
        raise ValueError("the result has no draws to plot")
    if draws.shape[1] < least:
        raise ValueError(f"the result has {counted(draws.shape[1], 'draw')} a chain, and this "
                         f"figure needs at least {least}")
    return draws


class Shown(NamedTuple):
    """Draws (chains, draws, k) of a figure, a label for each column, and a note on the choice."""

    draws: NDArray[np.float64]
    labels: list[str]
    note: str


def chosen(result, var_names, most, least=1):
    """The draws of `var_names`, which must be at least `least` a chain.

    By default they are those of all coordinates or, if there are more than `most`, of those with
    the smallest effective sample sizes, in their order in a point; the first, if no size is known.
    Coordinates with the same value in all draws, which a transform fixes, are chosen last.
    """
    draws = check_some(result, least)
    if var_names is not None:
        draws, labels = result.selected(var_names)
        return Shown(draws, labels, "")
    most, labels = check_integer("most", most, least=1), result.state.layout.labels
    d = draws.shape[2]
    if d <= most:
        return Shown(draws, labels, "")
    every = max(1, -(-draws.size // MOST_MEASURED))
    with np.errstate(all="ignore"):
        table = dict(zip(COLUMNS, measure(np.ascontiguousarray(draws[:, ::every])), strict=True))
    ess = table["ess_bulk"]
    which = sorted(int(i) for i in worst_first(ess, table["sd"])[:most])
    why = "those with the smallest effective sample sizes" if np.isfinite(ess).any() else (
        "the first, since the effective sample sizes are unknown")
    return Shown(draws[:, :, which], [labels[i] for i in which],
                 f"{most} of {d} coordinates, {why} (var_names= chooses)")


def circles_of(result, labels):
    """For each label the ends (low, high) of a periodic coordinate, or None."""
    state = result.state
    rows = [] if state.coordinates is None else state.coordinates.circles
    known = {state.layout.labels[i]: np.array([low, high]) for i, low, high in rows}
    return [known.get(label) for label in labels]


def worst_first(ess, sd):
    """The indices of coordinates by effective sample size: first those for which it is unknown.

    Coordinates whose standard deviation is 0 are last: none of their draws differ, in any chain.
    """
    return np.argsort(np.where(sd == 0, np.inf, np.nan_to_num(ess, nan=-1.0)), kind="stable")


def thinned(draws, most):
    """(every k-th draw (chains, n, ...) so that each chain has at most `most`, k)."""
    every = max(1, -(-draws.shape[1] // most))
    return drawable(draws[:, ::every]), every


def not_finite(draws):
    """A note on the draws (chains, n, k) that are not finite; "" if all are."""
    x, _ = thinned(draws, max(1, MOST_COUNTED // len(draws)))
    lost = int((~np.isfinite(x).all(axis=-1)).sum())
    return f"{lost} of {counted(x[..., 0].size, 'draw')} not finite" if lost else ""


def drawable(x):
    """x with LARGEST in the place of finite numbers beyond it."""
    return np.where(np.isfinite(x), np.clip(x, -LARGEST, LARGEST), x)


def widened(low, high, bins):
    """(low, high), further apart if fewer than `bins` floating-point numbers are between them."""
    apart = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    least = 2 * bins * np.maximum(apart, SMALLEST)
    more = np.maximum(0.0, least - (high - low)) / 2
    return low - more, high + more


def range_of(values, bins):
    """Limits of an axis, with a margin and far enough apart for `bins` bins, for finite values.

    They are the outermost values, or the outermost that are not outliers. A heavy tail is cut off
    so that the others can be distinguished.
    """
    if not len(values):
        return np.array([-1.0, 1.0])
    low, high = values.min(), values.max()
    below, above = np.quantile(values, CUTS), np.quantile(values, np.subtract(1, CUTS))
    if high - low > FAR * (above[0] - below[0]) > 0:
        low, high = below[0], above[0]
    if len(values) >= FEWEST_WITH_TAILS:
        center = above[-1] - below[-1]
        low, high = -without_tail(-below, -low, center), without_tail(above, high, center)
    margin = WIDE * (high - low if high > low else max(1.0, abs(low)))
    return np.array(widened(low - margin, high + margin, bins))


def without_tail(ends, most, center):
    """The upper end of an axis: `most`, or the largest of the quantiles `ends` that is not far off.

    `center` is the range of the central values. In a heavy tail quantiles are further and further
    apart. A mode far away, in which they are close together again, remains.
    """
    apart = ends[:-1] - ends[1:]
    if center > 0 and (apart[:-1] > DENSE * apart[1:]).all():
        for end in ends[:-1]:
            if most - ends[-1] <= TAIL * center:
                break
            most = min(most, end)
    return most


def outside(x, limits):
    """Number of finite draws of x (chains, n, k) with a coordinate outside of its limits."""
    known = x[np.isfinite(x).all(axis=-1)]
    return int(((known < limits[:, 0]) | (known > limits[:, 1])).any(axis=-1).sum())


def spaced(every):
    """A note on a thinned figure; "" if all draws are shown."""
    return f"every {ordinal(every)} draw" if every > 1 else ""


def ordinal(n):
    """Format an ordinal number: 2nd, 3rd, 4th, 11th, 21st."""
    last = 0 if n % 100 in (11, 12, 13) else n % 10
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th')}"
