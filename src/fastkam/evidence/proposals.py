"""The density q of bridge sampling, frozen in the run or fitted to draws, and log p - log q."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, inverse, product
from fastkam.evidence.bridge import Pairs, effective
from fastkam.evidence.density import LEAST_ROWS, Window, draws_of
from fastkam.numerics.periods import Periods
from fastkam.samplers import modes
from fastkam.samplers.jumps import ModeJumping
from fastkam.schedules import Finite
from fastkam.search.mixture import Mixture

if TYPE_CHECKING:
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

MOST_ROWS = 100_000     # draws that are used, of all chains
MOST_STATES = 12_000    # to which q is fitted
MOST_COMPONENTS = 32
FOLDS = 4               # at most, into which chains are divided
BLOCK = 10_000          # draws of q that are evaluated together
LEAST_STATES = 10       # to which a component is fitted
SHARES = 0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.6, 1.0   # by which correlations are shrunk
INDEPENDENT = 2         # the move of `jumps` that is a draw of q
MOST_MISSED = 0.02      # share of a chain's draws where q has next to no mass
NEXT_TO_NONE = np.log(1000)


# ---- the frozen q of a run ----


def has_frozen(state: RunState) -> bool:
    """Return whether each chain has proposed from a q that was fixed before the first draw.

    It is False for estimated densities, where the noise of a proposal may depend on the chain's,
    and for resampled draws, whose steps are not kept.
    """
    return (isinstance(state.sampler, ModeJumping) and isinstance(state.schedule, Finite)
            and "independent" in state.sampler.kinds()
            and "u" not in state.states[0]
            and all(int(one["kernel.n"]) > 0 for one in state.states)
            and not is_resampled(state))


def is_resampled(state: RunState) -> bool:
    """Whether the draws were resampled by weights, so that they have no steps before them."""
    first = np.asarray(state.trace.log_ratio[:, : min(state.trace.rows, LEAST_ROWS)])
    return bool(first.size and np.isnan(first).all())


def frozen(state: RunState, k: int) -> Mixture:
    """Return the q of chain k, in z."""
    one, scales = state.states[k], state.scales
    n = int(one["kernel.n"])
    factors = one["kernel.factors"][:n].transpose(0, 2, 1)  # stored by columns
    return Mixture(one["kernel.weights"][:n], one["kernel.means"][:n] * scales,
                   scales[:, None] * factors)


def log_frozen(state: RunState, k: int, z: Array) -> Array:
    """Return the log density (n,) of the q of chain k at draws z (n, d), in all periods."""
    q, rows = frozen(state, k), cast(ModeJumping, state.sampler).repeating(state.d)
    if not len(rows):
        return q.log_density(z)
    periods = Periods(rows)
    return q.log_density(periods.points(z)) + periods.log_weight(z)


def stored(state: RunState, most: int = MOST_ROWS) -> list[Pairs]:
    """Return log p - log q at each chain's draws, and at the proposals of the steps before them.

    At most about `most` draws in all are taken, equally spaced. A proposal y that was accepted is
    the draw itself. For one that was rejected at x,

        log p(y) - log q(y) = log ratio + log p(x) - log q(x)

    with the recorded logarithm of the acceptance ratio.
    """
    z, log_p, rows = draws_of(state, most)
    trace = state.trace
    assert trace.stat_names is not None
    move = trace.extra[:, rows, trace.stat_names.index("move")]
    accepted, log_ratio = trace.accepted[:, rows] != 0, trace.log_ratio[:, rows]
    found = []
    for k in range(state.chains):
        here = log_p[k] - log_frozen(state, k, z[k])
        proposed = np.where(accepted[k], here, here + log_ratio[k])
        attached = np.where(move[k] == INDEPENDENT, proposed, np.nan)
        found.append(Pairs(here[None], attached[None], np.empty(0)))
    return found


def across(state: RunState, most: int = MOST_ROWS) -> list[Array]:
    """Return log p - log q_k of each chain k at draws (chains, n) of all chains, for all k.

    The draws are so few that this takes no longer than `stored`.
    """
    z, log_p, _ = draws_of(state, most)
    z, log_p = z[:, :: state.chains], log_p[:, :: state.chains]
    flat = np.ascontiguousarray(z.reshape(-1, z.shape[2]))
    return [log_p - log_frozen(state, k, flat).reshape(log_p.shape)
            for k in range(state.chains)]


# ---- a q that is fitted to draws ----


def folds(chains: int) -> list[NDArray[np.intp]]:
    """Return the chains of each fold, of nearly equal size."""
    return [part for part in np.array_split(np.arange(chains), FOLDS) if len(part)]


@dataclass(frozen=True, eq=False, repr=False)
class Fits:
    """A q for each fold of chains, fitted to the others.

    Attributes
    ----------
    mixtures : list of Mixture
    folds : list of ndarray of int
        The chains of each fold.
    across : list of ndarray, shape (chains, n)
        log p - log q of each fold's q, at the draws of all chains.
    """

    mixtures: list[Mixture]
    folds: list[NDArray[np.intp]]
    across: list[Array]

    @property
    def held_out(self) -> list[Array]:
        """log p - log q at the draws that q was not fitted to, (chains of the fold, n) each."""
        return [all_[fold] for all_, fold in zip(self.across, self.folds, strict=True)]

    def mean(self) -> Mixture:
        """Return the mean of the q of all folds."""
        q = self.mixtures[0]
        for k, other in enumerate(self.mixtures[1:], start=2):
            q = q.joined(other, 1 / k)
        return q

    def pairs(self, n: int, density: Callable[[Array], Array], rng: np.random.Generator
              ) -> list[Pairs]:
        """Return the pairs, with n further draws of q in all, divided by the numbers of chains."""
        chains = np.array([len(fold) for fold in self.folds])
        ends = np.round(n * np.cumsum(chains) / chains.sum()).astype(int)
        made = []
        for q, here, m in zip(self.mixtures, self.held_out, np.diff(ends, prepend=0), strict=True):
            own = np.empty(m)
            for start in range(0, m, BLOCK):
                y = q.draw(min(BLOCK, m - start), rng)
                own[start : start + len(y)] = density(y) - q.log_density(y)
            made.append(Pairs(here, np.full(here.shape, np.nan), own))
        return made


def draws_in(window: Window, state: RunState) -> tuple[Array, Array]:
    """Return the draws z (chains, n, d) of a run in the window, and log p (chains, n) there."""
    z, log_p, _ = draws_of(state, MOST_ROWS)
    return window.points(z), log_p - window.log_weight(z)


def fitted(z: Array, log_p: Array, rng: np.random.Generator) -> Fits | None:
    """Return a q for each fold of chains, fitted to the others; None if the draws are degenerate.

    A single chain is divided into the largest number of folds.

    Parameters
    ----------
    z : array (chains, n, d)
        Draws.
    log_p : array (chains, n)
        Their log densities.
    """
    d = z.shape[2]
    if len(z) == 1:
        n = z.shape[1] // FOLDS
        z, log_p = z[0, : FOLDS * n].reshape(FOLDS, n, d), log_p[0, : FOLDS * n].reshape(FOLDS, n)
    some, mixtures, across = folds(len(z)), [], []
    flat = np.ascontiguousarray(z.reshape(-1, d))
    for fold in some:
        q = fit(others(z, fold), rng)
        if q is None:
            return None
        mixtures.append(q)
        across.append(log_p - q.log_density(flat).reshape(log_p.shape))
    return Fits(mixtures, some, across)


def others(z: Array, fold: NDArray[np.intp]) -> Array:
    """Return the chains of z that are not in a fold."""
    return np.delete(z, fold, axis=0)


def fit(z: Array, rng: np.random.Generator) -> Mixture | None:
    """Return q, fitted to draws z (chains, n, d)."""
    step = max(1, -(-z.shape[0] * z.shape[1] // MOST_STATES))
    sizes = [effective(np.ascontiguousarray(z[:, :, i])) for i in range(z.shape[2])]
    states = np.ascontiguousarray(z[:, ::step].reshape(-1, z.shape[2]))
    q = Mixture.fitted(states, rng, MOST_COMPONENTS, min(sizes))
    return shrunk(z[:, ::step]) if q is None or q.n == 1 else q


def shrunk(z: Array) -> Mixture | None:
    """One component for states z (chains, n, d); None where they are constant along a coordinate.

    Its correlations are (1 - a) R + a I, with R those of the states: of few states in many
    dimensions R is so far off that q would have no mass where p has it. The share a of SHARES has
    the largest likelihood of the states of one part of the chains, when R is that of the others.
    """
    chains, n, d = z.shape
    if chains == 1:
        n //= FOLDS
        z = z[0, : FOLDS * n].reshape(FOLDS, n, d)
    flat = z.reshape(-1, d)
    center, sd = flat.mean(axis=0), flat.std(axis=0)
    if len(flat) < LEAST_STATES or not ((sd > 0) & np.isfinite(sd * sd)).all():
        return None
    u = (z - center) / sd
    likelihoods = np.zeros(len(SHARES))
    for part in folds(len(u)):
        R, held_out = correlations(others(u, part)), u[part].reshape(-1, d)
        likelihoods += [log_likelihood(held_out, R, a) for a in SHARES]
    L = factor(correlations(u), SHARES[int(likelihoods.argmax())])
    if L is None:
        return None
    return Mixture(*modes.with_wide(np.ones(1), center[None], (sd[:, None] * L)[None]))


def correlations(u: Array) -> Array:
    """E[u u'] of standardized states u (chains, n, d), (d, d)."""
    flat = u.reshape(-1, u.shape[2])
    return np.asarray(product(np.ascontiguousarray(flat.T), flat) / len(flat))


def factor(R: Array, a: float) -> Array | None:
    """L, L L' = (1 - a) R + a I, (d, d); None where it is singular."""
    try:
        return np.asarray(cholesky((1 - a) * R + a * np.eye(len(R))))
    except ValueError:
        return None


def log_likelihood(u: Array, R: Array, a: float) -> float:
    """Return log densities of u (n, d) under N(0, (1 - a) R + a I), without constants.
    """
    L = factor(R, a)
    if L is None:
        return -np.inf
    white = product(inverse(L), np.ascontiguousarray(u.T))
    return float(-0.5 * np.square(white).sum() - len(u) * np.log(np.diag(L)).sum())
