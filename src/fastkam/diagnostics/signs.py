"""Signs that chains may be wrong although they agree on every coordinate.

R-hat and effective sample sizes of the coordinates do not detect every fault. Each sign here is a
statistic of the draws, with its formula. Draws of the density hardly ever exceed its limit:
`bench.verdict` measures how often.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam._core.linalg.decomposition import cholesky, inverse, product
from fastkam.evidence.pareto import regularized_shape
from fastkam.numerics.median import median

if TYPE_CHECKING:
    from collections.abc import Mapping

Array = NDArray[np.float64]

TAIL = 0.9              # the radius of a tail: this quantile of all draws
PARTS = 16              # of each chain, at most, in which excursions are looked for
FAR = 0.98              # the radius of an excursion
MOST_TAIL = 0.2         # share of the draws to which a tail is fitted
LEAST_TAIL = 25         # draws in it
HEAVY_KURTOSIS = 5.0    # below which no tail is fitted: 3 for a normal, 6 for a Laplace density
LIGHT = 0.25  # k-hat of a tail with a fourth moment
OUT_OF_SCALE = 1e6  # interquartile ranges
OF_NO_SCALE = 10.0  # k-hat of draws that are out of all proportion to the others
GAP_SHARE = 0.02        # of the draws on either side of a gap, at least
RARE, APART = 0.002, 6.0    # share of the draws, and gap, of a separate mode (see `gap_of`)
RAREST = 0.0005             # share of one for which the moments that gradients imply are of no use
MOST_GROUPS = 16        # of chains, in nested R-hat
CURVE_DRAWS = 2000      # at which the density is compared with a curve
CURVES = 0.3, 300.0, 31 # the constants of the curves: from, to, how many
FAR_OUT = 200           # of those draws, the farthest out
MOST_OFF_CURVE = 0.15   # of the log density, from its curve; and in parts of b, since
MOST_OF_RADIUS = 0.06   # squared radii are known that well
LEAST_REACH = 3.0       # of log(1 + r^2 / c)
ROUNDS, DEGREES = 5, 3  # of the robust scatter, and its degrees of freedom


class Standardized:
    """Draws standardized in each coordinate, as one copy for all signs.

    Attributes
    ----------
    u : ndarray, shape (d, chains, n)
        (x - mean) / sd; 0 where a coordinate never moves.
    mean, sd : ndarray, shape (d,)
    correlations : ndarray, shape (d, d)
    """

    def __init__(self, x: Array) -> None:
        u = np.array(np.moveaxis(x, 2, 0), order="C")
        d = len(u)
        flat = u.reshape(d, -1)
        self.mean = flat.mean(axis=1)
        flat -= self.mean[:, None]
        self.sd = np.sqrt(np.einsum("ij,ij->i", flat, flat) / flat.shape[1])
        flat /= np.where(self.sd > 0, self.sd, 1.0)[:, None]
        self.u, self.flat = u, flat
        self.correlations = product(flat, flat.T) / flat.shape[1]

    def squares(self) -> Array | None:
        """|L^-1 u|^2, (chains, n), with L L' the correlations; None if these are singular."""
        if not (np.isfinite(self.sd).all() and (self.sd > 0).all()):
            return None
        try:
            L = cholesky(np.ascontiguousarray(self.correlations))
        except ValueError:
            return None
        whitened = product(inverse(L), self.flat)
        squares = np.einsum("ij,ij->j", whitened, whitened)
        return np.asarray(squares.reshape(self.u.shape[1:]))

    @cached_property
    def kurtosis(self) -> Array:
        """Mean of u^4, (d,): 3 for a normal density."""
        squares = self.flat * self.flat
        return np.asarray(np.einsum("ij,ij->i", squares, squares) / self.flat.shape[1])

    def suspects(self) -> list[Array]:
        """Series (chains, n) in which separate groups of draws would show.

        They are the coordinate with the smallest kurtosis, which two groups of equal size have,
        that with the largest, which a rare group has, and the longest axis.
        """
        which = {int(self.kurtosis.argmin()), int(self.kurtosis.argmax())}
        return [*(self.u[i] for i in sorted(which)), self.principal()]

    def principal(self) -> Array:
        """The coordinate along the longest axis of u, (chains, n)."""
        if len(self.u) == 1:
            return np.asarray(self.u[0])
        values, vectors = np.linalg.eigh(self.correlations)
        along = product(np.ascontiguousarray(vectors[:, values.argmax()])[None], self.flat)
        return np.asarray(along.reshape(self.u.shape[1:]))


