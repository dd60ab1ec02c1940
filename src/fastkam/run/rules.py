"""Rules that end a run: base class, combinations, and limits of time and evaluations."""

from __future__ import annotations

import copy
import inspect
import math
import numbers
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from fastkam.arguments import check_call, check_integer, check_number, near, shown

if TYPE_CHECKING:
    from fastkam.run.loop import Run
    from fastkam.run.shapes import Layout


# kinds of findings that more draws may resolve; a run does not continue because of others
CURABLE = {"stuck", "log_density", "functionals", "drift", "stay", "excursion", "modes", "mcse_sd",
           "improper"}


class Limits(NamedTuple):
    """Wall-clock time and number of evaluations after which a run certainly ends."""

    seconds: float = math.inf
    evaluations: float = math.inf


class StopRule:
    """A condition that ends a run; combine conditions with ``|`` and ``&``.

    A rule is evaluated after a fixed sequence of numbers of draws, so that the same seed stops at
    the same draw. Only rules of wall-clock time are also evaluated between any two chunks.
    ``result.stopped_by`` says which rule has ended a run, by its repr.

    A rule of your own is a subclass that defines `met`, and perhaps other methods. It gets the run,
    of which it may use the following; a rule must not change anything in it.

    - ``run.trace.rows``: the number of draws of each chain so far.
    - ``run.trace.draws``: these draws, an array (chains, rows, d), read-only, in the coordinates of
      the sampler; ``run.past.constrain(run.trace.draws)`` are the parameters of the user.
    - ``run.evaluations``: the number of evaluations of the density, those of the search included.
    - ``run.seconds``: the wall-clock time since the call.
    - ``run.findings()``: what the checks find in the draws, see `fastkam.diagnostics.Finding`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import fastkam as fk
    >>> @dataclass(frozen=True)
    ... class Close(fk.stop.StopRule):
    ...     within: float
    ...     def met(self, run):
    ...         x = run.past.constrain(run.trace.draws)
    ...         return np.ptp(x.mean(axis=1), axis=0).max() < self.within
    >>> result = fk.sample(lambda x: -0.5 * x @ x, [0.0, 0.0], stop=Close(0.1), seed=1,
    ...                    progress=False)
    >>> result.stopped_by
    'Close(within=0.1)'
    """

    def __new__(cls, *places: Any, **named: Any) -> Any:
        """Make a rule; refuse arguments that it does not have."""
        if places or named:
            signature = inspect.signature(cls.__init__)
            own = list(signature.parameters.values())[1:]
            try:
                check_call(cls.__name__, signature.replace(parameters=own), places, named)
            except TypeError as error:
                if "names" not in named or "names" in signature.parameters:
                    raise
                raise TypeError(f"{error}: it is of all coordinates, and a rule of some of them "
                                'is fk.stop.MCSE({"mu": 0.01})') from None
        return super().__new__(cls)

    def met(self, run: Run) -> bool:
        """Whether the rule holds for `run`, which then ends."""
        raise NotImplementedError

    def due(self, run: Run) -> bool:
        """Whether `run` must end now, between two milestones."""
        return False

    def limits(self) -> Limits:
        """Bounds of the time and of the evaluations of a run."""
        return Limits()

    def forecast(self, run: Run) -> float | None:
        """Estimate the seconds until this rule holds, from what was measured at the last milestone.

        None if nothing has been measured, as in warm-up.
        """
        return None

    def reason(self, run: Run) -> StopRule:
        """The part of this rule that has just ended `run`."""
        return self

    def check(self, layout: Layout, chains: int) -> None:
        """Refuse, before any work, a rule that does not fit the parameters or number of chains."""

    def after(self, evaluations: int) -> StopRule:
        """The rule for a call that continues a run of this many evaluations."""
        return self

    def __or__(self, other: StopRule) -> Either:
        return Either(check_rule(self), check_rule(other))

    def __and__(self, other: StopRule) -> Both:
        return Both(check_rule(self), check_rule(other))


@dataclass(frozen=True)
class Evaluations(StopRule):
    """The search and all chains together have evaluated the density this many times.

    The search takes at most a third of them, and the rest is divided equally among the chains, or
    is common to chains that step together. A chain that has made its share before its draws, with
    long trajectories, ends the run before the others have made theirs; each chain completes its
    step.

    The number is that of ``result.evaluations``, without earlier calls if a run is resumed. Not
    counted are the evaluations that begin a run: one that shows what the function returns, one at
    the start of each chain, those at draws from a prior or within bounds until there is a start,
    six or so if there is a gradient, and two a chain if it is tried whether threads help. So
    ``Evaluations(20)`` makes some 30 calls with four chains, and 40 with sixteen. ``budget=``, in a
    run without `draws`, limits all of the calls.
    """

    count: int
    before: int = field(default=0, init=False, repr=False, compare=False)  # of earlier calls

    def __post_init__(self) -> None:
        check_integer("count", self.count, least=1)

    def met(self, run: Run) -> bool:
        return run.evaluations >= self.before + self.count or run.share_used

    def after(self, evaluations: int) -> StopRule:
        own = copy.copy(self)
        object.__setattr__(own, "before", evaluations)
        return own

    def limits(self) -> Limits:
        return Limits(evaluations=self.before + self.count)

    def forecast(self, run: Run) -> float | None:
        if run.seconds_per_evaluation is None:
            return None
        left = self.before + self.count - run.evaluations
        return max(0.0, left * run.seconds_per_evaluation)


