"""Rules that end a run early: `Done() | Time("10min")`."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import check_choice, check_integer, check_number, near, shown

if TYPE_CHECKING:
    from fastkam.run.loop import Run
    from fastkam.run.shapes import Layout


class Limits(NamedTuple):
    """After how much wall-clock time, and how many evaluations, a run certainly ends."""

    seconds: float = math.inf
    evaluations: float = math.inf


class StopRule:
    """Something that a run may be asked at a milestone; combine with ``|`` and ``&``.

    Rules are asked after a fixed sequence of numbers of draws, so that the same seed stops at the
    same draw. Only what the clock alone decides is asked between any two chunks besides.
    ``result.stopped_by`` says which rule has ended a run.
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

    def forecast(self, run: Run) -> float | None:
        """The seconds that `run` still needs until this rule holds, as far as is known.

        It follows from what was measured at the last milestone, and takes no time; None where
        nothing is known, as in warm-up.
        """
        return None

    def reason(self, run: Run) -> StopRule:
        """The rule, of those of which this one is made, that has just ended `run`."""
        return self

    def check(self, layout: Layout) -> None:
        """Refuse, before any work, what does not fit the names of the parameters."""

    def __or__(self, other: StopRule) -> Either:
        return Either(self, check_rule(other))

    def __and__(self, other: StopRule) -> Both:
        return Both(self, check_rule(other))


# A rule looks at draws at equal distances, many times as many as it asks for effective ones: where
# all draws are worth as many as that, these are worth less by 1 part in 300 at most.
DRAWS_PER_EFFECTIVE = 10
FEWEST_DRAWS = 4000  # of all chains, where there are more
FEWEST_ROWS = 100  # of each chain
TAILS = ("bulk", "tail", "both")
# findings that more draws may do away with; for others a run does not wait
CURABLE = {"stuck", "log_density", "functionals", "drift", "stay", "excursion", "modes", "mcse_sd",
           "improper"}


