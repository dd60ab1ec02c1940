"""Samplers whose proposal is shaped by a kernel on the chain's history: KAM and its variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_choice, check_integer, check_number
from fastkam.kernels import Gaussian, Kernel, Matern, as_kernel
from fastkam.samplers.metropolis import OPTIMAL
from fastkam.samplers.sampler import Sampler, as_power, check_optional, given
from fastkam.schedules import Finite, Perpetual, Power, Schedule, constant

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel as CompiledKernel

METRICS = ("dense", "identity")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class KernelAdaptiveMetropolis(Sampler, name="kam"):
    """Kernel adaptive Metropolis: the proposal follows the local shape of the chain's history.

    Parameters
    ----------
    kernel : Kernel or str
        "gaussian", "matern", "linear", or an object of `fastkam.kernels`.
    subsample : int
        Number n of points of the history that shape the proposal. A step costs O(n d + n^3) if n is
        below 1.4 d - 4, and O(n d^2 + d^3) otherwise.
    metric : str
        The metric of gamma and of the length of the kernel: the learned covariance of the chain
        ("dense"), or the Euclidean one ("identity", as published).
    step_size : float, optional
        Initial nu, 2.38 / sqrt(d) by default; it is learned.
    gamma : float or Power, optional
        gamma, the standard deviation of the isotropic part; a Power decays with the adaptations
        and is constant when adaptation has ended. By default 0.2 in the metric, or 0.2 scales.
    renewal : float or Power
        p_t, the probability that an adaptation draws a new subsample.
    target_acceptance : float
        Acceptance probability that the adaptation aims at.
    history_size : int
        Largest number of states of the chain that are stored, at least 2 n; they are thinned evenly
        when this is reached.

    Notes
    -----
    It is algorithm 1 of the paper, with its proposition 2. The gain on log nu is 0.5 (1 + n)^(-1/2)
    by default; both covariances of a step come from the same subsample and nu.

    References
    ----------
    Sejdinovic, D. et al. (2014). Kernel adaptive Metropolis-Hastings. Proceedings of Machine
    Learning Research 32, 1665-1673.
    """

    kernel: Kernel | str = field(default_factory=Gaussian)
    metric: str = "dense"
    subsample: int = 200
    step_size: float | None = None
    gamma: float | Power | None = None
    renewal: float | Power = field(default_factory=lambda: Power(k=0.5, offset=0.0))
    target_acceptance: float = 0.234
    history_size: int = 10_000
    KERNEL: ClassVar[str] = "kam.KernelAdaptiveMetropolis"
    LENGTHS = ("gamma",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        check_choice("metric", self.metric, METRICS)
        if self.gamma is not None:
            object.__setattr__(self, "gamma", as_power("gamma", self.gamma))
        object.__setattr__(self, "renewal", as_power("renewal", self.renewal))
        check_integer("subsample", self.subsample, least=0)
        check_integer("history_size", self.history_size, least=max(2, 2 * self.subsample))
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_optional("step_size", self.step_size)

    @property
    def relative(self) -> bool:
        """Whether no length is in units of the coordinates.

        In a learned metric, gamma and the length of the kernel are not.
        """
        if self.metric != "identity":
            return "LENGTHS" in vars(type(self))
        return super().relative and as_kernel(self.kernel).adapts_length

    def first_step_size(self, d: int) -> float:
        """nu at the start."""
        return OPTIMAL / np.sqrt(d) if self.step_size is None else self.step_size

    def default_gamma(self) -> Power:
        """gamma where none is given."""
        return constant(0.2)

    def few_points(self, d: int) -> bool:
        """Whether a step uses n x n matrices, not d x d: if this was faster in measurements."""
        return self.subsample < 1.4 * d - 4

    def options(self, d: int) -> dict[str, Any]:
        """Keyword arguments of the compiled kernel."""
        kernel = as_kernel(self.kernel)
        return {
            "length": None if kernel.adapts_length else kernel.first_length,
            "subsample": self.subsample,
            "step_size": self.first_step_size(d),
            "target_acceptance": self.target_acceptance,
            "noise": given(self.gamma, self.default_gamma()),
            "renewal": self.renewal,
            "capacity": self.history_size,
            "few": self.few_points(d),
        }

    def build(self, x0: NDArray[np.float64]) -> CompiledKernel:
        d = len(x0)
        return self.kernel_class()(d, as_kernel(self.kernel).compiled(), **self.options(d),
                                   mean=None if self.metric == "identity" else x0)

    def default_gain(self, d: int) -> Power:
        return Power(c=0.5, k=0.5)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class KernelPCAMetropolis(KernelAdaptiveMetropolis, name="kpca"):
    """The kernel-PCA form of kernel adaptive Metropolis: a mixture of one-directional proposals.

    Parameters
    ----------
    n_components : int
        Number of leading directions of the subsample in feature space, one for each component of
        the mixture; at most `subsample`.
    kernel, metric, subsample, step_size, gamma, renewal, target_acceptance, history_size
        As for `KernelAdaptiveMetropolis`. Each renewal costs an eigendecomposition, O(n^3).

    Notes
    -----
    It is that of appendix C of the paper. The weights are (l_i + 1) / (sum l + k), as in the
    authors' programs.

    References
    ----------
    Sejdinovic, D. et al. (2014). Kernel adaptive Metropolis-Hastings. Proceedings of Machine
    Learning Research 32, 1665-1673.
    """

    n_components: int = 10
    renewal: float | Power = field(default_factory=lambda: Power(k=0.75, offset=0.0))
    KERNEL: ClassVar[str] = "kpca.KernelPCAMetropolis"
    LENGTHS = ("gamma",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("n_components", self.n_components, least=1)
        check_integer("subsample", self.subsample, least=self.n_components)

    def options(self, d: int) -> dict[str, Any]:
        own = {"components": self.n_components, "kernel": self.kernel, "few": False}
        return super().options(d) | own


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CyclicalKernelAdaptiveMetropolis(KernelAdaptiveMetropolis, name="ckam"):
    """Cyclical kernel adaptive Metropolis: cycles of exploration, then steps of decreasing size.

    Under the schedule "finite" the cycles of warm-up fill a bank, and each later cycle uses an
    entry that is drawn independently of the state: every step then leaves the target invariant.
    Under "perpetual" it runs as published, which is biased: the subsample and the covariance of
    Sampling depend on the states of the same cycle. The draws are states of Sampling only.

    Parameters
    ----------
    cycle : int
        Number of steps in a cycle.
    exploration_fraction : float
        Fraction of a cycle that is Exploration.
    step_gain : float or Power
        Gain of log nu within a cycle; the n-th step has the n-th term.
    gamma : float or Power, optional
        gamma within a cycle; the n-th step has the n-th term. By default 20 n^(-1/4) in
        the metric, or 10 n^(-1/4) scales where that is "identity".
    bank_size : int
        Number of cycles in the bank; a new one replaces the oldest when it is full.
    history_size : int
        Not an argument: all states of a cycle are kept.
    kernel, metric, subsample, step_size, renewal, target_acceptance
        As for `KernelAdaptiveMetropolis`, within a cycle; the step size at the start of a cycle is
        2 * 2.38 / sqrt(d) by default.

    Notes
    -----
    It is algorithm 2 of the paper, with eta_t = (1 + t)^(-0.75), t counted from 0 in each cycle.
    Their noise a (b + t)^(-r) has no published values.

    References
    ----------
    Li, C. et al. Cyclical kernel adaptive Metropolis.
    """

    cycle: int = 1000
    exploration_fraction: float = 0.4
    step_gain: float | Power = field(default_factory=lambda: Power(k=0.75, offset=0.0))
    gamma: float | Power | None = None
    kernel: Kernel | str = field(default_factory=lambda: Matern("median", 4.0))
    subsample: int = 50
    bank_size: int = 100
    history_size: int = field(init=False, default=0)
    KERNEL: ClassVar[str] = "ckam.CyclicalKernelAdaptiveMetropolis"
    EVALUATIONS: ClassVar[float] = 1.5
    LENGTHS = ("gamma",)
    ALONE: ClassVar[str] = "a cycle learns from the states of its own chain"

    def __post_init__(self) -> None:
        check_integer("cycle", self.cycle, least=2)
        check_integer("subsample", self.subsample, least=0)
        object.__setattr__(self, "history_size", max(self.cycle, 2 * self.subsample))
        super().__post_init__()
        object.__setattr__(self, "step_gain", as_power("step_gain", self.step_gain))
        check_number("exploration_fraction", self.exploration_fraction, above=0, below=1)
        check_integer("bank_size", self.bank_size, least=1)
        if int(self.exploration_fraction * self.cycle) < 1:
            raise ValueError(
                "exploration_fraction must give Exploration a step, not "
                f"{self.exploration_fraction!r} of {self.cycle}"
            )

    def first_step_size(self, d: int) -> float:
        return 2 * OPTIMAL / np.sqrt(d) if self.step_size is None else self.step_size

    def default_gamma(self) -> Power:
        # a covariance is learned in one mode at first, and is to reach others
        return Power(c=20.0 if self.metric == "dense" else 10.0, k=0.25, offset=0.0)

    def options(self, d: int) -> dict[str, Any]:
        return super().options(d) | {
            "cycle": self.cycle,
            "beta": self.exploration_fraction,
            "gain": self.step_gain,
            "bank": self.bank_size,
        }

    def default_gain(self, d: int) -> Power:
        return constant(1.0)

    def check_gain(self, gain: Power) -> None:
        if gain != constant(1.0):
            raise ValueError(f"ckam takes its gain by step_gain, not from the schedule: {gain!r}")

    def check_run(self, schedule: Schedule, tune: int) -> None:
        if not isinstance(schedule, (Finite, Perpetual)):
            name = type(schedule).__name__
            raise ValueError(f"schedule must be Finite or Perpetual for ckam, not {name}")
        if isinstance(schedule, Finite) and tune <= int(self.exploration_fraction * self.cycle):
            raise ValueError(
                "tune must be more than the steps of Exploration, "
                f"{int(self.exploration_fraction * self.cycle)}, so that the bank gets an entry, "
                f"not {tune}"
            )
        if schedule.start > 0:
            raise ValueError(f"ckam adapts from the first step, not from start = {schedule.start}")
