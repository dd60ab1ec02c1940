"""A check after a run with a surrogate s: whether its draws leave out a part of the density p.

Chains never propose points where s is far too small, and nothing that they see shows it. So p is
evaluated at points x_i of a wide density g around the draws:

    part = sum_{i in S} p(x_i) / g(x_i)  /  sum_i p(x_i) / g(x_i),
    S = {i: log p(x_i) - log s(x_i) > its median at the draws + 5}

is the estimated part of the distribution where s is too small. If the draws have hardly any of it,
they leave it out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky
from fastkam._core.numerics.elementary import exp, log
from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.numerics.median import median
from fastkam.run.faults import after_run
from fastkam.run.streams import Stream, generator_of
from fastkam.search.evaluator import Evaluator
from fastkam.stop import Limits

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

SHARE, LEAST, MOST = 0.05, 40, 200  # of the evaluations so far; of points of g
WIDTH, DEGREES = 1.5, 5  # of g, a Student distribution, in standard deviations of the draws
MOST_DRAWS = 1000  # at which the surrogate is evaluated
TOO_SMALL = 5.0  # log p - log s, above its median at the draws
LEAST_EFFECTIVE, LEAST_POINTS = 10.0, 3  # effective number of points; points where s is too small
LEFT_OUT, HARDLY = 0.05, 1 / 3  # part of the distribution; of that part, what the draws have


def with_left_out(outcome: Outcome, target: Target, options: RunOptions) -> Outcome:
    """Add the place that the surrogate leaves out to the outcome of a run, if there is one.

    It makes 5 % more evaluations, 200 at most, and none if `stop` limits evaluations or time, if
    the density is estimated, or if workers evaluate it.
    """
    state = outcome.state
    limits = Limits() if options.stop is None else options.stop.limits()
    limited = options.until_stop and limits != Limits()
    most = int(min(MOST, SHARE * state.evaluations, limits.evaluations - state.evaluations))
    periodic = state.coordinates is not None and state.coordinates.repeats
    if (target.surrogate is None or target.is_estimate or state.status != "complete" or limited
            or periodic or most < LEAST or options.executor is not None or options.on_points
            or state.trace.rows < LEAST_DRAWS or state.trace.stat_names is None):
        return outcome
    rng = generator_of(state.seed, Stream.LEFT_OUT)
    place = after_run(lambda: left_out(state, target, most, rng), options.shield)
    if place is None:
        return outcome
    return replace(outcome, state=replace(
        state, unvisited=place if len(place) else state.unvisited, searched=state.searched + most))


def left_out(state: RunState, target: Target, n: int, rng: np.random.Generator) -> Array:
    """A row (1, d + 2) of `RunState.unvisited` for such a place, or none."""
    trace, d = state.trace, state.d
    step = max(1, state.chains * trace.rows // MOST_DRAWS)
    draws = np.asarray(trace.x[:, : trace.rows : step]).reshape(-1, d)
    kept = np.asarray(trace.logp[:, : trace.rows : step]).reshape(-1)
    assert target.surrogate is not None
    of_target, of_surrogate = (
        Evaluator(cast("Any", one), rng) for one in (target.owner, target.surrogate))
    of_target.found = of_surrogate.found = True
    usual = kept - of_surrogate(draws)
    center = float(median(usual))
    factor = cholesky(np.atleast_2d(np.cov(draws.T)))
    t = rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(DEGREES, n) / DEGREES)[:, None]
    points = draws.mean(axis=0) + WIDTH * t @ factor.T
    logp = of_target(points)
    log_w = logp + 0.5 * (DEGREES + d) * log(1 + (t * t).sum(axis=1) / DEGREES)
    small = np.isfinite(logp)
    small[small] = logp[small] - of_surrogate(points[small]) > center + TOO_SMALL
    w = exp(log_w - log_w.max())
    inside, outside = float(w[~small].sum()), float(w[small].sum())
    part, had = outside / w.sum(), float((usual > center + TOO_SMALL).mean())
    effective = w.sum() ** 2 / (w * w).sum()
    if (effective < LEAST_EFFECTIVE or small.sum() < LEAST_POINTS or part < LEFT_OUT
            or had > HARDLY * part):
        return np.zeros((0, d + 2))
    k = int(np.where(small, log_w, -np.inf).argmax())
    mass = (outside - had * (inside + outside)) / inside if inside > 0 else np.inf
    return np.r_[points[k], logp[k], mass][None]
