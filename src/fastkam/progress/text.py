"""A Progress as text."""

from __future__ import annotations

import math
from textwrap import wrap

from fastkam.progress.snapshot import Progress

NAME = 24  # characters of a parameter's name that are shown
BAR = 24


def duration(seconds: float) -> str:
    """Format a time as "1.3 s", "0:17", "12:34", "3:25:45" or "2 d 3 h"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    minutes, hours = whole // 60, whole // 3600
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    if hours:
        return f"{hours}:{minutes % 60:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"


def quantity(value: float) -> str:
    """Format a number as "312", "25 100" or "2.51 million"."""
    if value < 10:
        return f"{value:.2g}"
    if value < 1e6:
        return f"{round(value):,}".replace(",", " ")
    return f"{value / 1e6:.2f} million" if value < 1e9 else f"{value:.2e}"


def of(name: str) -> str:
    """The name of a parameter in parentheses, if there is one."""
    return f" ({name if len(name) <= NAME else name[: NAME - 3] + '...'})" if name else ""


def fraction(progress: Progress) -> float:
    """The fraction of the steps that have been made."""
    return min(1.0, progress.steps / progress.total) if progress.total else 0.0


def phase(progress: Progress) -> str:
    """The phase of the run."""
    if progress.stopped_by:
        return "stopped"
    if not progress.total:
        return "searching"
    return "tuning" if progress.tuning and not any(progress.draws) else "drawing"


def range_of(draws: list[int]) -> str:
    """The draws of each chain: of the shortest, and of the longest where it has many more.

    In threads or processes some chains may not have begun while others are at their end.
    """
    least, most = min(draws, default=0), max(draws, default=0)
    return quantity(least) if most <= 2 * least + 1000 else f"{quantity(least)} to {quantity(most)}"


def counts(progress: Progress) -> list[str]:
    """Counts so far: draws or evaluations, their rate, acceptances, divergences."""
    parts = []
    if progress.total:
        parts.append(f"draws {range_of(progress.draws)} of {quantity(progress.requested)}")
    else:
        parts.append(f"{quantity(progress.searched)} evaluations")
    if math.isfinite(progress.rate):
        parts.append(f"{quantity(progress.rate)} evaluations/s")
    if progress.steps and math.isfinite(progress.acceptance):
        parts.append(f"accepted {progress.acceptance:.2f}")
    if math.isfinite(progress.step_size):
        parts.append(f"step size {progress.step_size:.3g}")
    if progress.diverging:
        plural = "s" if progress.diverging > 1 else ""
        parts.append(f"{progress.diverging} divergence{plural}")
    return parts


def convergence(progress: Progress) -> list[str]:
    """Convergence statistics, as far as they are known."""
    parts = []
    if math.isfinite(progress.r_hat):
        parts.append(f"R-hat {progress.r_hat:.3f}{of(progress.r_hat_of)}")
    if math.isfinite(progress.ess):
        parts.append(f"ESS {quantity(progress.ess)}{of(progress.ess_of)}")
    return parts


def times(progress: Progress) -> list[str]:
    """Time so far, and the remaining time if it is known."""
    parts = [duration(progress.seconds)]
    if progress.stopped_by:
        return parts
    if math.isfinite(progress.seconds_left) and progress.steps < progress.total:
        parts.append(f"{duration(progress.seconds_left)} left")
    return parts


def bar(part: float, full: str, empty: str, size: int = BAR) -> str:
    """A bar of which `part` is full."""
    n = int(part * size)
    return full * n + empty * (size - n)


def fitted(parts: list[str], dot: str, width: int) -> list[str]:
    """Parts in as few lines as possible."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(dot) + len(part) <= width:
            lines[-1] += dot + part
        else:
            lines.append(f"  {part}"[:width])
    return lines


def several(progress: Progress, *, plain: bool, width: int) -> list[str]:
    """A few lines for a place that is redrawn; `plain` for ASCII alone."""
    dot, full, empty = (", ", "#", "-") if plain else (" \u00b7 ", "\u2588", "\u2591")
    if not progress.total:
        line = dot.join([phase(progress), *counts(progress), *times(progress)])[:width]
        return [line, *wrap(progress.advice, width, initial_indent="  ", subsequent_indent="  ")]
    part = fraction(progress)
    after = f" {100 * part:3.0f} %  " + dot.join(times(progress))
    size = max(0, min(BAR, width - 8 - len(after)))
    lines = [f"{phase(progress):8}{bar(part, full, empty, size)}{after}"[:width]]
    for parts in (counts(progress), convergence(progress)):
        lines += fitted(parts, dot, width)
    return lines


def one(progress: Progress) -> str:
    """One line for a log."""
    parts = [phase(progress) + (f" {100 * fraction(progress):.0f} %" if progress.total else "")]
    return ", ".join([*parts, *counts(progress), *convergence(progress), *times(progress)])
