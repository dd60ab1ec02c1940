"""Where q comes from: frozen in the run, or fitted to draws; and log p - log q at draws of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.evidence.bridge import Pairs, effective
from fastkam.evidence.density import Window, draws_of
from fastkam.samplers.jumps import ModeJumping
from fastkam.schedules import Finite
from fastkam.search.mixture import Mixture

if TYPE_CHECKING:
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

MOST_ROWS = 100_000     # draws that are looked at, of all chains
MOST_STATES = 12_000    # to which q is fitted
MOST_COMPONENTS = 32
FOLDS = 4               # at most, into which chains are divided
BLOCK = 10_000          # draws of q that are evaluated together
INDEPENDENT = 2         # the move of `jumps` that is a draw of q


# ---- the frozen q of a run ----


def has_frozen(state: RunState) -> bool:
    """Whether each chain has proposed draws of a q that was fixed before the first draw.

    Of estimated densities the noise of a proposal may depend on that of the chain: these have not.
    """
    return (isinstance(state.sampler, ModeJumping) and isinstance(state.schedule, Finite)
            and "independent" in state.sampler.kinds()
            and "u" not in state.states[0]
            and all(int(one["kernel.n"]) > 0 for one in state.states))


def frozen(state: RunState, k: int) -> Mixture:
    """The q of chain k, in z."""
    one, scales = state.states[k], state.scales
    n = int(one["kernel.n"])
    factors = one["kernel.factors"][:n].transpose(0, 2, 1)  # stored by columns
    return Mixture(one["kernel.weights"][:n], one["kernel.means"][:n] * scales,
                   scales[:, None] * factors)


def stored(state: RunState, most: int = MOST_ROWS) -> list[Pairs]:
    """log p - log q, of each chain's q, at its draws and at the proposals in front of them.

    Of at most about `most` draws in all, at equal distances.

    A proposal y that was accepted is the draw itself. One that was rejected at x has

        log p(y) - log q(y) = log ratio + log p(x) - log q(x)

    with the logarithm of the acceptance ratio that was recorded.
    """
    z, log_p, rows = draws_of(state, most)
    trace = state.trace
    assert trace.stat_names is not None
    move = trace.extra[:, rows, trace.stat_names.index("move")]
    accepted, log_ratio = trace.accepted[:, rows] != 0, trace.log_ratio[:, rows]
    found = []
    for k in range(state.chains):
        q = frozen(state, k)
        here = log_p[k] - q.log_density(z[k])
        proposed = np.where(accepted[k], here, here + log_ratio[k])
        attached = np.where(move[k] == INDEPENDENT, proposed, np.nan)
        found.append(Pairs(here[None], attached[None], np.empty(0)))
    return found


# ---- a q that is fitted to draws ----


def folds(chains: int) -> list[NDArray[np.intp]]:
    """The chains of each fold, as equal as may be."""
    return [part for part in np.array_split(np.arange(chains), FOLDS) if len(part)]


@dataclass(frozen=True)
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
        """log p - log q at the draws to which q was not fitted, (chains of the fold, n) each."""
        return [all_[fold] for all_, fold in zip(self.across, self.folds, strict=True)]

    def pairs(self, n: int, density: Callable[[Array], Array], rng: np.random.Generator
              ) -> list[Pairs]:
        """With n further draws of q in all, shared out by the numbers of chains."""
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
    """(z (chains, n, d), log p (chains, n)) of a run in the window."""
    z, log_p, _ = draws_of(state, MOST_ROWS)
    log_p = log_p - window.log_weight(z.reshape(-1, z.shape[-1])).reshape(log_p.shape)
    return window.points(z), log_p


def fitted(z: Array, log_p: Array, rng: np.random.Generator) -> Fits | None:
    """For each fold of chains a q that is fitted to the others; None where draws do not spread.

    A chain alone is cut into as many parts as there may be folds.

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
    """The chains of z that are not in a fold."""
    return np.delete(z, fold, axis=0)


def fit(z: Array, rng: np.random.Generator) -> Mixture | None:
    """q, fitted to draws z (chains, n, d)."""
    step = max(1, -(-z.shape[0] * z.shape[1] // MOST_STATES))
    sizes = [effective(np.ascontiguousarray(z[:, :, i])) for i in range(z.shape[2])]
    states = np.ascontiguousarray(z[:, ::step].reshape(-1, z.shape[2]))
    return Mixture.fitted(states, rng, MOST_COMPONENTS, min(sizes))
