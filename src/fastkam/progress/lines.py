"""Progress as single lines, for files, logs and batch systems."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from fastkam.arguments import check_number, shown
from fastkam.progress import text
from fastkam.progress.snapshot import Progress


class Lines:
    """One line of progress at regular intervals.

    Parameters
    ----------
    write : callable, optional
        Receives each line, a str: ``logging.getLogger("mine").info``, say. By default lines are
        written to standard error.
    seconds : float
        Time between two lines.

    Raises
    ------
    TypeError, ValueError
        If `write` is not callable, or `seconds` is negative.
    """

    def __init__(self, write: Callable[[str], object] | None = None, seconds: float = 30.0) -> None:
        if write is not None and not callable(write):
            raise TypeError(f"write must be a function of a str, not {shown(write)}: for lines in "
                            'an open file, lambda line: print(line, file=file)')
        self.write = write_error if write is None else write
        self.seconds = seconds = check_number("seconds", seconds, least=0)
        self.next = time.perf_counter() + seconds
        self.always = False  # whether a last line is always written
        self.last: Progress | None = None
        self.written: Progress | None = None
        self.advised = False  # whether advice on a slow search has been written

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        whole = progress.steps >= progress.total > 0  # `close` reports it
        if time.perf_counter() < self.next or whole:
            return
        self.next = time.perf_counter() + self.seconds
        self.written = progress
        self.write(f"fastkam: {text.one(progress)}")
        if progress.advice and not self.advised:
            self.advised = True
            self.write(f"fastkam: {progress.advice}")

    @property
    def ends(self) -> bool:
        """Whether there is a line at the end of a run."""
        return self.always or self.written is not None

    def close(self) -> None:
        """Write a last line with the final progress, if there is to be one."""
        last = self.last
        if last and last.total and last is not self.written and self.ends:
            self.written = last
            self.write(f"fastkam: {text.one(last)}")


def write_error(line: str) -> None:
    """Write a line to standard error, if there is one."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)
