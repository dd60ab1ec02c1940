"""The window of one period in which a search continues, once walkers have reached the mass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam.search.evaluator import Evaluator
from fastkam.search.population import Population

Array = NDArray[np.float64]


def take_window(
    evaluate: Evaluator, population: Population, seen: list[tuple[Array, Array]]
) -> None:
    """Put the window of coordinates that repeat where it divides no mode, and stay within it.

    Until then walkers move through all periods, each with its weight. From then on the density is 0
    beyond the window, as beyond hard bounds, so that a mixture can be fitted.

    Parameters
    ----------
    evaluate : Evaluator
    population : Population
        The walkers, with the points that they have seen.
    seen : list of (points, log densities)
        Other points of the search, which are replaced by their images in the window.
    """
    if evaluate.periods is None:
        return
    evaluate.periods = periods = evaluate.periods.cut(population.x)
    evaluate.windowed, population.wrap = True, None
    population.x = periods.points(population.x)
    population.logp = evaluate(population.x)
    for kept in (seen, population.scouted, population.climbed):
        kept[:] = [(periods.points(x), logp - periods.log_weight(x)) for x, logp in kept]
