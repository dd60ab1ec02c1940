"""Rules that end a run early: `ESS(400) | Time("10min")`."""

from __future__ import annotations

import math
import numbers
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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


@dataclass(frozen=True)
class ESS(StopRule):
    """Every coordinate has at least this bulk effective sample size, over all chains."""

    size: float = 400

    def __post_init__(self) -> None:
        check_number("size", self.size, above=0)

    def met(self, run: Run) -> bool:
        from fastkam.diagnostics import ess_bulk

        draws = run.past.in_one_period(run.trace.draws)
        return bool((ess_bulk(draws) >= self.size).all())  # NaN, where nothing moved: not met


@dataclass(frozen=True)
class Rhat(StopRule):
    """Every coordinate's rank-normalized R-hat is at most this."""

    most: float = 1.01

    def __post_init__(self) -> None:
        check_number("most", self.most, above=1)

    def met(self, run: Run) -> bool:
        from fastkam.diagnostics import r_hat

        draws = run.past.in_one_period(run.trace.draws)
        return bool((r_hat(draws) <= self.most).all())


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
