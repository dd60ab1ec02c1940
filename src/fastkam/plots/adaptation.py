"""The course of what a sampler has learned in warm-up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam.arguments import check_list, checked_names, described, near, shown
from fastkam.plots.style import (
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

MOST_FIELDS = 9
MOST_ELEMENTS = 6  # elements of a vector or a matrix that are shown


@checked_names
def plot_adaptation(
    result: Result,
    names: str | Iterable[str] | None = None,
    *,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    """Learned fields against the steps of warm-up: a panel for each field, a line for each chain.

    A panel shows the first six elements of a vector, or those on the diagonal of a matrix, each
    with its own color and line style; the axis of positive quantities is logarithmic if they vary
    by more than a factor of 10. A line that is still rising or falling at the right edge indicates
    that a longer warm-up (``tune=``) is needed.

    All values are in the units of the sampler: of the coordinates after transforms, divided by
    ``result.scales``.

    Parameters
    ----------
    result : Result
    names : str or list of str, optional
        Fields of ``result.adaptation``; by default all, at most nine.
    ax : array of Axes, optional
        One for each field.
    figsize : tuple of two float, optional
        Inches.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the sampler has learned nothing, or no course was kept.
    """
    if not hasattr(result, "adaptation"):
        raise TypeError(f"result must be a Result, not {described(result)}")
    course = dict(result.adaptation)
    steps = course.pop("step")
    fields = {name: elements(values, result.state.d) for name, values in course.items()
              if values.size}
    if not len(steps) or not fields:
        raise ValueError(f"the result has no course of adaptation: {type(result.sampler).__name__} "
                         "learns nothing, there was no warm-up (tune=), or what it learns is too "
                         "large to be kept")
    which, note = check_fields(names, fields)
    figure, axes = panels(len(which), (2.9, 1.9), ax=ax, figsize=figsize, most=3)
    for one, name in zip(axes, which, strict=True):
        draw_course(one, name, steps, fields[name], course[name].shape[2:])
    several = any(fields[name].shape[2] > 1 for name in which)
    say(figure, ax, [note, "one color per element, one line per chain" if several else "",
                     "sampler's units: after transforms, divided by result.scales"])
    return figure


def check_fields(names, fields):
    """The fields to show, and a note on the choice."""
    if names is None:
        some = list(fields)[:MOST_FIELDS]
        return some, (f"{len(some)} of {len(fields)} fields (names= chooses)"
                      if len(fields) > len(some) else "")
    which = [names] if isinstance(names, str) else check_list("names", names)
    for name in which:
        if not isinstance(name, str) or name not in fields:
            raise ValueError(f"names has {shown(name)}, and what was learned is "
                             f"{', '.join(fields)}{near(name, fields)}")
    if not which:
        raise ValueError("names must name at least one field")
    return which, ""


def elements(values, d):
    """The elements (chains, n, k) of a field (chains, n, *shape); of a matrix the diagonal.

    A vector of d^2 elements is a matrix.
    """
    if values.ndim == 3 and values.shape[2] == d * d > 1:
        values = values.reshape(*values.shape[:2], d, d)
    if values.ndim == 4 and values.shape[2] == values.shape[3]:
        values = np.diagonal(values, axis1=2, axis2=3)
    return values.reshape(*values.shape[:2], -1)


def draw_course(axes, name, steps, values, shape):
    """Draw the elements (chains, n, k) of one field of that shape."""
    k = min(values.shape[2], MOST_ELEMENTS)
    single = values.shape[2] == 1
    shown = np.array(values[:, :, :k], dtype=float)
    shown[~np.isfinite(shown)] = np.nan
    for c, chain in enumerate(shown):
        for i in range(k):
            look = look_of(c if single else i)
            axes.plot(steps, chain[:, i], lw=1.0, alpha=0.9 if single else 0.75, **look)
    words = ["diagonal"] if np.prod(shape) > values.shape[2] else []
    words += [f"{k} of {values.shape[2]}"] if k < values.shape[2] else []
    title(axes, name, f" ({', '.join(words)})" if words else "")
    known = shown[np.isfinite(shown)]
    if len(known) and known.min() > 0 and known.max() > 10 * known.min():
        axes.set_yscale("log")
    few_ticks(axes, whole=True)
    axes.set_xlabel("step of warm-up", fontsize=8)
    axes.set_ylabel("sampler's units", fontsize=7)
    thousands(axes.xaxis)
    quiet(axes)