def r_hats_of_functionals(squares: Array) -> tuple[float, float]:
    """Return R-hat of the squared radius (chains, n), and of the indicator of its tail.

    R-hat of the indicator is split R-hat without ranks, sqrt(1 + B / W). Vehtari et al. (2021).
    Rank-normalization, folding, and localization: an improved R-hat. Bayesian Analysis 16, 667-718.
    """
    radius = measure(squares[:, :, None], sizes=False)[COLUMNS.index("r_hat"), 0]
    half = squares.shape[1] // 2
    outside = squares > quantile(squares, TAIL)
    share = float(outside.mean())
    means = outside[:, -2 * half :].reshape(-1, half).mean(axis=1)
    within = share * (1 - share)
    tail = np.sqrt(1 + means.var(ddof=1) / within) if within > 0 else np.nan
    return float(radius), float(tail)


def quantile(values: Array, level: float) -> float:
    """Return the element int(level n) of the n sorted values."""
    k = min(values.size - 1, int(level * values.size))
    return float(np.partition(values, k, axis=None)[k])


def nested_r_hat(x: Array, groups: NDArray[np.intp]) -> Array:
    """Return nested R-hat, sqrt(1 + B / W), over groups of chains that began together, (d,).

    B is the variance of the groups' means; W the mean over groups of the variance between the
    chains of a group and of that within them. Margossian, C. C., Hoffman, M. D., Sountsov, P.,
    Riou-Durand, L., Vehtari, A. and Gelman, A. (2024). Nested R-hat: assessing the convergence of
    Markov chain Monte Carlo when running many short chains. Bayesian Analysis.

    Parameters
    ----------
    x : ndarray, shape (chains, n, d)
    groups : ndarray of int, shape (k, m)
        The chains of each group.
    """
    means = x.mean(axis=1)[groups]  # (k, m, d)
    within = x.var(axis=1, ddof=1)[groups] if x.shape[1] > 1 else np.zeros_like(means)
    between_groups = means.mean(axis=1).var(axis=0, ddof=1)
    spread = (means.var(axis=1, ddof=1) + within.mean(axis=1)).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(1 + between_groups / spread))


