"""Slabs across a coordinate: the distribution of the other coordinates in each, and its mass.

In a slab across coordinate k

    |x_k - c| < h / 2,      x_others | x_k  ~  N(m + (x_k - c) b, C)   approximately.

Points are drawn in it, x_k uniformly and the others from a Student distribution with this center
and shape; their importance weights refit m, b and C, and the mean weight estimates the mass of the
slab. In further rounds the points of the rounds before count, too. The start of the next slab is an
extrapolation: b, and the variances along the eigenvectors of C, keep changing as they did between
the last two.

Cappé, O., Douc, R., Guillin, A., Marin, J.-M. and Robert, C. P. (2008). Adaptive importance
sampling in general mixture classes. Statistics and Computing 18, 447-459: refitting by weights.
Cornuet, J.-M., Marin, J.-M., Mira, A. and Robert, C. P. (2012). Adaptive multiple importance
sampling. Scandinavian Journal of Statistics 39, 798-812: the points of all rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, eigen, inverse, product
from fastkam._core.numerics.elementary import exp, log

Array = NDArray[np.float64]

DEGREES, DEGREES_PER_DIMENSION = 5, 2  # of freedom of the points in a slab: the larger number
MOST_CHANGE = 1.5  # of the log variances from a slab to the next
LEAST_EFFICIENCY = 0.08  # of a slab that fits
SURE = 3.0  # standard errors by which a slope must change to be extrapolated
OVERLAP = 0.5  # standard deviation of a component along x_k, in units of its slab's width


@dataclass(frozen=True, eq=False, repr=False)
class Slab:
    """A slab, and the distribution of the other coordinates in it.

    Attributes
    ----------
    at, width : float
        c and h.
    mean : ndarray, shape (d - 1,)
        m.
    slope : ndarray, shape (d - 1,)
        b.
    cov : ndarray, shape (d - 1, d - 1)
        C.
    log_mass : float
        Logarithm of the mass, up to a constant that all slabs share.
    points : float
        Effective number of points that it was fitted to.
    efficiency : float
        Effective number of the points of the last round as a share of them.
    """

    at: float
    width: float
    mean: Array
    slope: Array
    cov: Array
    log_mass: float = -np.inf
    points: float = 0.0
    efficiency: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether it is good enough to walk on from there."""
        return self.efficiency >= LEAST_EFFICIENCY

    @property
    def log_height(self) -> float:
        """The logarithm of its mass divided by its width."""
        return self.log_mass - float(log(self.width))

    @property
    def slope_error(self) -> Array:
        """Standard errors of the slope, (d - 1,); infinite if it is not from weighted points."""
        points = max(self.points, 1e-300)
        return np.asarray(np.sqrt(12 * self.cov.diagonal() / points) / self.width)

    @property
    def degrees(self) -> int:
        """The degrees of freedom of the others' Student distribution."""
        return max(DEGREES, DEGREES_PER_DIMENSION * len(self.mean))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw points: x_k (n,) and the others (n, d - 1)."""
        L = cholesky(self.cov)
        x = self.at + self.width * (rng.random(n) - 0.5)
        normals = rng.standard_normal((n, len(L)))
        t = normals * np.sqrt(self.degrees / rng.chisquare(self.degrees, n))[:, None]
        return x, self.mean + (x - self.at)[:, None] * self.slope + product(t, L.T)

    def log_density(self, x: Array, others: Array) -> Array:
        """The log density (n,) of its draws in the slab, up to a constant that all slabs share."""
        L, m = cholesky(self.cov), len(self.mean)
        t = product(others - self.mean - (x - self.at)[:, None] * self.slope, inverse(L).T)
        return np.asarray(-0.5 * (self.degrees + m) * log(1 + (t * t).sum(axis=1) / self.degrees)
                          - log(np.diag(L)).sum() - float(log(self.width)))

    def component(self, k: int) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of a normal component that covers the slab."""
        others = np.delete(np.arange(len(self.mean) + 1), k)
        along = np.insert(self.slope, k, 1.0)
        cov = (OVERLAP * self.width) ** 2 * along[:, None] * along
        cov[np.ix_(others, others)] += self.cov
        return np.insert(self.mean, k, self.at), cov


