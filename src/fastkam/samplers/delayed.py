"""Delayed acceptance: a sampler behind a cheap surrogate of the density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fastkam.arguments import shown
from fastkam.samplers.sampler import Composite, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fastkam._core.density.target import Target
    from fastkam._core.engine.kernel import Kernel


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayedAcceptance(Composite):
    """Delayed acceptance: what `fastkam.sample` makes of a sampler where there is a surrogate.

    Parameters
    ----------
    sampler : Sampler
        It needs no gradient, and makes one evaluation a step.

    References
    ----------
    Christen, J. A. and Fox, C. (2005). Markov chain Monte Carlo using an approximation. Journal of
    Computational and Graphical Statistics 14, 795-810.
    """

    sampler: Sampler
    KERNEL: ClassVar[str] = "delayed.DelayedAcceptance"
    LENGTHS = ()

    def __post_init__(self) -> None:
        name = type(self.sampler).__name__
        if not isinstance(self.sampler, Sampler):
            raise TypeError(f"sampler must be a Sampler, not {shown(self.sampler)}")
        if self.sampler.needs_gradient:
            raise ValueError(f"a surrogate stands in for the density, not for the gradient that "
                             f"{name} needs: take a sampler without gradients")
        if self.sampler.several_evaluations:
            raise ValueError(f"a surrogate can stand before one evaluation a step, and {name} "
                             "makes several: take another sampler, such as \"ram\"")

    def parts(self) -> list[Sampler]:
        return [self.sampler]

    @property
    def stat_names(self) -> tuple[str, ...]:
        return (*self.sampler.stat_names, *super(Composite, self).stat_names)

    def check_share(self) -> None:
        self.sampler.check_share()

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        kernel: Kernel = self.kernel_class()(self.sampler.build(x0))
        return kernel


def check_stages(sampler: Sampler, target: Target) -> None:
    """Refuse two stages without a surrogate, and a surrogate without them."""
    delayed = isinstance(sampler, DelayedAcceptance)
    if delayed != (target.surrogate is not None):
        raise ValueError(f"surrogate must {'' if delayed else 'not '}be given for a run of "
                         f"{type(sampler).__name__}")
