"""Searches that the limit of a run has cut short."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastkam.run.state import RunState

# how the line of a search begins that ended while it looked for modes, and of a look after the run
CUT = "ended early, and may have missed modes"
LOOKED = "looked for modes that no chain has visited"
LOOK = 10_000  # evaluations of such a look
WHOLE = 0.9  # share of them that make it one


def looked(made: int) -> str:
    """Return the line of such a look, after this number of evaluations."""
    return f"{LOOKED}, with {made} evaluations"


def may_have_missed(state: RunState) -> bool:
    """Whether the search was cut short while it looked for modes, and nothing has looked since."""
    return (state.by_gradients and any(line.startswith(CUT) for line in state.search)
            and not any(line.startswith(LOOKED) for line in state.search))
