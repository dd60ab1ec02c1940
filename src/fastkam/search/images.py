"""Images of the best state of a search: symmetric densities have modes there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fastkam.search.population import Population, plausible

Array = NDArray[np.float64]

MOST_EXCHANGED = 50  # points tried with two elements, or two components, exchanged
MOST_LABELS, MOST_OTHERS = 6, 2  # components; parameters beside those of the components


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


def images_of(x: Array, rng: np.random.Generator, most: int = MOST_EXCHANGED) -> Array:
    """The images (n, d) of a point x (d,): all signs or one sign changed, or elements exchanged.

    These are two elements, or those of two of several components that have as many parameters
    each. Densities with symmetries, such as mixtures and factor models, have modes there.
    """
    d = len(x)
    pairs, labels = (
        some[rng.permutation(len(some))[:most]] if len(some) > most else some
        for some in (np.column_stack(np.tril_indices(d, -1)), permutations_of_labels(d)))
    two = np.tile(np.arange(d), (len(pairs), 1))
    np.put_along_axis(two, pairs, pairs[:, ::-1], axis=1)
    images = np.vstack([-x, x * (1 - 2 * np.eye(d)), x[two], x[labels]])
    return images[(images != x).any(axis=1)]


def permutations_of_labels(d: int) -> NDArray[np.intp]:
    """Permutations (n, d) that exchange two of K components with b parameters each, b at least 2.
    """
    found = set()
    for table in tables_of_labels(d):
        for i, j in zip(*np.triu_indices(len(table), 1), strict=True):
            one = np.arange(d)
            one[table[i]], one[table[j]] = table[j], table[i]
            found.add(tuple(one.tolist()))
    return np.array(sorted(found), dtype=np.intp).reshape(-1, d)


def tables_of_labels(d: int) -> Iterator[NDArray[np.intp]]:
    """Places (K, b) of the parameters of K components in a vector of d elements, b at least 2.

    The parameters of a component are next to each other, or the K values of a parameter are; up to
    MOST_OTHERS parameters that belong to no component may come first or last.
    """
    for n in range(d, max(3, d - MOST_OTHERS - 1), -1):
        for first in sorted({0, d - n}):
            for K in range(2, min(n // 2, MOST_LABELS) + 1):
                if n % K == 0:
                    places = first + np.arange(n)
                    yield places.reshape(K, n // K)
                    yield places.reshape(n // K, K).T
