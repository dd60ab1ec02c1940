"""Coordinates that repeat: periodic and reflected ones, which have many images of each point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Periods:
    """The coordinates that repeat, and a window that has one image of each point.

    Attributes
    ----------
    rows : ndarray, shape (m, 6)
        Of each its index, the start and the width of the window, the period (twice the width if it
        is reflected), and the mean and the standard deviation of the normal density by which
        periods are weighted.
    """

    rows: Array

    def points(self, z: Array) -> Array:
        """The images of z (..., d) in the window."""
        z = z.copy()
        for k, start, width, period, *_ in self.rows:
            away = np.mod(z[..., int(k)] - start, period)
            z[..., int(k)] = start + np.where(away > width, period - away, away)
        return z

    def inside(self, z: Array) -> NDArray[np.bool_]:
        """Mask of the rows of z (n, d) that are in the window, (n,)."""
        index, start, width = self.rows[:, 0].astype(int), self.rows[:, 1], self.rows[:, 2]
        away = z[:, index] - start
        return np.asarray(((away >= 0) & (away <= width)).all(axis=1))

    def log_weight(self, z: Array) -> Array:
        """The log weights of the images z (..., d) of points: those of all images add up to 1."""
        index, width, mean, sd = self.rows[:, [0, 2, 4, 5]].T
        heights = np.log(width / (sd * np.sqrt(2 * np.pi)))
        return np.asarray((heights - 0.5 * ((z[..., index.astype(int)] - mean) / sd) ** 2).sum(
            axis=-1))

    def cut(self, z: Array) -> Periods:
        """The same with windows whose ends are far from points z (n, d).

        They are in the middle of the largest gap between points on each circle.
        """
        rows = self.rows.copy()
        for row in rows:
            _, start, width, period, *_ = row
            if width < period:  # reflected: the window has its ends at the bounds
                continue
            away = np.sort(np.mod(z[:, int(row[0])] - start, period))
            gaps = np.diff(away, append=away[0] + period)
            j = gaps.argmax()
            shift = np.mod(away[j] + gaps[j] / 2, period)
            row[1] = start + (shift if shift < period / 2 else shift - period)
        return Periods(rows)
