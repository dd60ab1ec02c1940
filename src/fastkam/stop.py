"""Rules that end a run early: `ESS(400) | Time("10min")`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fastkam.errors import check_integer, check_number


class StopRule:
    """Something that a run may be asked at a milestone; combine with ``|`` and ``&``.

    Rules on the draws are asked after a fixed sequence of numbers of draws, so that the same seed
    stops at the same draw; `timely` ones are asked between any two chunks besides.
    """

    timely = False

    def met(self, run):
        """Whether `run`, with its trace and clock, may end."""
        raise NotImplementedError

    def __or__(self, other):
        return Either(self, as_stop(other))

    def __and__(self, other):
        return Both(self, as_stop(other))


@dataclass(frozen=True)
class ESS(StopRule):
    """Every coordinate has at least this bulk effective sample size, over all chains."""

    size: float = 400

    def __post_init__(self):
        check_number("size", self.size, above=0)

    def met(self, run):
        from fastkam.diagnostics import ess_bulk

        draws = run.trace.draws
        return bool((ess_bulk(draws) >= self.size).all())  # NaN, where nothing moved: not met


@dataclass(frozen=True)
class Rhat(StopRule):
    """Every coordinate's rank-normalised R-hat is at most this."""

    most: float = 1.01

    def __post_init__(self):
        check_number("most", self.most, above=1)

    def met(self, run):
        from fastkam.diagnostics import r_hat

        draws = run.trace.draws
        return bool((r_hat(draws) <= self.most).all())


@dataclass(frozen=True)
class Evaluations(StopRule):
    """All chains together have evaluated the density so often."""

    count: int
    timely = True

    def __post_init__(self):
        check_integer("count", self.count, least=1)

    def met(self, run):
        return run.progress().steps >= self.count


@dataclass(frozen=True)
class Time(StopRule):
    """This much wall-clock time has passed: seconds, or a text such as "90s", "10min", "2h"."""

    limit: float | str
    timely = True

    def __post_init__(self):
        limit = self.limit
        if isinstance(limit, str):
            found = re.fullmatch(r"\s*([0-9.]+)\s*(s|min|h)\s*", limit)
            if not found:
                raise ValueError(f'limit must be like "90s", "10min" or "2h", not {limit!r}')
            limit = float(found[1]) * {"s": 1, "min": 60, "h": 3600}[found[2]]
        object.__setattr__(self, "limit", check_number("limit", limit, above=0))

    def met(self, run):
        return run.seconds >= self.limit


@dataclass(frozen=True)
class Either(StopRule):
    """One rule or the other."""

    one: StopRule
    other: StopRule

    @property
    def timely(self):
        return self.one.timely or self.other.timely

    def met(self, run):
        return self.one.met(run) or self.other.met(run)


class Both(Either):
    """One rule and the other."""

    def met(self, run):
        return self.one.met(run) and self.other.met(run)


def as_stop(rule):
    """A StopRule or None."""
    if rule is None or isinstance(rule, StopRule):
        return rule
    raise TypeError(f"stop must be a rule of fastkam.stop, not {rule!r}")
