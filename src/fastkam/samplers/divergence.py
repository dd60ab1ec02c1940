"""Sampling by divergence minimization: a random walk that follows the target's local shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_integer, check_number
from fastkam.samplers.sampler import Sampler, check_optional, full_factor, given
from fastkam.schedules import Power, constant

if TYPE_CHECKING:
    import numpy as np

    from fastkam._core.engine.kernel import Kernel


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DivergenceMinimization(Sampler, name="dm"):
    """A random walk whose factor follows the target's shape around the chain.

    Under the finite schedule the second half of warm-up fills a bank of pairs (state, factor), and
    each later step uses the factor of the nearest state; the target is invariant. Under `Perpetual`
    the factor changes at every step, as published, and the target is not invariant.

    Parameters
    ----------
    proposal_cov : float, array (d,) or array (d, d), optional
        Covariance of the first proposal; 4 times the squared scales by default.
    n_gradients : int
        J, the number of points, the proposal among them, whose gradients a warm-up step uses.
    entropy_weight : float
        b; the larger it is, the longer are the steps.
    largest_step : float, optional
        Largest change of an element of the factor in one update; 10 scales by default.
    norm_clip : float, optional
        Largest Frobenius norm of one update of the factor.
    rejection_factor : float
        Factor on the step of C after a rejection, at most 1.
    bank_size : int
        Largest number of entries in the bank, of d (d + 1) numbers each.

    Notes
    -----
    The default gain is 0.002, constant.

    References
    ----------
    Dharamshi, A., Ngo, V. and Rosenthal, J. S. (2023). Sampling by divergence minimization.
    Communications in Statistics - Simulation and Computation.
    """

    proposal_cov: ArrayLike | None = None
    n_gradients: int = 10
    entropy_weight: float = 0.2
    largest_step: float | None = None
    norm_clip: float | None = None
    rejection_factor: float = 1.0
    bank_size: int = 1000
    KERNEL: ClassVar[str] = "dm.DivergenceMinimization"
    LENGTHS = ("proposal_cov", "largest_step", "norm_clip")
    ALONE: ClassVar[str] = "its factor follows the place where its own chain is"

    def __post_init__(self) -> None:
        check_integer("n_gradients", self.n_gradients, least=1)
        check_number("entropy_weight", self.entropy_weight, above=0)
        check_optional("largest_step", self.largest_step)
        check_optional("norm_clip", self.norm_clip)
        check_number("rejection_factor", self.rejection_factor, above=0, most=1)
        check_integer("bank_size", self.bank_size, least=1)

    @property
    def evaluations_per_step(self) -> float:
        return float(self.n_gradients)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(
            full_factor("proposal_cov", given(self.proposal_cov, 4.0), len(x0)),
            points=self.n_gradients,
            bank=self.bank_size,
            entropy_weight=self.entropy_weight,
            largest_step=given(self.largest_step, 10.0),
            norm_clip=self.norm_clip,
            shrink=self.rejection_factor,
        )

    def default_gain(self, d: int) -> Power:
        return constant(0.002)
