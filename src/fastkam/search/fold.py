"""One of the K! equal parts of a density whose K components can be exchanged.

The density of a mixture of K components has a mode for each order of these, and walkers would have
to find all of them. Instead they stay in one part of the space: of all images of a point under
exchanges, it has the one nearest to a reference point. From a mixture that is fitted there follow
the components in all other parts.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, product
from fastkam.numerics.median import median
from fastkam.run.shapes import Layout
from fastkam.samplers import modes
from fastkam.search.components import Components, components_of, leading_away, line_of
from fastkam.search.mixture import Mixture
from fastkam.search.population import Population, plausible

if TYPE_CHECKING:
    from fastkam.problem.coordinates import Coordinates
    from fastkam.search.evaluator import Evaluator
    from fastkam.search.found import Known

Array = NDArray[np.float64]
Order = NDArray[np.intp]

MOST_COMPONENTS = 5  # 120 parts
ROUNDS = 5  # in which the reference is found
MOST_IMAGES = 1000  # of components of a mixture, which chains compare with each point
BLOCK = 2000  # points at once


class Fold:
    """The part of the space whose points are nearer to a reference than their images are.

    Parameters
    ----------
    components : Components
    coordinates : Coordinates or None
        The transforms, if x is not z.
    z : array (n, d)
        Points in the mass, from which the reference is found: the first is in the part.

    Attributes
    ----------
    orders : ndarray of int, shape (K!, n_x)
        The orders of the elements of x; the first changes nothing.
    """

    def __init__(
        self, components: Components, coordinates: Coordinates | None, z: Array
    ) -> None:
        self.coordinates = coordinates
        self.orders = np.array([components.order(some) for some in
                                permutations(range(components.K))])
        self.places = self.orders.argsort(axis=1)  # of each element, in an image
        x = self.x_of(z)
        self.refer(x[0], x[:, self.orders].reshape(-1, x.shape[1]))
        for _ in range(ROUNDS):
            x = np.take_along_axis(x, self.orders[self.nearest(x)], axis=1)
            self.refer(median(x, axis=0), x)

    def refer(self, reference: Array, x: Array) -> None:
        """Take a reference (n_x,), and the spreads of x (n, n_x) as units of the distances."""
        spread = median(np.abs(x - median(x, axis=0)), axis=0)
        some = spread > 0
        weights = np.where(some, 1 / np.where(some, spread, 1.0) ** 2, 0.0)
        self.center = reference[self.orders].mean(axis=0)  # the same for all orders
        self.squares = weights[self.places]
        self.lines = (weights * (reference - self.center))[self.places]

    def x_of(self, z: Array) -> Array:
        return z if self.coordinates is None else self.coordinates.constrain(z)

    def nearest(self, x: Array) -> Order:
        """Return the number of the order that brings x (n, n_x) nearest to the reference, (n,).

        With weights w and the reference r, sum_i w_i (x_order(i) - r_i)^2 is smallest, here without
        the terms that are the same in all orders.
        """
        x = x - self.center
        distances = product(x**2, self.squares.T) - 2 * product(x, self.lines.T)
        return np.asarray(distances.argmin(axis=1))

    def inside(self, z: Array) -> NDArray[np.bool_]:
        """Return the mask of the points z (n, d) that are in the part."""
        return self.nearest(self.x_of(z)) == 0

    def points(self, z: Array) -> Array:
        """Return the image in the part of each point z (n, d)."""
        return self.moved(z, self.nearest(self.x_of(z)))

    def moved(self, z: Array, of: Order) -> Array:
        """Return the images of z (n, d) in orders of these numbers (n,).

        An image of which the coordinates cannot be told from those of an edge is left out.
        """
        rows = np.flatnonzero(of)
        x = np.take_along_axis(self.x_of(z[rows]), self.orders[of[rows]], axis=1)
        there = np.ones(len(x), bool)
        if self.coordinates is not None:
            x, there = self.coordinates.inside(x)
        new = z.copy()
        new[rows[there]] = x[there]
        return new

    def with_values(self, z: Array, logp: Array) -> tuple[Array, Array]:
        """Return the images in the part of z (n, d), and their log densities, from those of z."""
        blocks = [self.points(z[k : k + BLOCK]) for k in range(0, len(z), BLOCK)]
        new = np.concatenate([z[:0], *blocks])
        if self.coordinates is None:
            return new, logp
        of_z, of_new = (self.coordinates.log_jacobian(some) for some in (z, new))
        return new, np.where(np.isfinite(logp), logp - of_z + of_new, logp)

    def shuffled(self, z: Array, rng: np.random.Generator) -> Array:
        """Return an image of each point z (n, d), drawn at random."""
        return self.moved(z, rng.integers(len(self.orders), size=len(z)))

    def unfolded(self, q: Mixture) -> Mixture:
        """Return the mixture of all images of the components of q, or of the heaviest of these."""
        heaviest = 1 + np.argsort(-q.weights[1:], kind="stable")[: MOST_IMAGES // len(self.orders)]
        weights, means, factors = zip(*(
            (q.weights[i], *image) for i in heaviest for k in range(len(self.orders))
            if (image := self.image(q.means[i], q.factors[i], k)) is not None), strict=True)
        return Mixture(*modes.with_wide(np.array(weights), np.array(means), np.array(factors)))

    def image(self, mean: Array, factor: Array, k: int) -> tuple[Array, Array] | None:
        """Return mean and factor of the image of a normal component; None if it has none.

        In coordinates that an exchange changes by more than their order, it is the linear one that
        is right at a standard deviation from the mean.
        """
        if k == 0:
            return mean, factor
        at = np.vstack([mean, mean + factor.T, mean - factor.T])
        x = self.x_of(at)[:, self.orders[k]]
        if self.coordinates is not None:
            x, there = self.coordinates.inside(x)
            if not there.all():
                return None
        above, below = np.split(x[1:], 2)
        along = (above - below).T / 2
        try:
            return x[0], cholesky(product(along, along.T))
        except np.linalg.LinAlgError:
            return None


def take_fold(
    evaluate: Evaluator, population: Population, seen: list[tuple[Array, Array]], known: Known
) -> list[str]:
    """Keep walkers in one part of the space if components can be exchanged, and say so in a line.

    Parameters
    ----------
    evaluate : Evaluator
    population : Population
        The walkers, with the points that they have seen.
    seen : list of (points, log densities)
        Other points of the search, which are replaced by their images in the part.
    known : Known
        With the parameters, and their transforms.
    """
    if evaluate.periods is not None:
        return []
    layout, coordinates = known.layout or Layout({"x": (population.d,)}, {}, {}), known.coordinates
    near = plausible(population.logp, population.d)
    z, logp = population.x[near], population.logp[near]
    order = np.argsort(-logp, kind="stable")
    few = order[[0, len(order) // 2, -1]]
    x, values = z[few], logp[few]
    if coordinates is not None:
        x, values = coordinates.constrain(z[few]), values - coordinates.log_jacobian(z[few])

    def of_x(x: Array) -> Array:
        """Return log densities of x (n, n_x); NaN where no z has such a point."""
        if coordinates is None:
            return evaluate(x)
        z, there = coordinates.inside(x)
        values = np.full(len(x), np.nan)
        values[there] = evaluate(z[there]) - coordinates.log_jacobian(z[there])
        return values

    for components in components_of(layout.shapes):
        if components.K > MOST_COMPONENTS:
            continue
        exchange = leading_away(components, x, values, of_x)
        if exchange is not None:
            fold = Fold(components, coordinates, z[order])
            population.x, population.logp = fold.with_values(population.x, population.logp)
            for kept in (seen, population.scouted, population.climbed):
                kept[:] = [fold.with_values(*some) for some in kept]
            evaluate.fold, population.wrap = fold, fold.points
            return [line_of(layout.labels, exchange)]
    return []


def unfolded(
    evaluate: Evaluator, points: Array, q: Mixture | None, rng: np.random.Generator
) -> tuple[Array, Mixture | None]:
    """Leave the fold, if there is one: random images of points (chains, d), the whole mixture."""
    fold, evaluate.fold = evaluate.fold, None
    if fold is None:
        return points, q
    return fold.shuffled(points, rng), None if q is None else fold.unfolded(q)
