"""Tail indices: how fast a density falls off as a power of the distance, from points far out.

    log pi(m + R s_k e_k) = const - p log R   at large R:   p is the same between all of 10^3, 10^4
                                                            and 10^5 standard deviations

The marginal tail index of coordinate k follows by integration over the other coordinates, each of
which, if the width of the density along it grows with R, lowers the index by 1,

    P(|x_k| > R) ~ R^-a,   a = p - 1 - #{j: pi(m + R (s_k e_k + s_j e_j)) is of the same order}

Only moments of an order below a exist; and the standard error of a standard deviation is finite
only for a > 4.

If the user's x is low + exp(z) or high - exp(-z), the tails of x are exponential in z, and a is
their rate: pi(z) ~ exp(-a |z|).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

DISTANCES = (1e3, 1e4, 1e5)     # in standard deviations
SAME = 0.02                     # difference of the powers between these, as a part of them
MOST_DIMENSIONS = 30            # with more, one point per coordinate would be too many
NEARER = (10.0, 100.0)          # multiples of exp(z) before those distances
BEYOND = 2.0  # standard deviations of z, at least, that the first of those distances has
MOST_INDEX, MOST_BEFORE = 4.0, 5.0  # of tails in exp(z), and how much more the density falls there
LEAST_RATE = 0.1                # that differs from 0


def rising(evaluate: Callable[[Array], Array], center: Array, lengths: Array) -> Indices:
    """The coordinates along which the log density is higher far out than at the center, (n,).

    The points far out are at the same multiples of `lengths`, the distance that a walker climbed.
    """
    d = len(center)
    higher = np.zeros(d, bool)
    inner = evaluate(center[None])[0]
    for sign in (1.0, -1.0):
        logp = np.array([evaluate(center + sign * R * np.diag(lengths)) for R in DISTANCES])
        higher |= (logp > inner).all(axis=0) & (logp[2] >= logp[0])
    return np.flatnonzero(higher)


def tail_indices(
    evaluate: Callable[[Array], Array],
    center: Array,
    sd: Array,
    distances: tuple[float, float, float] = DISTANCES,
) -> tuple[Array, Array]:
    """Measure how fast the tails of a density fall off.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    center, sd : array (d,)
        Center and standard deviation of the mass.
    distances : tuple of three floats
        Distances of the points, in standard deviations.

    Returns
    -------
    indices : ndarray, shape (n, 2)
        k and a, of the heavier tail, for each coordinate k with a tail that falls off as a power.
    powers : ndarray, shape (n,)
        p of the same tails.
    """
    d = len(center)
    indices, powers = np.full(d, np.inf), np.full(d, np.inf)
    if d > MOST_DIMENSIONS:
        return np.zeros((0, 2)), np.zeros(0)
    for sign in (1.0, -1.0):
        rays = sign * np.diag(sd)
        logp = np.array([evaluate(center + R * rays) for R in distances])
        with np.errstate(all="ignore"):
            p = -np.diff(logp, axis=0) / np.diff([math.log(R) for R in distances])[:, None]
            power = np.isfinite(p).all(axis=0) & (np.abs(p[1] - p[0]) < SAME * np.abs(p[1]))
        for k in np.flatnonzero(power):
            others = np.delete(np.arange(d), k)
            beside = evaluate(center + distances[1] * (rays[k] + np.diag(sd)[others]))
            # as log of (1 + 1)^(p / 2), where the contours are round, and twice that
            wide = int((logp[1, k] - beside < p[1, k] * math.log(2.0) + 1).sum())
            if p[1, k] - 1 - wide < indices[k]:
                indices[k], powers[k] = p[1, k] - 1 - wide, p[1, k]
    heavy = np.flatnonzero(np.isfinite(indices))
    return np.column_stack([heavy, indices[heavy]]), powers[heavy]


def logarithmic_tails(
    evaluate: Callable[[Array], Array], center: Array, sd: Array, sides: NDArray[np.int64],
    reach: Array | None = None,
) -> Array:
    """Measure how fast a density falls off along coordinates that are logarithms.

    Each coordinate is followed outwards only as long as its density does not fall off faster than
    x^-MOST_INDEX, so that a simulation is hardly called where it may take long. The distances are
    larger where the mass is so wide that they would be within it, as for a gamma density of small
    shape, which rises as x^shape over many powers of 10.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    center, sd : array (d,)
        Center and standard deviation of the mass.
    sides : array of int (d,)
        1 for z if x = low + exp(z), -1 if x = high - exp(-z), 0 for any other coordinate.
    reach : array (d,), optional
        How far the mass reaches from the center towards these tails; BEYOND * sd by default.

    Returns
    -------
    ndarray, shape (n, 2)
        k and a for each such coordinate k whose x has a tail that falls off as a power, with a of
        at most MOST_INDEX.
    """
    which = np.flatnonzero(sides)
    if len(center) > MOST_DIMENSIONS or not len(which):
        return np.zeros((0, 2))
    inner, others = evaluate(center[None])[0], np.flatnonzero(sides == 0)
    logp: list[Array] = []
    reach = BEYOND * sd if reach is None else reach
    start = np.maximum(reach - math.log(DISTANCES[0]), 0.0)
    for R in (*NEARER, *DISTANCES):
        step = math.log(R) + start[which]
        here = evaluate(center + step[:, None] * np.diag(sides)[which])
        heavy = here > inner - MOST_INDEX * step - MOST_BEFORE
        which = which[heavy]
        logp = [one[heavy] for one in (*logp, here)]
        if not len(which):
            return np.zeros((0, 2))
    rates = -np.diff(logp[-3:], axis=0) / np.diff(np.log(DISTANCES))[:, None]
    found = []
    for k, value, (before, rate) in zip(which, logp[-2], rates.T, strict=True):
        if abs(rate - before) <= SAME * max(abs(rate), LEAST_RATE):
            ray = (math.log(DISTANCES[1]) + start[k]) * sides[k] * np.eye(len(center))[k]
            beside = evaluate(center + ray + DISTANCES[1] * np.diag(sd)[others])
            found.append((k, rate - (value - beside < rate * math.log(2.0) + 1).sum()))
    return np.array(found).reshape(-1, 2)
