"""Random walks: the adaptive Metropolis family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.samplers.optimal import OPTIMAL
from fastkam.arguments import check_array, check_covariance, check_flag, check_number
from fastkam.samplers.sampler import (
    Sampler,
    check_below_one,
    check_optional,
    covariance_gain,
    full_factor,
    given,
)
from fastkam.schedules import Power

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel


def optimal_scale(d: int) -> float:
    """Return 2.38^2 / d, the best factor on the target's covariance for Gaussian targets."""
    return OPTIMAL**2 / d


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RandomWalk(Sampler, name="rwm"):
    """Random-walk Metropolis, N(x, cov), without adaptation, or with an adaptive scale.

    Parameters
    ----------
    proposal_cov : float, array (d,) or array (d, d), optional
        Covariance of the proposal: a variance, variances, or a matrix; 2.38^2 / d times the squared
        scales by default.
    target_acceptance : float, optional
        Acceptance probability that an adaptive scale of the proposal aims at; by default the scale
        is fixed.
    jitter : float
        Each step is multiplied by a uniform number between 1 - jitter and 1 + jitter.

    Notes
    -----
    The default gain is (1 + n)^(-0.6).

    References
    ----------
    Metropolis, N. et al. (1953). Equation of state calculations by fast computing machines. Journal
    of Chemical Physics 21, 1087-1092.
    """

    proposal_cov: ArrayLike | None = None
    target_acceptance: float | None = None
    jitter: float = 0.0
    KERNEL: ClassVar[str] = "rwm.RandomWalk"
    LENGTHS = ("proposal_cov",)

    def __post_init__(self) -> None:
        if self.target_acceptance is not None:
            check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_number("jitter", self.jitter, least=0, below=1)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        cov = optimal_scale(d) if self.proposal_cov is None else self.proposal_cov
        return self.kernel_class()(
            d,
            np.asarray(check_covariance("proposal_cov", cov, d)),
            target_acceptance=self.target_acceptance or 0.0,
            jitter=self.jitter,
        )

    def default_gain(self, d: int) -> Power:
        return Power(k=0.6)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RobustAdaptiveMetropolis(Sampler, name="ram"):
    """Robust adaptive Metropolis: one update adapts shape and acceptance rate of the proposal.

    In the first half of a finite warm-up the proposal's scale is also halved whenever ten proposals
    in a row have an acceptance probability below 0.01; and in the first nine tenths its shape is
    replaced by the covariance of windows of states.

    Parameters
    ----------
    proposal_cov : float, array (d,) or array (d, d), optional
        Covariance of the first proposal; 2.38^2 / d times the squared scales by default.
    target_acceptance : float
        Acceptance probability that the adaptation aims at.
    windows : bool
        Whether the covariances of windows of a finite warm-up, each 1.5 times as long as the last,
        replace the shape that the update has learned. Other schedules have no windows.
    jitter : float
        Each step is multiplied by a uniform number between 1 - jitter and 1 + jitter.

    Notes
    -----
    The update is equation (1) of the paper. The default gain is min(1, d n^(-2/3)). Halving and
    windows are ours.

    References
    ----------
    Vihola, M. (2012). Robust adaptive Metropolis algorithm with coerced acceptance rate. Statistics
    and Computing 22, 997-1008.
    """

    proposal_cov: ArrayLike | None = None
    target_acceptance: float = 0.234
    windows: bool = True
    jitter: float = 0.0
    KERNEL: ClassVar[str] = "ram.RobustAdaptiveMetropolis"
    LENGTHS = ("proposal_cov",)

    def __post_init__(self) -> None:
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_flag("windows", self.windows)
        check_number("jitter", self.jitter, least=0, below=1)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        cov = optimal_scale(d) if self.proposal_cov is None else self.proposal_cov
        return self.kernel_class()(
            full_factor("proposal_cov", cov, d), self.target_acceptance, windows=self.windows,
            jitter=self.jitter,
        )

    def default_gain(self, d: int) -> Power:
        return Power(c=float(d), k=2 / 3, offset=0.0, cap=1.0)

    def check_gain(self, gain: Power) -> None:
        if not gain(1) <= 1:
            raise ValueError(f"the gain must be at most 1, not {gain(1)!r}: use a cap")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LearnedCovariance(Sampler):
    """Parameters of the samplers that propose by N(x, scale Sigma), with Sigma learned.

    Each of them takes these parameters; further ones belong to the sampler's own class.
    """

    target_cov: ArrayLike | None = None
    mean: ArrayLike | None = None
    scale: float | None = None
    jitter: float = 0.0
    POSITIONS = ("mean",)

    def __post_init__(self) -> None:
        check_optional("scale", self.scale)
        check_number("jitter", self.jitter, least=0, below=1)

    def learner(
        self, x0: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return (mean, factor, scale) at the start."""
        d = len(x0)
        mean = x0 if self.mean is None else check_array("mean", self.mean, shape=(d,))
        scale = optimal_scale(d) if self.scale is None else self.scale
        return mean, full_factor("target_cov", given(self.target_cov, 1.0), d), scale

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(*self.learner(x0), jitter=self.jitter)

    def default_gain(self, d: int) -> Power:
        return Power(k=0.7)

    def diminishing_gain(self, d: int) -> Power:
        """Return 1 / (1 + n), which gives all states so far equal weights in mean and covariance.

        A covariance of only the last n^0.7 states would follow the chain along a curved target, and
        make the steps short.
        """
        return Power(k=1.0)

    def known_scales_gain(self, d: int) -> Power | None:
        return covariance_gain(d)

    def check_gain(self, gain: Power) -> None:
        check_below_one(gain)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AdaptiveMetropolis(LearnedCovariance, name="am"):
    """Adaptive Metropolis, N(x, scale Sigma) with Sigma learned from the chain.

    Parameters
    ----------
    target_cov : float, array (d,) or array (d, d), optional
        Sigma at the start; the squared scales by default.
    mean : array (d,), optional
        The mean at the start; the starting point by default.
    scale : float, optional
        lambda; 2.38^2 / d by default.
    jitter : float
        Each step is multiplied by a uniform number between 1 - jitter and 1 + jitter.

    Notes
    -----
    It is algorithm 2 of the paper. The default gain is (1 + n)^(-0.7); under `Diminishing` it is
    1 / (1 + n). In 8 dimensions and more, in units of scales that a search has found, these are
    (10 d + n)^(-0.9) and 1 / (10 d + n).

    References
    ----------
    Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18,
    343-373.
    """

    KERNEL: ClassVar[str] = "am.AdaptiveMetropolis"
    LENGTHS = ("target_cov",)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RaoBlackwellizedAdaptiveMetropolis(LearnedCovariance, name="rbam"):
    """Adaptive Metropolis whose updates are averaged over each acceptance decision.

    Parameters
    ----------
    target_cov, mean, scale, jitter
        As for `AdaptiveMetropolis`.

    Notes
    -----
    It is algorithm 3 of the paper: the weighted sum of two outer products.

    References
    ----------
    Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18,
    343-373.
    """

    KERNEL: ClassVar[str] = "rbam.RaoBlackwellizedAdaptiveMetropolis"
    LENGTHS = ("target_cov",)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GlobalAdaptiveMetropolis(LearnedCovariance, name="gam"):
    """Adaptive Metropolis that also learns a global scale, for a given acceptance probability.

    Parameters
    ----------
    target_cov, mean, scale, jitter
        As for `AdaptiveMetropolis`; `scale` is the initial value of the learned scale.
    target_acceptance : float
        Acceptance probability that the adaptation aims at.

    Notes
    -----
    It is algorithm 4 of the paper.

    References
    ----------
    Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC. Statistics and Computing 18,
    343-373.
    """

    target_acceptance: float = 0.234
    KERNEL: ClassVar[str] = "gam.GlobalAdaptiveMetropolis"
    LENGTHS = ("target_cov",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(*self.learner(x0), self.target_acceptance, jitter=self.jitter)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DelayedRejectionAdaptiveMetropolis(LearnedCovariance, name="dram"):
    """Adaptive Metropolis that tries a shorter step before it rejects: DRAM.

    Parameters
    ----------
    target_cov, mean, scale, jitter
        As for `AdaptiveMetropolis`.
    second_cov_ratio : float
        Covariance of the second proposal, relative to that of the first.

    Notes
    -----
    There are two stages. The default gain is (1 + n)^(-0.7); under `Diminishing` it is 1 / (1 + n).
    In 8 dimensions and more, in units of scales that a search has found, these are
    (10 d + n)^(-0.9) and 1 / (10 d + n).

    References
    ----------
    Haario, H., Laine, M., Mira, A. and Saksman, E. (2006). DRAM: efficient adaptive MCMC.
    Statistics and Computing 16, 339-354.
    """

    second_cov_ratio: float = 0.04
    KERNEL: ClassVar[str] = "dram.DelayedRejectionAdaptiveMetropolis"
    EVALUATIONS: ClassVar[float] = 1.5
    LENGTHS = ("target_cov",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("second_cov_ratio", self.second_cov_ratio, above=0)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(*self.learner(x0), self.second_cov_ratio, jitter=self.jitter)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AdaptiveRandomWalk(Sampler, name="arwm"):
    """Adaptive random walk with two components: the learned covariance, and a small safe one.

    Parameters
    ----------
    safe_weight : float
        Probability of the safe component, in (0, 1).
    safe_scale : float, optional
        The safe component is N(x, (safe_scale^2 / d) I), and is the only one for the first 2 d
        steps; 0.1 of the scales by default.

    Notes
    -----
    The proposal is equation (2.1) of the paper. The default gain 1 / (1 + n) makes the learned
    covariance that of the chain.

    References
    ----------
    Roberts, G. O. and Rosenthal, J. S. (2009). Examples of adaptive MCMC. Journal of Computational
    and Graphical Statistics 18, 349-367.
    """

    safe_weight: float = 0.05
    safe_scale: float | None = None
    KERNEL: ClassVar[str] = "arwm.AdaptiveRandomWalk"
    LENGTHS = ("safe_scale",)

    def __post_init__(self) -> None:
        check_number("safe_weight", self.safe_weight, above=0, below=1)
        check_optional("safe_scale", self.safe_scale)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.kernel_class()(x0, self.safe_weight, given(self.safe_scale, 0.1))

    def default_gain(self, d: int) -> Power:
        return Power(k=1.0)

    def check_gain(self, gain: Power) -> None:
        check_below_one(gain)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CholeskyAdaptiveMetropolis(Sampler, name="cholam"):
    """Adaptive Metropolis that updates the Cholesky factor itself.

    The defaults are those of the paper, which has no scale: in ten or more dimensions the
    acceptance rate is often low.

    Parameters
    ----------
    proposal_cov : float, array (d,) or array (d, d), optional
        Covariance of the first proposal; 0.01 / d times the squared scales by default.
    mean : array (d,), optional
        The mean at the start; the starting point by default.
    scale : float, optional
        Global scale at the start; 1 by default.
    scale_gain : float
        Rate at which the scale follows the acceptances; with 0 it is fixed.
    mean_gain : float, optional
        Constant gain of the mean; the schedule's gain by default.
    target_acceptance : float
        The acceptance rate that the scale aims at.
    min_diagonal : float, optional
        Smallest diagonal element of the factor; 0.001 of the scales by default.

    Notes
    -----
    It is in the supplement of the paper. The default gain is 0.001 / (1 + n / 4000); under
    `Diminishing` it is 1 / (1000 + n).

    References
    ----------
    Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
    Advances in Neural Information Processing Systems 32.
    """

    proposal_cov: ArrayLike | None = None
    mean: ArrayLike | None = None
    scale: float = 1.0
    scale_gain: float = 0.0
    mean_gain: float | None = None
    target_acceptance: float = 0.25
    min_diagonal: float | None = None
    KERNEL: ClassVar[str] = "cholam.CholeskyAdaptiveMetropolis"
    LENGTHS = ("proposal_cov", "min_diagonal")
    POSITIONS = ("mean",)

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)
        check_number("scale_gain", self.scale_gain, least=0, below=1)
        if self.mean_gain is not None:
            check_number("mean_gain", self.mean_gain, above=0, below=1)
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_optional("min_diagonal", self.min_diagonal)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        cov = 0.01 / d if self.proposal_cov is None else self.proposal_cov
        return self.kernel_class()(
            x0 if self.mean is None else check_array("mean", self.mean, shape=(d,)),
            full_factor("proposal_cov", cov, d),
            self.scale,
            mean_gain=self.mean_gain,
            scale_gain=self.scale_gain,
            target_acceptance=self.target_acceptance,
            floor=given(self.min_diagonal, 1e-3),
        )

    def default_gain(self, d: int) -> Power:
        return Power(c=0.001 * 4000, k=1.0, offset=4000.0)

    def diminishing_gain(self, d: int) -> Power:
        """Return a gain that begins like the default one, and forgets no state afterwards.

        The default gain decays to 4 / n, with which the factor is that of the last quarter of the
        states, and follows the chain along a curved target.
        """
        return Power(k=1.0, offset=1000.0)

    def check_gain(self, gain: Power) -> None:
        check_below_one(gain)
