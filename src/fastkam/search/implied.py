"""A check after a run: whether gradients at draws imply the moments that the draws have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import REJECTED
from fastkam._core.linalg.decomposition import cholesky
from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.diagnostics.identities import disagreeing, fewest_draws, implied_moments
from fastkam.diagnostics.signs import RAREST, has_gap
from fastkam.run.faults import after_run
from fastkam.run.rules import Limits
from fastkam.run.streams import Stream, generator_of
from fastkam.search.choice import spread_over
from fastkam.search.evaluator import Evaluator

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

SHARE = 0.06  # of the evaluations so far, for the gradients, and the same for the check of them
MOST_LOOKED_AT = 20_000  # draws
MOST_DRAWS, MOST_OF_OWN = 1000, 4000  # for differences, and for the density's own gradients
STEP = 1e-4  # of differences, in standard deviations
MOST_LEVEL = 0.05  # share of draws around which the log density does not change
REACH, PARTS, HALVINGS = 0.5, 8, 12  # of the segments on which walls and jumps are looked for
EACH = PARTS + 2 + HALVINGS  # evaluations
SEGMENTS = 64, 256  # least and largest number of them
DEPTH = 10.0
LEAST_JUMP = 0.01  # of the log density


def moments_by_gradients(
    state: RunState, evaluate: Evaluator, rng: np.random.Generator, most: float = np.inf
) -> Array:
    """Moments of the user's coordinates that gradients at some of a run's draws imply.

    The gradients are those of the density, if it has them, or central differences of its
    logarithm. One-sided differences have small relative errors, but these are large in comparison
    with sums whose terms cancel.

    Parameters
    ----------
    state : RunState
    evaluate : Evaluator
        Evaluates the density in the coordinates of the chains.
    rng : Generator
    most : float
        Number of evaluations that may be made.

    Returns
    -------
    ndarray, shape (m, 4)
        As from `fastkam.diagnostics.identities.implied_moments`; m = 0 if there are too few draws,
        or if the density has hard bounds, jumps or plateaus, for which the identities do not hold,
        or separate modes, whose weights they do not show.
    """
    nothing, draws = np.zeros((0, 4)), draws_of(state)
    chains, rows, d = draws.shape
    share = min(SHARE * state.evaluations, most / 2)
    own = "logp_grad" in evaluate.target.abilities and not state.wrong_gradient
    n = int(min(chains * rows, *((MOST_OF_OWN, share) if own else
                                 (MOST_DRAWS, share / (2 * d)))))
    periodic = state.coordinates is not None and state.coordinates.repeats
    if chains < 2 or rows < LEAST_DRAWS or n < max(fewest_draws(d), 2 * chains) or periodic:
        return nothing
    flat = draws.reshape(-1, d)
    try:
        L = cholesky(np.atleast_2d(np.cov(flat.T)))
    except ValueError:
        return nothing
    if any(has_gap(column, RAREST) for column in flat.T):
        return nothing
    some = draws[:, np.linspace(0, rows - 1, n // chains).astype(int)]
    z, middle = some.reshape(-1, d), flat.mean(axis=0)
    gradients = evaluate.gradients(z) @ L if own else np.array(
        [evaluate(z + step) - evaluate(z - step) for step in STEP * L.T]).T / (2 * STEP)
    level = (gradients == 0).all(axis=1).mean()
    if not np.isfinite(gradients).all() or level > MOST_LEVEL:
        return nothing
    whitened = np.linalg.solve(L, (z - middle).T).T.reshape(some.shape)
    implied = implied_moments(whitened, gradients.reshape(some.shape), state.constrain(some))
    if np.isnan(implied[:, 2]).all():  # no standard deviation: a difference may have met a jump
        return nothing
    if len(disagreeing(implied, state.constrain(draws))):
        many = int(np.clip(share / EACH, *SEGMENTS))
        here = rng.permutation(len(z))[:many]
        along = rng.standard_normal((len(here), d))
        along *= REACH / np.linalg.norm(along, axis=1, keepdims=True)
        nearest, out = to_outside(state, z, L)
        segments = np.concatenate([along @ L.T, out])
        if EACH * len(segments) > most - evaluate.n:
            return nothing
        if not is_continuous(evaluate, z[np.concatenate([here, nearest])], segments):
            return nothing
    return implied


def disagrees(state: RunState) -> bool:
    """Whether the moments of a run's draws differ from those that gradients at them imply."""
    implied = state.implied
    return bool(len(implied) and len(disagreeing(implied, state.constrain(draws_of(state)))))


def draws_of(state: RunState) -> Array:
    """Some 20 000 evenly spaced draws, or all if there are fewer, (chains, n, d)."""
    step = max(1, state.chains * state.trace.rows // MOST_LOOKED_AT)
    return np.asarray(state.trace.draws[:, ::step])


def to_outside(state: RunState, z: Array, L: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the steps (m, d) to recorded points outside of the support from the nearest rows of z.

    The result is (the indices of these rows, the steps); the distance is in units of L.
    """
    outside = state.offending(REJECTED.index("outside"))
    draws, points = np.linalg.solve(L, z.T).T, np.linalg.solve(L, outside.T).T
    nearest = ((draws - points[:, None]) ** 2).sum(axis=2).argmin(axis=1)
    return nearest, outside - z[nearest]


def is_continuous(evaluate: Evaluator, z: Array, along: Array) -> bool:
    """Whether the density is continuous between draws z (n, d) and z + along.

    Each segment is divided into parts, and the part over which the log density changes most is
    bisected further. Log densities more than DEPTH below that of the draw count as equal, because
    jumps down there hardly matter.
    """
    n = len(z)
    bottom = evaluate(z) - DEPTH

    def values(t: Array) -> Array:
        """Evaluate each segment at its fraction t (n,)."""
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


def with_implied(outcome: Outcome, target: Target, options: RunOptions) -> Outcome:
    """Add the moments that gradients imply to the outcome of a run, if they can be computed.

    They are not computed if `stop` limits evaluations or time, or if the density is estimated or
    has a surrogate; and from no more evaluations than a budget leaves. Ctrl-C ends this check, and
    not the run.
    """
    state = outcome.state
    limits = Limits() if options.stop is None else options.stop.limits()
    limited = options.until_stop and limits != Limits()
    if state.status != "complete" or limited or target.is_estimate or target.surrogate is not None:
        return outcome
    rng = generator_of(state.seed, Stream.IMPLIED)
    evaluate = Evaluator(target, rng)
    evaluate.found, evaluate.spread = True, spread_over(options.for_chains, target)
    left = limits.evaluations - state.evaluations
    found = after_run(lambda: moments_by_gradients(state, evaluate, rng, left), options.shield)
    implied = state.implied if found is None else found
    searched = state.searched + evaluate.n
    return replace(outcome, state=replace(state, implied=implied, searched=searched))
