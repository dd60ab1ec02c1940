"""Which sampler for which density: what `sampler="auto"` means."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastkam.arguments import real_array
from fastkam.density.forms import as_target
from fastkam.problem.described import Described
from fastkam.samplers import (
    HMC,
    NUTS,
    ModeJumping,
    ParallelTempering,
    RobustAdaptiveMetropolis,
    Sampler,
)

if TYPE_CHECKING:
    from fastkam._core.density.target import Target

log = logging.getLogger("fastkam")

MOST_TEMPERED = 20  # dimensions to which replicas at other temperatures are worth their evaluations


@dataclass(frozen=True)
class Choice:
    """A sampler, and why it was chosen.

    Attributes
    ----------
    sampler : Sampler
    reason : str
    """

    sampler: Sampler
    reason: str

    def __str__(self) -> str:
        return f"{described(self.sampler)}, because {self.reason}"


def described(sampler: Sampler) -> str:
    """The names of a sampler and of those within it, as A(B)."""
    parts = ", ".join(dict.fromkeys(described(part) for part in getattr(sampler, "parts", list)()))
    return type(sampler).__name__ + (parts and f"({parts})")


def choose_sampler(
    target: Any,
    x0: ArrayLike | None = None,
    *,
    vectorized: bool = False,
    surrogate: bool = False,
    share: bool = False,
) -> Choice:
    """The sampler that ``sampler="auto"`` takes for a density.

    Parameters
    ----------
    target : callable, pointer, Target, TargetRecipe or Problem
        As in `sample`. A Python function is called once, at `x0`, to see whether it returns a
        gradient.
    x0 : array (d,) or (chains, d)
        May be None for a `Problem`.
    vectorized : bool
        The Python function takes points (k, d).
    surrogate : bool
        The density is to stand behind a surrogate, which has no use for a gradient.
    share : bool
        The chains are to learn as one, which replicas at other temperatures do not.

    Returns
    -------
    Choice

    Examples
    --------
    >>> import fastkam as fk
    >>> print(fk.choose_sampler(lambda x: (-0.5 * x @ x, -x), [0.0, 0.0]))
    ModeJumping(ParallelTempering(HMC)), because the density has a gradient, and few dimensions
    >>> print(fk.choose_sampler(lambda x: (-0.5 * x @ x, -x), [0.0] * 50))
    NUTS, because the density has a gradient, and many dimensions
    """
    if surrogate:
        return Choice(RobustAdaptiveMetropolis(), "a surrogate stands in for the density alone")
    if isinstance(target, Described):
        target = target.target()
        x0 = np.zeros(target.dim)
    points = np.atleast_2d(real_array("x0", x0))
    made = as_target(target, points.shape[1], vectorized=vectorized)
    if made.is_estimate:
        return Choice(RobustAdaptiveMetropolis(), "the density is estimated")
    gradient = has_gradient(made, points)
    reason = f"the density has {'a' if gradient else 'no'} gradient"
    if share or points.shape[1] > MOST_TEMPERED:
        reason += ", and chains share" if share else ", and many dimensions"
        return Choice(NUTS() if gradient else ModeJumping(), reason)
    inner = HMC(n_steps=2) if gradient else RobustAdaptiveMetropolis()
    tempered = ParallelTempering(sampler=inner, n_replicas=5, min_beta=0.02, reference_scale=100.0)
    return Choice(ModeJumping(sampler=tempered), f"{reason}, and few dimensions")


def has_gradient(target: Target, points: np.ndarray) -> bool:
    """Whether the target can be asked for a gradient; a Python function is tried."""
    function = getattr(target, "function", None)
    if function is None:
        return "logp_grad" in target.abilities
    answer = function(points.copy() if target.batched else points[0].copy())
    return type(answer) is tuple and not isinstance(answer[1], dict)
