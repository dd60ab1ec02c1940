"""Samplers that choose a step size at every step, reversibly: autoMALA and autoStep RWM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_array
from fastkam.samplers.metropolis import OPTIMAL
from fastkam.samplers.sampler import (
    Sampler,
    check_below_one,
    check_metric,
    check_optional,
    covariance_gain,
    is_dense,
    metric_factor,
)
from fastkam.schedules import Power

if TYPE_CHECKING:
    import numpy as np

    from fastkam._core.engine.kernel import Kernel


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AutoStep(Sampler):
    """Common parameters of the autoStep samplers."""

    metric: str | None = None
    preconditioner: ArrayLike | None = None
    mean: ArrayLike | None = None
    step_size: float | None = None
    POSITIONS = ("mean",)

    def __post_init__(self) -> None:
        check_metric(self.metric)
        check_optional("step_size", self.step_size)

    def first_step_size(self, d: int) -> float:
        """The scale at which the search begins before anything is learned."""
        raise NotImplementedError

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        return self.kernel_class()(
            x0 if self.mean is None else check_array("mean", self.mean, shape=(d,)),
            metric_factor(self.metric, self.preconditioner, d),
            step_size=self.first_step_size(d) if self.step_size is None else self.step_size,
            learns=self.metric != "fixed",
        )

    def default_gain(self, d: int) -> Power:
        return Power(k=0.6)

    def diminishing_gain(self, d: int) -> Power:
        """The gain of `AdaptiveMetropolis`, since a covariance is learned."""
        return Power(k=1.0)

    def known_scales_gain(self, d: int) -> Power | None:
        return covariance_gain(d) if is_dense(self.metric, d) else None

    def check_gain(self, gain: Power) -> None:
        check_below_one(gain)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AutoMALA(AutoStep, name="automala"):
    """autoMALA: a Langevin step whose size is chosen at each state, by doubling or halving.

    Parameters
    ----------
    metric : str, optional
        Form of the covariance estimate that is learned from the chain: "diagonal", "dense", or
        "fixed", which keeps `preconditioner`. By default dense up to 50 dimensions, then diagonal.
    preconditioner : float, array (d,) or array (d, d), optional
        The covariance at the start; the squared scales by default.
    mean : array (d,), optional
        The mean at the start; the starting point by default.
    step_size : float, optional
        Initial step size at which each search starts; d^(-1/6) by default. It is learned.

    Notes
    -----
    The default gain is (1 + n)^(-0.6); under `Diminishing` it is 1 / (1 + n). In 8 dimensions and
    more, in units of scales that a search has found, a dense metric has (10 d + n)^(-0.9) and
    1 / (10 d + n).

    References
    ----------
    Biron-Lattes, M., Surjanovic, N., Syed, S., Campbell, T. and Bouchard-Cote, A. (2024). autoMALA:
    Locally adaptive Metropolis-adjusted Langevin algorithm. AISTATS.
    """

    KERNEL: ClassVar[str] = "automala.AutoMALA"
    EVALUATIONS: ClassVar[float] = 3.0
    LENGTHS = ("preconditioner", "step_size")

    def first_step_size(self, d: int) -> float:
        return float(d ** (-1 / 6))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AutoStepRandomWalk(AutoStep, name="autorwm"):
    """A random walk whose step size is chosen at each state, by doubling or halving.

    Parameters
    ----------
    metric, preconditioner, mean
        As for `AutoMALA`.
    step_size : float, optional
        Initial step size at which each search starts; 2.38 d^(-1/2) by default. It is learned.

    Notes
    -----
    The default gain is (1 + n)^(-0.6); under `Diminishing` it is 1 / (1 + n). In 8 dimensions and
    more, in units of scales that a search has found, a dense metric has (10 d + n)^(-0.9) and
    1 / (10 d + n).

    References
    ----------
    Liu, T., Surjanovic, N., Biron-Lattes, M., Bouchard-Cote, A. and Campbell, T. (2024). AutoStep:
    Locally adaptive involutive MCMC. arXiv:2410.18929.
    """

    KERNEL: ClassVar[str] = "autorwm.AutoStepRandomWalk"
    EVALUATIONS: ClassVar[float] = 3.0
    LENGTHS = ("preconditioner", "step_size")

    def first_step_size(self, d: int) -> float:
        return float(OPTIMAL * d**-0.5)