@dataclass(frozen=True)
class Measured(StopRule):
    """A rule of a statistic of the draws, which holds where enough rows have been made.

    The draws looked at are some, at least ``least``. The coordinate for which it did not hold the
    last time is looked at first, and mostly alone.
    """

    def needed(self, draws: Any, rows: int) -> Any:
        """The rows a chain that each coordinate needs, (d,), of what is measured at `rows` rows.

        At most `rows` where the rule holds; inf or NaN where nothing can be said.
        """
        raise NotImplementedError

    def least(self) -> float:
        """How many draws, of all chains, are looked at if there are as many."""
        return FEWEST_DRAWS

    def looked_at(self, draws: Any) -> Any:
        """Some of draws (chains, rows, d), at equal distances; the last is among them."""
        chains, rows, _ = draws.shape
        step = max(1, min(int(chains * rows / self.least()), rows // FEWEST_ROWS))
        return draws[:, rows - 1 :: -step][:, ::-1]

    def met(self, run: Run) -> bool:
        some = run.past.in_one_period(self.looked_at(run.trace.draws))
        return self.holds(run, some)

    def holds(self, run: Run, draws: Any) -> bool:
        """Whether it holds of draws (chains, n, d), the worst coordinate first."""
        rows, d = run.trace.draws.shape[1], draws.shape[2]
        first = min(run.hardest, d - 1)
        if d > 1:
            alone = self.needed(draws[:, :, first : first + 1], rows)
            if not alone[0] <= rows:
                run.expected[id(self)] = float(alone[0])
                return False
        needed = self.needed(draws, rows)
        bad = np.flatnonzero(~(needed <= rows))
        if len(bad):
            run.hardest = int(bad[0])
        run.expected[id(self)] = float(needed.max()) if d else float("inf")
        return not len(bad)

    def forecast(self, run: Run) -> float | None:
        rows = run.expected.get(id(self))
        if rows is None or not math.isfinite(rows) or run.seconds_per_row is None:
            return None
        return max(0.0, rows - run.trace.rows) * run.seconds_per_row


def in_proportion(rows: int, ratio: Any) -> Any:
    """`rows` times a ratio (d,), and never as few as `rows` where the ratio is above 1."""
    needed = rows * ratio
    return np.where((ratio > 1) & ~(needed > rows), np.nextafter(rows, np.inf), needed)


def rows_for_r_hat(rows: int, r_hat: Any, most: float) -> Any:
    """The rows at which R-hat falls to `most`: R-hat^2 - 1 is about as 1 / rows."""
    ratio = np.maximum((r_hat**2 - 1) / (most**2 - 1), 0.0)
    return in_proportion(rows, np.where(r_hat > most, np.maximum(ratio, 1 + 1e-9),
                                        np.minimum(ratio, 1.0)))


def columns_of(draws: Any, *, r_hat: bool = True, sizes: bool = True) -> dict[str, Any]:
    """The columns of the summary of draws."""
    return dict(zip(COLUMNS, measure(draws, r_hat=r_hat, sizes=sizes), strict=True))


@dataclass(frozen=True)
class ESS(Measured):
    """Every coordinate has at least this effective sample size, over all chains.

    Of long runs, draws at equal distances are looked at: at least ten for each effective one that
    is asked for, and 4000.

    Parameters
    ----------
    size : float
    of : str
        "bulk", of the center; "tail", of the 5 % and 95 % quantiles; or "both".
    """

    size: float = 400
    of: str = "bulk"

    def __post_init__(self) -> None:
        check_number("size", self.size, above=0)
        check_choice("of", self.of, TAILS)

    def least(self) -> float:
        return max(FEWEST_DRAWS, DRAWS_PER_EFFECTIVE * self.size)

    def needed(self, draws: Any, rows: int) -> Any:
        columns = columns_of(draws, r_hat=False)
        bulk, tail = columns["ess_bulk"], columns["ess_tail"]
        ess = {"bulk": bulk, "tail": tail, "both": np.minimum(bulk, tail)}[self.of]
        return in_proportion(rows, self.size / ess)  # NaN, where nothing moved: not met


@dataclass(frozen=True)
class Rhat(Measured):
    """Every coordinate's rank-normalized R-hat is at most this.

    Of long runs, some 4000 to 8000 draws at equal distances are looked at.
    """

    most: float = 1.01

    def __post_init__(self) -> None:
        check_number("most", self.most, above=1)

    def needed(self, draws: Any, rows: int) -> Any:
        return rows_for_r_hat(rows, columns_of(draws, sizes=False)["r_hat"], self.most)


@dataclass(frozen=True)
class MCSE(Measured):
    """The Monte Carlo standard errors of means are at most these.

    Of long runs, some 4000 to 8000 draws at equal distances are looked at, whose errors are no
    smaller than those of all.

    Parameters
    ----------
    errors : dict of str to float
        The largest error of each parameter named, of each of its elements; or of a coordinate, by
        its label ("theta[0]"). Those that are not named may have any.
    """

    errors: Mapping[str, float] = field(hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.errors, Mapping) or not self.errors:
            raise TypeError('errors must be a dict such as {"mu": 0.01}, not '
                            f"{shown(self.errors)}")
        for name, error in self.errors.items():
            check_number(f"errors[{name!r}]", error, above=0)

    def check(self, layout: Layout) -> None:
        for name in self.errors:
            if name not in layout.shapes and not layout.places(name):
                known = [*layout.shapes, *layout.labels]
                raise ValueError(f"errors of stop must name parameters: there is no {shown(name)}, "
                                 f"there are {list(layout.shapes)}{near(name, known)}")

    def met(self, run: Run) -> bool:
        layout = run.past.layout
        x = run.past.constrain(self.looked_at(run.trace.draws))
        asked: dict[int, float] = {}
        for name, error in self.errors.items():
            for k in layout.places(name):
                asked[k] = min(error, asked.get(k, math.inf))
        which = sorted(asked)
        most = [asked[k] for k in which]
        rows, d = run.trace.draws.shape[1], len(which)
        with np.errstate(all="ignore"):
            errors = columns_of(np.ascontiguousarray(x[:, :, which]), r_hat=False)["mcse_mean"]
            needed = in_proportion(rows, (errors / np.array(most)) ** 2)
        run.expected[id(self)] = float(needed.max()) if d else math.inf
        return bool(d and (needed <= rows).all())


@dataclass(frozen=True)
class Done(Measured):
    """The draws suffice, and nothing speaks against them that more draws could mend.

    Every coordinate has effective sample sizes of at least `ess`, in the bulk and in the tails, and
    an R-hat of at most `r_hat`; and the look at the draws that ends every run finds nothing that
    further draws may do away with, such as a drift, a long stay at one point, or groups of draws
    between which chains seldom change (see `fastkam.Result.verdict`).

    Parameters
    ----------
    ess : float
    r_hat : float
        For one chain, of which there is none, it is not asked for.
    """

    ess: float = 400
    r_hat: float = 1.01

    def __post_init__(self) -> None:
        check_number("ess", self.ess, above=0)
        check_number("r_hat", self.r_hat, above=1)

    def least(self) -> float:
        return max(FEWEST_DRAWS, DRAWS_PER_EFFECTIVE * self.ess)

    def needed(self, draws: Any, rows: int) -> Any:
        columns = columns_of(draws)
        size = np.minimum(columns["ess_bulk"], columns["ess_tail"])
        needed = in_proportion(rows, self.ess / size)
        if len(draws) == 1:
            return needed
        return np.maximum(needed, rows_for_r_hat(rows, columns["r_hat"], self.r_hat))

    def met(self, run: Run) -> bool:
        if not super().met(run):
            return False
        return not any(one.kind in CURABLE for one in run.findings())


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

    def forecast(self, run: Run) -> float | None:
        if run.seconds_per_evaluation is None:
            return None
        return max(0.0, (self.count - run.evaluations) * run.seconds_per_evaluation)


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

    def forecast(self, run: Run) -> float | None:
        return max(0.0, float(self.limit) - run.seconds)


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

    def forecast(self, run: Run) -> float | None:
        both = [self.one.forecast(run), self.other.forecast(run)]
        return min((seconds for seconds in both if seconds is not None), default=None)

    def reason(self, run: Run) -> StopRule:
        one_holds = self.one.due(run) or self.one.met(run)
        return (self.one if one_holds else self.other).reason(run)

    def check(self, layout: Layout) -> None:
        self.one.check(layout)
        self.other.check(layout)


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

    def forecast(self, run: Run) -> float | None:
        one, other = self.one.forecast(run), self.other.forecast(run)
        return None if one is None or other is None else max(one, other)

    def check(self, layout: Layout) -> None:
        self.one.check(layout)
        self.other.check(layout)


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
