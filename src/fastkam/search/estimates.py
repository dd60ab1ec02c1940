"""The noise of an estimated density where a run begins, and the acceptance to aim at with it."""

from __future__ import annotations

from collections.abc import Iterator
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
    values = np.array(list(estimates(target, found.points[0], found.evaluations, rng, watch)))
    found = replace(found, evaluations=found.evaluations + values.size)
    finite = values[np.isfinite(values).all(axis=-1)] if len(values) >= LEAST else values[:0]
    if len(finite) < 2:
        return sampler, found
    if len(finite) == len(values) and np.ptp(finite) == 0:
        line = f"{NOISELESS}: {values.size} estimates at the start of a chain are equal"
    else:
        variance = float((0.5 * np.diff(finite) ** 2).mean() if finite.shape[1] == 2
                         else finite.var(ddof=1))
        zeros = 1 - len(finite) / len(values)
        share = f", and {100 * zeros:.2g} % are 0" if zeros else ""
        line = (f"the logs of {values.size} estimates at the start of a chain have the standard "
                f"deviation {variance**0.5:.2g}{share}")
        sampler = sampler.aimed(partial(with_noise, variance=variance, zeros=zeros))
    return sampler, replace(found, steps=[*found.steps, line])


def estimates(
    target: Target, x: Array, n: int, rng: np.random.Generator, watch: Watch
) -> Iterator[list[float]]:
    """Logs of estimates at x (d,), each with that of a step from its noise if it is correlated.

    They are -inf where the function fails, which the run reports. n evaluations have been made
    before; there are fewer estimates if the search has used its share.
    """
    correlated = target.correlation > 0 or target.blocks > 1
    for _ in range(ESTIMATES):
        try:
            watch(n)
        except Spent:
            return
        u = rng.standard_normal(target.n_aux)
        noise = [u, refreshed(target, u, rng)] if correlated else [u]
        yield [estimate(target, x, one) for one in noise]
        n += len(noise)


def estimate(target: Target, x: Array, u: Array) -> float:
    """The log of an estimate; -inf where the function fails, which the run reports."""
    try:
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
