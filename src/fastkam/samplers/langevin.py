"""Langevin samplers: a drift along the gradient, with a Metropolis-Hastings correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_covariance, check_integer, check_number
from fastkam.samplers.sampler import Sampler, check_optional, given
from fastkam.schedules import Power

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MALA(Sampler, name="mala"):
    """The Metropolis-adjusted Langevin algorithm with a given preconditioner.

    Parameters
    ----------
    preconditioner : float, array (d,) or array (d, d), optional
        The preconditioner C, best the target's covariance; the squared scales by default. The
        proposal is N(x + (s^2 / 2) C grad log pi(x), s^2 C).
    step_size : float, optional
        s at the start; d^(-1/6) by default. It is learned.
    target_acceptance : float
        Acceptance probability that the adaptation aims at.
    jitter : float
        Each step is multiplied by a uniform number between 1 - jitter and 1 + jitter.

    Notes
    -----
    The default gain is (1 + n)^(-0.6).

    References
    ----------
    Roberts, G. O. and Tweedie, R. L. (1996). Exponential convergence of Langevin distributions and
    their discrete approximations. Bernoulli 2, 341-363.
    """

    preconditioner: ArrayLike | None = None
    step_size: float | None = None
    target_acceptance: float = 0.574
    jitter: float = 0.0
    KERNEL: ClassVar[str] = "mala.MALA"
    LENGTHS = ("preconditioner", "step_size")

    def __post_init__(self) -> None:
        check_optional("step_size", self.step_size)
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_number("jitter", self.jitter, least=0, below=1)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        return self.kernel_class()(
            d,
            np.asarray(check_covariance("preconditioner", given(self.preconditioner, 1.0), d)),
            step_size=d ** (-1 / 6) if self.step_size is None else self.step_size,
            target_acceptance=self.target_acceptance,
            jitter=self.jitter,
        )

    def default_gain(self, d: int) -> Power:
        return Power(k=0.6)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FisherAdaptiveMALA(Sampler, name="fishermala"):
    """MALA whose preconditioner is the inverse Fisher information, learned from gradients.

    Parameters
    ----------
    step_size : float, optional
        s at the start; d^(-1/6) by default. It is learned.
    target_acceptance : float
        Acceptance probability that the adaptation aims at.
    damping : float, optional
        lambda, the initial diagonal of the summed information; 10 in units of the scales by
        default.
    plain_steps : int
        Number of first steps of warm-up that learn the step size alone.
    jitter : float
        Each step is multiplied by a uniform number between 1 - jitter and 1 + jitter.

    Notes
    -----
    The default gain is (1 + n)^(-0.6), on log s; that of the paper is 0.0075.

    References
    ----------
    Titsias, M. K. (2023). Optimal preconditioning and Fisher adaptive Langevin sampling. Advances
    in Neural Information Processing Systems 36.
    """

    step_size: float | None = None
    target_acceptance: float = 0.574
    damping: float | None = None
    plain_steps: int = 500
    jitter: float = 0.0
    KERNEL: ClassVar[str] = "fishermala.FisherAdaptiveMALA"
    LENGTHS = ("step_size", "damping")

    def __post_init__(self) -> None:
        check_optional("step_size", self.step_size)
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_number("jitter", self.jitter, least=0, below=1)
        check_optional("damping", self.damping)
        check_integer("plain_steps", self.plain_steps, least=0)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        return self.kernel_class()(
            d,
            step_size=d ** (-1 / 6) if self.step_size is None else self.step_size,
            target_acceptance=self.target_acceptance,
            jitter=self.jitter,
            damping=given(self.damping, 10.0),
            plain_steps=self.plain_steps,
        )

    def default_gain(self, d: int) -> Power:
        return Power(k=0.6)
