"""Base classes of samplers: a compiled form, a default gain, checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_choice, check_covariance, check_number, real_array, shown
from fastkam.parameters import Parameters, chosen
from fastkam.schedules import Power, Schedule, constant

if TYPE_CHECKING:
    from typing import Self

    from fastkam._core.engine.kernel import Kernel


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sampler(Parameters):
    """The parameters of a sampler, checked; `build` makes its compiled form for one chain.

    ``class Mine(Sampler, name="mine")`` registers it under a short name.
    """

    NAMES: ClassVar[dict[str, type[Any]]] = {}
    KERNEL: ClassVar[str] = ""  # module.Class below fastkam._core.samplers
    ALONE: ClassVar[str] = "what it learns belongs to one chain"  # where its kernel shares nothing
    LENGTHS: ClassVar[tuple[str, ...] | None] = None  # its parameters in units of the coordinates
    POSITIONS: ClassVar[tuple[str, ...]] = ()  # its parameters that are points
    EVALUATIONS: ClassVar[float] = 1.0  # of a step of warm-up, typically
    TUNE: ClassVar[int] = 1000  # steps of warm-up, if their number is not given

    @classmethod
    def kernel_class(cls) -> Any:
        """The compiled class, whose FIELDS declare the state."""
        module, name = cls.KERNEL.split(".")
        return getattr(import_module(f"fastkam._core.samplers.{module}"), name)

    @property
    def relative(self) -> bool:
        """Whether it runs in units of the scales that a search finds, because no length is given.

        False for a class that does not define LENGTHS itself, even if its base class does.
        """
        lengths = vars(type(self)).get("LENGTHS")
        return lengths is not None and all(getattr(self, name) is None for name in lengths)

    @property
    def is_placed(self) -> bool:
        """Whether it is given points or matrices that `in_units` converts."""
        return any(getattr(self, name) is not None for name in self.POSITIONS)

    def in_units(self, scales: NDArray[np.float64]) -> Self:
        """This sampler with its points and matrices in units of the scales (d,).

        The kernels of a run are built by it.
        """
        if (scales == 1).all() or not self.is_placed:
            return self
        return self.changed_to(**{
            name: points_in_units(name, value, scales) for name in self.POSITIONS
            if (value := getattr(self, name)) is not None})

    def aimed(self, at: Callable[[float], float]) -> Self:
        """This sampler with ``at(target_acceptance)``, if that of a random walk is the default."""
        default = getattr(type(self), "target_acceptance", None)
        if (self.needs_gradient or not isinstance(default, float)
                or getattr(self, "target_acceptance", None) != default):
            return self
        return self.changed_to(target_acceptance=at(default))

    def changed_to(self, **parameters: Any) -> Self:
        """A copy with other values of some parameters."""
        new = copy.copy(self)
        for name, value in parameters.items():
            object.__setattr__(new, name, value)
        return new

    @property
    def needs_gradient(self) -> bool:
        """Whether its kernel needs the gradient of the log density."""
        return bool(self.kernel_class().GRADIENT)

    @property
    def several_evaluations(self) -> bool:
        """Whether a step may evaluate the density more than once."""
        return bool(self.kernel_class().SEVERAL)

    @property
    def evaluations_per_step(self) -> float:
        """Typical number of evaluations of a step of warm-up, by which a budget is divided."""
        return self.EVALUATIONS

    @property
    def needs_gil(self) -> bool:
        """Whether its steps run Python code."""
        return False

    @property
    def stat_names(self) -> tuple[str, ...]:
        """Names of its statistics, without those of every sampler."""
        return tuple(self.kernel_class().statistics())

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        """The compiled kernel of a chain that starts at `x0` (d,)."""
        raise NotImplementedError

    def default_gain(self, d: int) -> Power:
        """The gain of its adaptation if the schedule has none."""
        return constant(1.0)

    def diminishing_gain(self, d: int) -> Power:
        """The gain under a diminishing schedule that has none."""
        return self.default_gain(d)

    def known_scales_gain(self, d: int) -> Power | None:
        """The gain of a run in units of scales that a search has found, if it is another one."""
        return None

    def check_gain(self, gain: Power) -> None:
        """Refuse a gain for which the update is undefined."""

    def check_run(self, schedule: Schedule, tune: int) -> None:
        """Refuse a run that cannot work."""

    def check_share(self) -> None:
        """Refuse shared adaptation, if the sampler cannot share."""
        if not any(field.shared for field in self.kernel_class().FIELDS.values()):
            raise ValueError(f"share must be False for {type(self).__name__}, not True: "
                             f"{self.ALONE}")


SAMPLERS: dict[str, type[Sampler]] = Sampler.NAMES


def as_sampler(sampler: Sampler | str) -> Sampler:
    """A Sampler from itself or from its short name."""
    return chosen("sampler", sampler, Sampler, others=("auto",))


class Composite(Sampler):
    """Base class of samplers that are made of other samplers."""

    def parts(self) -> list[Sampler]:
        """The samplers of which it is made; its gain is that of the first."""
        raise NotImplementedError

    @property
    def evaluations_per_step(self) -> float:
        return sum(part.evaluations_per_step for part in self.parts())

    @property
    def relative(self) -> bool:
        """Whether it and all its parts run in units of the scales."""
        known = list(map(id, self.direct().values()))
        return super().relative and all(
            part.relative and (id(part) in known or not part.is_placed) for part in self.parts())

    def direct(self) -> dict[str, Sampler]:
        """The samplers among its parameters, by name."""
        return {one.name: value for one in fields(self)
                if isinstance(value := getattr(self, one.name), Sampler)}

    @property
    def is_placed(self) -> bool:
        return super().is_placed or any(one.is_placed for one in self.direct().values())

    def in_units(self, scales: NDArray[np.float64]) -> Self:
        own = super().in_units(scales)
        inner = {name: one.in_units(scales) for name, one in self.direct().items()
                 if one.is_placed}
        return own if own is self or not inner else own.changed_to(**inner)

    def aimed(self, at: Callable[[float], float]) -> Self:
        own = super().aimed(at)
        inner = {name: aimed for name in ("sampler", "main", "scout")
                 if isinstance(value := getattr(self, name, None), (str, Sampler))
                 and (aimed := (one := as_sampler(value)).aimed(at)) is not one}
        return own.changed_to(**inner) if inner else own

    @property
    def needs_gradient(self) -> bool:
        """Whether any of its parts needs the gradient."""
        return any(part.needs_gradient for part in self.parts())

    @property
    def needs_gil(self) -> bool:
        """Whether the steps of any of its parts run Python code."""
        return any(part.needs_gil for part in self.parts())

    def default_gain(self, d: int) -> Power:
        return self.parts()[0].default_gain(d)

    def diminishing_gain(self, d: int) -> Power:
        return self.parts()[0].diminishing_gain(d)

    def known_scales_gain(self, d: int) -> Power | None:
        return self.parts()[0].known_scales_gain(d)

    def check_gain(self, gain: Power) -> None:
        for part in self.parts():
            part.check_gain(gain)

    def check_run(self, schedule: Schedule, tune: int) -> None:
        for part in self.parts():
            part.check_run(schedule, tune)

    def check_share(self) -> None:
        super().check_share()
        for part in self.parts():
            part.check_share()


def check_part(name: str, value: Any, allowed: type[Sampler] | tuple[()] = ()) -> Sampler:
    """A sampler that is part of another, from an object or its short name.

    It must not be made of other samplers, unless it is of the class `allowed`.
    """
    try:
        part = as_sampler(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if isinstance(part, Composite) and not isinstance(part, allowed):
        raise ValueError(f"{name} must be a sampler that is not made of others, not {shown(part)}")
    return part


def points_in_units(name: str, points: Any, scales: NDArray[np.float64]) -> Any:
    """Points (..., d) in units of the scales; of another shape, which `build` refuses, as given."""
    array = real_array(name, points)
    return array / scales if array.shape[-1:] == scales.shape else points


def covariance_in_units(name: str, cov: Any, scales: NDArray[np.float64]) -> Any:
    """A covariance, a number, (d,) or (d, d), in units of the scales; see `points_in_units`."""
    array, d = real_array(name, cov), len(scales)
    if array.shape == (d, d):
        return array / (scales[:, None] * scales)
    return array / scales**2 if array.shape in ((), (d,)) else cov


def given(value: Any, default: Any) -> Any:
    """`value`, or the default if it is None."""
    return default if value is None else value


def check_optional(name: str, value: Any) -> None:
    """Refuse a length that is neither None nor a positive number."""
    if value is not None:
        check_number(name, value, above=0)


def check_below_one(gain: Power) -> None:
    """Check the gain of updates (1 - g) Sigma + g D D', which must stay positive definite."""
    if not gain(1) < 1:
        raise ValueError(f"the first gain must be below 1, not {gain(1)!r}: use an offset or a cap")


