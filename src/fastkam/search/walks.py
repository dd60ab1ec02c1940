"""Walks that follow a density to ends that walkers have not seen.

Chains hardly move where a density is narrow: they may never reach the narrow end of a funnel, or
the far end of a thin bent ridge, although R-hat is 1.00. So the search follows such a density along
a coordinate, from the middle to both ends, in slabs (`fastkam.search.slabs`). If the weights of the
points in a slab are too uneven, a slab of half the width is tried, and if that does not help, the
last slab is divided: a neck next to a bound needs slabs that become thinner. A side is done when
the density there has faded or has a wall, or where little mass is left. Each slab becomes a
component of the mixture.

Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767, section 8: the funnel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, eigen, inverse, product
from fastkam._core.numerics.elementary import exp, log
from fastkam.numerics.median import median
from fastkam.search.mixture import Mixture
from fastkam.search.slabs import Points, Slab, beyond, log_volume, of_states, refitted

Array = NDArray[np.float64]
Evaluate = Callable[[Array], Array]

BINS = 5  # of the states, by their x_k
LEAST_CHANGE = 3.0  # of the log volume of the others, from the first bin to the last
LEAST_REGRESSED, NOISY = 2.0, 15  # the same by regression; dimensions in which it needs more
BETWEEN_BINS = 2.8  # between the first bin and the last, in standard deviations of the ranks
REVERSALS = 0.3  # of the mean change between bins, by which one of them may go the other way
MOST_FUNNELS = 3
MOST_DIMENSIONS, MOST_TURNED = 15, 8  # of bent densities, and of those along principal axes
FITS = 0.25  # efficiency of a first slab of these
LEAST_POINTS, MOST_POINTS = 100, 1200  # in a slab
POINTS_PER_DIMENSION, OF_MANY = 20, 30  # in more than MOST_DIMENSIONS
CHANGE, WIDEST = 0.5, 0.5  # of the log widths across a slab; a slab, in standard deviations
ROUNDS, ENOUGH = 4, 0.25  # of points in a slab; effective share of those of the last
THINNEST = 0.05  # slab, in units of the first
NEXT_TO_WALL, WORTH = 1e-4, 0.005  # the same, next to slabs with this share of the largest mass
MOST_RATIO = 0.2  # of the widths of neighbors; a slab that needs a thinner one is divided
SURE_OF_MANY = 3.7  # standard errors of a regression on one of several coordinates
FADED = 1e-4  # density of a slab where a side is done, in units of the highest
MOST_BEYOND = 0.02  # share of the states beyond the slabs of a walk that reaches both ends
MOST_ROUNDS, MOST_ON_A_SIDE = 80, 60_000  # rounds and points on one side
LONG, ARMS = 3.5, 0.25  # kurtosis; weight of all arms, where that of a walk is its efficiency^2
OUTER = 0.1  # of the states, from which arms begin
SHARE = 0.6  # of the components that are slabs, in a mixture


def funnels(states: Array, *, rough: bool = False) -> list[int]:
    """The coordinates along which the width of the others changes most, MOST_FUNNELS at most.

    Their states (n, d) are put into bins by x_k. From bin to bin the volume of the others, the root
    of the determinant of their covariance, must change in the same direction. In many dimensions a
    bin has too few states for its volume to be known, and the regression of the size of the others
    on x_k is better. It takes small changes for a funnel, so that it is used only if q fits the
    density roughly (`rough`), and for one coordinate. In many dimensions walks are costly: before
    another funnel is looked for, the others are divided by their widths along the last. An effect
    in a hierarchy that is far from the others says how wide these are, and would be taken for one.
    """
    n, d = states.shape
    if d < 2 or n < BINS * 4 * d:
        return []
    found: list[int] = []
    while len(found) < MOST_FUNNELS:
        changes = by_volumes(states)
        changes[found] = 0.0
        k = int(changes.argmax())
        if changes[k] <= LEAST_CHANGE:
            break
        found.append(k)
        if d > MOST_DIMENSIONS:
            states = evened(states, k)
    if rough:
        regressed = by_regression(states)
        best = int(regressed.argmax())
        if regressed[best] > LEAST_REGRESSED * max(1, d / NOISY) and best not in found:
            found.append(best)
    return found


def by_volumes(states: Array) -> Array:
    """The changes of the log volume of the others along each coordinate, (d,), 0 if not steady."""
    changes = np.zeros(states.shape[1])
    for k in range(len(changes)):
        try:
            volumes = np.array([log_volume(of_states(part, k)) for part in bins(states, k)])
        except ValueError:  # states on a plane
            continue
        change = volumes[-1] - volumes[0]
        onward = np.diff(volumes) * np.sign(change)
        if (onward > -REVERSALS * abs(change) / BINS).all():
            changes[k] = abs(change)
    return changes


def bins(states: Array, k: int) -> list[Array]:
    """The states (n, d) in bins by x_k."""
    return np.array_split(states[np.argsort(states[:, k], kind="stable")], BINS)


def evened(states: Array, k: int) -> Array:
    """The states, with the same mean and standard deviation of the others in each bin by x_k."""
    others = np.arange(states.shape[1]) != k
    parts = bins(states, k)
    for part in parts:
        part[:, others] -= part[:, others].mean(axis=0)
        part[:, others] /= np.maximum(part[:, others].std(axis=0), 1e-300)
    return np.concatenate(parts)


def by_regression(states: Array) -> Array:
    """The sure changes of the log volume of the others along each coordinate, (d,), otherwise 0.

    The logarithm of the squared size of the others, in units of their covariance given x_k, is
    regressed on the rank of x_k, so that few states far out do not determine it; nor do they its
    standard error (White's). The change is that between the first and the last of the bins.
    """
    n, d = states.shape
    distinct, changes = len(np.unique(states, axis=0)), np.zeros(d)
    ranks = (np.arange(n) - (n - 1) / 2) * np.sqrt(12) / n  # of variance 1
    for k in range(d):
        sorted_ = states[np.argsort(states[:, k], kind="stable")]
        others = np.delete(sorted_, k, axis=1)
        away = others - others.mean(axis=0)
        away = away - ranks[:, None] * (ranks[:, None] * away).mean(axis=0)
        try:
            z = product(away, inverse(cholesky(product(away.T, away) / n)).T)
        except ValueError:  # states on a plane
            continue
        size = log(np.maximum((z * z).sum(axis=1), 1e-300))
        slope = (ranks * size).mean()
        rest = size - size.mean() - slope * ranks
        if abs(slope) > SURE_OF_MANY * np.sqrt((ranks**2 * rest**2).mean() / distinct):
            changes[k] = BETWEEN_BINS * (d - 1) / 2 * abs(slope)
    return changes


class Walk:
    """A walk along coordinate k, or along a principal axis, through the states of the walkers.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    states : array (n, d)
    k : int
    rng : Generator
    axes : array (d, d), optional
        The axes, as columns; the walk is along the k-th. By default the coordinates.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        states: Array,
        k: int,
        rng: np.random.Generator,
        axes: Array | None = None,
    ) -> None:
        self.evaluate, self.k, self.rng, self.turned = evaluate, k, rng, axes is not None
        self.middle = states.mean(axis=0)
        scale = states.std(axis=0)
        z = (states - self.middle) / scale
        if axes is not None:
            z = product(z, axes)
        size = z.std(axis=0)
        z = z / size
        z = z[np.argsort(z[:, k], kind="stable")]
        turn = np.eye(len(scale)) if axes is None else axes
        self.map = scale[:, None] * turn * size  # from z to x - middle
        d = len(z.T)
        each = POINTS_PER_DIMENSION if d <= MOST_DIMENSIONS else OF_MANY
        self.n = int(np.clip(each * d, LEAST_POINTS, MOST_POINTS))
        self.rounds, self.along = 0, z[:, k]
        self.begin(z)

    def __str__(self) -> str:
        axis = f"{'principal axis' if self.turned else 'coordinate'} {self.k}"
        low, high = self.reached
        if low and high:
            return f"to both ends of {axis}"
        if low or high:
            return f"to the {'lower' if low else 'upper'} end of {axis}, and not to the other"
        return f"along {axis}, to neither end"

    def begin(self, z: Array) -> None:
        """Find the first slab, in the middle of states (n, d) sorted by z_k."""
        n, k = len(z), self.k
        self.low, middle, self.high = (
            of_states(part, k) for part in (z[: n // 3], z[n // 3 : n - n // 3], z[n - n // 3 :]))
        at = float(median(z[:, k]))
        self.first = self.weighted(replace(
            middle, at=at, width=self.first_width(self.low, self.high),
            mean=middle.mean + (at - middle.at) * middle.slope))

    def first_width(self, low: Slab, high: Slab) -> float:
        """The width of the first slab, from the changes in width of the other coordinates."""
        of_each = log(high.cov.diagonal() / low.cov.diagonal()) / 2
        of_all = (log_volume(high) - log_volume(low)) / len(of_each)
        change = max(float(np.abs(of_each).max()), abs(of_all)) / max(abs(high.at - low.at), 1e-6)
        return min(WIDEST, CHANGE / change) if change > 0 else WIDEST

    @cached_property
    def sides(self) -> list[tuple[list[Slab], bool]]:
        """The slabs below the first and those above it, each with whether they reach the end."""
        return [self.side(self.high, -1), self.side(self.low, 1)]

    @property
    def slabs(self) -> list[Slab]:
        """The slabs of a walk from the middle to both ends."""
        (down, _), (up, _) = self.sides
        return [*reversed(down), self.first, *up]

    @property
    def reached(self) -> list[bool]:
        """Whether it reaches the lower and the upper end."""
        return [reached for _, reached in self.sides]

    @property
    def missed(self) -> float:
        """The share of the states that are beyond its slabs."""
        low, high = self.slabs[0], self.slabs[-1]
        return float(((self.along < low.at - low.width / 2)
                      | (self.along > high.at + high.width / 2)).mean())

    def side(self, before: Slab, sign: int) -> tuple[list[Slab], bool]:
        """The slabs beyond the first on one side, and whether they reach its end.

        `before` is a slab on the other side of the first. The end is where the density has faded,
        or has a wall, or where little mass is left.
        """
        made, width, wall = [before, self.first], self.first.width, False
        widest, until = width, self.rounds + min(MOST_ROUNDS, MOST_ON_A_SIDE // self.n)
        while self.rounds < until:
            last = made[-1]
            new = self.weighted(beyond(made[-2], last, sign, width))
            wall = new.log_mass == -np.inf
            if new.fits:
                made.append(new)
                if new.log_height < max(one.log_height for one in made[1:]) + log(FADED):
                    break
                width = min(widest, 1.5 * width)
                continue
            width /= 2
            large, several = not self.is_small(last, made[1:]), len(made) > 2
            too_wide = several and wall and large and last.efficiency < ENOUGH
            least = NEXT_TO_WALL if large and not wall else THINNEST
            if not too_wide and width < least * widest:
                break
            if too_wide or (several and width < MOST_RATIO * last.width):
                made.pop()
                width = last.width / 2
        return made[2:], wall or self.is_small(made[-1], made[1:])

    def is_small(self, slab: Slab, among: list[Slab]) -> bool:
        """Whether the mass of a slab is small in comparison with the largest."""
        return bool(slab.log_mass <= log(WORTH) + max(one.log_mass for one in among))

    def weighted(self, slab: Slab) -> Slab:
        """The slab refitted to importance weights, until these are even or ROUNDS are over."""
        made: list[Points] = []
        for _ in range(ROUNDS):
            self.rounds += 1
            try:
                made.append(self.points_in(slab))
                slab = refitted(made)
            except ValueError:  # a covariance that is no longer positive definite
                return replace(slab, log_mass=-np.inf, efficiency=0.0)
            if slab.efficiency > ENOUGH or slab.log_mass == -np.inf:
                break
        return slab

    def points_in(self, slab: Slab) -> Points:
        """Draw points in the slab, and evaluate the density there."""
        x, others = slab.draw(self.n, self.rng)
        z = np.insert(others, self.k, x, axis=1)
        return Points(slab, x, others, self.evaluate(self.middle + product(z, self.map.T)))

    def components(self) -> tuple[Array, Array, Array]:
        """Weights (n,), means (n, d) and factors (n, d, d) of normal components, one a slab."""
        mass = np.array([slab.log_mass for slab in self.slabs])
        self.log_mass = float(np.logaddexp.reduce(mass))
        each = [slab.component(self.k) for slab in self.slabs]
        means, covs = map(np.array, zip(*each, strict=True))
        factors = [cholesky(product(product(self.map, cov), self.map.T)) for cov in covs]
        means = self.middle + product(means, self.map.T)
        return exp(mass - self.log_mass), means, np.array(factors)


class Arm(Walk):
    """A walk outwards along coordinate k, from the outer states on one side (`sign`)."""

    def __init__(
        self, evaluate: Evaluate, states: Array, k: int, rng: np.random.Generator, sign: int
    ) -> None:
        self.sign = sign
        super().__init__(evaluate, states, k, rng)

    def __str__(self) -> str:
        end = f"{'upper' if self.sign > 0 else 'lower'} end of coordinate {self.k}"
        return f"{'to' if self.reached[0] else 'towards'} the {end}"

    def begin(self, z: Array) -> None:
        """Find the first slab, in the outer part of states (n, d) sorted by z_k."""
        n = int(OUTER * len(z))
        outer, inner = (z[-n:], z[-2 * n : -n]) if self.sign > 0 else (z[:n], z[n : 2 * n])
        start, self.inner = of_states(outer, self.k), of_states(inner, self.k)
        at = float(median(outer[:, self.k]))
        self.first = self.weighted(replace(
            start, at=at, width=self.first_width(self.inner, start),
            mean=start.mean + (at - start.at) * start.slope))

    @cached_property
    def sides(self) -> list[tuple[list[Slab], bool]]:
        """The slabs beyond the first, and whether they reach the end."""
        return [self.side(self.inner, self.sign)]

    @property
    def slabs(self) -> list[Slab]:
        """The slabs of a walk from the outer states to the end."""
        return [self.first, *self.sides[0][0]]


def followed(
    evaluate: Evaluate, states: Array, q: Mixture, rng: np.random.Generator, *, bent: bool,
    rough: bool,
) -> tuple[Mixture, list[str]]:
    """A mixture with further components, which reach ends that walkers may have missed.

    Also returned is where the density has been followed to. `rough`: independent
    proposals from q are often rejected.
    """
    try:
        made = walks(evaluate, states, rng, bent=bent, rough=rough)
        if made:
            q = q.extended(*components(made), SHARE)
    except ValueError:  # a covariance that is no longer valid, as the density does not fall off
        return q, []
    return q, [str(walk) for walk in made]


def walks(
    evaluate: Evaluate, states: Array, rng: np.random.Generator, *, bent: bool,
    rough: bool = False,
) -> list[Walk]:
    """The walks that are worth making, each with its first slab.

    They lead along funnels. Of a bent density without a funnel they lead along the coordinate with
    the longest tails and along that whose first slab fits best, or along principal axes. If these
    do not lead to its ends, as where thin ridges cross, or are all along principal axes, walks lead
    outwards along arms, too.
    """
    d = states.shape[1]
    found = funnels(states, rough=rough)
    if found or not bent or not 2 <= d <= MOST_DIMENSIONS:
        return [walk for k in found if (walk := Walk(evaluate, states, k, rng)).first.fits]
    z = (states - states.mean(axis=0)) / states.std(axis=0)
    try:
        tried = [Walk(evaluate, states, k, rng) for k in range(d)]
        if d <= MOST_TURNED:
            axes = eigen(product(z.T, z) / len(z))[1]
            tried += [Walk(evaluate, states, k, rng, axes) for k in range(d)]
    except ValueError:  # states on a plane
        return []
    good = [walk for walk in tried if walk.first.efficiency >= FITS]
    tails = (z * z * z * z).mean(axis=0)
    if good:
        longest = max(good, key=lambda walk: 0.0 if walk.turned else tails[walk.k])
        best = max(good, key=lambda walk: walk.first.efficiency)
        chosen = [longest] if best is longest else [longest, best]
        good = [walk for walk in chosen if walk.missed < MOST_BEYOND]
    if all(walk.turned for walk in good):
        order = np.argsort(-tails, kind="stable")[:MOST_FUNNELS]
        arms: list[Walk] = [Arm(evaluate, states, int(k), rng, sign)
                            for k in order if tails[k] > LONG for sign in (-1, 1)]
        good += [arm for arm in arms if arm.first.fits]
    return good


def components(made: list[Walk]) -> tuple[Array, Array, Array]:
    """The components of some walks, those whose first slab fits better with more weight.

    Arms are different parts of the density: together they have the weight of a walk that fits, and
    share it by their masses.
    """
    weights, means, factors = zip(*(walk.components() for walk in made), strict=True)
    share = np.array([walk.first.efficiency**2 for walk in made])
    arms = np.array([isinstance(walk, Arm) for walk in made])
    if arms.any():
        masses = np.array([walk.log_mass for walk in made])[arms]
        part = exp(masses - masses.max())
        share[arms] = ARMS * part / part.sum()
    weighted = [w * part for w, part in zip(weights, share / share.sum(), strict=True)]
    return np.concatenate(weighted), np.concatenate(means), np.concatenate(factors)
