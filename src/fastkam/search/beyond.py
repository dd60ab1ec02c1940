"""A check after a run: whether the density has a mode that no chain has visited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.diagnostics.scouting import place_beyond
from fastkam.run.faults import after_run
from fastkam.run.rules import Limits
from fastkam.run.streams import Stream, generator_of
from fastkam.search.cut import LOOK, WHOLE, looked, may_have_missed

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions

SHARE, MOST = 0.05, 1000  # of the evaluations so far; evaluations
LEAST = 100


def with_unvisited(outcome: Outcome, target: Target, options: RunOptions) -> Outcome:
    """Add places that no chain has visited to the outcome of a run, as far as a look finds any.

    There is no look if `stop` limits evaluations or time, or if the density is estimated, has a
    surrogate or is evaluated by workers: its evaluations follow one another. It makes no more of
    them than a budget leaves. After a search that was cut short it is longer, and a line of the
    search. Ctrl-C ends it, and not the run.
    """
    state = outcome.state
    limits = Limits() if options.stop is None else options.stop.limits()
    limited = options.until_stop and limits != Limits()
    cut = may_have_missed(state)
    most = int(min(LOOK if cut else min(MOST, SHARE * state.evaluations),
                   limits.evaluations - state.evaluations))
    if (state.status != "complete" or limited or target.is_estimate or most < LEAST
            or target.surrogate is not None or options.executor is not None or options.on_points
            or state.trace.rows < LEAST_DRAWS):
        return outcome
    rng = generator_of(state.seed, Stream.BEYOND)
    found = after_run(lambda: place_beyond(state, target, most, rng), options.shield)
    if found is None:
        return outcome
    place, made = found
    state = replace(state, unvisited=place, searched=state.searched + made)
    if cut and (len(place) or made >= WHOLE * LOOK):
        state = replace(state, search=[*state.search, looked(made)])
        outcome = replace(outcome, found=None)  # it says that some may be missing
    return replace(outcome, state=state)
