"""Rules that end a run early: `ESS(400) | Time("10min")`."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import check_integer, check_number, shown

if TYPE_CHECKING:
    from fastkam.run.loop import Run


class Limits(NamedTuple):
    """After how much wall-clock time, and how many evaluations, a run certainly ends."""

    seconds: float = math.inf
    evaluations: float = math.inf


class StopRule:
    """Something that a run may be asked at a milestone; combine with ``|`` and ``&``.

    Rules are asked after a fixed sequence of numbers of draws, so that the same seed stops at the
    same draw. Only what the clock alone decides is asked between any two chunks besides.
    """

    def met(self, run: Run) -> bool:
        """Whether `run`, with its trace and clock, may end."""
        raise NotImplementedError

    def due(self, run: Run) -> bool:
        """Whether it must end now, between two milestones."""
        return False

    def limits(self) -> Limits:
        """After which time and how many evaluations the run certainly ends."""
        return Limits()

    def __or__(self, other: StopRule) -> Either:
        return Either(self, check_rule(other))

    def __and__(self, other: StopRule) -> Both:
        return Both(self, check_rule(other))


# A rule looks at draws at equal distances, many times as many as it asks for effective ones: where
# all draws are worth as many as that, these are worth less by 1 part in 300 at most.
DRAWS_PER_EFFECTIVE = 10
FEWEST_DRAWS = 4000  # of all chains, where there are more
FEWEST_ROWS = 100  # of each chain


def every_coordinate(run: Run, column: str, holds: Callable[[Any], Any], least: float) -> bool:
    """Whether a column of the summary is as it should be in every coordinate.

    The summary is that of some draws, at least `least`. The coordinate that was not as it should be
    the last time is looked at first, and mostly alone.
    """
    draws = run.trace.draws
    chains, rows, d = draws.shape
    step = max(1, min(int(chains * rows / least), rows // FEWEST_ROWS))
    draws = run.past.in_one_period(draws[:, rows - 1 :: -step][:, ::-1])  # the last is among them
    r_hat = column == "r_hat"

    def good(some: Any) -> Any:
        return holds(measure(some, r_hat=r_hat, sizes=not r_hat)[COLUMNS.index(column)])

    first = min(run.hardest, d - 1)
    if d > 1 and not good(draws[:, :, first : first + 1])[0]:
        return False
    bad = np.flatnonzero(~good(draws))
    if len(bad):
        run.hardest = int(bad[0])
    return not len(bad)


@dataclass(frozen=True)
class ESS(StopRule):
    """Every coordinate has at least this bulk effective sample size, over all chains.

    Of long runs, draws at equal distances are looked at: at least ten for each effective one that
    is asked for, and 4000.
    """

    size: float = 400

    def __post_init__(self) -> None:
        check_number("size", self.size, above=0)

    def met(self, run: Run) -> bool:
        least = max(FEWEST_DRAWS, DRAWS_PER_EFFECTIVE * self.size)
        # NaN, where nothing moved: not met
        return every_coordinate(run, "ess_bulk", lambda ess: ess >= self.size, least)


@dataclass(frozen=True)
class Rhat(StopRule):
    """Every coordinate's rank-normalized R-hat is at most this.

    Of long runs, some 4000 to 8000 draws at equal distances are looked at.
    """

    most: float = 1.01

    def __post_init__(self) -> None:
        check_number("most", self.most, above=1)

    def met(self, run: Run) -> bool:
        return every_coordinate(run, "r_hat", lambda r_hat: r_hat <= self.most, FEWEST_DRAWS)


@dataclass(frozen=True)
class Evaluations(StopRule):
    """The search and all chains together have evaluated the density this many times.

    The search takes a third of them at most, and every chain gets an equal share of what is left.
    The evaluations at the starting points of the chains are not counted.
    """

    count: int

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)

    def met(self, run: Run) -> bool:
        return run.evaluations >= self.count

    def limits(self) -> Limits:
        return Limits(evaluations=self.count)


@dataclass(frozen=True)
class Time(StopRule):
    """This much wall-clock time has passed since the call, of which a search takes a third at most.

    Seconds, or a text such as "90s", "10min", "2h".
    """

    limit: float | str

    def __post_init__(self) -> None:
        limit = self.limit
        if isinstance(limit, str):
            found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(s|min|h)\s*", limit)
            if not found:
                raise ValueError(f'limit must be like "90s", "10min" or "2h", not {shown(limit)}')
            limit = float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]]
        object.__setattr__(self, "limit", check_number("limit", limit, above=0))

    def met(self, run: Run) -> bool:
        return run.seconds >= float(self.limit)

    def due(self, run: Run) -> bool:
        return self.met(run)

    def limits(self) -> Limits:
        return Limits(seconds=float(self.limit))


@dataclass(frozen=True)
class Either(StopRule):
    """One rule or the other."""

    one: StopRule
    other: StopRule

    def met(self, run: Run) -> bool:
        return self.one.met(run) or self.other.met(run)

    def due(self, run: Run) -> bool:
        return self.one.due(run) or self.other.due(run)

    def limits(self) -> Limits:
        return Limits(*map(min, self.one.limits(), self.other.limits()))


@dataclass(frozen=True)
class Both(StopRule):
    """One rule and the other."""

    one: StopRule
    other: StopRule

    def met(self, run: Run) -> bool:
        return self.one.met(run) and self.other.met(run)

    def due(self, run: Run) -> bool:
        return self.one.due(run) and self.other.due(run)

    def limits(self) -> Limits:
        return Limits(*map(max, self.one.limits(), self.other.limits()))


def as_stop(rule: StopRule | None) -> StopRule | None:
    """A StopRule or None."""
    return None if rule is None else check_rule(rule)


def check_rule(rule: StopRule) -> StopRule:
    """`rule`, if it is one."""
    if isinstance(rule, StopRule):
        return rule
    mend = ""
    if isinstance(rule, type) and issubclass(rule, StopRule):
        mend = f": write {rule.__name__}(...), an object"
    elif isinstance(rule, numbers.Real):
        mend = f": for an effective sample size write fk.stop.ESS({shown(rule)}), for a number " \
               "of draws draws="
    elif isinstance(rule, str):
        mend = f": for a time write fk.stop.Time({shown(rule)})"
    elif callable(rule):
        mend = ": write a subclass of fk.stop.StopRule"
    raise TypeError(f"stop must be a rule of fastkam.stop, not {shown(rule)}{mend}")
