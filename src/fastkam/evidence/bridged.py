"""Bridge sampling of a run: with its own frozen q, or with one that is fitted to its draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.evidence.bridge import Bridge, Pairs, bridge, crossed_share, effective, joined
from fastkam.evidence.density import Density, Window
from fastkam.evidence.pareto import MOST_K_HAT, k_hat
from fastkam.evidence.proposals import draws_in, fitted, has_frozen, stored

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.result import Result
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

LEAST_EVALUATIONS = 400
MOST_EVALUATIONS = 20_000
MOST_SHARE = 0.1                # of the evaluations of the run
# Independent draws of q take away more of the error than as many steps of chains: a short run gets
# this share of its evaluations, up to a number from which on the draws of the chains say more.
SHARE, ENOUGH = 0.25, 1500
LEAST_DRAWS_OF_Q = 25           # of each bridge
MOST_R_HAT = 1.1                # of log p - log q, where that varies
LEAST_SPREAD = 0.5
MOST_MISSED = 0.02              # share of a chain's draws where q has next to no mass
NEXT_TO_NONE = np.log(1000)


@dataclass(frozen=True)
class Bridged:
    """What bridge sampling has found, with several q.

    Attributes
    ----------
    pairs : list of Pairs
    bridges : list of Bridge
    crossed : float
        The share of the chains' variance that counts twice.
    evaluations, failed : int
        Further evaluations, and how many of them raised an error.
    """

    pairs: list[Pairs]
    bridges: list[Bridge]
    crossed: float = 0.0
    evaluations: int = 0
    failed: int = 0

    @cached_property
    def estimate(self) -> tuple[float, float]:
        """(log Z, standard error)"""
        return joined(self.bridges, self.crossed)

    @cached_property
    def k_hat(self) -> float:
        """Of the weights at all draws of q."""
        return k_hat(np.concatenate([one.of_q - its.log_z for one, its in self.each]))

    @property
    def each(self) -> list[tuple[Pairs, Bridge]]:
        return list(zip(self.pairs, self.bridges, strict=True))

    @property
    def log_ratios(self) -> Array:
        """log(p / (q Z)) at the draws of the chains, (chains, n)."""
        return np.concatenate([one.chain - its.log_z for one, its in self.each])


def by_frozen(state: RunState) -> Bridged | None:
    """With the q of each chain and the draws of it that the chain has proposed; None without."""
    if not has_frozen(state):
        return None
    pairs = stored(state)
    if min(len(one.of_q) for one in pairs) < LEAST_DRAWS_OF_Q:
        return None
    return Bridged(pairs, [bridge(one) for one in pairs])


def by_fitted(
    result: Result, density: Target, evaluations: int | None, rng: np.random.Generator
) -> Bridged | None:
    """With a q that is fitted to draws, and further evaluations; None where it cannot be fitted."""
    state = result.state
    window = Window(state.coordinates, state.trace.x[:, : state.trace.rows])
    at = Density(density, window, rng)
    bounds = default_bounds(int(result.evaluations))
    made = from_draws(*draws_in(window, state), at, evaluations, bounds, rng)
    return None if made is None else replace(made, evaluations=at.n, failed=at.failed)


def default_bounds(of_run: int) -> tuple[int, int]:
    """The least and the most further evaluations after a run of `of_run` evaluations."""
    least = int(np.clip(SHARE * of_run, LEAST_EVALUATIONS, ENOUGH))
    return least, max(least, int(min(MOST_EVALUATIONS, MOST_SHARE * of_run)))


def from_draws(
    z: Array, log_p: Array, density: Callable[[Array], Array], evaluations: int | None,
    bounds: tuple[int, int], rng: np.random.Generator,
) -> Bridged | None:
    """The bridge of draws z (chains, n, d) with log densities log_p (chains, n).

    `density` is called with `evaluations` draws of q; by default with as many as the draws are
    worth independent ones, within `bounds`.
    """
    fits = fitted(z, log_p, rng)
    if fits is None:
        return None
    if evaluations is None:
        size = sum(effective(log_ratios) for log_ratios in fits.held_out)
        evaluations = int(np.clip(size, *bounds))
    pairs = fits.pairs(evaluations, density, rng)
    bridges = [bridge(one) for one in pairs]
    return Bridged(pairs, bridges, crossed_share(bridges, fits.across))


def doubts(made: Bridged) -> list[str]:
    """What speaks against a bridge."""
    if not np.isfinite(made.estimate[0]):
        return ["q and the chains have nothing in common: there is no bridge between them."]
    notes = []
    if made.k_hat > MOST_K_HAT:
        notes.append(f"k-hat is {made.k_hat:.2f}, above {MOST_K_HAT}: q does not reach all of the "
                     "density (tails, a bend, a mode). The error may be too small.")
    log_ratios = made.log_ratios
    missed = (log_ratios > NEXT_TO_NONE).mean()
    if missed > MOST_MISSED:
        notes.append(f"{100 * missed:.2g} % of the draws are where q has next to no mass: it "
                     "misses a mode, or a bend. The error may be too small.")
    r_hat = measure(log_ratios[:, :, None])[COLUMNS.index("r_hat"), 0]
    if r_hat > MOST_R_HAT and log_ratios.std() > LEAST_SPREAD:
        notes.append(f"The chains disagree about q: R-hat of log p - log q is {r_hat:.3g}. Run "
                     "longer (result.resume(draws=...)).")
    if made.failed:
        notes.append(f"The function raised an error at {made.failed} draws of q, which count as "
                     "points without a density.")
    return notes