def groups_of_starts(x0: Array) -> NDArray[np.intp]:
    """Return chains in groups of equal size, (k, m), by their place on the longest axis of x0."""
    chains = len(x0)
    k = min(MOST_GROUPS, chains // 2)
    sd = x0.std(axis=0)
    u = (x0 - x0.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    axis = np.linalg.svd(u, full_matrices=False)[2][0] if u.any() else np.ones(u.shape[1])
    order = np.argsort(u @ axis, kind="stable")
    return np.asarray(order[: chains // k * k].reshape(k, -1))


def drifts(draws: Standardized, columns: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the drifts of means and standard deviations, first third to last, (d,) each.

    In standard errors: with e the error of a mean over all draws, that of the difference of two
    thirds is e sqrt(6). Geweke, J. (1992). Evaluating the accuracy of sampling-based approaches to
    the calculation of posterior moments. Bayesian Statistics 4, 169-193; here over all chains
    together.
    """
    u = draws.u
    third = u.shape[2] // 3
    first, last = u[:, :, :third], u[:, :, -third:]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [part.mean(axis=(1, 2)) for part in (first, last)]
        n = first.shape[1] * third
        sds = [np.sqrt(np.einsum("ijk,ijk->i", part, part) / n - mean**2)
               for part, mean in zip((first, last), means, strict=True)]
        scale = draws.sd / np.sqrt(6)
        return (np.abs(means[1] - means[0]) * scale / columns["mcse_mean"],
                np.abs(sds[1] - sds[0]) * scale / columns["mcse_sd"])


def longest_stays(draws: Standardized) -> tuple[Array, Array]:
    """Return the longest and the mean stay of each chain at one point, in draws, (chains,) each."""
    u = draws.u
    chains, n = u.shape[1:]
    moves = u[0, :, 1:] != u[0, :, :-1]
    for one in u[1:]:
        moves |= one[:, 1:] != one[:, :-1]
    longest, mean = np.empty(chains), np.empty(chains)
    for k in range(chains):
        ends = np.concatenate([[0], np.flatnonzero(moves[k]) + 1, [n]])
        stays = ends[1:] - ends[:-1]
        longest[k], mean[k] = stays.max(), n / len(stays)
    return longest, mean


def excursions(squares: Array, parts: int = PARTS) -> Array:
    """Return the largest share of draws far out in one of the equal parts of each chain, (chains,).

    Far out are the 2 % of all draws with the largest squared radius. If one chain alone stays there
    for a whole part, it has found a tail that it rarely leaves, or that the others have missed.
    """
    far = squares > quantile(squares, FAR)
    size = squares.shape[1] // parts
    each = far[:, -size * parts :].reshape(len(far), parts, size)
    return np.asarray(each.mean(axis=2).max(axis=1))


def tail_shapes(draws: Standardized) -> tuple[Array, int]:
    """Return k-hat (d,), the larger of the two tails of each coordinate, and the draws in a tail.

    The shape k of the generalized Pareto distribution of the draws beyond a threshold: moments of
    the orders below 1 / k exist. NaN where the kurtosis is small, so that no tail is heavy. Vehtari
    et al. (2024). Pareto smoothed importance sampling. Journal of Machine Learning Research 25(72).
    """
    u = draws.flat
    d, n = u.shape
    shapes = np.full(d, np.nan)
    m = int(min(MOST_TAIL * n / 2, 3 * np.sqrt(n)))
    if m < LEAST_TAIL:
        return shapes, m
    for i in np.flatnonzero(draws.kurtosis > HEAVY_KURTOSIS):
        if not has_gap(u[i]):  # a separate mode is not a tail
            shapes[i] = max(tail_shape(u[i], m), tail_shape(-u[i], m))
    return shapes, m


def tail_shape(values: Array, m: int) -> float:
    """Return k-hat of the m largest of values (n,), or of a quarter of them if their tail is light.

    A wide component with little mass has a light tail, beyond the threshold where it begins.
    """
    outermost = side_shape(values, m // 4)
    return outermost if outermost < LIGHT else side_shape(values, m)


def side_shape(values: Array, m: int) -> float:
    """Return k-hat of the m largest of values (n,); -inf if they are equal."""
    top = np.sort(np.partition(values, len(values) - m - 1)[-m - 1 :])
    excess = top[1:] - top[0]
    seen = excess > 1e-12 * max(abs(top[-1]), 1e-300)
    if seen.sum() < m // 2:
        low, high = np.quantile(values, [0.25, 0.75])
        if excess[-1] <= OUT_OF_SCALE * (high - low):
            return -np.inf  # many draws at one place
        seen = excess > 0
        if seen.sum() < LEAST_TAIL:
            return OF_NO_SCALE
    return regularized_shape(excess[seen])


def power_of_tails(x: Array, lp: Array) -> float | None:
    """Return a if the values at draws show that the density falls off as R^-(a + d); else None.

    The values log p of an elliptical Student density lie on one curve,

        log p = const - b log(1 + r^2 / c),   a = 2 b - d,

    with r^2 the squared radius by a robust estimate of location and scatter, that of a Student
    density of 3 degrees (Lange, K. L., Little, R. J. A. and Taylor, J. M. G. (1989). Robust
    statistical modeling using the t distribution. JASA 84, 881-896). P(|x| > R) then falls off as
    R^-a along each coordinate, however few draws are far out. The result is None if the values lie
    on no such curve, the draws do not reach far enough along it, or a coordinate hardly moves.

    Parameters
    ----------
    x : ndarray, shape (chains, n, d)
    lp : ndarray, shape (chains, n)
        Log densities, up to a constant.
    """
    d = x.shape[2]
    flat, values = x.reshape(-1, d), lp.reshape(-1)
    step = max(1, len(flat) // CURVE_DRAWS)
    flat, values = flat[::step], values[::step]
    squares = robust_squares(flat)
    if squares is None or len(flat) < 2 * FAR_OUT or not np.isfinite(values).all():
        return None
    order = np.argsort(squares, kind="stable")
    best = min((on_curve(squares[order], values[order], c)
                for c in np.geomspace(*CURVES)), key=lambda one: one[0])
    residual, b, reach = best
    if residual > max(MOST_OFF_CURVE, MOST_OF_RADIUS * b) or reach < LEAST_REACH:
        return None
    return 2 * b - d


def on_curve(squares: Array, values: Array, c: float) -> tuple[float, float, float]:
    """Return (residual, b, reach) of the fit of one c to values at ordered squared radii, (n,).

    The residual is the root mean square over all draws, or over those farthest out if it is larger;
    the reach is the largest log(1 + r^2 / c).
    """
    t = np.log1p(squares / c)
    u, v = t - t.mean(), values - values.mean()
    b = -float((u * v).sum() / (u * u).sum())
    off = v + b * u
    rms = np.sqrt(np.square(off).mean()), np.sqrt(np.square(off[-FAR_OUT:]).mean())
    return float(max(rms)), b, float(t[-1])


def robust_squares(x: Array) -> Array | None:
    """Return the squared radii of rows x (n, d), in the scatter of a fitted Student density."""
    d = x.shape[1]
    u = x - median(x, axis=0)
    spread = median(np.abs(u), axis=0)
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        return None
    u = np.ascontiguousarray((u / spread).T)
    weights = np.ones(u.shape[1])
    for _ in range(ROUNDS):
        u = u - ((weights * u).sum(axis=1) / weights.sum())[:, None]
        try:
            L = cholesky(np.ascontiguousarray(product(weights * u, u.T)) / u.shape[1])
        except ValueError:
            return None
        whitened = product(inverse(L), u)
        squares = np.einsum("ij,ij->j", whitened, whitened)
        weights = (d + DEGREES) / (DEGREES + squares)
    return np.asarray(squares)


def has_gap(values: Array, share: float = RARE) -> bool:
    """Return whether a gap divides the different values (n,) into two groups.

    Each has this share of the values, and 10 at least. The gap is wider than six standard
    deviations of the narrower group, and than one of the other: the values far out in a heavy tail
    have a large spread themselves.
    """
    ordered = np.sort(values)
    values = ordered[np.concatenate([[True], ordered[1:] > ordered[:-1]])]
    gap, place = gap_of(values, share)
    if gap <= APART:
        return False
    low, high = values[values < place], values[values > place]
    return bool(high[0] - low[-1] > max(low.std(), high.std()))


def gap_of(values: Array, share: float = GAP_SHARE) -> tuple[float, float]:
    """Return the widest gap among values (n,), over the spread of the narrower side, and its place.

    Only gaps with at least this share of the values on either side count; 0 if there is none.
    """
    ordered = np.sort(values)
    n = len(ordered)
    least = max(10, int(share * n))
    if n < 4 * least:
        return 0.0, np.nan
    steps = np.diff(ordered[least - 1 : n - least + 1])
    i = int(steps.argmax())
    cut = least + i  # how many are below
    low, high = ordered[:cut], ordered[cut:]
    narrower = min(low.std(), high.std())
    if not steps[i] > 0 or not narrower > 0:
        return 0.0, np.nan
    return float(steps[i] / narrower), float(0.5 * (ordered[cut - 1] + ordered[cut]))


def changes_of_side(series: Array, place: float) -> tuple[int, float]:
    """Return the number of times that chains (chains, n) cross a place, and the smaller share."""
    above = series > place
    share = float(above.mean())
    return int((above[:, 1:] != above[:, :-1]).sum()), min(share, 1 - share)


def energy_fractions(energy: Any) -> Array:
    """Return E-BFMI of each chain, (chains,): sum (E_i - E_i-1)^2 / sum (E_i - mean)^2.

    Betancourt, M. (2016). Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte
    Carlo. arXiv:1604.00695.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.square(np.diff(energy, axis=1)).sum(axis=1)
                          / np.square(energy - energy.mean(axis=1, keepdims=True)).sum(axis=1))
