"""Hamiltonian samplers: NUTS and HMC."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import check_choice, check_covariance, check_integer, check_number, shown
from fastkam.samplers import metrics
from fastkam.samplers.sampler import Sampler, check_optional, given
from fastkam.schedules import Finite, Perpetual, Power, Schedule, constant

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

METRICS = ("diagonal", "dense", "low-rank", "fixed")
ROWS = 1000  # most draws that a dense or low-rank metric is estimated from
MOST_STEPS, MOST_DEPTH = 10**6, 20  # a run can end between trajectories only
LEAST_RISE = 20  # of the Hamiltonian, that may count as a divergence of NUTS


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Hamiltonian(Sampler):
    """Common parameters of HMC and NUTS."""

    metric: str = "low-rank"
    inverse_mass_matrix: ArrayLike | None = None
    learn_from: str = "gradients"
    rank: int = 100
    step_size: float | None = None
    target_acceptance: float = 0.8
    divergence_threshold: float = 1000.0

    def __post_init__(self) -> None:
        check_choice("metric", self.metric, METRICS)
        check_choice("learn_from", self.learn_from, ("gradients", "draws"))
        if self.metric == "low-rank" and self.learn_from == "draws":
            raise ValueError('learn_from must be "gradients" for a low-rank metric, not "draws"')
        check_integer("rank", self.rank, least=1)
        check_optional("step_size", self.step_size)
        check_number("target_acceptance", self.target_acceptance, above=0, below=1)
        check_number("divergence_threshold", self.divergence_threshold, above=0)

    def estimate(self) -> Any:
        """The function of (draws, gradients) that estimates a metric that is not diagonal."""
        if self.metric == "low-rank":
            return partial(metrics.low_rank, most=self.rank)
        return metrics.dense if self.learn_from == "gradients" else metrics.dense_from_draws

    def options(self, d: int) -> dict[str, Any]:
        """Keyword arguments of every kernel of the family."""
        metric = given(self.inverse_mass_matrix, 1.0)
        factor = np.asarray(check_covariance("inverse_mass_matrix", metric, d))
        kind = self.metric
        if kind == "fixed":
            kind = "dense" if factor.ndim == 2 else "diagonal"
        elif factor.ndim == 2 and kind != "dense":
            raise ValueError(
                f'inverse_mass_matrix must be a number or (d,) for a {kind} metric, not '
                f'{shown(self.inverse_mass_matrix)}: '
                'use metric="dense" or "fixed"'
            )
        return {
            "kind": kind,
            "factor": factor if factor.ndim == 2 else np.broadcast_to(factor, d),
            "estimate": self.estimate(),
            "rows": ROWS,
            "ranks": min(self.rank, d) if kind == "low-rank" else 0,
            "step_size": d**-0.25 if self.step_size is None else self.step_size,
            "target_acceptance": self.target_acceptance,
            "learns_metric": self.metric != "fixed",
            "from_gradients": self.learn_from == "gradients",
            "divergence_threshold": self.divergence_threshold,
        }

    def default_gain(self, d: int) -> Power:
        return constant(1.0)

    def check_gain(self, gain: Power) -> None:
        if gain != constant(1.0):
            name = type(self).__name__
            raise ValueError(f"{name} learns by dual averaging: it takes no gain, not "
                             f"{shown(gain)}")

    def check_run(self, schedule: Schedule, tune: int) -> None:
        if not isinstance(schedule, (Finite, Perpetual)):
            name = type(schedule).__name__
            raise ValueError(
                f"schedule must be Finite or Perpetual for {type(self).__name__}, not {name}")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NUTS(Hamiltonian, name="nuts"):
    """The No-U-Turn sampler: trajectories that end when they turn back.

    Parameters
    ----------
    metric : str
        Form of the covariance estimate that is learned: "low-rank" (a diagonal, and the directions
        that differ most from it), "diagonal", "dense", or "fixed", which keeps
        `inverse_mass_matrix`.
    inverse_mass_matrix : float, array (d,) or array (d, d), optional
        Initial metric (inverse mass matrix); the squared scales by default. A learned metric soon
        replaces it.
    learn_from : str
        "gradients": learn from draws and gradients, which takes far fewer steps; or from "draws"
        alone.
    rank : int
        Largest number of directions of a low-rank metric.
    step_size : float, optional
        Initial step size of the leapfrog steps, from which adaptation starts; d^(-1/4) by default.
    target_acceptance : float
        Mean acceptance probability over the trajectory that the step size aims at.
    divergence_threshold : float
        A step that raises the Hamiltonian by more than this, at least 20, ends the trajectory as
        divergent. (From its other points the trajectory might not end there: the draws have an
        error of about e^-threshold.)
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth steps. At most 20: a run can end between
        trajectories only.

    Notes
    -----
    Draws are multinomial, and trajectories end by the criterion of Betancourt (2017).

    References
    ----------
    Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning
    Research 15, 1593-1623.

    Betancourt, M. (2017). A conceptual introduction to Hamiltonian Monte Carlo. arXiv:1701.02434.
    """

    max_tree_depth: int = 10
    KERNEL: ClassVar[str] = "nuts.NUTS"
    EVALUATIONS: ClassVar[float] = 12.0
    TUNE: ClassVar[int] = 400
    LENGTHS = ("inverse_mass_matrix", "step_size")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("max_tree_depth", self.max_tree_depth, least=1, most=MOST_DEPTH)
        if self.divergence_threshold < LEAST_RISE:
            raise ValueError(
                f"divergence_threshold must be at least {LEAST_RISE} for nuts, not "
                f"{shown(self.divergence_threshold)}: a smaller one would bias the draws")

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        return self.kernel_class()(d, max_depth=self.max_tree_depth, **self.options(d))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HMC(Hamiltonian, name="hmc"):
    """Hamiltonian Monte Carlo with a fixed number of leapfrog steps.

    Parameters
    ----------
    metric, inverse_mass_matrix, learn_from, rank, step_size
        As for `NUTS`.
    target_acceptance : float
        The acceptance probability that the step size aims at.
    divergence_threshold : float
        A trajectory along which the range of the Hamiltonian is larger is rejected as divergent.
    n_steps : int
        Number of leapfrog steps in a trajectory, at most 10^6: a run can end between trajectories
        only.
    jitter : float
        The learned step size is multiplied by a uniform number between 1 - jitter and 1 + jitter
        for each trajectory, so that its length cannot stay at a period of the target.

    References
    ----------
    Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo,
    chapter 5.
    """

    n_steps: int = 10
    jitter: float = 0.1
    KERNEL: ClassVar[str] = "hmc.HMC"
    TUNE: ClassVar[int] = 400
    LENGTHS = ("inverse_mass_matrix", "step_size")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("n_steps", self.n_steps, least=1, most=MOST_STEPS)
        check_number("jitter", self.jitter, least=0, below=1)

    @property
    def evaluations_per_step(self) -> float:
        return float(self.n_steps)

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d = len(x0)
        return self.kernel_class()(d, steps=self.n_steps, jitter=self.jitter, **self.options(d))
