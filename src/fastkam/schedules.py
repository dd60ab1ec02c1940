"""Schedules: when a sampler adapts, and with which gain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fastkam.arguments import check_integer, check_number, shown
from fastkam.parameters import Parameters, chosen

if TYPE_CHECKING:
    from typing import Self

    from fastkam.samplers.sampler import Sampler


class Plan(NamedTuple):
    """A schedule in the engine's form: the four numbers of the gain, and the steps that adapt.

    By default no step adapts.
    """

    c: float = 1.0
    k: float = 0.0
    offset: float = 0.0
    cap: float = 1.0
    start: int = 0
    stop: int | None = 0  # None: never
    rarity: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Power(Parameters):
    """The sequence ``min(cap, c (offset + n)^-k)``, n = 1, 2, ...: a gain, or a decaying noise.

    Parameters
    ----------
    c : float
        Factor, positive.
    k : float
        Exponent of the decay, at least 0; 0 gives a constant.
    offset : float
        Shift of n, at least 0.
    cap : float
        Upper bound of the terms.
    """

    c: float = 1.0
    k: float = 0.6
    offset: float = 1.0
    cap: float = 1e300

    def __post_init__(self) -> None:
        check_number("c", self.c, above=0)
        check_number("k", self.k, least=0)
        check_number("offset", self.offset, least=0)
        check_number("cap", self.cap, above=0)

    def __call__(self, n: int) -> float:
        """The n-th term, n = 1, 2, ..."""
        return min(float(self.cap), float(self.c) * (float(self.offset) + n) ** -float(self.k))


def constant(c: float) -> Power:
    """A gain with the constant value `c`."""
    return Power(c=c, k=0.0)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Schedule(Parameters):
    """Base class of schedules: when a sampler adapts, and with which gain.

    Parameters
    ----------
    gain : Power, optional
        The gain of the n-th adaptation; the sampler's own by default.
    start : int
        The first step that adapts.
    """

    gain: Power | None = None
    start: int = 0
    guarantee: ClassVar[str] = ""
    NAMES: ClassVar[dict[str, type[Any]]] = {}

    def __post_init__(self) -> None:
        check_integer("start", self.start, least=0)
        if self.gain is not None and not isinstance(self.gain, Power):
            raise TypeError(f"gain must be a Power, not {shown(self.gain)}")

    def compiled(self, sampler: Sampler, d: int, tune: int) -> Plan:
        """The schedule of a run with `tune` steps of warm-up."""
        gain, stop = self.gain_of(sampler, d), self.stop(tune)
        sampler.check_gain(gain)
        if stop and self.start >= stop:
            raise ValueError(f"start must be below the step {stop} at which adaptation ends, not "
                             f"{self.start}: the sampler would never adapt (tune = {tune})")
        return Plan(gain.c, gain.k, gain.offset, gain.cap, self.start, stop, self.rarity)

    def after_search(self, sampler: Sampler, d: int) -> Self:
        """This schedule, with the gain of the sampler where a search has found the scales."""
        gain = None if self.gain else sampler.known_scales_gain(d)
        return self if gain is None else replace(self, gain=gain)

    def gain_of(self, sampler: Sampler, d: int) -> Power:
        """The gain of the n-th adaptation: the schedule's, or else the sampler's own."""
        return self.gain or sampler.default_gain(d)

    def stop(self, tune: int) -> int | None:
        return None

    @property
    def rarity(self) -> float:
        return 0.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Finite(Schedule, name="finite"):
    """Adaptation ends with warm-up; the draws come from one fixed kernel.

    This is the default, and the only schedule under which the draws form an ordinary Markov chain
    with the target as its stationary distribution.
    """

    guarantee: ClassVar[str] = "exact: the kernel is fixed while draws are made"

    def stop(self, tune: int) -> int | None:
        return tune


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Diminishing(Schedule, name="diminishing"):
    """Adaptation never ends, with a gain ``c n^-k``, k in (1/2, 1].

    These are the conditions of Robbins and Monro on the gain; ergodicity also needs containment
    (Roberts, G. O. and Rosenthal, J. S. (2007). Coupling and ergodicity of adaptive Markov chain
    Monte Carlo algorithms. Journal of Applied Probability 44, 458-475).
    """

    guarantee: ClassVar[str] = "asymptotic: adaptation diminishes, containment is assumed"

    def gain_of(self, sampler: Sampler, d: int) -> Power:
        return self.gain or sampler.diminishing_gain(d)

    def after_search(self, sampler: Sampler, d: int) -> Self:
        """The same, with an exponent of 1, which gives all states equal weights."""
        gain = super().after_search(sampler, d).gain
        return self if self.gain or gain is None else replace(self, gain=replace(gain, k=1.0))

    def compiled(self, sampler: Sampler, d: int, tune: int) -> Plan:
        gain = self.gain_of(sampler, d)
        if not 0.5 < gain.k <= 1:
            whose = "" if self.gain else f", the gain of {type(sampler).__name__}"
            raise ValueError(
                f"a diminishing schedule needs a gain with k in (1/2, 1], not k = {gain.k!r}"
                f"{whose}: give Diminishing(gain=Power(k=0.7)); or Perpetual takes any gain, "
                "without a guarantee")
        return super().compiled(sampler, d, tune)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class IncreasinglyRare(Schedule, name="rare"):
    """Adaptation only at the steps ``start + ceil(j^(1 + rarity)) - 1``, j = 1, 2, ...

    Chimisov, C., Latuszynski, K. and Roberts, G. O. (2018). Air Markov chain Monte Carlo.
    arXiv:1801.09309. The gaps grow as j^rarity; the gain decays with j, not with the step.

    Parameters
    ----------
    rarity : float
        Exponent of the growth of the gaps, positive.
    """

    rarity: float = 0.5
    guarantee: ClassVar[str] = "asymptotic: adaptation is increasingly rare"

    def after_search(self, sampler: Sampler, d: int) -> Self:
        """This schedule: with few adaptations a slow gain learns too little."""
        return self

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("rarity", self.rarity, above=0)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Perpetual(Schedule, name="perpetual"):
    """Adaptation never ends, with any gain, as in several published samplers; no guarantee."""

    guarantee: ClassVar[str] = "none: adaptation goes on while draws are made"


SCHEDULES = Schedule.NAMES


def as_schedule(schedule: Schedule | str) -> Schedule:
    """A Schedule from itself or from its short name."""
    return chosen("schedule", schedule, Schedule)
