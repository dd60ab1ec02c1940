"""Progress of a run: a tqdm bar, a user's function, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastkam.arguments import shown

CHAINS = 16  # chains for each chunk between two reports, if chunks are short
SECONDS = 0.1  # after which a chunk is reported in any case


@dataclass(frozen=True)
class Progress:
    """How far a run has come, as a ``progress=`` function receives it.

    Attributes
    ----------
    steps, total : int
        Steps made by all chains, warm-up included, and how many there will be; 0 in the search.
    draws : list of int
        Draws kept so far, a chain.
    tuning : bool
        Whether any chain is still in warm-up, or has not begun.
    acceptance : float
        Fraction of proposals accepted so far.
    seconds : float
        Wall-clock time since the call.
    searched : int
        Evaluations of the search before the run.
    """

    steps: int
    total: int
    draws: list[int]
    tuning: bool
    acceptance: float
    seconds: float
    searched: int = 0


class Interval:
    """After which chunks of steps progress is reported.

    A `Progress` takes time in proportion to the number of chains, and a chunk is of one chain: it
    is reported after every chunk of a few chains, after every 62nd of a thousand. So the cost per
    chunk does not grow with the number of chains. Chunks that take long are reported more often.

    Parameters
    ----------
    chains : int
    """

    def __init__(self, chains: int) -> None:
        self.most = max(1, chains // CHAINS)  # chunks
        self.chunks, self.last = 0, time.perf_counter()

    def over(self) -> bool:
        """Whether to report after the chunk that has just ended; called once for every chunk."""
        self.chunks += 1
        now = time.perf_counter()
        if self.chunks < self.most and now - self.last < SECONDS:
            return False
        self.chunks, self.last = 0, now
        return True


class Bar:
    """A tqdm bar: a widget in a notebook, text in a terminal. That of a search does not stay."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self.made = partial(tqdm, unit_scale=True, dynamic_ncols=True)
        self.bar: Any = None

    def __call__(self, progress: Progress) -> None:
        searching = progress.total == 0
        if self.bar is None:
            self.bar = (self.made(desc="searching", unit=" evaluations", leave=False) if searching
                        else self.made(unit=" steps"))
        if searching:
            self.bar.update(progress.searched - self.bar.n)
            return
        self.bar.set_description("tuning" if progress.tuning else "drawing", refresh=False)
        self.bar.set_postfix(acceptance=f"{progress.acceptance:.2f}", refresh=False)
        self.bar.total = max(progress.total, progress.steps)
        self.bar.update(progress.steps - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class Reporter:
    """Hands each Progress on; a context, at the end of which a bar is closed."""

    def __init__(self, progress: bool | Callable[[Progress], object] | None) -> None:
        if progress is None:
            progress = interactive()
        self.bar = Bar() if progress is True else None
        self.function = self.bar if isinstance(progress, bool) else progress
        self.wanted = self.function is not None

    def __call__(self, progress: Progress) -> None:
        if self.function is not None:
            self.function(progress)

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()


def interactive() -> bool:
    """Whether somebody watches: a terminal, or a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules


def check_progress(progress: Any) -> None:
    """Refuse what `Reporter` does not take."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False, None or a function, not {shown(progress)}")
