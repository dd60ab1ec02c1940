"""What the checks of a run look at, and what they find.

No more than some 20 000 draws are looked at, at equal distances, so that the time is small beside
that of any run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fastkam.run.state import RunState

MOST_DRAWS, FEWEST_DRAWS = 20_000, 4000
MOST_NUMBERS = 50_000   # that are measured, and looked at where there are so few draws
LEAST_ROWS = 32         # of each chain, however many chains there are
BLOCKS = 8              # into which draws are cut to see a trend
NAMED = 3               # coordinates that a text names


@dataclass(frozen=True)
class Finding:
    """Something about a run that its user should know.

    Attributes
    ----------
    kind : str
        "not_finite", "stuck", "constant", "improper", "not_a_logarithm", "rejected", "boundary",
        "tails", "moments", "acceptance", "divergences", "r_hat", "ess", "mcse_sd", "log_density",
        "adaptation" or "short"; "functionals", "drift", "stay", "excursion", "place", "modes",
        "nested_r_hat", "energy", "tree_depth", "swaps", "mixture", "evidence"; or "unvisited",
        which only `Result.verdict` finds with further evaluations.
    text : str
        What was found, and what to do.
    coordinates : tuple of str
        The labels of the coordinates concerned, the worst first; none where it concerns all.
    chains : tuple of int
        The chains concerned; none where it concerns all.
    status : str
        What it makes of the run: "doubtful", or "wrong" where draws of the density hardly ever show
        such a thing. See `fastkam.diagnostics.Verdict`.
    """

    kind: str
    text: str
    coordinates: tuple[str, ...] = ()
    chains: tuple[int, ...] = ()
    status: str = "doubtful"

    def __str__(self) -> str:
        return self.text


class Look:
    """The part of a run that is looked at: draws at equal distances, of at most all chains.

    Attributes
    ----------
    x : ndarray, shape (chains, n, d)
        In the user's coordinates.
    lp, log_ratio : ndarray, shape (chains, n), or None where they were not kept
    labels : list of str
    is_estimate : bool
        Whether the target estimates the density.
    """

    def __init__(self, state: RunState) -> None:
        trace = state.trace
        self.state, self.rows, self.labels = state, trace.rows, state.layout.labels
        self.is_estimate = "u" in state.states[0]  # its noise
        chains, d = state.chains, len(self.labels)
        most = min(MOST_DRAWS, max(FEWEST_DRAWS, MOST_NUMBERS // d))
        step = max(1, min(-(-chains * self.rows // most), self.rows // LEAST_ROWS))
        self.x = state.constrain(trace.x[:, : self.rows : step])
        kept = trace.stat_names is not None
        self.lp = state.lp(step) if kept else None
        self.log_ratio = trace.log_ratio[:, : self.rows : step] if kept else None
        self.evaluations = np.array([int(one["n_evaluations"]) for one in state.states])
        self.rejected = np.array([one["n_rejected"] for one in state.states])

    def few(self, indices: Any) -> str:
        """The labels of coordinates: all of some, the first of many."""
        names = [self.labels[i] for i in indices]
        return listed(names[:NAMED], len(names))

    def named(self, indices: Any) -> tuple[str, ...]:
        return tuple(self.labels[i] for i in indices)


def listed(texts: list[str], total: int) -> str:
    """a, b and 3 more"""
    if total > len(texts):
        return f"{', '.join(texts)} and {total - len(texts)} more"
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def chain_names(chains: Any) -> str:
    """Chain 2; Chains 0 and 3"""
    texts = [str(int(k)) for k in chains]
    return ("Chain " if len(texts) == 1 else "Chains ") + listed(texts[:NAMED], len(texts))


def blocks(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of BLOCKS equal parts of series (chains, n, ...): (chains, BLOCKS, ...)."""
    size = series.shape[1] // BLOCKS
    parts = series[:, -size * BLOCKS :].reshape(len(series), BLOCKS, size, *series.shape[2:])
    return np.asarray(parts.mean(axis=2))
