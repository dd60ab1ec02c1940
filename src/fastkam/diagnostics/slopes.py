"""Moments of a density by its gradients at draws, compared with those of the draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky
from fastkam.diagnostics.faults import differing, with_moments
from fastkam.diagnostics.identities import disagreeing, fewest_draws, implied_moments
from fastkam.diagnostics.look import Finding
from fastkam.diagnostics.signs import RAREST, has_gap
from fastkam.search.evaluator import Evaluator
from fastkam.search.implied import MOST_LEVEL, MOST_LOOKED_AT, STEP, is_continuous, to_outside

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.diagnostics.scouting import Budget, Gradient
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

SHARE_GRADIENTS = 0.45  # of the evaluations, at most
MOST_DRAWS = 1000  # at which gradients are taken
SEGMENTS, MOST_OUTSIDE = 16, 4  # on which walls are looked for: at random, and to points outside


class Slopes:
    """Gradients of a density: its own, or central differences if it has none."""

    def __init__(
        self, density: Target, gradient: Gradient | None, budget: Budget, rng: np.random.Generator
    ) -> None:
        self.gradient, self.budget, self.rng = gradient, budget, rng
        self.evaluate = None if density.is_estimate else Evaluator(density, rng)
        if self.evaluate is not None:
            self.evaluate.found = True

    def cost(self, d: int) -> int:
        """The number of evaluations for one point."""
        return 2 * d if self.gradient is None else 1

    def values(self, z: Array) -> Array:
        """Return the log densities (n,) at the rows of z (n, d)."""
        assert self.evaluate is not None
        self.budget.take(len(z))
        return self.evaluate(z)

    def along(self, z: Array, L: Array) -> Array:
        """Return the derivatives (n, d) at the rows of z (n, d) along the columns of L (d, d)."""
        if self.gradient is None:
            return np.array([self.values(z + step) - self.values(z - step)
                             for step in STEP * L.T]).T / (2 * STEP)
        self.budget.take(len(z))
        return np.array([self.gradient(one)[1] for one in z]) @ L


def by_gradients(state: RunState, slopes: Slopes, evaluations: int) -> list[Finding]:
    """Return a finding for coordinates whose draws have other moments than gradients imply.

    There is no finding if too few gradients can be evaluated, or if the density has walls.
    """
    d, chains, rows = state.d, state.chains, state.trace.rows
    periodic = state.coordinates is not None and state.coordinates.repeats
    n = int(min(MOST_DRAWS, rows * chains, SHARE_GRADIENTS * evaluations / slopes.cost(d)))
    n //= chains
    if (chains < 2 or periodic or len(state.implied) or slopes.evaluate is None
            or n * chains < max(fewest_draws(d), 2 * chains)):
        return []
    draws = np.asarray(state.trace.x[:, : rows : max(1, chains * rows // MOST_LOOKED_AT)])
    flat = draws.reshape(-1, d)
    try:
        L = cholesky(np.atleast_2d(np.cov(flat.T)))
    except ValueError:
        return []
    if any(has_gap(column, RAREST) for column in flat.T):
        return []
    some = draws[:, np.linspace(0, draws.shape[1] - 1, n).astype(int)]
    z = some.reshape(-1, d)
    gradients = slopes.along(z, L)
    if not np.isfinite(gradients).all() or (gradients == 0).all(axis=1).mean() > MOST_LEVEL:
        return []
    whitened = np.linalg.solve(L, (z - flat.mean(axis=0)).T).T.reshape(some.shape)
    implied = implied_moments(whitened, gradients.reshape(some.shape), state.constrain(some))
    x = state.constrain(draws)
    where = with_moments(state, x, disagreeing(implied, x))
    if not len(where) or not is_smooth(slopes, state, z, L):
        return []
    return [differing(state.layout.labels, x, implied, where)]


def is_smooth(slopes: Slopes, state: RunState, z: Array, L: Array) -> bool:
    """Return whether the density has no wall and no jump near some of the draws z (n, d)."""
    along = slopes.rng.standard_normal((SEGMENTS, z.shape[1]))
    along *= 0.5 / np.linalg.norm(along, axis=1, keepdims=True)
    here = slopes.rng.permutation(len(z))[:SEGMENTS]
    nearest, out = to_outside(state, z, L)
    return is_continuous(
        cast("Evaluator", slopes.values), z[np.r_[here, nearest[:MOST_OUTSIDE]]],
        np.concatenate([along[: len(here)] @ L.T, out[:MOST_OUTSIDE]]))
