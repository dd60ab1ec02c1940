"""From the state of a run to its outcome: here or through an executor, and how much to thin it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fastkam.diagnostics import ess_bulk
from fastkam.run.loop import Outcome, Run
from fastkam.run.options import RunOptions
from fastkam.run.stored import StoredTrace

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.state import RunState

FIRST_ROWS = 250  # a chain, after which it is first asked how much they are worth
ENOUGH = 100  # effective draws, over all chains, to say so
WORTH = 0.25  # effective draws in each draw that is kept
MOST_THINNED = 50
MOST_DRAWS = 10**6  # that are looked at to find it
LONGER = 4  # times as many steps, where the draws have not been everywhere


def carry_out(state: RunState, target: Target, rows: int, options: RunOptions) -> Outcome:
    """Continue a run to `rows` draws a chain."""
    if options.on_points:
        from fastkam.points.run import PointRun

        return PointRun(state, target, rows, options.desk).go(options)
    if options.executor is None:
        return Run(state, target, rows).go(options)
    from fastkam.run.executors import run_through

    return run_through(options, state, target, rows)


def carry_out_thinned(state: RunState, target: Target, rows: int, options: RunOptions) -> Outcome:
    """The same, thinned by as much as the first draws show to be good.

    The first 250 draws a chain, or twice as many and so on, are worth some effective draws, by the
    mean, variance or log density that is known worst. Every k-th is kept, of those made already
    too, so that one in four of the draws kept is effective.
    """
    some = state.undecided or min(FIRST_ROWS, rows)
    while True:
        state = replace(state, requested=rows, undecided=some)
        outcome = carry_out(state, target, some, options)
        state = outcome.state
        if state.status != "complete":
            return outcome
        effective = least_effective(state)
        if effective >= ENOUGH or some == rows:
            break
        some = min(2 * some, rows)
    state = replace(state, undecided=0)
    steps = some * state.chains
    thin = int(np.clip(np.ceil(WORTH * steps / max(effective, 1.0)), 1, MOST_THINNED))
    if thin == 1 and some == rows and not isinstance(state.trace, StoredTrace):
        return replace(outcome, state=state)
    return carry_out(thinned(state, thin), target, rows, options)


def carry_out_longer(state: RunState, target: Target, rows: int, options: RunOptions) -> Outcome:
    """Continue a run of `rows` draws a chain to as many, of which each is four times as far apart.

    That many steps halve the errors; every fourth draw that was made already is kept.
    """
    state = replace(state, requested=rows)
    return carry_out(thinned(state, LONGER * state.thin), target, rows, options)


def go_on(
    state: RunState, target: Target, more: int | None, options: RunOptions
) -> tuple[Outcome, int]:
    """Continue a run by `more` draws a chain, or to those that it was to have; and their number."""
    if more is None and state.undecided:
        rows = state.requested
        return carry_out_thinned(state, target, rows, options), rows
    rows = state.requested if more is None else int(state.trace.counts.max()) + more
    return carry_out(replace(state, undecided=0), target, rows, options), rows


def least_effective(state: RunState) -> float:
    """The least effective sample size of means and variances, and of the log density."""
    rows = state.trace.rows
    step = max(1, state.chains * rows // MOST_DRAWS)
    draws = state.in_one_period(state.trace.x[:, :rows:step])
    columns = [draws, (draws - draws.mean(axis=(0, 1))) ** 2]
    if state.trace.stat_names is not None:
        columns.append(state.lp(step)[:, :, None])
    sizes = ess_bulk(np.concatenate(columns, axis=2))
    return float(np.nanmin(sizes, initial=np.inf)) if np.isfinite(sizes).any() else 0.0


def thinned(state: RunState, thin: int) -> RunState:
    """A run as if every `thin`-th step had been kept, a multiple of those that were."""
    n = int(state.trace.counts.min())
    steps = (state.tune // state.thin + 1 + np.arange(n)) * state.thin
    return replace(state, thin=thin, trace=state.trace.take(np.flatnonzero(steps % thin == 0)))