@dataclass(frozen=True, repr=False)
class Budget(Evaluations):
    """The evaluations that `budget` allows, without those for calls that a run does not count."""

    budget: int = 0

    def __repr__(self) -> str:
        return f"budget={self.budget}"


UNITS = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
# each unit at most once, in this order; possessive, so that long texts are refused quickly
DURATION = r"\s*+" + "".join(rf"(?:(\d++\.?\d*+|\.\d++)\s*+{unit}\s*+)?" for unit in UNITS)
EXAMPLES = {"ESS": "ESS(400)", "Rhat": "Rhat(1.01)", "MCSE": 'MCSE({"mu": 0.01})',
            "Done": "Done()", "Evaluations": "Evaluations(100_000)", "Time": 'Time("10min")'}


def is_duration(text: str) -> bool:
    """Whether a text is a duration, such as "10min"."""
    found = re.fullmatch(DURATION, text)
    return found is not None and any(found.groups())


@dataclass(frozen=True)
class Time(StopRule):
    """This much wall-clock time has passed since the call; a search takes at most a third of it.

    Parameters
    ----------
    limit : float, str or timedelta
        Seconds, or a text such as "90s", "10min", "2h", "11h50min" or "1d".
    """

    limit: float | str | timedelta

    def __post_init__(self) -> None:
        limit = self.limit
        if isinstance(limit, str):
            found = re.fullmatch(DURATION, limit)
            if not found or not is_duration(limit):
                raise ValueError('limit must be like "90s", "10min", "2h", "11h50min" or "1d", '
                                 f"not {shown(limit)}")
            limit = sum(float(number or 0) * seconds for number, seconds in
                        zip(found.groups(), UNITS.values(), strict=True))
        elif isinstance(limit, timedelta):
            limit = limit.total_seconds()
        object.__setattr__(self, "limit", check_number("limit", limit, above=0))

    @property
    def seconds(self) -> float:
        """The limit in seconds."""
        return float(cast(float, self.limit))

    def met(self, run: Run) -> bool:
        return run.seconds >= self.seconds

    def due(self, run: Run) -> bool:
        return self.met(run)

    def limits(self) -> Limits:
        return Limits(seconds=self.seconds)

    def forecast(self, run: Run) -> float | None:
        return max(0.0, self.seconds - run.seconds)


@dataclass(frozen=True)
class Pair(StopRule):
    """Two rules."""

    one: StopRule
    other: StopRule

    def check(self, layout: Layout, chains: int) -> None:
        self.one.check(layout, chains)
        self.other.check(layout, chains)

    def after(self, evaluations: int) -> StopRule:
        return type(self)(self.one.after(evaluations), self.other.after(evaluations))


class Either(Pair):
    """One rule or the other."""

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


class Both(Pair):
    """One rule and the other."""

    def met(self, run: Run) -> bool:
        return self.one.met(run) and self.other.met(run)

    def due(self, run: Run) -> bool:
        return self.one.due(run) and self.other.due(run)

    def limits(self) -> Limits:
        return Limits(*map(max, self.one.limits(), self.other.limits()))

    def forecast(self, run: Run) -> float | None:
        one, other = self.one.forecast(run), self.other.forecast(run)
        return None if one is None or other is None else max(one, other)


def as_stop(rule: StopRule | None) -> StopRule | None:
    """A StopRule or None."""
    return None if rule is None else check_rule(rule)


def check_rule(rule: StopRule) -> StopRule:
    """Return `rule` if it is a StopRule."""
    if isinstance(rule, StopRule):
        if type(rule).met is StopRule.met:
            raise TypeError(f"stop must define met(self, run), which says whether the run ends: "
                            f"{type(rule).__name__} does not")
        return rule
    mend = ""
    if isinstance(rule, type) and issubclass(rule, StopRule):
        mend = f": write {rule.__name__}(...), an object"
    elif isinstance(rule, numbers.Real):
        mend = f": for an effective sample size write fk.stop.ESS({shown(rule)}), for a number " \
               "of draws draws="
    elif isinstance(rule, str):
        mend = f": {instead_of(rule)}"
    elif isinstance(rule, (list, tuple, set)):
        mend = (": combine rules as one | other, which ends the run when one of them holds, or as "
                "one & other, when both do")
    elif callable(rule):
        mend = (": write a subclass of fk.stop.StopRule with a method met(self, run), which says "
                "whether the run ends")
    raise TypeError(f"stop must be a rule of fastkam.stop, not {shown(rule)}{mend}")


def instead_of(text: str) -> str:
    """Say which rule to write in place of a text: a duration, or the name of a rule."""
    if is_duration(text):
        return f"for a time write fk.stop.Time({shown(text)})"
    word = re.sub("[^a-z]", "", text.lower())
    for name, example in EXAMPLES.items():
        if word.startswith(name.lower()) or repr(name) in near(word, EXAMPLES):
            return f"write fk.stop.{example}"
    return 'write fk.stop.Done(), fk.stop.ESS(400) or fk.stop.Time("10min"), for example'
