"""Images of the best state of a search: symmetric densities have modes there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam.search.population import Population, plausible

Array = NDArray[np.float64]

MOST_EXCHANGED = 50  # points tried with two coordinates exchanged


def try_images(population: Population) -> None:
    """Try images of the best state, and move walkers far below the median to those that are higher.

    With all signs changed the center of the walkers is tried too, which in many dimensions is
    nearer to a mode than any state.
    """
    d, K = population.d, population.K
    best = population.x[population.logp.argmax()]
    center = population.x[plausible(population.logp, d)].mean(axis=0)
    images = np.vstack([-center, images_of(best, population.rng)])
    values = population.evaluate(images)
    order = np.argsort(population.logp, kind="stable")  # the lowest walkers are replaced
    good = np.flatnonzero(values > population.logp[order[K // 4]])
    good = good[np.argsort(-values[good], kind="stable")][: K // 4]
    population.x[order[: len(good)]] = images[good]
    population.logp[order[: len(good)]] = values[good]


def images_of(x: Array, rng: np.random.Generator) -> Array:
    """The images (n, d) of a point x (d,): all signs or one sign changed, two elements exchanged.

    Densities with symmetries, such as mixtures and factor models, have modes there.
    """
    d = len(x)
    pairs = np.column_stack(np.tril_indices(d, -1))
    if len(pairs) > MOST_EXCHANGED:
        pairs = rng.permutation(pairs)[:MOST_EXCHANGED]
    exchanged = np.tile(x, (len(pairs), 1))
    rows = np.arange(len(pairs))
    exchanged[rows, pairs[:, 0]] = x[pairs[:, 1]]
    exchanged[rows, pairs[:, 1]] = x[pairs[:, 0]]
    return np.vstack([-x, x * (1 - 2 * np.eye(d)), exchanged])
