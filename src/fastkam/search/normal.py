"""A short search in many dimensions: a normal approximation of a density that has a gradient.

Newton's method leads to the mode, and gradients there and around it give a normal density (see
newton.py). If independent proposals from it are often accepted, chains need no more than that: the
search takes some thousand evaluations, and NUTS takes tens of thousands to learn the same shape.
Points in all directions, images of the mode, and draws from the prior show whether there are
further modes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import product
from fastkam._core.numerics.elementary import exp
from fastkam.samplers import modes
from fastkam.search.found import Prior
from fastkam.search.images import images_of
from fastkam.search.mixture import Mixture
from fastkam.search.newton import normal_by_gradients
from fastkam.search.population import Population, Window
from fastkam.search.quadratic import Quadratic
from fastkam.search.tails import tail_indices
from fastkam.search.unexplained import around, modes_beyond
from fastkam.search.watch import Spent

Array = NDArray[np.float64]

LEAST_ACCEPTED = 0.4  # acceptance of independent proposals
STATES = 128  # draws of the density around which points are evaluated
AROUND, FROM_PRIOR = 1000, 1000  # such points, and draws from the prior


class Normal(NamedTuple):
    """A normal approximation that suffices for a sampler.

    Attributes
    ----------
    mixture : Mixture
        The approximation as a mixture of one component.
    acceptance : float
        Acceptance probability of independent proposals from it.
    points : ndarray, shape (chains, d)
        Starting points, distributed as the density.
    alone : bool
        Whether no other mode has been found, as far as there were evaluations for it.
    """

    mixture: Mixture
    acceptance: float
    points: Array
    alone: bool


def approximated(
    population: Population,
    gradients: Callable[[Array], Array],
    origin: Array,
    level: float,
    scales: Array,
    chains: int,
    prior: Prior | None,
    stages: int,
) -> Normal | None:
    """Approximate a density by a normal one; None if it is not nearly normal.

    Parameters
    ----------
    population : Population
        Walkers at various distances from the origin.
    gradients : callable
        Gradients of the log density (n, d) at points (n, d).
    origin : array (d,)
        Where Newton's method begins.
    level : float
        The log density there, finite.
    scales : array (d,)
    chains : int
    prior : callable or None
        Draws from a distribution that covers the density.
    stages : int
        Most stages in which walkers climb from points that may be in another mode.
    """
    evaluate, rng = population.evaluate, population.rng
    made = normal_by_gradients(evaluate, gradients, origin, level, scales, rng)
    if made is None or made[1] < LEAST_ACCEPTED:
        return None
    normal, accepted = made
    sd = np.sqrt((normal.factor**2).sum(axis=1))
    if len(tail_indices(evaluate, normal.mean, sd)[0]):
        return None
    population.mixture = Mixture(*modes.with_wide(
        np.ones(1), normal.mean[None], normal.factor[None]))
    x, logp = resampled(population, normal, max(STATES, 2 * chains))
    window = Window(x.reshape(2, -1, population.d), logp.reshape(2, -1), accepted)
    alone = True
    with suppress(Spent):
        alone = not modes_elsewhere(population, window, gradients, prior, stages)
    return Normal(population.mixture, accepted, x[:chains], alone)


def modes_elsewhere(
    population: Population,
    window: Window,
    gradients: Callable[[Array], Array],
    prior: Prior | None,
    stages: int,
) -> bool:
    """Whether points in all directions, walkers, images or draws from the prior lead elsewhere.

    `window` has draws of the density, which the mixture of the population describes.
    """
    q = population.mixture
    assert q is not None
    images = images_of(q.means[1], population.rng)
    some = [around(population, window.states(), AROUND), (population.x, population.logp),
            (images, population.evaluate(images))]
    if prior is not None:
        drawn = prior(FROM_PRIOR, population.rng)
        some.append((drawn, population.evaluate(drawn)))
    x, logp = (np.concatenate(part) for part in zip(*some, strict=True))
    return len(modes_beyond(population, window, q, (x, logp), stages, gradients)[0]) > 0


def resampled(population: Population, normal: Quadratic, n: int) -> tuple[Array, Array]:
    """Draws of the density (n, d), n even: those of an approximation, resampled by their weights.

    With them, their log densities. The first ones differ from each other, if there are as many.
    """
    rng, d = population.rng, population.d
    x = normal.mean + product(rng.standard_normal((n, d)), normal.factor.T)
    logp = population.evaluate(x)
    log_w = logp - normal(x)
    w = exp(log_w - log_w.max())
    rows = rng.choice(n, n, p=w / w.sum())
    _, first = np.unique(rows, return_index=True)
    rows = np.r_[rows[np.sort(first)], np.delete(rows, first)]
    return x[rows], logp[rows]
