"""Progress of a run: a tqdm bar, a user's function, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CHAINS = 16  # chains for each chunk between two reports, if chunks are short
SECONDS = 0.1  # after which a chunk is reported in any case


@dataclass(frozen=True)
class Progress:
    """How far a run has come, as a ``progress=`` function receives it.

    Attributes
    ----------
    steps, total : int
        Steps made by all chains, warm-up included, and how many there will be.
    draws : list of int
        Draws kept so far, a chain.
    tuning : bool
        Whether any chain is still in warm-up.
    acceptance : float
        Fraction of proposals accepted so far.
    seconds : float
        Wall-clock time since the run began.
    """

    steps: int
    total: int
    draws: list[int]
    tuning: bool
    acceptance: float
    seconds: float


class Report:
    """Where progress goes, and after which chunks of steps of which chains it is asked for.

    A `Progress` takes time in proportion to the number of chains, and a chunk is of one chain: it
    is reported after every chunk of a few chains, after every 64th of a thousand. So the cost per
    chunk does not grow with the number of chains. Chunks that take long are reported more often.

    Parameters
    ----------
    chains : int

    Attributes
    ----------
    wanted : bool
        Whether anybody wants to know.
    """

    wanted = True

    def __init__(self, chains: int) -> None:
        self.interval = max(1, chains // CHAINS)  # chunks
        self.chunks, self.last = 0, time.perf_counter()

    def due(self) -> bool:
        """Whether to report after the chunk that has just ended; called once for every chunk."""
        self.chunks += 1
        now = time.perf_counter()
        if self.chunks < self.interval and now - self.last < SECONDS:
            return False
        self.chunks, self.last = 0, now
        return True

    def __call__(self, progress: Progress) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """No more will be reported."""


class Silence(Report):
    """Nobody wants to know."""

    wanted = False

    def due(self) -> bool:
        return False

    def __call__(self, progress: Progress) -> None:
        pass


class Bar(Report):
    """A tqdm bar: a widget in a notebook, text in a terminal."""

    def __init__(self, total: int, chains: int) -> None:
        from tqdm.auto import tqdm

        super().__init__(chains)
        self.bar = tqdm(total=total, unit=" steps", unit_scale=True, dynamic_ncols=True)

    def __call__(self, progress: Progress) -> None:
        self.bar.set_description("tuning" if progress.tuning else "drawing", refresh=False)
        self.bar.set_postfix(acceptance=f"{progress.acceptance:.2f}", refresh=False)
        self.bar.total = max(progress.total, progress.steps)
        self.bar.update(progress.steps - self.bar.n)

    def close(self) -> None:
        self.bar.close()


class Function(Report):
    """A user's function of a `Progress`."""

    def __init__(self, function: Callable[[Progress], object], chains: int) -> None:
        super().__init__(chains)
        self.function = function

    def __call__(self, progress: Progress) -> None:
        self.function(progress)


def interactive() -> bool:
    """Whether somebody watches: a terminal, or a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules


def reporter(
    progress: bool | Callable[[Progress], object] | None, total: int, chains: int
) -> Report:
    """What to call with each Progress: from True, False, None (True if interactive), a callable."""
    if progress is None:
        progress = interactive()
    if isinstance(progress, bool):
        return Bar(total, chains) if progress else Silence(chains)
    return Function(progress, chains)


def check_progress(progress: Any) -> None:
    """Refuse what `reporter` does not take."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False, None or a function, not {progress!r}")