def as_power(name: str, value: Any) -> Power:
    """A Power, or the constant one of a positive number."""
    if isinstance(value, Power):
        return value
    try:
        return constant(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a positive number or a Power, not {shown(value)}") from None


LARGE, STATES_EACH = 8, 10.0  # see covariance_gain


def covariance_gain(d: int) -> Power | None:
    """The gain with which a covariance in d dimensions is learned where the scales are known.

    In 8 dimensions and more it is (10 d + n)^-0.9. With a gain (1 + n)^-k, a covariance is that of
    about the last n^k states. If these are few for its dimension, it is nearly singular; the chain
    then moves along a few directions alone, and does not recover. Where scales may be wrong by
    orders of magnitude, such a slow gain would not come to the right ones.
    """
    return None if d < LARGE else Power(k=0.9, offset=STATES_EACH * d)


MOST_DENSE = 50  # dimensions up to which a full covariance is learned by default
LEARNED_METRICS = ("diagonal", "dense", "fixed")


def check_metric(metric: Any) -> None:
    """Refuse a metric that is neither one of LEARNED_METRICS nor None."""
    if metric is not None:
        check_choice("metric", metric, LEARNED_METRICS)


def is_dense(metric: str | None, d: int) -> bool:
    """Whether a full covariance is learned as the metric."""
    return metric == "dense" or (metric is None and d <= MOST_DENSE)


def metric_factor(
    metric: str | None, preconditioner: ArrayLike | None, d: int
) -> NDArray[np.float64]:
    """The factor of `preconditioner` at the start: (d, d) for a dense metric, (d,) for a diagonal.

    If `metric` is None it is dense up to MOST_DENSE dimensions, or if the preconditioner is a
    matrix.
    """
    cov = given(preconditioner, 1.0)
    factor = np.asarray(check_covariance("preconditioner", cov, d))
    if factor.ndim == 2 and metric == "diagonal":
        raise ValueError("preconditioner must be a number or (d,) for a diagonal metric, not "
                         f'{shown(preconditioner)}: use metric="dense" or "fixed"')
    if is_dense(metric, d):
        return full_factor("preconditioner", cov, d)
    return factor if factor.ndim == 2 else np.full(d, factor)


def full_factor(name: str, cov: Any, d: int) -> NDArray[np.float64]:
    """The (d, d) lower factor of a covariance given as a number, (d,) or (d, d)."""
    factor = np.asarray(check_covariance(name, cov, d))
    if factor.ndim == 2:
        return factor
    full = np.zeros((d, d))
    np.fill_diagonal(full, factor)
    return full
