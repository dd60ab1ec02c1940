"""Components of a mixture that cover the tails of a density.

Chains that propose from a mixture q rarely reach points where q has little mass, and stay there for
long. So components are added that are fitted to states of the same walkers on a flatter power of
the density.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam.search.evaluator import Evaluator
from fastkam.search.mixture import Mixture
from fastkam.search.population import GROWTH, Population

FLATTER, TAIL_STEPS = 0.5, 60  # the power of the density whose states show its tails
MOST_POWER = 0.8  # where the tails fall off as powers
LEAST_INDEX, LEAST_FLATTER = 3.8, 1.0  # of these tails, and of those of the flatter power
AGREED_FLATTER = 1.1  # R-hat there
WARM_WEIGHT, MOST_WARM = 0.2, 16  # of the components fitted to these
BENT_WEIGHT = 0.4  # the same for a bent density
MOST_TAIL_WINDOWS = 6


def flatter_power(indices: NDArray[np.float64], powers: NDArray[np.float64]) -> float | None:
    """The power of a density that has an integral and wider tails; None if there is none.

    Parameters
    ----------
    indices, powers : array (n,)
        Indices of the tails that fall off as a power, and the powers.
    """
    power = float(max([FLATTER, *(1 - (indices - LEAST_FLATTER) / powers)]))
    return power if power <= MOST_POWER and (indices > LEAST_INDEX).all() else None


def covering(
    population: Population,
    evaluate: Evaluator,
    q: Mixture,
    power: float,
    most_evaluations: int,
    *,
    brief: bool,
    bent: bool,
) -> Mixture:
    """The mixture q of the walkers' states, with further components that cover the tails.

    The tails of a bent density are far from its mass, so the walkers run windows until they agree
    on the flatter power too. (If the density falls off as a low power of the distance, a flatter
    power may have no integral; the wide component of q has such tails.)

    Parameters
    ----------
    population : Population
    evaluate : Evaluator
        That of the population.
    q : Mixture
    power : float
        The power of the density whose states show the tails.
    most_evaluations : int
        Number of all evaluations of the search, at most.
    brief, bent : bool
        Whether the density is nearly normal, for which fewer steps suffice; or bent.
    """
    steps = TAIL_STEPS / 2 if brief else float(TAIL_STEPS)
    for _ in range(MOST_TAIL_WINDOWS):
        flatter = population.window(int(steps), power)
        steps *= GROWTH
        spent = evaluate.n + steps * population.K > most_evaluations
        if not bent or spent or flatter.r_hat() < AGREED_FLATTER:
            break
        population.learn(flatter)
    warm = population.fit(flatter, MOST_WARM)
    return q if warm is None else q.joined(warm, BENT_WEIGHT if bent else WARM_WEIGHT)
