"""Which sampler for which density: what `sampler="auto"` means."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastkam.errors import real_array
from fastkam.samplers import (
    NUTS,
    ModeJumping,
    ParallelTempering,
    RobustAdaptiveMetropolis,
    Sampler,
)

if TYPE_CHECKING:
    from fastkam._core.target import Target

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
        return f"{type(self.sampler).__name__}, because {self.reason}"


def choose_sampler(
    target: Any,
    x0: ArrayLike,
    *,
    vectorized: bool = False,
    surrogate: bool = False,
    share: bool = False,
) -> Choice:
    """The sampler that ``sampler="auto"`` takes for a density.

    Parameters
    ----------
    target : callable, pointer, Target or TargetRecipe
        As in `sample`. A Python function is called once, at `x0`, to see whether it returns a
        gradient.
    x0 : array (d,) or (chains, d)
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
    NUTS, because the density has a gradient
    >>> print(fk.choose_sampler(lambda x: -0.5 * x @ x, [0.0, 0.0]))
    ModeJumping, because the density has no gradient
    """
    from fastkam.sample import as_target

    if surrogate:
        return Choice(RobustAdaptiveMetropolis(), "a surrogate stands in for the density alone")
    points = np.atleast_2d(real_array("x0", x0))
    made = as_target(target, points.shape[1], vectorized=vectorized)
    if made.is_estimate:
        return Choice(RobustAdaptiveMetropolis(), "the density is estimated")
    if has_gradient(made, points):
        return Choice(NUTS(), "the density has a gradient")
    if share:
        return Choice(ModeJumping(), "the density has no gradient, and chains share")
    if points.shape[1] <= MOST_TEMPERED:
        tempered = ParallelTempering(rungs=5, least=0.02, widening=100.0)
        return Choice(ModeJumping(sampler=tempered), "the density has no gradient")
    return Choice(ModeJumping(), "the density has no gradient, and many dimensions")


def has_gradient(target: Target, points: np.ndarray) -> bool:
    """Whether the target can be asked for a gradient; a Python function is tried."""
    function = getattr(target, "function", None)
    if function is None:
        return "logp_grad" in target.abilities
    answer = function(points.copy() if target.batched else points[0].copy())
    return type(answer) is tuple and len(answer) == 2
