"""The ends of a density along each coordinate, to which a surrogate is led.

The profile of the coordinate j at t is the maximum of log pi over all points with x_j = t. Along
each coordinate, in both directions, it is followed until it has fallen below its maximum by

    D = F^-1(0.999) / 2,

F being the distribution function of chi-squared with d degrees of freedom: a normal density has
0.1 % of its probability beyond. A point of the profile is where the surrogate g is largest at this
x_j, a step beyond the outermost points at which the density has not fallen so far, or sooner where
g has fallen by more than D. If the density has fallen there about as far as g has, the end is
known. Otherwise steps grow where it has not fallen, and shrink where it has, since g may miss the
bend of a ridge; then the next point of the profile is at the outermost one. The end is also known
once steps are short and the profile is below D / 2, or steps are very short.

A long, thin arm with one percent of the probability, which chains would rarely enter, is followed
in some ten calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import chdtri

from fastkam._core.surrogate.learned import LearnedDensity

Array = NDArray[np.float64]

OUTSIDE = 1e-3  # probability of a normal density beyond D
GROWTH, SHRINKING = 1.5, 0.5  # of steps, the first of which is a standard deviation
BEFORE, BEYOND = (0.6, 0.9), (1.05, 1.35)  # falls of g to which steps lead, in units of D
RIGHT = 0.05  # of D: largest error of g at an end that is known by it
BISECTIONS = 6
SHORT, VERY_SHORT = 0.2, 0.03  # standard deviations
STRIP = 0.5  # standard deviations from the outermost point: a step starts at the highest one there
SIDEWAYS = 3.0  # standard deviations by which a point may be beside the step
ITERATIONS = 50
DIFFERENCE = 1e-4


def drop(d: int) -> float:
    """Return D, by which the density has fallen at an end."""
    return 0.5 * float(chdtri(d, OUTSIDE))  # quantile of chi-squared


@dataclass
class Ends:
    """The ends of d coordinates, downwards and upwards.

    Attributes
    ----------
    steps : ndarray, shape (d, 2)
        Lengths of the next steps, in standard deviations.
    walls, missed : ndarray of bool, shape (d, 2)
        Whether the last point had no density; whether it had a low one.
    known : ndarray, shape (d, 2)
        Distances of the ends from the center, in standard deviations; NaN where they are not known.
    asked : list of (int, int)
        The ends of the last points.
    foreseen : list of Foreseen or None
        For each of these, the end according to the surrogate, if the point is there.
    """

    steps: Array
    walls: NDArray[np.bool_]
    missed: NDArray[np.bool_]
    known: Array
    asked: list[tuple[int, int]] = field(default_factory=list)
    foreseen: list[Foreseen | None] = field(default_factory=list)

    @staticmethod
    def of(d: int) -> Ends:
        """Return the ends of d coordinates before anything is known of them."""
        walls, missed = np.zeros((2, d, 2), bool)
        return Ends(np.ones((d, 2)), walls, missed, np.full((d, 2), np.nan))

    @property
    def n(self) -> int:
        """The number of ends."""
        return self.steps.size

    @property
    def unknown(self) -> int:
        """The number of ends that are not known."""
        return int(np.isnan(self.known).sum())

    def propose(
        self, density: LearnedDensity, X: Array, y: Array, center: Array, factor: Array
    ) -> Array:
        """Return points (n, d) at which to call the density, one for each end that is not known.

        Parameters
        ----------
        density : LearnedDensity
            g.
        X, y : array (m, d), (m,)
            All points so far, and the log densities there, finite.
        center, factor : array (d,), (d, d)
            Roughly the mean, and a factor of the covariance.
        """
        sd = np.sqrt((factor**2).sum(axis=1))
        fall, D = y.max() - y, drop(len(sd))
        self.asked, self.foreseen, points = [], [], []
        for end in np.ndindex(*self.steps.shape):
            j, side = end
            unit = (2 * side - 1) * sd[j]
            out = (X[:, j] - center[j]) / unit
            outermost = out[fall < D].max()
            strip = np.flatnonzero(out > outermost - STRIP)
            best = strip[fall[strip].argmin()]
            low = self.walls[end] or fall[best] > D / 2
            shortest = SHORT if low else VERY_SHORT
            beyond = outermost > self.known[end] + SHORT
            if np.isfinite(self.known[end]) and (
                    beyond or not (low or self.steps[end] < shortest)):
                self.known[end], self.steps[end] = np.nan, 1.0
            if self.steps[end] < shortest and not self.missed[end]:
                self.known[end] = outermost
            if np.isfinite(self.known[end]):
                continue
            profile, t = Profile(density, X[best], j, unit, factor), float(outermost - out[best])
            foreseen = None
            if self.missed[end]:
                point = profile.at(t)
            else:
                least, most = BEYOND if low else BEFORE
                top = y.max()
                step = float(self.steps[end])
                t, point = profile.ahead(t, step, top - most * D, top - least * D)
                fallen = top - density.logp(point[None])[0]
                if low and least * D < fallen < most * D:
                    # the root of the fall of a parabola grows in proportion to the distance
                    here, there = np.sqrt(fall[best]), np.sqrt(fallen)
                    share = (np.sqrt(D) - here) / (there - here)
                    foreseen = Foreseen(float(out[best] + share * t), fallen)
            points.append(point)
            self.asked.append(end)
            self.foreseen.append(foreseen)
        return np.array(points).reshape(-1, len(sd))

    def tell(self, points: Array, values: Array, top: float) -> None:
        """Use the log densities (n,) at the points of `propose`; `top` is the largest of all."""
        D = drop(points.shape[1])
        for end, foreseen, fall in zip(self.asked, self.foreseen, top - values, strict=True):
            if self.missed[end]:
                self.missed[end] = False
            elif foreseen is not None and abs(fall - foreseen.fall) < RIGHT * D:
                self.known[end] = foreseen.at
            else:
                self.walls[end] = np.isposinf(fall)
                self.missed[end] = D < fall < np.inf
                self.steps[end] *= GROWTH if fall < D else SHRINKING


class Foreseen(NamedTuple):
    """An end by the surrogate: its distance in standard deviations, its fall at the called point.
    """

    at: float
    fall: float


class Profile(NamedTuple):
    """The profile of a surrogate along a coordinate, near one of its points.

    Attributes
    ----------
    density : LearnedDensity
        g.
    x : ndarray, shape (d,)
        The point.
    j : int
        The coordinate.
    unit : float
        Its standard deviation, negative downwards; distances are in units of it.
    factor : ndarray, shape (d, d)
        Of the covariance.
    """

    density: LearnedDensity
    x: Array
    j: int
    unit: float
    factor: Array

    def at(self, t: float) -> Array:
        """Return the point of the profile at a distance t."""
        return highest(self.density, self.x, self.j, t * self.unit, self.factor)

    def ahead(self, t: float, step: float, least: float, most: float) -> tuple[float, Array]:
        """Return the distance t + step and its point, or those of a shorter step to these levels.

        The step is shorter if log g is below `least` at its end; then the level between `least`
        and `most` is found by bisection.
        """
        low, high = t, t + step
        t = high
        for i in range(BISECTIONS):
            point = self.at(t)
            level = self.density.logp(point[None])[0]
            if level < least:
                high = t
            elif level > most and i > 0:
                low = t
            else:
                break
            t = 0.5 * (low + high)
        return t, point


def highest(density: LearnedDensity, x: Array, j: int, step: float, factor: Array) -> Array:
    """Return the point (d,) with the largest density among those with the coordinate x_j + step.

    It is sought near x plus the step, in the other directions of the covariance with this factor.
    """
    along = factor[j] / np.sqrt(factor[j] @ factor[j])
    start = x + factor @ along * (step / (factor[j] @ along))
    across = factor @ np.linalg.svd(along[None])[2][1:].T
    n = across.shape[1]
    if n == 0 or not np.isfinite(density.logp(start[None]))[0]:
        return start
    around = np.vstack([np.zeros(n), DIFFERENCE * np.eye(n), -DIFFERENCE * np.eye(n)])

    def depth(v: Array) -> tuple[float, Array]:
        values = -np.maximum(density.logp(start + (v + around) @ across.T), -1e10)
        return float(values[0]), (values[1 : n + 1] - values[n + 1 :]) / (2 * DIFFERENCE)

    found = minimize(depth, np.zeros(n), jac=True, method="L-BFGS-B",
                     bounds=[(-SIDEWAYS, SIDEWAYS)] * n, options={"maxiter": ITERATIONS})
    point = start + across @ found.x
    point[j] = start[j]
    return np.asarray(point)
