"""The input of a search, a problem's hints, and its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.numerics.periods import Periods
from fastkam.search.mixture import Mixture

if TYPE_CHECKING:
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.shapes import Layout

Array = NDArray[np.float64]
Prior = Callable[[int, np.random.Generator], Array]
LogPrior = Callable[[Array], Array]


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """Hints about a density, most of them of a Problem.

    Attributes
    ----------
    prior : callable or None
        ``prior(n, rng)`` returns independent draws (n, d) from a distribution that covers the
        density: half of the walkers start there.
    periods : Periods or None
        The coordinates that repeat.
    log_prior : callable or None
        ``log_prior(z)`` returns the part of the log density (n,) that is not the user's function.
    sides : ndarray of int, shape (d,), or None
        1 for coordinates z of which x is low + exp(z), -1 for high - exp(-z), 0 for others.
    layout : Layout or None
        The parameters of x.
    coordinates : Coordinates or None
        The transforms from z to x.
    """

    prior: Prior | None = None
    periods: Periods | None = None
    log_prior: LogPrior | None = None
    sides: NDArray[np.int64] | None = None
    layout: Layout | None = None
    coordinates: Coordinates | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Search:
    """The outcome of a search, and its cost.

    Attributes
    ----------
    points : ndarray, shape (chains, d)
        Starting points of the chains.
    scales : ndarray, shape (d,)
        The steps that change the log density by about 1.
    flat : ndarray of int, shape (n,)
        The coordinates on which the log density does not depend.
    evaluations : int
    settled : bool
        Whether the walkers agreed at the end; True if there were none.
    steps : list of str
        The steps of the search, one line each.
    mixture : Mixture or None
        The mixture fitted to the walkers' states, with components that cover the tails.
    components : int
        Number of its components that describe the mass: 1 for a nearly normal density.
    independent_acceptance : float
        Acceptance probability of independent proposals from the mixture; NaN if there were none.
    tails : ndarray, shape (n, 2)
        k and a for each coordinate k whose tails fall off as a power: P(|x_k| > R) ~ R^-a.
    of_logarithms : ndarray, shape (n, 2)
        The same of x, for coordinates z with x = low + exp(z) or high - exp(-z).
    periods : Periods or None
        The coordinates that repeat: the mixture is in their window.
    is_density : bool
        Whether the likelihood was never negative, and nearly always close to 0, as if the function
        returned the density and not its logarithm.
    is_constant : bool
        Whether the log density was the same wherever the walkers were.
    """

    points: Array
    scales: Array
    flat: NDArray[np.intp]
    evaluations: int
    settled: bool = True
    steps: list[str] = field(default_factory=list)
    mixture: Mixture | None = None
    components: int = 0
    independent_acceptance: float = float("nan")
    tails: Array = field(default_factory=lambda: np.zeros((0, 2)))
    of_logarithms: Array = field(default_factory=lambda: np.zeros((0, 2)))
    periods: Periods | None = None
    is_density: bool = False
    is_constant: bool = False


def unsearched(points: Array) -> Search:
    """The outcome where no search is made."""
    return Search(points, np.ones(points.shape[1]), np.zeros(0, np.intp), 0)
