"""Importance weights: draws of a surrogate of the density, with the weights that correct for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fastkam.arguments import shown
from fastkam.samplers.sampler import Composite, Sampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fastkam._core.engine.kernel import Kernel

LOG_WEIGHT = "log_weight"  # the statistic of each draw


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImportanceWeighted(Composite):
    """Importance weighting of draws from a surrogate s; made by ``surrogate="learn"``.

    The chains of `sampler` have s as their distribution, and each draw x has the weight
    pi(x) / s(x). The density pi is evaluated once for repeated draws in a row.

    Parameters
    ----------
    sampler : Sampler
        A sampler that leaves s invariant.

    References
    ----------
    Vihola, M., Helske, J. and Franks, J. (2020). Importance sampling type estimators based on
    approximate marginal Markov chain Monte Carlo. Scandinavian Journal of Statistics 47, 1339-1376.
    """

    sampler: Sampler
    LENGTHS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.sampler, Sampler):
            raise TypeError(f"sampler must be a Sampler, not {shown(self.sampler)}")

    def parts(self) -> list[Sampler]:
        return [self.sampler]

    @property
    def several_evaluations(self) -> bool:
        return self.sampler.several_evaluations

    @property
    def stat_names(self) -> tuple[str, ...]:
        return (*self.sampler.stat_names, LOG_WEIGHT)

    def check_share(self) -> None:
        raise ValueError("share must be False for draws with importance weights, not True")

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        return self.sampler.build(x0)
