"""The surrogate s of a costly density: a fitted process g, and two wider terms.

The wider terms have a given share of the integral each: g to the power 1/2, which follows every
bend of g and extends beyond its ends, and heavy-tailed components, which are positive everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from fastkam._core.surrogate.learned import DEGREES, LearnedDensity, made
from fastkam.search.mixture import Mixture
from fastkam.surrogate.regression import Process

Array = NDArray[np.float64]

SHARE = 0.07  # of the heavy-tailed components in s
FLAT_SHARE = 0.13  # of g to the power FLATTER
FLATTER = 0.5
WIDER = 2.0  # their scale, relative to that of the components of the mixture
MOST_COMPONENTS = 6
N_DRAWS = 2000  # for the integral of the process
POWER = 8.0  # with which s falls off towards points without a density


@dataclass(frozen=True)
class Support:
    """The support of the density, as far as the calls show it.

    Attributes
    ----------
    low, high : ndarray, shape (d,)
        A box; -inf and inf in directions where no wall was found.
    outside : ndarray, shape (m, d)
        Points of the box at which the density is zero.
    """

    low: Array
    high: Array
    outside: Array

    @staticmethod
    def of(X: Array, y: Array) -> Support:
        """Return the support from log densities y (n,) at points X (n, d), some of them -inf.

        A wall is assumed at the nearest point of zero density that is outside the range of the
        other points in this coordinate alone. If this is wrong, later calls show it: the
        heavy-tailed components still propose points beyond the wall.
        """
        inside, out = X[np.isfinite(y)], X[~np.isfinite(y)]
        least, most = inside.min(axis=0), inside.max(axis=0)
        below, above = out < least, out > most
        one = (below | above).sum(axis=1) == 1
        low = np.where(below & one[:, None], out, -np.inf).max(axis=0, initial=-np.inf)
        high = np.where(above & one[:, None], out, np.inf).min(axis=0, initial=np.inf)
        within = ((out > low) & (out < high)).all(axis=1)
        return Support(low, high, out[within])


def process_density(process: Process, support: Support) -> LearnedDensity:
    """Return the density g of the process alone."""
    return made(process_terms(process, support))


def with_tails(
    process: Process, support: Support, students: Students, log_flat: Array,
    rng: np.random.Generator,
) -> LearnedDensity:
    """Return the density s of the process g and the two wider terms, with their shares.

    Parameters
    ----------
    process, support, students
        The parts of s.
    log_flat : array (n,)
        log g at draws of g^FLATTER, from which the ratio of the integrals follows.
    rng : Generator
    """
    terms = process_terms(process, support)
    X = students.draw(N_DRAWS, rng)
    log_ratio = made(terms).parts(X)[:, 0] - students.log_density(X)
    log_integral = float(logsumexp(log_ratio) - np.log(len(X)))
    rest = 1 - SHARE - FLAT_SHARE
    # int g / int g^q = E[g^(1 - q)] over draws of g^q
    log_flat = log_flat[np.isfinite(log_flat)]
    flat = float(logsumexp((1 - FLATTER) * log_flat) - np.log(max(1, len(log_flat))))
    back = process.factor * process.lengths  # T^-1
    inverse = [solve_triangular(L, back, lower=True) for L in students.factors]
    return made(terms | {
        "w": students.log_constants + np.log(SHARE / rest) + log_integral,
        "m": (students.means - process.center) @ terms["T"].T, "W": np.array(inverse),
        "flat": flat + np.log(FLAT_SHARE / rest), "flatter": FLATTER})


def process_terms(process: Process, support: Support) -> dict[str, Any]:
    """Return the arguments of `LearnedDensity.set_up` for g alone."""
    lengths = process.lengths
    d = len(lengths)
    T = solve_triangular(process.factor, np.eye(d), lower=True) / lengths[:, None]
    return {
        "low": support.low, "high": support.high, "c": process.center, "T": T,
        "b0": process.b0, "b": process.b * lengths,
        "B": process.B * np.outer(lengths, lengths), "U": process.z / lengths, "a": process.a,
        "out": (support.outside - process.center) @ T.T, "power": POWER,
        "w": np.zeros(0), "m": np.zeros((0, d)), "W": np.zeros((0, d, d))}


class Students:
    """Student distributions with three degrees of freedom, wider than a mixture's components.

    Attributes
    ----------
    weights, log_constants : ndarray, shape (K,)
        The weights, and the logs of the weights times the densities at the means.
    means : ndarray, shape (K, d)
    factors : ndarray, shape (K, d, d)
        Lower-triangular factors of the scale matrices.
    """

    def __init__(self, mixture: Mixture) -> None:
        weights = mixture.weights[1:]
        largest = np.argsort(-weights, kind="stable")[:MOST_COMPONENTS]
        self.weights = weights[largest] / weights[largest].sum()
        self.means = mixture.means[1:][largest]
        self.factors = WIDER * mixture.factors[1:][largest]
        d = self.means.shape[1]
        one = gammaln(0.5 * (DEGREES + d)) - gammaln(0.5 * DEGREES) - 0.5 * d * np.log(
            DEGREES * np.pi)
        log_det = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        self.log_constants = np.log(self.weights) + one - log_det

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent points, (n, d)."""
        k = rng.choice(len(self.weights), n, p=self.weights)
        heavy = np.sqrt(DEGREES / rng.chisquare(DEGREES, n))
        normals = rng.standard_normal((n, self.means.shape[1]))
        return np.asarray(
            self.means[k] + heavy[:, None] * np.einsum("nij,nj->ni", self.factors[k], normals))

    def log_density(self, X: Array) -> Array:
        """Return the log densities (n,) at points X (n, d)."""
        d = X.shape[1]
        terms = [
            constant - 0.5 * (DEGREES + d) * np.log1p(
                (solve_triangular(L, (X - m).T, lower=True) ** 2).sum(axis=0) / DEGREES)
            for constant, m, L in zip(self.log_constants, self.means, self.factors, strict=True)]
        return np.asarray(logsumexp(terms, axis=0))
