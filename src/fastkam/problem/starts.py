"""The first points of chains: draws at which the density is finite, or not known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from fastkam.density.target import Target
from fastkam.run.streams import Stream, generator_of

Array = NDArray[np.float64]
Outcomes = Iterable[float | Exception]  # log densities, or errors of the function
Evaluate = Callable[[Array, list[Array]], Outcomes]

TRIES = 100  # draws for the start of a chain
# the same, and seconds, if the density is 0 at them: it may be positive in a small part alone
MOST_TRIES, MOST_SECONDS = 10_000, 10.0


def first_points(
    draw: Callable[[np.random.Generator], Array], evaluate: Evaluate, n_aux: int, chains: int,
    seed: np.random.SeedSequence, *, at_once: bool = False,
    passed: type[Exception] | tuple[()] = (),
) -> tuple[Array, list[float | Exception]]:
    """Draw a point for each chain, until the chain may start there.

    There are up to 100 draws for each; where the density is 0 at some of them, up to 10 000, as
    long as they take less than 10 seconds.

    It may where the density is finite, or the function has failed or returned +inf, which the run
    reports; but not after an error of the kind `passed`.

    Parameters
    ----------
    draw : callable
        Draws a point (d,).
    evaluate : callable
        The outcomes at points (k, d), with their noise, a list of k arrays. If there are fewer,
        the density stays unknown at the other points, where chains may start.
    n_aux : int
        The size of the noise.
    chains : int
    seed : SeedSequence
        Each chain draws from its own stream.
    at_once : bool
        Whether the points of all chains are evaluated together.
    passed : type

    Returns
    -------
    points : ndarray, shape (chains, d)
    tried : list
        Empty; or, if some chain may start at none of its draws, the outcomes at these.
    """
    streams = [generator_of(seed, Stream.PRIOR_STARTS, k) for k in range(chains)]
    points = [np.empty(0)] * chains

    def is_bad(one: float | Exception) -> bool:
        return isinstance(one, passed) if isinstance(one, Exception) else not one > -np.inf

    for left in [list(range(chains))] if at_once else [[k] for k in range(chains)]:
        tried: dict[int, list[float | Exception]] = {k: [] for k in left}
        begun = time.perf_counter()
        for n in range(MOST_TRIES):
            if n >= TRIES and (time.perf_counter() - begun > MOST_SECONDS
                               or all(-np.inf not in tried[k] for k in left)):
                break
            noise = []
            for k in left:
                points[k] = draw(streams[k])
                noise.append(streams[k].standard_normal(n_aux))
            found = evaluate(np.array([points[k] for k in left]), noise)
            bad = {k: one for k, one in zip(left, found, strict=False) if is_bad(one)}
            for k, one in bad.items():
                tried[k].append(one)
            left = list(bad)
            if not left:
                break
        if left:
            return np.empty((0, 0)), tried[left[0]]
    return np.array(points), []


def none_finite(tried: list[float | Exception], where: str) -> str:
    """Say that the log density is finite at none of the points that were tried for a start."""
    if all(not isinstance(one, Exception) and np.isnan(one) for one in tried):
        return (f"is NaN at all of {len(tried)} {where}: find what makes it NaN, and return -inf "
                "where x is impossible")
    return f"is not finite at any of {len(tried)} {where}: give x0, where the chains start"


def one_by_one(target: Target, Z: Array, noise: list[Array]) -> Iterator[float | Exception]:
    """The outcomes at points (k, d), each when it is asked for."""
    for z, u in zip(Z, noise, strict=True):
        try:
            yield target.estimate(z, u) if target.is_estimate else target.logp(z)
        except Exception as error:
            yield error
