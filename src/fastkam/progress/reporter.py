"""The receiver of progress reports, and their times."""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import suppress
from typing import Any

from fastkam.arguments import check_takes, shown
from fastkam.errors import is_stderr_closed
from fastkam.progress.lines import Lines, write_error
from fastkam.progress.monitor import Monitor
from fastkam.progress.notebook import Notebook, in_notebook
from fastkam.progress.snapshot import Progress
from fastkam.progress.terminal import Terminal

CHAINS = 16  # chains per chunk between two reports, if chunks are short
COST = 200  # the interval is at least this many times the duration of a report
SECONDS = 0.1  # after which a chunk is reported in any case
VIEWS = (Terminal, Notebook, Lines)


class Interval:
    """The chunks of steps after which progress is reported.

    The time for a `Progress` is proportional to the number of chains, and a chunk is of one chain.
    A run of few chains therefore reports every chunk, and one of a thousand chains every 62nd, so
    that the cost per chunk does not grow with the number of chains. Long chunks are reported more
    often.

    Parameters
    ----------
    chains : int
    least : float
        Shortest interval between two reports, in seconds; if it is not 0, the interval is also at
        least `cost` times the duration of a report.
    cost : int
        200, or less for a slow report that the user asked for.
    """

    def __init__(self, chains: int, least: float = 0.0, cost: int = COST) -> None:
        self.cost = cost
        self.most = max(1, chains // CHAINS)  # chunks
        self.least, self.took = least, 0.0
        self.chunks, self.last = 0, time.perf_counter()

    def over(self) -> bool:
        """Whether to report after the chunk that has just ended; called once for every chunk."""
        self.chunks += 1
        elapsed = time.perf_counter() - self.last
        if self.least and elapsed < max(self.least, self.cost * self.took):
            return False
        if self.chunks < self.most and elapsed < SECONDS:
            return False
        self.chunks, self.last = 0, self.last + elapsed
        return True

    def done(self) -> None:
        """Note that a report has been made."""
        self.took = time.perf_counter() - self.last


class Reporter:
    """Passes each Progress on; a context that completes the display at its end.

    Attributes
    ----------
    wanted : bool
        Whether anything is reported.
    monitor : Monitor
        Measures the draws.
    asked : bool
        Whether a progress function has asked the run to stop.
    """

    def __init__(self, progress: Any) -> None:
        if progress is None or progress is True:
            progress = view(asked=progress is True)
        elif isinstance(progress, (logging.Logger, logging.LoggerAdapter)):
            progress = Lines(progress.info)
        self.view = progress if isinstance(progress, VIEWS) else None
        self.function = None if progress is False else progress
        self.wanted = self.function is not None
        self.monitor = Monitor()
        self.asked = False

    @property
    def every(self) -> float:
        """Shortest interval between two reports in seconds, which a view determines."""
        return 0.0 if self.view is None else min(1.0, self.view.seconds)

    def interval(self, chains: int) -> Interval:
        """The intervals of reports; a function is called after chunks of steps."""
        return Interval(chains, self.every, getattr(self.view, "cost", COST))

    @property
    def at_end(self) -> bool:
        """Whether to report how far the run is when it ends."""
        return self.wanted and (not isinstance(self.view, Lines) or self.view.ends)

    @property
    def gone(self) -> tuple[type[Exception], ...]:
        """The exceptions of a terminal that is gone: a ValueError may be that of a user's function.
        """
        own = isinstance(self.view, Lines) and self.view.write is not write_error
        return (OSError,) if own and not is_stderr_closed() else (OSError, ValueError)

    def stop(self) -> None:
        """Ask the run to end."""
        self.asked = True

    def __call__(self, progress: Progress) -> None:
        if self.view is not None:
            try:
                self.view(progress)
            except self.gone:  # the run continues
                self.__exit__()
                self.wanted, self.function, self.view = False, None, None
        elif self.function is not None:
            try:
                self.function(progress)
            except Exception as error:
                error.add_note("raised by progress, which was called with a Progress")
                raise

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *error: object) -> None:
        if self.view is not None:
            with suppress(OSError, ValueError):  # its terminal is gone; the run has ended
                self.view.close()


def view(*, asked: bool) -> Terminal | Notebook | Lines:
    """The display of progress here; with `asked` it ends with a line for every run."""
    if in_notebook():
        return Notebook()
    if on_terminal():
        return Terminal()
    lines = Lines()
    lines.always = asked
    return lines


def on_terminal() -> bool:
    """Whether standard error is a terminal that can go back to a line."""
    return has_terminal() and os.environ.get("TERM") != "dumb"


def has_terminal() -> bool:
    """Whether standard error is open, and a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it is closed
        return False


def interactive() -> bool:
    """Whether a user watches: in a terminal, or in a notebook."""
    return has_terminal() or in_notebook()


def check_progress(progress: Any) -> None:
    """Refuse a value that `Reporter` does not take."""
    if isinstance(progress, type):
        raise TypeError(f"progress must be an object, {progress.__name__}(...), not the class")
    if not (progress is None or isinstance(progress, (bool, logging.Logger, logging.LoggerAdapter))
            or callable(progress)):
        raise TypeError("progress must be True, False, None, a logger, a function or a view of "
                        f"fastkam.progress, not {shown(progress)}")
    if callable(progress):
        check_takes(progress, None, "progress must be a function of one argument, a Progress")
