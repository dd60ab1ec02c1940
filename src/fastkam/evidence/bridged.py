"""Bridge sampling of a run, with its frozen proposal density q or with a q fitted to its draws."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import counted
from fastkam.diagnostics.scouting import MOST_FITTED, Budget, Scouting, Spent
from fastkam.evidence.bridge import (
    Bridge,
    Pairs,
    bridge,
    crossed_share,
    difference_between_chains,
    effective,
    joined,
)
from fastkam.evidence.density import Density, Window
from fastkam.evidence.pareto import MOST_K_HAT, k_hat
from fastkam.evidence.proposals import (
    MOST_MISSED,
    NEXT_TO_NONE,
    across,
    draws_in,
    fitted,
    has_frozen,
    stored,
)
from fastkam.run.state import NOWHERE

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.result import Result
    from fastkam.run.state import RunState
    from fastkam.search.mixture import Mixture

Array = NDArray[np.float64]

LEAST_EVALUATIONS = 400
MOST_EVALUATIONS = 20_000
MOST_SHARE = 0.1                # of the evaluations of the run
# Independent draws of q reduce the error more than as many steps of chains do: a short run gets
# this share of its evaluations, up to a number above which the draws of the chains matter more.
SHARE, ENOUGH = 0.25, 1500
LEAST_DRAWS_OF_Q = 25           # of each bridge
# of the evaluations of the run, to look for modes that it has missed; at most, and at least
SHARE_SCOUTING, MOST_SCOUTING, LEAST_SCOUTING = 0.05, 1000, 400
MOST_R_HAT = 1.1                # of log p - log q, where that varies
LEAST_SPREAD = 0.5
MOST_APART = 3.5                # standard errors by which draws of all chains may change log Z
MOST_LOST = 0.5                 # of the draws, above which there is no bridge
MAY_BE_TOO_SMALL = "The error may be too small: make more draws (result.resume(draws=...)), or "
WITHOUT_Q = 'compare with a run of sampler="pt", which has estimates without q.'
TEMPERED = 'take method="stepping_stones", which needs no q.'


@dataclass(frozen=True)
class Bridged:
    """The results of bridge sampling with one or several q.

    Attributes
    ----------
    pairs : list of Pairs
    bridges : list of Bridge
    crossed : float
        The share of the chains' variance that counts twice.
    evaluations, failed : int
        Number of further evaluations, and of draws of q among them that raised an error.
    q : Mixture or None
        The mean of all q, where they were fitted.
    unvisited : array
        `RunState.unvisited`, if a look for modes has found such a place.
    apart : float
        The part of the error because some chains are where the q of others have no mass.
    """

    pairs: list[Pairs]
    bridges: list[Bridge]
    crossed: float = 0.0
    evaluations: int = 0
    failed: int = 0
    q: Mixture | None = None
    unvisited: Array = field(default_factory=lambda: NOWHERE)
    apart: float = 0.0

    @cached_property
    def estimate(self) -> tuple[float, float]:
        """Return log Z and its standard error, which is infinite if q misses most draws."""
        value, error = joined(self.bridges, self.crossed)
        return value, np.inf if self.lost else float(np.hypot(error, self.apart))

    @cached_property
    def k_hat(self) -> float:
        """k-hat of the weights at all draws of q."""
        return k_hat(np.concatenate([one.of_q - its.log_z for one, its in self.each]))

    @property
    def each(self) -> list[tuple[Pairs, Bridge]]:
        return list(zip(self.pairs, self.bridges, strict=True))

    @property
    def missed(self) -> float:
        """The share of the draws of the chains where q has next to no mass."""
        return float((self.log_ratios > NEXT_TO_NONE).mean())

    @property
    def lost(self) -> bool:
        """Whether these are too many for a bridge to the chains."""
        return self.missed > MOST_LOST

    @property
    def log_ratios(self) -> Array:
        """log(p / (q Z)) at the draws of the chains, (chains, n)."""
        return np.concatenate([one.chain - its.log_z for one, its in self.each])


def by_frozen(state: RunState) -> Bridged | None:
    """Return the bridges with the frozen q of each chain; None if the chains have none."""
    if not has_frozen(state):
        return None
    pairs = stored(state)
    if min(len(one.of_q) for one in pairs) < LEAST_DRAWS_OF_Q:
        return None
    bridges = [bridge(one) for one in pairs]
    more, error = difference_between_chains(bridges, across(state)), joined(bridges)[1]
    return Bridged(pairs, bridges, apart=more if more > MOST_APART * error else 0.0)


def by_fitted(
    result: Result, density: Target, evaluations: int | None, rng: np.random.Generator
) -> Bridged | None:
    """Return the bridges with a q fitted to draws, by further evaluations; None without a fit.

    If their number is not given, further ones are made to look for modes without draws.
    """
    state = result.state
    window = Window(state.coordinates, state.trace.x[:, : state.trace.rows])
    at = Density(density, window, rng)
    of_run = int(result.evaluations)
    z, log_p = draws_in(window, state)
    made = from_draws(z, log_p, at, evaluations, default_bounds(of_run), rng)
    if made is None:
        return None
    failed = at.failed
    scouted = min(MOST_SCOUTING, int(SHARE_SCOUTING * of_run)) if evaluations is None else 0
    if made.q is not None and scouted >= LEAST_SCOUTING:
        step = max(1, -(-log_p.size // MOST_FITTED))
        with np.errstate(all="ignore"):
            scouting = Scouting(z[:, ::step], log_p[:, ::step], made.q, Budget(at, scouted), rng,
                                coordinates=state.coordinates)
            with suppress(Spent):
                made = replace(made, unvisited=scouting.place(scouted))
    return replace(made, evaluations=at.n, failed=failed)


def default_bounds(of_run: int) -> tuple[int, int]:
    """Return bounds of the number of further evaluations, after a run of `of_run` evaluations."""
    least = int(np.clip(SHARE * of_run, LEAST_EVALUATIONS, ENOUGH))
    return least, max(least, int(min(MOST_EVALUATIONS, MOST_SHARE * of_run)))


def from_draws(
    z: Array, log_p: Array, density: Callable[[Array], Array], evaluations: int | None,
    bounds: tuple[int, int], rng: np.random.Generator,
) -> Bridged | None:
    """Return the bridges of draws z (chains, n, d) with log densities log_p (chains, n).

    `density` is called with `evaluations` draws of q; by default their number is the effective
    sample size of the draws, within `bounds`.
    """
    fits = fitted(z, log_p, rng)
    if fits is None:
        return None
    if evaluations is None:
        size = sum(effective(log_ratios) for log_ratios in fits.held_out)
        evaluations = int(np.clip(size, *bounds))
    pairs = fits.pairs(evaluations, density, rng)
    bridges = [bridge(one) for one in pairs]
    return Bridged(pairs, bridges, crossed_share(bridges, fits.across), q=fits.mean())


def doubts(made: Bridged, tempered: bool = False) -> list[str]:
    """Return the reasons to doubt a bridge; the run may have an estimate of tempered replicas."""
    if any(len(one.of_q) == 0 for one in made.pairs):
        return ["There are too few draws of q: allow more (evaluations=)."]
    if not np.isfinite(made.estimate[0]):
        return ["q and the chains have nothing in common: there is no bridge between them. "
                "Make more draws (result.resume(draws=...))."]
    log_ratios = made.log_ratios
    too_small = MAY_BE_TOO_SMALL + (TEMPERED if tempered else WITHOUT_Q)
    notes = []
    if made.lost:
        notes.append(f"{100 * made.missed:.0f} % of the draws are where q has next to no mass: "
                     "there is no estimate. Make more draws (result.resume(draws=...)): in many "
                     "dimensions q needs many.")
    elif made.missed > MOST_MISSED:
        notes.append(f"{100 * made.missed:.0f} % of the draws are where q has next to no mass: it "
                     f"misses a mode, or a bend. {too_small}")
    elif made.k_hat > MOST_K_HAT:
        notes.append(f"k-hat is {made.k_hat:.2f}, above {MOST_K_HAT}: q does not reach all of the "
                     f"density (tails, a bend, a mode). {too_small}")
    r_hat = measure(log_ratios[:, :, None], sizes=False)[COLUMNS.index("r_hat"), 0]
    if r_hat > MOST_R_HAT and log_ratios.std() > LEAST_SPREAD:
        notes.append("The chains, or the parts of one, disagree about q: R-hat of log p - log q is "
                     f"{r_hat:.3g}. Run longer (result.resume(draws=...)).")
    if made.failed:
        notes.append(f"The function raised an error at {counted(made.failed, 'draw')} of q: points "
                     "without a density.")
    return notes
