"""The normal approximation q = N(m, L L') of a density pi that has a gradient g = grad log pi.

Newton's method, with the curvature H from differences of gradients (in a climb from far away also
from those of log densities), leads to the mode:

    x <- x + t (|H| + s I)^-1 g(x),   |H| has the eigenvalues |h_i|; the best of t = 1, 1/2, ...,
                                      1/256 with s = 0, and of t = 1 with larger and larger s

The normal density there is often too narrow, since densities of many dimensions have little of
their mass near the mode. It is refined where the mass is, by a linear fit to gradients at points
drawn from it, antithetically:

    L' g(m + L z) = a - C z + rest,     m <- m + L C^-1 a,      L L' <- L C^-1 L'

With many points a and C are E[L' g] and -L' E[grad g] L, so that at its fixed point q is the normal
density of the least divergence KL(q | pi): there E[g] = 0 and L L' = -E[grad g]^-1. Independent
proposals from q, with the weights w = pi / q, are accepted with the probability

    E[min(w, w')] / E[w],     w, w' of independent points of q

Opper, M. and Archambeau, C. (2009). The variational Gaussian approximation revisited. Neural
Computation 21, 786-792: mean and precision of that q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, eigen, inverse, product
from fastkam._core.numerics.elementary import exp
from fastkam.search.quadratic import FLATTEST_DIFFERENCE, LEAST_POINTS, Quadratic, of_derivatives

Array = NDArray[np.float64]
# (x, log density, scales) -> slopes (d,) and negative curvature (d, d), in units of the scales
Derivatives = Callable[[Array, float, Array], tuple[Array, Array]]

NEWTON_STEPS, SHORTER = 15, 2.0 ** -np.arange(9)  # steps at most; factors of each that are tried
DAMPED = 10.0 ** np.arange(-4, 4)  # s in units of the largest slope: steps of at most 10^4 to 10^-3
ARRIVED = 0.02  # gain of the log density by a step below which the mode is reached
LONGER = 4.0  # factor by which the steps of differences may change from one point to the next
REFINEMENTS, POINTS_EACH = 3, 2  # approximations after the first; pairs of points per dimension
ACCURATE = 0.9  # acceptance of proposals above which no better approximation is tried
WIDER = (1.0, 1.1, 1.25, 1.5)  # factors of its standard deviations that are tried


def normal_by_gradients(
    evaluate: Callable[[Array], Array],
    gradients: Callable[[Array], Array],
    x: Array,
    logp: float,
    scales: Array,
    rng: np.random.Generator,
) -> tuple[Quadratic, float] | None:
    """Approximate a density that has a gradient by a normal one around its mode.

    Parameters
    ----------
    evaluate, gradients : callable
        Log densities (n,) and their gradients (n, d) at points (n, d).
    x : array (d,)
        Where Newton's method begins.
    logp : float
        The log density there, finite.
    scales : array (d,)
        Steps, which change the log density by about 1.
    rng : Generator

    Returns
    -------
    tuple of Quadratic and float, or None
        The approximation, whose covariance has been multiplied by that of a few factors for which
        it is best, and the acceptance probability of independent proposals from it. None if there
        is no mode where the density is curved in all directions.
    """
    mode = climbed(evaluate, partial(by_gradients, gradients), x, logp, scales)
    if not mode.arrived or (at_mode := of_derivatives(*mode[:5])) is None:
        return None
    return refined(evaluate, gradients, at_mode, rng)


class Climbed(NamedTuple):
    """The point at which Newton's method ends.

    Attributes
    ----------
    x : ndarray, shape (d,)
    logp : float
        The log density there.
    scales, slopes : ndarray, shape (d,)
        Steps, and derivatives in units of these.
    precision : ndarray, shape (d, d)
        The negative second derivatives, in the same units.
    arrived : bool
        Whether the density has a mode there.
    """

    x: Array
    logp: float
    scales: Array
    slopes: Array
    precision: Array
    arrived: bool = False


def climbed(
    evaluate: Callable[[Array], Array],
    derivatives: Derivatives,
    x: Array,
    logp: float,
    scales: Array,
    least: float = ARRIVED,
) -> Climbed:
    """Climb by Newton's method, from x (d,), as long as a step raises the log density by `least`.
    """
    for _ in range(NEWTON_STEPS):
        slopes, precision = derivatives(x, logp, scales)
        here = Climbed(x, logp, scales, slopes, precision)
        if not (np.isfinite(precision).all() and np.isfinite(slopes).all()):
            return here
        try:
            values, vectors = eigen(precision)
        except np.linalg.LinAlgError:
            return here
        size = np.maximum(np.abs(values), FLATTEST_DIFFERENCE * np.abs(values).max())
        if not size.max() > 0:
            return here
        slope = (vectors.T * slopes).sum(axis=1)
        along = (vectors * slope / size).sum(axis=1)
        added = DAMPED[:, None] * np.abs(slope).max()
        damped = product(slope / (size + added), np.ascontiguousarray(vectors.T))
        tried = x + scales * np.concatenate([SHORTER[:, None] * along, damped])
        found = evaluate(tried)
        best = int(found.argmax())
        if not found[best] > logp + least:
            return here._replace(arrived=True)
        x, logp = tried[best], float(found[best])
        curved = np.clip(precision.diagonal(), LONGER**-2, LONGER**2)
        scales = scales / np.sqrt(curved)
    return here._replace(x=x, logp=logp, scales=scales)


def by_gradients(
    gradients: Callable[[Array], Array], x: Array, logp: float, scales: Array
) -> tuple[Array, Array]:
    """Slopes (d,) and negative curvature (d, d) at x (d,), in units of the scales."""
    steps = np.diag(scales)
    up, down = gradients(x + steps), gradients(x - steps)
    curvature = 0.5 * scales * (up - down)
    return scales * gradients(x[None])[0], -0.5 * (curvature + curvature.T)


def refined(
    evaluate: Callable[[Array], Array],
    gradients: Callable[[Array], Array],
    found: Quadratic,
    rng: np.random.Generator,
) -> tuple[Quadratic, float]:
    """The best of normal approximations, each fitted to gradients at points of the one before.

    With it, the acceptance probability of independent proposals from it.
    """
    best, most = widened(evaluate, found, rng)
    for _ in range(REFINEMENTS):
        if most > ACCURATE or (new := by_regression(gradients, found, rng)) is None:
            break
        found = new
        wide, accepted = widened(evaluate, found, rng)
        if accepted > most:
            best, most = wide, accepted
    return best, most


def by_regression(
    gradients: Callable[[Array], Array], found: Quadratic, rng: np.random.Generator
) -> Quadratic | None:
    """The normal density whose gradients are most like those of pi, at points of another one.

    None if these gradients do not lead towards a point from all directions.
    """
    d = len(found.mean)
    z = rng.standard_normal((POINTS_EACH * d, d))
    z = np.concatenate([z, -z])
    L = found.factor
    slopes = product(gradients(found.mean + product(z, L.T)), L)
    if not np.isfinite(slopes).all():
        return None
    a = slopes.mean(axis=0)
    root = inverse(cholesky(product(z.T, z)))
    C = -product(root.T, product(root, product(z.T, slopes - a)))
    try:
        values, vectors = eigen(0.5 * (C + C.T))
        if not values.min() > FLATTEST_DIFFERENCE * values.max():
            return None
        inverse_C = product(vectors / values, vectors.T)
        factor = cholesky(product(product(L, inverse_C), L.T))
    except np.linalg.LinAlgError:
        return None
    shift = product(L, (inverse_C * a).sum(axis=1)[:, None])[:, 0]
    return Quadratic(found.mean + shift, factor, found.height)


def widened(
    evaluate: Callable[[Array], Array], found: Quadratic, rng: np.random.Generator
) -> tuple[Quadratic, float]:
    """The best of wider normal approximations, and the acceptance probability of its points."""
    d = len(found.mean)
    n = max(LEAST_POINTS, d)
    z = rng.standard_normal((n, d))
    steps, squares = product(z, found.factor.T), 0.5 * (z * z).sum(axis=1)
    best, most = found, -1.0
    for factor in WIDER:
        log_w = evaluate(found.mean + factor * steps) + squares
        if not np.isfinite(log_w).any():
            continue
        w = exp(log_w - log_w.max())
        of_pairs = (np.minimum(w, w[:, None]).sum() - w.sum()) / (n - 1)  # without i = j
        accepted = float(of_pairs / w.sum())
        if accepted > most:
            best, most = replace(found, factor=factor * found.factor), accepted
        if most > ACCURATE:
            break
    return best, most
