"""Slabs across a coordinate, which follow a density to ends that walkers have not seen.

Chains hardly move where a density is narrow: they may never reach the narrow end of a funnel, or
the far end of a thin bent ridge, although R-hat is 1.00. So the search follows such a density along
coordinate k, from the middle to both ends, in slabs

    |x_k - c| < h / 2,      x_others | x_k  ~  N(m + (x_k - c) b, C)   approximately

In each slab points are drawn, x_k uniformly and the others from a Student distribution with this
center and shape; their importance weights refit m, b and C, and the mean weight estimates the mass
of the slab. The start of the next slab is an extrapolation: b, and the variances along the
eigenvectors of C, keep changing as they did between the last two. If the weights are too uneven, a
slab of half the width is tried, and if that does not help, the last slab is divided: a neck next to
a bound needs slabs that become thinner. A side is done when the density there has faded, or too
little mass is left. Each slab becomes a component of the mixture.

Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767, section 8: the funnel. Cappé,
O., Douc, R., Guillin, A., Marin, J.-M. and Robert, C. P. (2008). Adaptive importance sampling in
general mixture classes. Statistics and Computing 18, 447-459: refitting by weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, eigen, inverse, product
from fastkam._core.numerics.elementary import exp, log
from fastkam.numerics.median import median
from fastkam.search.mixture import Mixture

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
DEGREES, DEGREES_PER_DIMENSION = 5, 2  # of freedom of the points in a slab: the larger number
LEAST_POINTS, MOST_POINTS = 100, 400  # in a slab
POINTS_PER_DIMENSION = 20
CHANGE, WIDEST = 0.5, 0.5  # of the log widths across a slab; a slab, in standard deviations
MOST_CHANGE = 1.5  # of the log variances from a slab to the next
ROUNDS, ENOUGH, LEAST_EFFICIENCY = 4, 0.25, 0.08  # effective share of the points of a slab
THINNEST = 0.05  # slab, in units of the first
NEXT_TO_WALL, WORTH = 1e-4, 0.005  # the same, next to slabs with this share of the largest mass
MOST_RATIO = 0.2  # of the widths of neighbors; a slab that needs a thinner one is divided
SURE = 3.0  # standard errors by which a slope must change to be extrapolated
SURE_OF_MANY = 3.7  # the same of a regression on one of several coordinates
FADED = 1e-4  # density of a slab where a side is done, in units of the highest
MOST_BEYOND = 0.02  # share of the states beyond the slabs of a walk that reaches both ends
MOST_ROUNDS = 80  # of points, on one side
LONG, ARMS = 3.5, 0.25  # kurtosis; weight of all arms, where that of a walk is its efficiency^2
OUTER = 0.1  # of the states, from which arms begin
SHARE = 0.6  # of the components that are slabs, in a mixture
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
    n : int
        Number of points that it was fitted to.
    efficiency : float
        Effective number of points as a share of them.
    """

    at: float
    width: float
    mean: Array
    slope: Array
    cov: Array
    log_mass: float = -np.inf
    n: int = 0
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
        worth = max(self.efficiency * self.n, 1e-300)
        return np.asarray(np.sqrt(12 * self.cov.diagonal() / worth) / self.width)

    def component(self, k: int) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of a normal component that covers the slab."""
        others = np.delete(np.arange(len(self.mean) + 1), k)
        along = np.insert(self.slope, k, 1.0)
        cov = (OVERLAP * self.width) ** 2 * along[:, None] * along
        cov[np.ix_(others, others)] += self.cov
        return np.insert(self.mean, k, self.at), cov


def funnels(states: Array, *, rough: bool = False) -> list[int]:
    """The coordinates along which the width of the others changes most, MOST_FUNNELS at most.

    Their states (n, d) are put into bins by x_k. From bin to bin the volume of the others, the root
    of the determinant of their covariance, must change in the same direction. In many dimensions a
    bin has too few states for its volume to be known, and the regression of the size of the others
    on x_k is better. It takes small changes for a funnel, so that it is used only if q fits the
    density roughly (`rough`), and for one coordinate.
    """
    n, d = states.shape
    if d < 2 or n < BINS * 4 * d:
        return []
    changes = np.zeros(d)
    for k in range(d):
        parts = np.array_split(states[np.argsort(states[:, k], kind="stable")], BINS)
        try:
            volumes = np.array([log_volume(of_states(part, k)) for part in parts])
        except ValueError:  # states on a plane
            continue
        change = volumes[-1] - volumes[0]
        onward = np.diff(volumes) * np.sign(change)
        if (onward > -REVERSALS * abs(change) / BINS).all():
            changes[k] = abs(change)
    order = np.argsort(-changes, kind="stable")[:MOST_FUNNELS]
    found = [int(k) for k in order if changes[k] > LEAST_CHANGE]
    if rough:
        regressed = by_regression(states)
        best = int(regressed.argmax())
        if regressed[best] > LEAST_REGRESSED * max(1, d / NOISY) and best not in found:
            found.append(best)
    return found


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
        self.points = int(np.clip(POINTS_PER_DIMENSION * len(z.T), LEAST_POINTS, MOST_POINTS))
        self.rounds, self.along = 0, z[:, k]
        self.begin(z)

    def __str__(self) -> str:
        return f"both ends of {'principal axis' if self.turned else 'coordinate'} {self.k}"

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
    def slabs(self) -> list[Slab]:
        """The slabs of a walk from the middle to both ends."""
        down, up = self.side(self.high, -1), self.side(self.low, 1)
        return [*reversed(down), self.first, *up]

    @property
    def missed(self) -> float:
        """The share of the states that are beyond its slabs."""
        low, high = self.slabs[0], self.slabs[-1]
        return float(((self.along < low.at - low.width / 2)
                      | (self.along > high.at + high.width / 2)).mean())

    def side(self, before: Slab, sign: int) -> list[Slab]:
        """The slabs beyond the first on one side; `before` is one on its other side."""
        made, width = [before, self.first], self.first.width
        widest, until = width, self.rounds + MOST_ROUNDS
        while self.rounds < until:
            last = made[-1]
            new = self.weighted(beyond(made[-2], last, sign, width))
            if new.fits:
                made.append(new)
                if new.log_height < max(one.log_height for one in made[1:]) + log(FADED):
                    break
                width = min(widest, 1.5 * width)
                continue
            width /= 2
            large = last.log_mass > log(WORTH) + max(one.log_mass for one in made[1:])
            wall, several = new.log_mass == -np.inf, len(made) > 2
            too_wide = several and wall and large and last.efficiency < ENOUGH
            least = NEXT_TO_WALL if large and not wall else THINNEST
            if not too_wide and width < least * widest:
                break
            if too_wide or (several and width < MOST_RATIO * last.width):
                made.pop()
                width = last.width / 2
        return made[2:]

    def weighted(self, slab: Slab) -> Slab:
        """The slab refitted to importance weights, until these are even or ROUNDS are over."""
        for _ in range(ROUNDS):
            self.rounds += 1
            try:
                slab = self.refitted(slab)
            except ValueError:  # a covariance that is no longer positive definite
                return replace(slab, log_mass=-np.inf, efficiency=0.0)
            if slab.efficiency > ENOUGH or slab.log_mass == -np.inf:
                break
        return slab

    def refitted(self, slab: Slab) -> Slab:
        """Draw points in the slab, and refit it to them."""
        n, m, L = self.points, len(slab.mean), cholesky(slab.cov)
        x = slab.at + slab.width * (self.rng.random(n) - 0.5)
        degrees = max(DEGREES, DEGREES_PER_DIMENSION * m)
        normals = self.rng.standard_normal((n, m))
        t = normals * np.sqrt(degrees / self.rng.chisquare(degrees, n))[:, None]
        others = slab.mean + (x - slab.at)[:, None] * slab.slope + product(t, L.T)
        z = np.insert(others, self.k, x, axis=1)
        logp = self.evaluate(self.middle + product(z, self.map.T))
        log_q = -0.5 * (degrees + m) * log(1 + (t * t).sum(axis=1) / degrees)
        log_w = logp - log_q + log(np.diag(L)).sum() + float(log(slab.width))
        top = log_w.max()
        if not np.isfinite(top):
            return replace(slab, log_mass=-np.inf, efficiency=0.0)
        total, efficiency = exp(log_w - top).sum(), effective(exp(log_w - top)) / n
        power = 1.0  # of the weights, so that enough points count
        while effective(exp(power * (log_w - top))) < min(3 * m, n / 5) and power > 0.05:
            power *= 0.7
        w = exp(power * (log_w - top))
        new, trust = fitted(slab.at, slab.width, x, others, w / w.sum()), effective(w)
        trust /= trust + m + 3
        return Slab(slab.at, slab.width, new.mean, trust * new.slope + (1 - trust) * slab.slope,
                    trust * new.cov + (1 - trust) * slab.cov,
                    float(top + log(total / n)), n, float(efficiency))

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
        return f"the {'upper' if self.sign > 0 else 'lower'} end of coordinate {self.k}"

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
    def slabs(self) -> list[Slab]:
        """The slabs of a walk from the outer states to the end."""
        return [self.first, *self.side(self.inner, self.sign)]


def followed(
    evaluate: Evaluate, states: Array, q: Mixture, rng: np.random.Generator, *, bent: bool,
    rough: bool,
) -> tuple[Mixture, list[str]]:
    """A mixture with further components, which reach ends that walkers may have missed.

    Also returned are the ends to which the density has been followed. `rough`: independent
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


def effective(weights: Array) -> float:
    """The effective number of points with these weights (n,)."""
    return float(weights.sum() ** 2 / (weights * weights).sum())


def log_volume(slab: Slab) -> float:
    """Half the log determinant of its covariance."""
    return float(log(np.diag(cholesky(slab.cov))).sum())


def beyond(before: Slab, last: Slab, sign: int, width: float) -> Slab:
    """The slab after `last`, extrapolated from it and from the one before."""
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
