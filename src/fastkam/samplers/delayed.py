"""Delayed acceptance: a sampler behind a cheap surrogate of the density."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from fastkam.arguments import check_integer, shown
from fastkam.samplers.sampler import Composite, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fastkam._core.density.target import Target
    from fastkam._core.engine.kernel import Kernel

MOST_STEPS = 10**6  # on the surrogate for each evaluation: a run ends between such steps only


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DelayedAcceptance(Composite):
    """Delayed acceptance; made by `fastkam.sample` from a sampler, if there is a surrogate.

    Parameters
    ----------
    sampler : Sampler
        A sampler without gradients that makes one evaluation per step.
    steps : int
        Number of steps of the sampler on the surrogate for each evaluation of the density. With
        more than one, the sampler adapts to the surrogate alone.

    References
    ----------
    Christen, J. A. and Fox, C. (2005). Markov chain Monte Carlo using an approximation. Journal of
    Computational and Graphical Statistics 14, 795-810.
    """

    sampler: Sampler
    steps: int = 1
    KERNEL: ClassVar[str] = "delayed.DelayedAcceptance"
    LENGTHS = ()

    def __post_init__(self) -> None:
        name = type(self.sampler).__name__
        check_integer("steps", self.steps, least=1, most=MOST_STEPS)
        if not isinstance(self.sampler, Sampler):
            raise TypeError(f"sampler must be a Sampler, not {shown(self.sampler)}")
        if self.sampler.needs_gradient:
            raise ValueError(f"a surrogate stands in for the density, not for the gradient that "
                             f"{name} needs: take a sampler without gradients")
        if self.sampler.several_evaluations:
            raise ValueError(f"surrogate= needs a sampler with one evaluation per step; {name} "
                             "makes several: take another sampler, such as \"ram\"")

    def parts(self) -> list[Sampler]:
        return [self.sampler]

    @property
    def stat_names(self) -> tuple[str, ...]:
        return (*self.sampler.stat_names, *super(Composite, self).stat_names)

    def check_share(self) -> None:
        self.sampler.check_share()

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        inner, one = self.sampler.build(x0), self.kernel_class()
        if self.steps == 1:
            alone: Kernel = one(inner)
            return alone
        several: Kernel = import_module(one.__module__).SubchainAcceptance(inner, self.steps)
        return several


def check_stages(sampler: Sampler, target: Target) -> None:
    """Refuse delayed acceptance without a surrogate, and a surrogate without it."""
    delayed = isinstance(sampler, DelayedAcceptance)
    if delayed != (target.surrogate is not None):
        raise ValueError(f"surrogate must {'' if delayed else 'not '}be given for a run of "
                         f"{type(sampler).__name__}")


def check_steps(steps: Any, surrogate: Any) -> int:
    """`surrogate_steps` as an int, 1 if it is None."""
    if steps is None:
        return 1
    if surrogate is None:
        raise ValueError(f"surrogate_steps must not be given without surrogate, not {shown(steps)}")
    return check_integer("surrogate_steps", steps, least=1, most=MOST_STEPS)
