"""The part of a run that is checked, and the findings of the checks.

At most some 20 000 draws are checked, equally spaced, so that the time is small beside that of the
run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure

if TYPE_CHECKING:
    from fastkam.run.state import RunState

MOST_DRAWS, FEWEST_DRAWS = 20_000, 4000
MOST_NUMBERS = 50_000   # that are measured; with many coordinates also limits the draws checked
LEAST_ROWS = 32         # of each chain, however many chains there are
BLOCKS = 8              # into which draws are cut to see a trend
NAMED = 3               # coordinates that a text names
EXCHANGED = "the density stays the same if one exchanges"   # a line of a search begins so


@dataclass(frozen=True)
class Finding:
    """Something about a run that its user should know.

    Attributes
    ----------
    kind : str
        "not_finite", "stuck", "constant", "improper", "not_a_logarithm", "rejected", "boundary",
        "bound", "ends", "digits", "tails", "moments", "acceptance", "divergences", "r_hat", "ess",
        "mcse_sd", "log_density", "adaptation", "gradient", "search" or "short"; "functionals",
        "drift", "stay", "excursion", "place", "modes", "labels", "nested_r_hat", "energy",
        "tree_depth", "swaps", "mixture", "evidence"; or "unvisited", which further evaluations find
        (see `Result.verdict`).
    text : str
        What was found, and what to do.
    coordinates : tuple of str
        The labels of the coordinates concerned, the worst first; empty if it concerns all.
    chains : tuple of int
        The chains concerned; empty if it concerns all.
    status : str
        The verdict on the run that follows: "doubtful", or "wrong" if draws of the density hardly
        ever have such a finding; "ok" if it concerns the density and not the draws. See
        `fastkam.diagnostics.Verdict`.
    point : tuple of float
        The place that no chain has visited, with all coordinates, in their order in the draws;
        empty for other findings. A run can start there: ``fastkam.sample(..., x0=finding.point)``.
    """

    kind: str
    text: str
    coordinates: tuple[str, ...] = ()
    chains: tuple[int, ...] = ()
    status: str = "doubtful"
    point: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.text


class Look:
    """The part of a run that is checked: equally spaced draws.

    Attributes
    ----------
    x : ndarray, shape (chains, n, d)
        In the user's coordinates.
    lp, log_ratio : ndarray, shape (chains, n), or None if they were not recorded
    labels : list of str
    is_estimate : bool
        Whether the target estimates the density.
    """

    def __init__(self, state: RunState) -> None:
        trace = state.trace
        self.state, self.rows, self.labels = state, trace.rows, state.layout.labels
        self.is_estimate = "u" in state.states[0]  # its noise
        step = spacing(state)
        self.x = state.constrain(trace.x[:, : self.rows : step])
        kept = trace.stat_names is not None
        self.lp = state.lp(step) if kept else None
        self.log_ratio = trace.log_ratio[:, : self.rows : step] if kept else None
        self.evaluations = np.array([int(one["n_evaluations"]) for one in state.states])
        self.rejected = np.array([one["n_rejected"] for one in state.states])

    @cached_property
    def measured(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
        """(the coordinates that are measured, the columns of a summary of them)."""
        which = screened(self)
        x = self.x if len(which) == self.x.shape[2] else self.x[:, :, which]
        return which, dict(zip(COLUMNS, measure(x), strict=True))

    @cached_property
    def circles(self) -> list[tuple[int, float, float]]:
        """(coordinate, low, high) of the user's coordinates that are periodic."""
        return [] if self.state.coordinates is None else self.state.coordinates.circles

    def few(self, indices: Any) -> str:
        """Return the labels of coordinates as text, abridged if there are many."""
        names = [self.labels[i] for i in indices]
        return listed(names[:NAMED], len(names))

    def named(self, indices: Any) -> tuple[str, ...]:
        return tuple(self.labels[i] for i in indices)


def spacing(state: RunState) -> int:
    """Return k if every k-th draw of a run is checked."""
    rows = state.trace.rows
    most = min(MOST_DRAWS, max(FEWEST_DRAWS, MOST_NUMBERS // len(state.layout.labels)))
    return max(1, min(-(-state.chains * rows // most), rows // LEAST_ROWS))


def listed(texts: list[str], total: int) -> str:
    """Return texts as one: "a, b and 3 more"."""
    if total > len(texts):
        return f"{', '.join(texts)} and {total - len(texts)} more"
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def chain_names(chains: Any) -> str:
    """Return the names of chains: "Chain 2", "Chains 0 and 3"."""
    texts = [str(int(k)) for k in chains]
    return ("Chain " if len(texts) == 1 else "Chains ") + listed(texts[:NAMED], len(texts))


def blocks(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of BLOCKS equal parts of series (chains, n, ...): (chains, BLOCKS, ...)."""
    size = series.shape[1] // BLOCKS
    parts = series[:, -size * BLOCKS :].reshape(len(series), BLOCKS, size, *series.shape[2:])
    return np.asarray(parts.mean(axis=2))


def screened(look: Look) -> NDArray[np.int64]:
    """The coordinates to be measured: of many, those whose block means vary most."""
    chains, n, d = look.x.shape
    most = max(1, MOST_NUMBERS // (chains * n))
    if d <= most:
        return np.arange(d)
    means = blocks(look.x).reshape(-1, d)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = means.var(axis=0) / look.x.var(axis=(0, 1))
    return np.sort(np.argsort(-np.nan_to_num(spread))[:most])
