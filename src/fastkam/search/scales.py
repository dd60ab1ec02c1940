"""A point that has a density, and its scales: steps that change the log density by about 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.fault import Fault
from fastkam._core.numerics.elementary import log

Array = NDArray[np.float64]

FIRST = 0.01  # the first step, in units of the coordinate, or absolute where that is 0
NEAR = (0.5, 2.0)  # changes of the log density that are close enough to 1
NARROW = 1.1  # a bracket with a smaller ratio of its ends contains a wall
LEAST, MOST = 1e-300, 1e300  # steps beyond which a coordinate does not matter
FASTEST = 1e30  # largest factor by which a step grows or shrinks at once
ROUNDS = 80
MOST_BYTES = 2**26  # of points that are evaluated at once
SMALL = 0.1  # a start, other than 0, that may show the size of the scale
JUMP = 40  # number of ever shorter steps with the same change that show a jump


def first_with_density(
    evaluate: Callable[[Array], Array], points: Array, rng: np.random.Generator
) -> tuple[Array, float]:
    """(a point, its log density): one of the points (m, d), or one nearby if all have density 0.

    Up to 100 points are tried at growing distances from the first, from 0.01 to 10 times 1 + |x|;
    if a coordinate is SMALL, of 1 + |x| and of |x| in turn. Then Fault.
    """
    values = evaluate(points)
    if np.isfinite(values).any():
        i = int(np.argmax(np.isfinite(values)))
        return points[i], float(values[i])
    x = points[0]
    least = np.abs(x[x != 0]).min(initial=1.0)
    sizes = [1 + np.abs(x), np.maximum(np.abs(x), least)][: 2 if least < SMALL else 1]
    for k in range(1, 101):
        width = 0.01 * 1000 ** (k / 100) * sizes[k % len(sizes)]
        y = x + width * rng.standard_normal(len(x))
        value = float(evaluate(y[None])[0])
        if np.isfinite(value):
            return y, value
    raise Fault(0, x, 0)


def find_scales(
    evaluate: Callable[[Array], Array], x0: Array, logp: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Find the length scale of each coordinate at `x0`.

    Steps to both sides of every coordinate grow or shrink until the log density changes by 1; the
    shorter of the two is taken. A side on which the density becomes 0 before that, or jumps at
    `x0`, is used only if the other side is of the same kind: the distance to a wall is not a width.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    x0 : array (d,)
    logp : float
        The log density there, finite.

    Returns
    -------
    scales : ndarray, shape (d,)
        Positive. Multiplying a coordinate by a number multiplies its scale by that number.
    flat : ndarray of bool, shape (d,)
        The coordinates on which the log density does not depend; their scale is the first step.
    """
    d = len(x0)
    first = FIRST * np.where(x0 != 0, np.abs(x0), 1.0)
    sides = [Bracket(np.maximum(first, LEAST)) for _ in (1, -1)]
    for _ in range(ROUNDS):
        todo = [(side, int(k)) for side in (0, 1) for k in np.flatnonzero(~sides[side].done)]
        if not todo:
            break
        most = max(1, MOST_BYTES // (8 * d))
        for some in (todo[i : i + most] for i in range(0, len(todo), most)):
            X = np.tile(x0, (len(some), 1))
            for row, (side, k) in enumerate(some):
                X[row, k] += (1 - 2 * side) * sides[side].step[k]
            changes = np.abs(evaluate(X) - logp)
            for row, (side, k) in enumerate(some):
                sides[side].learn(k, changes[row], moved=X[row, k] != x0[k])
    walls = np.array([side.wall for side in sides])
    steps = np.array([side.step for side in sides])
    flat: NDArray[np.bool_] = sides[0].flat & sides[1].flat
    width = np.where(walls.all(axis=0), steps.max(axis=0),
                     np.where(walls, np.inf, steps).min(axis=0))
    return np.where(flat, first, width).reshape(d), flat


class Bracket:
    """The search to one side of every coordinate, independently of the others.

    Attributes
    ----------
    step : ndarray, shape (d,)
        The next steps to be tried; at the end the scales.
    done, wall, flat : ndarray of bool, shape (d,)
        Whether the search has ended; whether it ended at a wall, beyond which the density is 0;
        whether it ended without any change of the density.
    """

    def __init__(self, step: Array) -> None:
        d = len(step)
        self.step = step.copy()
        self.low, self.high = np.zeros(d), np.full(d, np.inf)
        self.low_change, self.high_change = np.zeros(d), np.full(d, np.inf)
        self.growth = np.full(d, 8.0)
        self.done, self.wall, self.flat, self.hidden = (np.zeros(d, bool) for _ in range(4))
        self.change, self.same = np.zeros(d), np.zeros(d, int)  # last change, its repetitions

    def learn(self, k: int, change: float, moved: bool) -> None:
        """Use the change of the log density along a step of coordinate k; choose the next step."""
        t = self.step[k]
        if not moved:  # the step is lost to rounding, as is any shorter one
            self.low[k], self.low_change[k], self.hidden[k] = t, 0.0, True
        elif change > 1:
            self.high[k], self.high_change[k] = t, change
        else:
            self.low[k], self.low_change[k], self.hidden[k] = t, change, False
        low, high = self.low[k], self.high[k]
        if moved and NEAR[0] < change < NEAR[1]:
            self.done[k] = True
        elif low > 0 and high < NARROW * low:
            # the density ends there, or jumps at x0: the low end is then lost to rounding
            self.done[k], self.wall[k] = True, np.isinf(self.high_change[k]) or self.hidden[k]
        elif high == np.inf:
            self.grow(k, change if moved else 0.0)
        elif low == 0:
            self.shrink(k, change)
        else:
            self.step[k] = self.between(k)

    def grow(self, k: int, change: float) -> None:
        """Choose a longer step, growing faster while the density does not change at all."""
        if change > 0:
            self.step[k] /= max(np.sqrt(change), 1 / FASTEST)
        else:
            self.step[k] *= self.growth[k]
            self.growth[k] = min(self.growth[k] ** 1.5, FASTEST)
        if self.step[k] > MOST:
            self.done[k] = self.flat[k] = True

    def shrink(self, k: int, change: float) -> None:
        """Choose a shorter step, shrinking faster while the density is 0."""
        self.same[k] = self.same[k] + 1 if change == self.change[k] else 0
        self.change[k] = change
        if self.same[k] == JUMP and np.isfinite(change):
            self.done[k] = self.wall[k] = True
            return
        if np.isfinite(change):
            self.step[k] /= min(np.sqrt(change), FASTEST)
        else:
            self.step[k] /= self.growth[k]
            self.growth[k] = min(self.growth[k] ** 1.5, FASTEST)
        if self.step[k] < LEAST:  # a start on a wall
            self.done[k], self.wall[k] = True, np.isinf(change)

    def between(self, k: int) -> float:
        """A step within the bracket, at which a power function through its ends is 1."""
        low, high = self.low[k], self.high[k]
        share = 0.5
        if np.isfinite(self.high_change[k]) and self.low_change[k] > 0:
            share = -log(self.low_change[k]) / log(self.high_change[k] / self.low_change[k])
        return float(low * float(high / low) ** float(np.clip(share, 0.1, 0.9)))
