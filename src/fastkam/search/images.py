"""Images of the best state of a search: symmetric densities have modes there."""

from __future__ import annotations

import numpy as np

from fastkam.search.population import Population, plausible

MOST_EXCHANGED = 50  # points tried with two coordinates exchanged


def try_images(population: Population) -> None:
    """Try images of the best state: all signs or one sign changed, two elements exchanged.

    Densities with symmetries, such as mixtures and factor models, have modes there. A walker
    far below the median is moved to such a mode. With all signs changed the center of the
    walkers is tried too, which in many dimensions is nearer to a mode than any state.
    """
    d, K = population.d, population.K
    best = population.x[population.logp.argmax()]
    center = population.x[plausible(population.logp, d)].mean(axis=0)
    signs = np.vstack([-center, -best, best * (1 - 2 * np.eye(d))])
    pairs = np.column_stack(np.tril_indices(d, -1))
    if len(pairs) > MOST_EXCHANGED:
        pairs = population.rng.permutation(pairs)[:MOST_EXCHANGED]
    exchanged = np.tile(best, (len(pairs), 1))
    rows = np.arange(len(pairs))
    exchanged[rows, pairs[:, 0]] = best[pairs[:, 1]]
    exchanged[rows, pairs[:, 1]] = best[pairs[:, 0]]
    images = np.vstack([signs, exchanged])
    values = population.evaluate(images)
    order = np.argsort(population.logp, kind="stable")  # the lowest walkers are replaced
    good = np.flatnonzero(values > population.logp[order[K // 4]])
    good = good[np.argsort(-values[good], kind="stable")][: K // 4]
    population.x[order[: len(good)]] = images[good]
    population.logp[order[: len(good)]] = values[good]
