"""Samplers that choose their step size at every step, and reversibly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_array, check_covariance, check_number
from fastkam.samplers.sampler import Sampler, check_below_one, given
from fastkam.schedules import Power

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

METRICS = ("diagonal", "fixed")


@dataclass(frozen=True, kw_only=True, eq=False)
class AutoStep(Sampler):
    """What they have in common."""

    metric: str = "diagonal"
    preconditioner: ArrayLike | None = None
    mean: ArrayLike | None = None
    step_size: float | None = None

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {METRICS}, not {self.metric!r}")
        if self.step_size is not None:
            check_number("step_size", self.step_size, above=0)

    def first_step_size(self, d: int) -> float:
        """Where the search begins before anything is learnt."""
        raise NotImplementedError

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        variances = given(self.preconditioner, 1.0)
        factor = np.asarray(check_covariance("preconditioner", variances, d))
        if factor.ndim == 2:
            raise ValueError("preconditioner must be a number or (d,), not "
                             f"{self.preconditioner!r}")
        return self.kernel_class()(
            x0 if self.mean is None else check_array("mean", self.mean, shape=(d,)),
            np.broadcast_to(factor, d),
            step_size=self.first_step_size(d) if self.step_size is None else self.step_size,
            learns=self.metric == "diagonal",
        )

    def default_gain(self, d: int) -> Power:
        return Power(k=0.6)

    def check_gain(self, gain: Power) -> None:
        check_below_one(gain)


@dataclass(frozen=True, kw_only=True, eq=False)
class AutoMALA(AutoStep, name="automala"):
    """autoMALA: a Langevin step whose size is chosen where it is made, by doubling or halving.

    Parameters
    ----------
    metric : str
        Whether the variances of the target are learnt from the chain ("diagonal") or stay at
        `preconditioner` ("fixed").
    preconditioner : float or array (d,), optional
        The variances at the start; the squared scales by default.
    mean : array (d,), optional
        The mean at the start; the starting point by default.
    step_size : float, optional
        With which each search begins, at the start; d^(-1/6) by default. It is learnt.

    References
    ----------
    Biron-Lattes, M., Surjanovic, N., Syed, S., Campbell, T. and Bouchard-Cote, A. (2024). autoMALA:
    Locally adaptive Metropolis-adjusted Langevin algorithm. AISTATS. The default gain is
    (1 + n)^(-0.6).
    """

    KERNEL: ClassVar[str] = "automala.AutoMALA"
    LENGTHS = ("preconditioner", "mean", "step_size")

    def first_step_size(self, d: int) -> float:
        return float(d ** (-1 / 6))


@dataclass(frozen=True, kw_only=True, eq=False)
class AutoStepRandomWalk(AutoStep, name="autorwm"):
    """A random walk whose step size is chosen where it is made, by doubling or halving.

    Parameters
    ----------
    metric, preconditioner, mean
        As for `AutoMALA`.
    step_size : float, optional
        With which each search begins, at the start; 2.38 d^(-1/2) by default. It is learnt.

    References
    ----------
    Liu, T., Surjanovic, N., Biron-Lattes, M., Bouchard-Cote, A. and Campbell, T. (2024). AutoStep:
    Locally adaptive involutive MCMC. arXiv:2410.18929. The default gain is (1 + n)^(-0.6).
    """

    KERNEL: ClassVar[str] = "autorwm.AutoStepRandomWalk"
    LENGTHS = ("preconditioner", "mean", "step_size")

    def first_step_size(self, d: int) -> float:
        return float(2.38 * d**-0.5)
