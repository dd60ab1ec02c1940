"""Calls of an earlier run, read from a file, as the first points of a surrogate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.run.drawn_starts import by_labels
from fastkam.surrogate.regression import enough, most_below

if TYPE_CHECKING:
    from fastkam.points.evaluations import Evaluations
    from fastkam.problem.coordinates import Coordinates
    from fastkam.search.found import Known

Array = NDArray[np.float64]

MOST, MOST_EACH = 300, 100  # calls that are used, and further ones per dimension
OF_OTHERS = 0.25  # as many of those far below the maximum, and of those without a density
SAME = 0.01  # largest difference of two log densities at the same point


@dataclass(frozen=True)
class Given:
    """Points (n, d), in the coordinates of the chains, log densities (n,), and their file."""

    points: Array
    values: Array
    path: str

    def check(self, row: int, now: float) -> None:
        """Refuse the calls if the log density at one of the points is another one now."""
        before = float(self.values[row])
        if not abs(now - before) <= SAME + 1e-9 * abs(before):
            raise ValueError(
                f"x0 must have calls of the same density, and at its best point, in {self.path!r}, "
                f"the log density was {before!r}, and is {now!r} now: give a point as x0, or "
                "another file")


def given_calls(
    stored: Evaluations, labels: list[str], coordinates: Coordinates | None, known: Known,
    rng: np.random.Generator,
) -> Given:
    """Return the calls of a file for the density of a run.

    Points outside its support are left out. Of many calls some are chosen at random, most of them
    from those near the maximum.

    Parameters
    ----------
    stored : Evaluations
    labels : list of str
        Those of the coordinates of the function.
    coordinates : Coordinates or None
    known : Known
        The hints of the problem about its density.
    rng : Generator
    """
    x, first = np.unique(by_labels(stored.x, stored.names, labels), axis=0, return_index=True)
    values = stored.values[first]
    values = np.where(np.isnan(values), -np.inf, values)
    z = x
    if coordinates is not None:
        z, inside = coordinates.inside(x)
        z, values = z[inside], values[inside]
    if known.log_prior is not None:
        with np.errstate(all="ignore"):
            values = values + known.log_prior(z)
    some = np.isfinite(z).all(axis=1) & (values < np.inf)
    z, values = z[some], values[some]
    d, high = z.shape[1], values.max(initial=-np.inf)
    if not np.isfinite(high):
        raise ValueError("x0 must have a call with a density within the support of the "
                         f"parameters, and {stored!r} has none")
    near = values > high - most_below(d)
    most = MOST + MOST_EACH * d
    kinds = ((near, most), (~near & np.isfinite(values), int(OF_OTHERS * most)),
             (values == -np.inf, int(OF_OTHERS * most)))
    rows = np.concatenate([rng.permutation(np.flatnonzero(kind))[:n] for kind, n in kinds])
    rows = np.union1d(rows, values.argmax())
    return Given(z[rows], values[rows], os.fspath(stored.path))


def spread_of(points: Array, values: Array) -> Array | None:
    """Return a factor (d, d) of the covariance of calls near the maximum; None if they are few."""
    d = points.shape[1]
    near = points[values > values.max(initial=-np.inf) - most_below(d)]
    if len(near) < enough(d):
        return None
    try:
        return np.asarray(np.linalg.cholesky(np.atleast_2d(np.cov(near.T))))
    except np.linalg.LinAlgError:
        return None
