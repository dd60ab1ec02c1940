"""Colors, panels and labels of all figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastkam.arguments import check_number, import_extra, shown

ADVICE = "pip install fastkam[plot]"
# Okabe, M. and Ito, K. (2008), Color Universal Design: distinct to all kinds of color vision. The
# order alternates dark and light, so that neighbors differ in gray; yellow is too light for lines.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#000000", "#CC79A7")
LINES = ("-", "--", "-.", ":")  # the next one after each round of the colors
GRAY, PALE = "0.45", "0.85"
MOST_LETTERS = 28  # letters of a label


def new_figure(width, height):
    """An empty Figure, width and height in inches, that a notebook shows."""
    import_extra("matplotlib", ADVICE)
    from fastkam.plots.notebook import NotebookFigure

    return NotebookFigure(figsize=(width, height), layout="constrained")


def look_of(k):
    """{"color": ..., "ls": ...} of the k-th line."""
    return {"color": COLORS[k % len(COLORS)], "ls": LINES[k // len(COLORS) % len(LINES)]}


def color_of(k):
    return COLORS[k % len(COLORS)]


def dots(n):
    """The marker of a line of n points: a single point has no line."""
    return {"marker": "o", "ms": 3} if n == 1 else {}


def check_figsize(figsize):
    """(width, height) in inches, or None."""
    if figsize is None:
        return None
    try:
        width, height = figsize
    except (TypeError, ValueError):
        raise TypeError(f"figsize must be (width, height) in inches, not {shown(figsize)}"
                        ) from None
    return tuple(check_number("figsize", value, above=0) for value in (width, height))


def check_axes(ax, shape):
    """The axes in `ax` as an array of that shape."""
    import_extra("matplotlib", ADVICE)
    from matplotlib.axes import Axes

    found = np.array(ax, dtype=object)
    if not all(isinstance(one, Axes) for one in found.flat):
        raise TypeError(f"ax must be matplotlib Axes, or an array of them, not {shown(ax)}")
    if found.size != np.prod(shape):
        raise ValueError(f"ax must be {np.prod(shape)} axes for this figure ({shape[0]} rows of "
                         f"{shape[1]}), not {found.size}")
    return found.reshape(shape)


def grid(rows, columns, size, *, ax, figsize, **options):
    """(Figure, axes (rows, columns)): those in `ax`, or new ones in a figure of `size` inches."""
    if ax is not None:
        if figsize is not None:
            raise ValueError("ax and figsize exclude each other: axes have a figure of their own")
        axes = check_axes(ax, (rows, columns))
        return axes.flat[0].figure, axes
    figure = new_figure(*(check_figsize(figsize) or size))
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for one in axes.flat:
        one.tick_params(labelsize=8)
    return figure, axes


def panels(n, size, *, ax, figsize, most=4, **options):
    """(Figure, n axes) in rows of about as many columns, each panel of `size` inches."""
    if ax is not None:
        figure, axes = grid(1, n, size, ax=ax, figsize=figsize)
        return figure, list(axes.flat)
    columns = min(most, n) if n <= most else min(most, int(np.ceil(np.sqrt(n))))
    rows = -(-n // columns)
    # a single panel is wider: its title and its ticks are as large as those of others
    width = size[0] * columns + (1.6 if columns == 1 else 0.3)
    figure, axes = grid(rows, columns, (width, size[1] * rows + 0.5), ax=None, figsize=figsize,
                        **options)
    for one in axes.flat[n:]:
        one.set_visible(False)
    return figure, list(axes.flat[:n])


def plain(label, most=MOST_LETTERS):
    """A label as it is, without mathematics in it, shortened in the middle where it is long."""
    end = most // 3
    text = label if len(label) <= most else f"{label[:most - end - 3]}...{label[-end:]}"
    # half of a surrogate pair cannot be drawn
    return text.replace("$", r"\$").encode("utf-8", "backslashreplace").decode()


def title(axes, label, more=""):
    """Write the label of a coordinate above its panel, flush left."""
    axes.set_title(plain(label) + more, loc="left", fontsize=9)


def explain(axes, text):
    """Write in the middle of an empty panel why it is empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=8,
              color=GRAY)


def quiet(axes, *sides):
    """Hide the frame's lines at the top, the right and these sides."""
    axes.spines[["top", "right", *sides]].set_visible(False)


def say(figure, ax, notes):
    """Write notes below the figure, in small letters."""
    text = "; ".join(note for note in notes if note)
    if text and ax is None:
        figure.text(0.995, 0.003, text, ha="right", va="bottom", fontsize=7, color="0.3")
        # room for the line, below what constrained layout places
        height = 0.16 / figure.get_size_inches()[1]
        figure.get_layout_engine().set(rect=(0, height, 1, 1 - height))


def few_ticks(axes, x=5, y=4, *, whole=False):
    """Put at most x and y ticks on the axes; 0 leaves an axis, `whole` puts only integers on x."""
    from matplotlib.ticker import MaxNLocator

    steps = [1, 2, 5, 10]
    if x and axes.get_xscale() == "linear":
        least = 1 if whole else 2  # of two ticks within one unit, one is no integer
        axes.xaxis.set_major_locator(MaxNLocator(x, steps=steps, integer=whole,
                                                 min_n_ticks=least))
    if y and axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(y, steps=steps))


def size_of_points(n):
    """The size of the points of a scatter plot: larger if there are few."""
    return float(np.clip(60 / np.sqrt(max(n, 1)), 3, 6))


def thousands(axis):
    """Write large numbers of an axis as 20k and 1M."""
    from matplotlib.ticker import EngFormatter

    axis.set_major_formatter(EngFormatter(sep=""))


def finite(x: Any) -> Any:
    """The finite numbers of x, flat."""
    x = np.ravel(x)
    return x[np.isfinite(x)]
