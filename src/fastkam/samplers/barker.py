"""The Barker proposal: a random walk whose signs follow the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_array, check_number
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
class BarkerProposal(Sampler, name="barker"):
    """The Barker proposal: a random walk whose signs follow the gradient.

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
        s at the start; 2.4 d^(-1/6) by default. It is learned.
    target_acceptance : float
        Acceptance probability that the adaptation aims at.
    jitter : float
        Each step is multiplied by a uniform number between 1 - jitter and 1 + jitter.

    Notes
    -----
    The default gain is (1 + n)^(-0.6); under `Diminishing` it is 1 / (1 + n). In 8 dimensions and
    more, in units of scales that a search has found, a dense metric has (10 d + n)^(-0.9) and
    1 / (10 d + n).

    References
    ----------
    Livingstone, S. and Zanella, G. (2022). The Barker proposal: combining robustness and efficiency
    in gradient-based MCMC. Journal of the Royal Statistical Society B 84, 496-523.
    """

    metric: str | None = None
    preconditioner: ArrayLike | None = None
    mean: ArrayLike | None = None
    step_size: float | None = None
    target_acceptance: float = 0.4
    jitter: float = 0.0
    KERNEL: ClassVar[str] = "barker.BarkerProposal"
    LENGTHS = ("preconditioner", "step_size")
    POSITIONS = ("mean",)

    def __post_init__(self) -> None:
        check_metric(self.metric)
        check_optional("step_size", self.step_size)
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_number("jitter", self.jitter, least=0, below=1)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        return self.kernel_class()(
            x0 if self.mean is None else check_array("mean", self.mean, shape=(d,)),
            metric_factor(self.metric, self.preconditioner, d),
            step_size=2.4 * d ** (-1 / 6) if self.step_size is None else self.step_size,
            target_acceptance=self.target_acceptance,
            jitter=self.jitter,
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
