"""A longer warm-up for a run whose adaptation had not settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fastkam._core.engine.fault import Fault
from fastkam.diagnostics import checks
from fastkam.diagnostics.adaptation import unsettled
from fastkam.run.state import snapshot_steps

if TYPE_CHECKING:
    from fastkam.diagnostics.look import Finding
    from fastkam.run.loop import Outcome
    from fastkam.run.state import RunState

LONGER_TUNE = 4  # factor by which warm-up increases
LEARNED = "adaptation."  # how the names of learned quantities begin
SHARE = 0.5  # of the evaluations that are left, which it may take


def with_longer_warmup(
    outcome: Outcome, first_rows: int, found: Sequence[Finding]
) -> RunState | None:
    """The run from its present points on, with a longer warm-up; None if it does not need one.

    More draws would all be made with what had been learned by then. The chains use other random
    numbers than before, and the draws so far are dropped; their evaluations count as those of a
    search. It needs one if something that is learned was still changing, or if chains that have
    learned a shape do not agree at all, by the findings on the run; and not if the density has no
    integral, on which chains go ever further.

    Parameters
    ----------
    outcome : Outcome
    first_rows : int
        The number of draws of each chain after which `thin` is chosen.
    found : list of Finding
    """
    state = outcome.state
    tune = LONGER_TUNE * state.tune
    hopeless = any(one.kind in checks.ABOUT_DENSITY for one in found)
    if not state.may_tune or state.status != "complete" or hopeless:
        return None
    changing = bool(unsettled(state))
    learns = any(name.startswith(LEARNED) and values.ndim > 1
                 for name, values in state.states[0].items())
    apart = any(one.kind == "r_hat" and one.status == "wrong" for one in found)
    if not (changing or (learns and apart)):
        return None
    each = state.evaluated / (state.tune + state.trace.rows * state.thin)
    if tune * each > SHARE * (state.budget_end - state.evaluations):
        return None
    points = np.array([one["x"] for one in state.states]) * state.scales
    seed = np.random.SeedSequence(
        state.seed.entropy, spawn_key=state.seed.spawn_key, pool_size=state.seed.pool_size,
        n_children_spawned=state.seed.n_children_spawned + state.chains)
    try:
        kernel = state.sampler.build(points[0])
    except (Fault, ValueError):
        return None
    return replace(
        state, tune=tune, thin=1, x0=points, seed=seed, states=[], generators=[],
        searched=state.evaluations + state.chains,  # these at the starts, which are not counted
        snapshot_steps=snapshot_steps(kernel, tune),
        undecided=first_rows, status="new",
        search=[*state.search, f"warm-up of {tune} steps instead of {state.tune}, since "
                f"{'the adaptation had not settled' if changing else 'the chains do not agree'}, "
                f"after {state.evaluations} evaluations"],
        trace=state.trace.emptied(), warmup=state.warmup.emptied())
