"""The noise of an estimated density where a run begins, and the acceptance to aim at with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.density.noise import refreshed
from fastkam.search.watch import Spent

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.samplers import Sampler
    from fastkam.search.found import Search
    from fastkam.search.watch import Watch

Array = NDArray[np.float64]
ESTIMATES, LEAST = 40, 10
DISTANCES = (0.3, 1.0, 3.0, 10.0) * 2  # of other points, in units of the scales
MOST_VARIANCE = 3.28  # of the log of an estimate: with more, no random walk is efficient
MOST_ZEROS = 0.9  # share of estimates
NOISELESS = "the estimate does not depend on its noise"  # how the line of the search begins


def for_noise(
    sampler: Sampler, target: Target, found: Search, rng: np.random.Generator, watch: Watch
) -> tuple[Sampler, Search]:
    """The sampler for the noise of estimates where the chains start, and the search with a line.

    With noise a random walk accepts less than without, however short its steps are. A sampler that
    adapts the length of its steps to the acceptance probability would shorten them without end;
    therefore those whose `target_acceptance` is the default aim at a lower one (`with_noise`).
    """
    x = found.points[0]
    most = ESTIMATES if sampler.aimed(lambda aim: 0.5 * aim) is not sampler else LEAST
    values, found = estimates(target, x, most, found, rng, watch)
    good = np.asarray(np.isfinite(values).all(axis=1))
    if len(values) < LEAST or good.sum() < 2:
        return sampler, found
    if good.all() and np.ptp(values) == 0:
        for distance in DISTANCES:  # estimates that are 0 or 1 are equal but near an edge
            other = x + distance * found.scales * rng.standard_normal(len(x))
            pair, found = estimates(target, other, 2, found, rng, watch)
            if len(pair) < 2 or np.ptp(pair) != 0 or pair[0, 0] == values[0, 0]:
                return sampler, found
        line = f"{NOISELESS}: {values.size} estimates at the start of a chain are equal"
        return sampler, replace(found, steps=[*found.steps, line])
    values, zeros = values[good], 1 - float(good.mean())
    if values.shape[1] == 2:
        what, variance = "differences of pairs of log estimates", (np.diff(values) ** 2).mean()
        sampler = sampler.aimed(partial(with_noise, variance=variance / 2, zeros=zeros))
    else:
        what, variance = "log estimates", values.var(ddof=1) if np.ptp(values) else 0.0
        sampler = sampler.aimed(partial(with_noise, variance=variance, zeros=zeros))
    share = f", and {100 * zeros:.2g} % of the estimates are 0" if zeros else ""
    line = (f"{len(good)} {what} at the start of a chain have the standard deviation "
            f"{variance**0.5:.2g}{share}")
    return sampler, replace(found, steps=[*found.steps, line])


def estimates(
    target: Target, x: Array, most: int, found: Search, rng: np.random.Generator, watch: Watch
) -> tuple[Array, Search]:
    """Logs of estimates at x (d,), (n, 1), or (n, 2) with those of steps from their noise.

    There are fewer than `most` if the search, in which they are counted, has used its share.
    """
    correlated = target.correlation > 0 or target.blocks > 1
    values: list[list[float]] = []
    for _ in range(most):
        try:
            watch(found.evaluations)
        except Spent:
            break
        u = rng.standard_normal(target.n_aux)
        noise = [u, refreshed(target, u, rng)] if correlated else [u]
        values.append([estimate(target, x, one) for one in noise])
        found = replace(found, evaluations=found.evaluations + len(noise))
    return np.array(values).reshape(-1, 1 + correlated), found


def estimate(target: Target, x: Array, u: Array) -> float:
    """The log of an estimate; -inf where the function fails."""
    try:
        with np.errstate(all="ignore"):
            value = target.estimate(x, u)
    except Exception:
        return -np.inf
    return value if np.isfinite(value) else -np.inf


def with_noise(aim: float, variance: float, zeros: float) -> float:
    """The acceptance probability of steps that are accepted with probability `aim` without noise.

    It is 2 Phi(-l / 2) for a density of many dimensions and steps of a length that determines l,
    and 2 Phi(-(l^2 + 2 variance)^(1/2) / 2) with estimates whose logs are normal with this variance
    (Sherlock, C., Thiery, A. H., Roberts, G. O. and Rosenthal, J. S. (2015). On the efficiency of
    pseudo-marginal random walk Metropolis algorithms. Annals of Statistics 43, 238-275).

    Parameters
    ----------
    aim : float
    variance : float
        Of the log of an estimate; half of that of the difference of two with correlated noise.
    zeros : float
        Share of the estimates that are 0.
    """
    from statistics import NormalDist  # needed only here

    normal = NormalDist()
    length = -2 * normal.inv_cdf(aim / 2)
    noisy = 2 * normal.cdf(-0.5 * (length**2 + 2 * min(variance, MOST_VARIANCE)) ** 0.5)
    return noisy * (1 - min(zeros, MOST_ZEROS))
