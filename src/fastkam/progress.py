"""Progress of a run: a tqdm bar, a user's function, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastkam.arguments import shown


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


class Bar:
    """A tqdm bar: a widget in a notebook, text in a terminal."""

    def __init__(self, total: int) -> None:
        from tqdm.auto import tqdm

        self.bar = tqdm(total=total, unit=" steps", unit_scale=True, dynamic_ncols=True)

    def __call__(self, progress: Progress) -> None:
        self.bar.set_description("tuning" if progress.tuning else "drawing", refresh=False)
        self.bar.set_postfix(acceptance=f"{progress.acceptance:.2f}", refresh=False)
        self.bar.total = max(progress.total, progress.steps)
        self.bar.update(progress.steps - self.bar.n)

    def close(self) -> None:
        self.bar.close()


class Function:
    """A user's function of a `Progress`."""

    def __init__(self, function: Callable[[Progress], object]) -> None:
        self.function = function

    def __call__(self, progress: Progress) -> None:
        self.function(progress)

    def close(self) -> None:
        pass


def interactive() -> bool:
    """Whether somebody watches: a terminal, or a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules


def reporter(
    progress: bool | Callable[[Progress], object] | None, total: int
) -> Bar | Function:
    """What to call with each Progress: from True, False, None (True if interactive), a callable."""
    if progress is None:
        progress = interactive()
    if isinstance(progress, bool):
        return Bar(total) if progress else Function(lambda _: None)
    return Function(progress)


def check_progress(progress: Any) -> None:
    """Refuse what `reporter` does not take."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False, None or a function, not {shown(progress)}")