@dataclass(frozen=True, eq=False, repr=False)
class Points:
    """Points drawn in a slab: x_k (n,), the others (n, d - 1), and the log density (n,)."""

    slab: Slab
    x: Array
    others: Array
    logp: Array


def of_states(states: Array, k: int) -> Slab:
    """The slab of some states (n, d), around their mean x_k."""
    n, x, others = len(states), states[:, k], np.delete(states, k, axis=1)
    return fitted(float(x.mean()), float(np.ptp(x)), x, others, np.full(n, 1 / n))


def fitted(at: float, width: float, x: Array, others: Array, weights: Array) -> Slab:
    """The slab of weighted points: x (n,) along its coordinate, others (n, d - 1)."""
    w = weights[:, None]
    middle, center = (weights * x).sum(), (w * others).sum(axis=0)
    along, away = (x - middle)[:, None], others - center
    slope = (w * along * away).sum(axis=0) / np.maximum((w * along * along).sum(), 1e-300)
    rest = away - along * slope
    cov = product((w * rest).T, rest)
    return Slab(at, width, center + (at - middle) * slope, slope, cov)


def refitted(made: list[Points]) -> Slab:
    """The slab refitted to the points of all rounds, the efficiency of the last of which it has.

    Each of them counts as a draw from the mixture of the distributions of the rounds. In many
    dimensions the effective points of one round are too few for the covariance.
    """
    last = made[-1]
    slab, n, m = last.slab, len(last.x), len(last.slab.mean)
    x, others, logp = (np.concatenate(part) for part in zip(
        *((one.x, one.others, one.logp) for one in made), strict=True))
    log_q = np.array([one.slab.log_density(x, others) for one in made])
    high = log_q.max(axis=0)
    log_w = logp - high - log(exp(log_q - high).mean(axis=0))
    of_last = last.logp - log_q[-1, -n:]
    if not np.isfinite(of_last.max()):
        return replace(slab, log_mass=-np.inf, efficiency=0.0)
    top = log_w.max()
    power = 1.0  # of the weights, so that enough points count
    while effective(exp(power * (log_w - top))) < min(3 * m, n / 5) and power > 0.05:
        power *= 0.7
    w = exp(power * (log_w - top))
    new, trust = fitted(slab.at, slab.width, x, others, w / w.sum()), effective(w)
    trust /= trust + m + 3
    return Slab(slab.at, slab.width, new.mean, trust * new.slope + (1 - trust) * slab.slope,
                trust * new.cov + (1 - trust) * slab.cov,
                float(top + log(exp(log_w - top).mean())), effective(exp(log_w - top)),
                effective(exp(of_last - of_last.max())) / n)


def effective(weights: Array) -> float:
    """The effective number of points with these weights (n,)."""
    return float(weights.sum() ** 2 / (weights * weights).sum())


def log_volume(slab: Slab) -> float:
    """Half the log determinant of its covariance."""
    return float(log(np.diag(cholesky(slab.cov))).sum())


def beyond(before: Slab, last: Slab, sign: int, width: float) -> Slab:
    """The slab after `last`, extrapolated from it and from the one before.

    Raises ValueError if both are at the same place, as those of states that are nearly all equal.
    """
    if last.at == before.at:
        raise ValueError("two slabs are at the same place")
    step = sign * (last.width + width) / 2
    variances, vectors = eigen(last.cov)
    earlier = (vectors * product(before.cov, vectors)).sum(axis=0)
    ratio = step / (last.at - before.at)
    change = np.clip(log(variances / earlier) * ratio, -MOST_CHANGE, MOST_CHANGE)
    cov = product(vectors * (variances * exp(change)), vectors.T)
    bend = last.slope - before.slope
    error = np.hypot(last.slope_error, before.slope_error)
    bend = np.where(np.abs(bend) > SURE * error, bend * ratio, 0.0)
    return Slab(last.at + step, width, last.mean + step * (last.slope + bend / 2),
                last.slope + bend, cov)
