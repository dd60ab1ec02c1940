"""A look at the density after a run: do its gradients at draws imply the same moments?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import REJECTED
from fastkam._core.engine.fault import Fault
from fastkam._core.linalg.decomposition import cholesky
from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.diagnostics.identities import disagreeing, fewest_draws, implied_moments
from fastkam.search.choice import spread_over
from fastkam.search.evaluator import Evaluator
from fastkam.stop import Limits

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

SHARE = 0.06  # of the evaluations so far, that gradients may take, and as much the check of them
MOST_LOOKED_AT, MOST_DRAWS = 20_000, 1000  # draws; those at which gradients are taken
STEP = 1e-4  # of differences, in standard deviations
MOST_LEVEL = 0.05  # share of draws around which the log density does not change
REACH, PARTS, HALVINGS = 0.5, 8, 12  # of the segments on which walls and jumps are looked for
SEGMENTS = 64, 256  # how many, from and to
DEPTH = 10.0
LEAST_JUMP = 0.01  # of the log density


def moments_by_gradients(
    state: RunState, evaluate: Evaluator, rng: np.random.Generator
) -> Array:
    """Moments of the user's coordinates that gradients at some of a run's draws imply.

    The gradients are central differences of the log density: those of one side have errors that
    are small beside them, and large beside what is left where the terms of s cancel.

    Parameters
    ----------
    state : RunState
    evaluate : Evaluator
        Of the density in the coordinates of the chains.
    rng : Generator

    Returns
    -------
    ndarray, shape (m, 4)
        As `fastkam.diagnostics.identities.implied_moments`; of m = 0 where the draws are too few,
        or where the density has walls, jumps or level places, so that they imply nothing.
    """
    nothing, draws = np.zeros((0, 4)), draws_of(state)
    chains, rows, d = draws.shape
    evaluations = state.searched + sum(int(one["n_evaluations"]) for one in state.states)
    n = int(min(MOST_DRAWS, chains * rows, SHARE * evaluations / (2 * d)))
    periodic = state.coordinates is not None and state.coordinates.repeats
    if chains < 2 or rows < LEAST_DRAWS or n < max(fewest_draws(d), 2 * chains) or periodic:
        return nothing
    flat = draws.reshape(-1, d)
    try:
        L = cholesky(np.atleast_2d(np.cov(flat.T)))
    except ValueError:
        return nothing
    some = draws[:, np.linspace(0, rows - 1, n // chains).astype(int)]
    z, middle = some.reshape(-1, d), flat.mean(axis=0)
    gradients = np.array([evaluate(z + step) - evaluate(z - step)
                          for step in STEP * L.T]).T / (2 * STEP)
    level = (gradients == 0).all(axis=1).mean()
    if not np.isfinite(gradients).all() or level > MOST_LEVEL:
        return nothing
    whitened = np.linalg.solve(L, (z - middle).T).T.reshape(some.shape)
    implied = implied_moments(whitened, gradients.reshape(some.shape), state.constrain(some))
    if np.isnan(implied[:, 2]).all():  # no standard deviation, as where a difference met a jump
        return nothing
    if len(disagreeing(implied, state.constrain(draws))):
        many = np.clip(SHARE * evaluations / (PARTS + 2 + HALVINGS), *SEGMENTS)
        here = rng.permutation(len(z))[: int(many)]
        along = rng.standard_normal((len(here), d))
        along *= REACH / np.linalg.norm(along, axis=1, keepdims=True)
        outside = state.offending(REJECTED.index("outside"))
        to = np.linalg.solve(L, (outside - middle).T).T
        nearest = ((whitened.reshape(-1, d) - to[:, None]) ** 2).sum(axis=2).argmin(axis=1)
        segments = np.concatenate([along @ L.T, outside - z[nearest]])
        if not is_continuous(evaluate, z[np.concatenate([here, nearest])], segments):
            return nothing
    return implied


def disagrees(state: RunState) -> bool:
    """Whether the draws of a run have other moments than gradients at them imply."""
    implied = state.implied
    return bool(len(implied) and len(disagreeing(implied, state.constrain(draws_of(state)))))


def draws_of(state: RunState) -> Array:
    """Some 20 000 draws at equal distances, or all if there are fewer, (chains, n, d)."""
    step = max(1, state.chains * state.trace.rows // MOST_LOOKED_AT)
    return np.asarray(state.trace.draws[:, ::step])


def is_continuous(evaluate: Evaluator, z: Array, along: Array) -> bool:
    """Whether no wall and no jump is met between draws z (n, d) and z + along.

    Of the parts of each such segment, and then of its halves, the one over which the log density
    changes most is looked at. Further down than DEPTH below the draw all is one: little flows
    there.
    """
    n = len(z)
    bottom = evaluate(z) - DEPTH

    def values(t: Array) -> Array:
        """At the parts t (n,) of each segment."""
        return np.maximum(evaluate(z + t[:, None] * along), bottom)

    ends = np.linspace(0, 1, PARTS + 1)
    along_it = np.array([values(np.full(n, t)) for t in ends])
    part, every = np.abs(np.diff(along_it, axis=0)).argmax(axis=0), np.arange(n)
    low, high = ends[part], ends[part + 1]
    at_low, at_high = along_it[part, every], along_it[part + 1, every]
    changes = []
    for _ in range(HALVINGS):
        half = (low + high) / 2
        at_half = values(half)
        first = np.abs(at_half - at_low) > np.abs(at_high - at_half)
        low, at_low = np.where(first, (low, at_low), (half, at_half))
        high, at_high = np.where(first, (half, at_half), (high, at_high))
        changes.append(np.abs(at_high - at_low))
    return not ((changes[-1] > LEAST_JUMP) & (changes[-1] > changes[-4] / 2)).any()


def with_implied(
    outcome: Outcome, target: Target, rng: np.random.Generator, options: RunOptions
) -> Outcome:
    """The outcome of a run with the moments that gradients imply, where that can be looked at.

    It is not where a rule limits evaluations or time, which the run has had already, and where the
    density is estimated or stands behind a surrogate. Ctrl-C ends the look alone.
    """
    state = outcome.state
    limited = options.stop is not None and options.stop.limits() != Limits()
    if state.status != "complete" or limited or target.is_estimate or target.surrogate is not None:
        return outcome
    evaluate = Evaluator(target, rng)
    evaluate.found, evaluate.spread = True, spread_over(options.for_chains, target)
    try:
        with options.shield.opened, np.errstate(all="ignore"):
            implied = moments_by_gradients(state, evaluate, rng)
    except (KeyboardInterrupt, Fault) as error:
        cause = error.cause if isinstance(error, Fault) else error
        if isinstance(cause, KeyboardInterrupt):
            options.shield.waiting = True
        return outcome  # an error here has not occurred in the run
    searched = state.searched + evaluate.n
    return replace(outcome, state=replace(state, implied=implied, searched=searched))
