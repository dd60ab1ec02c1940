"""Samplers whose proposal climbs the gradient of the generalized speed measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_choice, check_covariance, check_flag, check_number, shown
from fastkam.samplers.sampler import Sampler, check_optional, full_factor, given
from fastkam.schedules import Power, constant

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

OPTIMIZERS = ("rmsprop", "adam", "plain")

@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GradientAdaptiveRandomWalk(Sampler, name="gadrwm"):
    """A random walk whose factor L climbs the gradient of the generalized speed measure.

    Parameters
    ----------
    proposal_cov : float, array (d,) or array (d, d), optional
        Covariance of the first proposal; 0.01 / d times the squared scales by default.
    diagonal : bool
        Learn a diagonal L, at a cost of O(d) per step.
    target_acceptance : float
        Acceptance rate that the adaptation aims at.
    optimizer : str
        "rmsprop", "adam" or "plain". The gain of the schedule is its step rho; it should decay for
        "plain", the Robbins-Monro update.
    decay : float
        Decay of the running mean of the squared gradient; by default 0.9, for "adam" 0.999.
    decay_mean : float
        Decay of Adam's running mean of the gradient.
    min_diagonal : float, optional
        Smallest diagonal element of L; 0.001 of the scales by default.
    entropy_weight, min_entropy_weight : float
        Initial weight of the proposal's entropy, and its lower bound.
    max_entropy_weight : float, optional
        Upper bound of the weight; none by default. On wide targets the weight can grow for long,
        and the acceptance rate stay low.
    entropy_weight_gain : float
        Rate at which the weight follows the acceptances.

    Notes
    -----
    The default gain is 5e-5, constant.

    References
    ----------
    Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
    Advances in Neural Information Processing Systems 32.
    """

    proposal_cov: ArrayLike | None = None
    diagonal: bool = False
    target_acceptance: float = 0.25
    optimizer: str = "rmsprop"
    decay: float | None = None
    decay_mean: float = 0.9
    min_diagonal: float | None = None
    entropy_weight: float = 1.0
    min_entropy_weight: float = 1e-4
    max_entropy_weight: float | None = None
    entropy_weight_gain: float = 0.02
    KERNEL: ClassVar[str] = "gadrwm.GradientAdaptiveRandomWalk"
    LENGTHS = ("proposal_cov", "min_diagonal")
    RHO: ClassVar[float] = 5e-5

    def __post_init__(self) -> None:
        check_flag("diagonal", self.diagonal)
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.decay is not None:
            check_number("decay", self.decay, least=0, below=1)
        check_number("decay_mean", self.decay_mean, least=0, below=1)
        check_optional("min_diagonal", self.min_diagonal)
        check_number("entropy_weight", self.entropy_weight, above=0)
        check_number("min_entropy_weight", self.min_entropy_weight, above=0)
        if self.max_entropy_weight is not None:
            check_number("max_entropy_weight", self.max_entropy_weight,
                         above=self.min_entropy_weight)
        check_number("entropy_weight_gain", self.entropy_weight_gain, least=0, below=1)

    def options(self, d: int) -> dict[str, Any]:
        """Keyword arguments of every kernel of the family."""
        cov = 0.01 / d if self.proposal_cov is None else self.proposal_cov
        if self.diagonal:
            factor = np.asarray(check_covariance("proposal_cov", cov, d))
            if factor.ndim == 2:
                raise ValueError("proposal_cov must be a number or (d,) with diagonal=True, not "
                                 f"{shown(cov)}")
            factor = np.broadcast_to(factor, d)
        else:
            factor = full_factor("proposal_cov", cov, d)
        default_decay = 0.999 if self.optimizer == "adam" else 0.9
        return {
            "factor": factor,
            "optimizer": self.optimizer,
            "beta": self.entropy_weight,
            "decay": default_decay if self.decay is None else self.decay,
            "decay_mean": self.decay_mean,
            "floor": given(self.min_diagonal, 1e-3),
            "beta_floor": self.min_entropy_weight,
            "beta_cap": self.max_entropy_weight,
            "beta_gain": self.entropy_weight_gain,
            "target_acceptance": self.target_acceptance,
        }

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(**self.options(len(x0)))

    def default_gain(self, d: int) -> Power:
        return constant(self.RHO)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GradientAdaptiveMALA(GradientAdaptiveRandomWalk, name="gadmala"):
    """MALA whose preconditioner L L' climbs the gradient of the generalized speed measure.

    Parameters
    ----------
    proposal_cov, diagonal, optimizer, decay, decay_mean, min_diagonal
        As for `GradientAdaptiveRandomWalk`.
    target_acceptance : float
        Acceptance rate that the adaptation aims at.
    entropy_weight, min_entropy_weight, max_entropy_weight, entropy_weight_gain
        As for `GradientAdaptiveRandomWalk`.
    exact : bool
        Differentiate through the gradient at the proposal too, by one Hessian-vector product per
        step: the target's `hvp`, or two more gradients. Otherwise that gradient counts as a
        constant, which is faster and works as well.

    Notes
    -----
    The default gain is 1.5e-4, constant.

    References
    ----------
    Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
    Advances in Neural Information Processing Systems 32.
    """

    target_acceptance: float = 0.55
    exact: bool = False
    KERNEL: ClassVar[str] = "gadmala.GradientAdaptiveMALA"
    LENGTHS = ("proposal_cov", "min_diagonal")
    RHO: ClassVar[float] = 1.5e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("exact", self.exact)

    def options(self, d: int) -> dict[str, Any]:
        return super().options(d) | {"exact": self.exact}
