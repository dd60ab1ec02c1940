"""A figure of the last draws that is redrawn during a run."""

from __future__ import annotations

import math
import os
import time
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from fastkam.arguments import check_integer, check_number, checked_names, import_extra, shown
from fastkam.diagnostics.draws import statistics
from fastkam.plots.select import thinned
from fastkam.plots.style import (
    ADVICE,
    GRAY,
    explain,
    few_ticks,
    finite,
    new_figure,
    plain,
    quiet,
    title,
)
from fastkam.plots.trace import trace_row
from fastkam.progress import text
from fastkam.progress.notebook import Notebook, in_notebook
from fastkam.progress.snapshot import Progress
from fastkam.run.files import check_output, place_of

BINS = 30
MOST_MEASURED, MOST_COUNTED = 20_000, 1000  # last draws of a chain, and how many of them
MOST_PAST = 500  # values of R-hat and ESS that are kept


class LiveFigure(Notebook):
    """Traces and histograms of the last draws, and the course of R-hat and ESS, during a run.

    Pass it as ``progress=``. In a notebook it is one output, which is replaced; elsewhere the file
    `path` is replaced, which most image viewers then reload. Until there are draws, a notebook
    shows progress as text. A second run, ``fastkam.resume`` too, begins a new figure. It needs
    matplotlib (``pip install fastkam[plot]``).

    Parameters
    ----------
    path : path, optional
        A file, .png, .svg or .pdf, that is written too; outside of notebooks it is needed.
    var_names : list of str, optional
        Coordinates, "theta[0]", or parameters, "theta". By default those that are worst by R-hat
        and by effective sample size, and then the first ones. The figure says which are unknown.
    draws : int
        Number of last draws of each chain that are shown.
    most : int
        Number of coordinates shown if none are named.
    seconds : float
        Shortest time between two drawings, which take at most 1/20 of the time.

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        For a bad argument, and outside of a notebook without `path`.
    """

    cost = 20  # the interval is at least this many times the duration of a drawing

    @checked_names
    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, var_names: Any = None,
        draws: int = 1000, most: int = 4, seconds: float = 5.0,
    ) -> None:
        super().__init__()
        import_extra("matplotlib", ADVICE)
        if path is not None:
            check_output("path", path)
        # the function may change the current folder
        self.path = None if path is None else place_of(path)
        self.shows = in_notebook()
        if self.path is None and not self.shows:
            raise ValueError("path must be given outside of a notebook: the file to which the "
                             "figure is written, LiveFigure('run.png')")
        self.suffix = "" if path is None else Path(path).suffix  # a link may lead to another one
        if path is not None and self.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"path must end with .png, .svg or .pdf, not {shown(str(path))}")
        if var_names is not None:
            some = [var_names] if isinstance(var_names, str) or not np.iterable(var_names) else [
                *var_names]
            if not some or not all(isinstance(name, str) for name in some):
                raise TypeError(f"var_names must be names, not {shown(var_names)}")
            var_names = some
        self.var_names = var_names
        self.draws = check_integer("draws", draws, least=2)
        self.most = check_integer("most", most, least=1)
        self.seconds = check_number("seconds", seconds, above=0)
        self.past: list[tuple[float, float, float]] = []  # seconds, R-hat, ESS
        self.next = 0.0
        self.last: Progress | None = None
        self.drawn: Progress | None = None
        self.ended = False  # a run, after which another one begins a new figure

    def __call__(self, progress: Progress) -> None:
        if self.ended:
            self.past, self.handle, self.ended = [], None, False
        self.last = progress
        known = progress.seconds, progress.r_hat, progress.ess
        if math.isfinite(progress.ess) and (not self.past or known[1:] != self.past[-1][1:]):
            self.past.append(known)
            if len(self.past) > MOST_PAST:
                self.past = self.past[::2]
        if time.perf_counter() >= self.next:
            self.show(progress)
            self.next = time.perf_counter() + self.seconds

    def close(self) -> None:
        """Draw the last state of the run, with R-hat and ESS if it was too short for others."""
        if self.last is not None and (self.measured(self.last) or self.last is not self.drawn):
            self.show(self.last)
        self.ended = self.last is not None and self.last.total > 0  # not a search before a run

    def measured(self, progress: Progress) -> bool:
        """Whether R-hat and ESS of all draws were computed, since none have been so far."""
        if self.past:
            return False
        x, _ = thinned(progress.last_draws(MOST_MEASURED), MOST_COUNTED)
        if x.shape[1] < 2:
            return False
        with np.errstate(all="ignore"):
            found = statistics(x, mcse_sd=False)
        known = [[*finite(found[name])] or [np.nan] for name in ("r_hat", "ess_bulk")]
        self.past.append((progress.seconds, float(max(known[0])), float(min(known[1]))))
        return True

    def show(self, progress: Progress) -> None:
        """Draw a Progress; its text in a notebook if there are no draws yet."""
        self.drawn = progress
        x = progress.last_draws(self.draws)
        if x.shape[1] < 2:
            if self.shows:
                super().__call__(progress)
            return
        figure = self.figure(progress, x)
        if self.path is not None:
            new = self.path.with_name(f".{self.path.name}")
            with suppress(OSError):  # a full disk ends no run
                figure.savefig(new, format=self.suffix[1:])
                os.replace(new, self.path)  # a viewer never sees half of it
        if self.shows:
            picture = BytesIO()
            figure.savefig(picture, format="png")
            self.replace({"text/plain": text.one(progress), "image/png": picture.getvalue()})

    def figure(self, progress: Progress, x: Any) -> Any:
        """The figure of the last draws (chains, n, d)."""
        which = self.chosen(progress)
        figure = new_figure(9.0, 1.3 * len(which) + 2.2)
        axes = figure.subplots(len(which) + 1, 2, squeeze=False, width_ratios=[3, 1])
        rows = min(progress.draws)
        for row, i in zip(axes, which, strict=False):
            trace_row(row, x[:, :, i], progress.names[i], BINS, first=rows - x.shape[1])
            row[1].sharey(row[0])
            row[1].tick_params(labelleft=False)
        axes[len(which) - 1, 0].set_xlabel("draw", fontsize=8)
        self.course(axes[-1])
        for one in axes.flat:
            one.tick_params(labelsize=8)
        said = "\n".join([text.one(progress), *self.unknown(progress)])
        figure.suptitle(plain(said, len(said)), fontsize=8, x=0.01, ha="left")
        return figure

    def unknown(self, progress: Progress) -> list[str]:
        """A line with the unknown names in `var_names`, which do not end a run."""
        known = {*progress.names, *(label.partition("[")[0] for label in progress.names)}
        missing = [name for name in self.var_names or () if name not in known]
        return [f"var_names has {shown(missing)}, which are no parameters"] if missing else []

    def course(self, axes: Any) -> None:
        """Draw R-hat and the effective sample size over time into a pair of axes."""
        seconds, r_hat, ess = np.array(self.past or [(np.nan,) * 3]).T
        axes[0].plot(seconds, ess, color=GRAY, marker=".", lw=1)
        axes[1].plot(seconds, r_hat, color=GRAY, marker=".", lw=1)
        axes[1].axhline(1.01, color=GRAY, lw=0.7, ls=":")
        for one, label, values in zip(axes, ("smallest ESS", "largest R-hat"), (ess, r_hat),
                                      strict=True):
            title(one, label)
            if not np.isfinite(values).any():
                explain(one, "not known")
            one.set_xlabel("seconds", fontsize=8)
            few_ticks(one)
            quiet(one)

    def chosen(self, progress: Progress) -> list[int]:
        """The indices of the coordinates that are shown."""
        names = progress.names
        found = [i for name in self.var_names or () for i, label in enumerate(names)
                 if name in (label, label.partition("[")[0])]
        if not found:
            worst = [names.index(name) for name in (progress.r_hat_of, progress.ess_of)
                     if name in names]
            some = dict.fromkeys([*worst, *range(len(names))])
            return sorted(list(some)[: self.most])
        return list(dict.fromkeys(found))
