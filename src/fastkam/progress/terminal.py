"""A few lines of a terminal that are redrawn during a run."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Any

from fastkam.progress import text
from fastkam.progress.snapshot import Progress

UP, ERASE = "\x1b[{}F", "\x1b[J"  # to the first of our lines; all from the cursor on
shown = threading.Lock()  # held by the run whose lines are in the terminal


class Terminal:
    """Progress in a terminal; a run in another thread meanwhile shows nothing.

    Parameters
    ----------
    file : text file, optional
        A terminal; standard error by default.
    """

    seconds = 0.2  # between two drawings

    def __init__(self, file: Any = None) -> None:
        self.file = sys.stderr if file is None else file
        self.lines = 0  # number of our lines in the terminal
        self.searching = False
        self.mine = False

    def __call__(self, progress: Progress) -> None:
        self.mine = self.mine or shown.acquire(blocking=False)
        if not self.mine:
            return
        self.searching = progress.total == 0
        width = max(20, columns(self.file) - 1)  # no line may be broken into two
        self.draw(text.several(progress, plain=self.plain, width=width))

    @property
    def plain(self) -> bool:
        """Whether the terminal accepts only ASCII."""
        try:
            "\u00b7\u2588\u2591".encode(self.file.encoding or "ascii")
        except (UnicodeError, LookupError, AttributeError):
            return True
        return False

    def draw(self, lines: list[str]) -> None:
        """Replace our lines by these, in one write."""
        back = (UP.format(self.lines) if self.lines else "") + ERASE
        self.file.write(back + "".join(f"{line}\n" for line in lines))
        self.file.flush()
        self.lines = len(lines)

    def close(self) -> None:
        """Leave the lines where they are; those of a search are erased."""
        if self.searching and self.lines:
            with suppress(OSError, ValueError):
                self.draw([])
        self.lines = 0
        if self.mine:
            self.mine = False
            shown.release()


def columns(file: Any) -> int:
    """The width of a terminal in characters; COLUMNS of the environment, if it is set, or 80."""
    with suppress(KeyError, ValueError):
        return int(os.environ["COLUMNS"]) or 80
    with suppress(OSError, ValueError, AttributeError):  # ValueError if it is closed
        return os.get_terminal_size(file.fileno()).columns
    return 80
