"""Normal densities for separate modes in which few walkers are.

A component that is fitted to the states of one or two of many walkers has a covariance shrunk
towards that of the other components, which is far too wide for a mode that is narrower: proposals
from it hardly ever reach the mode. Differences at the highest state of the component determine the
normal density of the mode, and its mass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastkam._core.numerics.elementary import exp, log
from fastkam.numerics.median import median
from fastkam.search.apart import is_apart
from fastkam.search.mixture import Mixture
from fastkam.search.population import Window
from fastkam.search.quadratic import Quadratic, normal_by_differences
from fastkam.search.scales import find_scales

Array = NDArray[np.float64]

FEW = 0.1  # share of the states, below which a component has few
MOST_SHARPENED = 8  # components
ROUNDS = 4  # of an approximation
NARROWER = 1.5  # ratio of mean standard deviations, above which a component is too wide
LEAST_WEIGHT, MOST_WEIGHT = 0.03, 0.3  # of a mode in the mixture; of all of them


def sharpened(
    evaluate: Callable[[Array], Array], q: Mixture, window: Window, rng: np.random.Generator
) -> Mixture:
    """The mixture q with normal densities of modes for which its components are too wide."""
    x, d = window.states(), window.x.shape[2]
    logp = window.logp[window.second_half, window.near].T.ravel()
    few = np.flatnonzero(q.weights[1:] < FEW)[:MOST_SHARPENED] + 1
    if not len(few) or q.n == 1:
        return q
    total = median(logp - q.log_density(x))  # log of the integral of the density
    _, nearest = q.nearest(x)
    weights, found = [], []
    for k in few.tolist():
        mine = np.flatnonzero(nearest == k)
        if not len(mine):
            continue
        best = mine[logp[mine].argmax()]
        normal = normal_at(evaluate, q, k, x[best], float(logp[best]), rng)
        if normal is not None:
            volume = log(np.diagonal(normal.factor)).sum() + 0.5 * d * log(2 * np.pi)
            weights.append(exp(normal.height + volume - total))
            found.append(normal)
    if not found:
        return q
    masses = np.clip(weights, LEAST_WEIGHT, MOST_WEIGHT / len(found))
    return q.extended(masses / masses.sum(), np.array([one.mean for one in found]),
                      np.array([one.factor for one in found]), float(masses.sum()))


def normal_at(
    evaluate: Callable[[Array], Array], q: Mixture, k: int, x: Array, logp: float,
    rng: np.random.Generator,
) -> Quadratic | None:
    """The normal density of the mode of component k, which has the state x; None if that will do.

    None, too, if the mode is not separate from that of another component, or not nearly normal.
    """
    others = np.delete(np.arange(1, q.n + 1), k - 1)
    other = q.means[others[((q.means[others] - x) ** 2 / np.diag(q.within)).sum(axis=1).argmin()]]
    if not is_apart(evaluate, x[None], np.array([logp]), other[None])[0]:
        return None
    scales, _ = find_scales(evaluate, x, logp)
    normal = normal_by_differences(evaluate, x, logp, scales, ROUNDS, rng)
    if normal is None or q.nearest(normal.mean[None])[1][0] != k:
        return None
    wider = log(np.diagonal(q.factors[k]) / np.diagonal(normal.factor)).mean()
    return normal if wider > log(NARROWER) else None
