"""The ends of a density along each coordinate, to which a surrogate is led.

The profile of the coordinate j at t is the maximum of log pi over all points with x_j = t. Along
each coordinate, in both directions, it is followed until it has fallen below its maximum by

    D = F^-1(0.999) / 2,

F being the distribution function of chi-squared with d degrees of freedom: a normal density has
0.1 % of its probability beyond. A point of the profile is where the surrogate g is largest at this
x_j, a step beyond the outermost points at which the density has not fallen so far. Steps grow where
it has not fallen, and shrink where it has, since g may not know how a ridge bends; then the next
point of the profile is at the outermost one. The end is known once steps are short and the profile
is below D / 2, or steps are very short.

A long, thin arm with one percent of the probability is so followed in some ten calls, which chains
would rarely enter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2

from fastkam._core.surrogate.learned import LearnedDensity

Array = NDArray[np.float64]

BEYOND = 1e-3  # probability of a normal density beyond D
GROWTH, SHRINKING = 1.5, 0.5  # of steps, the first of which is a standard deviation
SHORT, VERY_SHORT = 0.2, 0.03  # standard deviations
STRIP = 0.5  # standard deviations from the outermost point, in which the highest one is begun from
SIDEWAYS = 3.0  # standard deviations by which a point may be beside the step
ITERATIONS = 50
DIFFERENCE = 1e-4


def drop(d: int) -> float:
    """Return D, by which the density has fallen at an end."""
    return 0.5 * float(chi2.isf(BEYOND, d))


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
        The outermost coordinates of ends that are known; NaN where they are not.
    asked : list of (int, int)
        The ends of the last points.
    """

    steps: Array
    walls: NDArray[np.bool_]
    missed: NDArray[np.bool_]
    known: Array
    asked: list[tuple[int, int]] = field(default_factory=list)

    @staticmethod
    def of(d: int) -> Ends:
        """Return the ends of d coordinates, of which nothing is known."""
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
        self.asked, points = [], []
        for j, side in np.ndindex(*self.steps.shape):
            out = (2 * side - 1) * (X[:, j] - center[j]) / sd[j]
            outermost = out[fall < D].max()
            if outermost > self.known[j, side] + SHORT:
                self.known[j, side], self.steps[j, side] = np.nan, 1.0
            strip = np.flatnonzero(out > outermost - STRIP)
            best = strip[fall[strip].argmin()]
            missed, step = self.missed[j, side], self.steps[j, side]
            low = self.walls[j, side] or fall[best] > D / 2
            if step < (SHORT if low else VERY_SHORT) and not missed:
                if np.isnan(self.known[j, side]):
                    self.known[j, side] = outermost
                continue
            further = (2 * side - 1) * (outermost - out[best] + (0 if missed else step)) * sd[j]
            points.append(highest(density, X[best], j, further, factor))
            self.asked.append((j, side))
        return np.array(points).reshape(-1, len(sd))

    def tell(self, points: Array, values: Array, top: float) -> None:
        """Take the log densities (n,) at the points of `propose`; `top` is the largest of all."""
        for end, value in zip(self.asked, values, strict=True):
            if self.missed[end]:
                self.missed[end] = False
                continue
            self.walls[end] = np.isneginf(value)
            self.missed[end] = top - drop(points.shape[1]) > value > -np.inf
            self.steps[end] *= GROWTH if value > top - drop(points.shape[1]) else SHRINKING


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
