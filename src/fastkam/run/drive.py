"""Carry out a run from its state: here or elsewhere, thinned, until its draws suffice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam.diagnostics import checks, ess_bulk
from fastkam.diagnostics.ends import with_proper
from fastkam.diagnostics.look import Finding, Look
from fastkam.diagnostics.scouting import without_visited
from fastkam.run.faults import after_run
from fastkam.run.longer_warmup import with_longer_warmup
from fastkam.run.loop import Outcome, Run
from fastkam.run.options import RunOptions
from fastkam.run.rules import CURABLE, Budget, Limits, StopRule
from fastkam.run.stored import StoredTrace
from fastkam.run.trace import COLUMNS, AnyTrace, Trace
from fastkam.search.beyond import with_unvisited
from fastkam.search.cut import LOOK, may_have_missed
from fastkam.search.exchanged import with_exchanged
from fastkam.search.implied import disagrees, with_implied
from fastkam.search.raw import with_density_seen

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.state import RunState

DRAWS = 1000  # per chain, if their number is not given
BUDGET = 1_000_000  # evaluations, by default
LONGER = 2  # factor by which steps increase if the draws do not suffice
CURED_BY_STEPS = CURABLE | checks.TOO_SHORT  # findings that further steps may correct
KNOWN = 0.04  # largest standard error of a standard deviation, as a part of it
WORSE = 1.2  # than that of independent draws: with twice the steps, the kept draws are worth more
HOPELESS = checks.ABOUT_DENSITY | {"not_finite"}
FIRST_ROWS = 250  # per chain, from which `thin` is first chosen
ENOUGH = 100  # effective draws of all chains that suffice to choose `thin`
WORTH = 0.25  # effective draws per draw that is kept
MOST_THINNED = 50
MOST_DRAWS = 10**6  # used to choose `thin`
MOST_BYTES = 2**28  # of memory that draws may fill when their number is doubled


def keeping_draws(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Let an exception between two parts of a run end it with the draws of its last part.

    Such an exception is that of a signal handler of the user.
    """
    @wraps(function)
    def kept(*args: Any) -> Outcome:
        options = args[-1]
        try:
            return function(*args)
        except (Exception, KeyboardInterrupt) as error:
            if not options.parts:  # there are no draws yet
                raise
            outcome, interrupted = options.parts[-1], isinstance(error, KeyboardInterrupt)
            state = replace(outcome.state, status="interrupted" if interrupted else "failed")
            outcome.checkpoint.finish(state)
            return replace(outcome, state=state, failure=None if interrupted else error)
    return kept


@keeping_draws
def carry_out_to_its_end(
    state: RunState, target: Target, rows: int, options: RunOptions
) -> Outcome:
    """Continue a run to `rows` draws per chain, and further until they suffice.

    They suffice if the diagnostics find nothing that further steps may correct, if standard
    deviations are known to 4 %, or as well as from independent draws, and if the moments that
    gradients imply, where they are computed, agree with those of the draws. Otherwise the chains
    make as many steps again, and every second draw is kept, as long as the run stays within its
    budget. If the adaptation had not settled, and the number of warm-up steps was not given, a
    longer warm-up comes first. If a rule is to end the run, no draw is left out until it is met, or
    until draws would fill MOST_BYTES of memory: then every second draw is kept. At the end some
    evaluations look for a mode that no chain has visited. A run whose number of draws was given
    (``state.budget`` is 0) makes these and no more.
    """
    if state.budget and options.stop is None:
        options = options.ended_by(rule_of_budget(state))
    going, begun = carry_out_thinned if state.undecided else carry_out, state
    outcome = going(state, target, rows, options)
    while True:
        found: list[Finding] = []
        suffice = not outcome.state.budget
        if not (suffice or options.until_stop):
            found = checks.findings(outcome.state)
            outcome = replace(outcome, found=found)
            suffice = draws_suffice(found, outcome.state)
        if suffice and outcome.state.by_gradients:
            outcome = with_implied(outcome, target, options)
            wrong = disagrees(outcome.state)
            if wrong or any(one.kind == "moments" for one in outcome.found or ()):
                outcome = replace(outcome, found=None)  # they are by the moments implied before
            suffice = not (wrong and outcome.state.budget)
        if not (suffice or options.until_stop) and (
                longer := with_longer_warmup(outcome, min(FIRST_ROWS, rows), found)) is not None:
            outcome = carry_out_thinned(replace(longer, requested=rows), target, rows, options)
            continue
        if suffice or not may_go_on(outcome.state, options):
            outcome = since_visited(begun, outcome, target)
            if (outcome.state.by_gradients and outcome.state.budget
                    and not len(outcome.state.unvisited)):
                outcome = with_unvisited(outcome, target, options)
            if target.surrogate is not None:
                from fastkam.surrogate.left_out import with_left_out

                outcome = with_left_out(outcome, target, options)
            before, outcome = outcome.state, with_density_seen(outcome, target, options)
            if len(outcome.state.unvisited) or outcome.state is not before:
                outcome = replace(outcome, found=None)
            outcome = with_exchanged(outcome, target, options)
            outcome.checkpoint.finish(outcome.state)
            return outcome
        state = replace(outcome.state, requested=rows)
        if options.until_stop and LONGER * size_of(state.trace) <= MOST_BYTES:
            rows *= LONGER
        else:
            state = thinned(state, LONGER * state.thin)
        outcome = carry_out(state, target, rows, options)


def size_of(trace: AnyTrace) -> int:
    """Return the bytes of memory that the draws of a run fill; 0 if they are in a store."""
    if not isinstance(trace, Trace):
        return 0
    return sum(getattr(trace, name).nbytes for name in COLUMNS) + trace.records.block.nbytes


def rule_of_budget(state: RunState) -> StopRule:
    """Return the rule that ends a run within its budget."""
    most = state.budget - (state.reserved or state.chains)
    return Budget(max(1, most), state.budget).after(state.budget_from)


def check_budget(budget: Any, draws: Any, thin: Any) -> None:
    """Refuse a number of evaluations for a run whose number of draws is given."""
    if budget is None:
        return
    for name, value in (("draws", draws), ("thin", thin)):
        if value is not None:
            raise ValueError(f"budget must not be given with {name}, not {budget!r}: "
                             "stop=fk.stop.Evaluations(n) ends any run")


@keeping_draws
def go_on(
    state: RunState, target: Target, more: int | None, options: RunOptions
) -> Outcome:
    """Continue a run by `more` draws of each chain, or to its end.

    A run that had ended begins with its whole budget again, and one that was interrupted with the
    rest of it. A budget that was given limits a run with a stop rule too.
    """
    if options.stop is not None:
        options = options.ended_by(options.stop.after(state.evaluations))
    if more is not None:
        rows = int(state.trace.counts.max()) + more
        begun = replace(state, undecided=0, budget=0, reserved=0)
        outcome = since_visited(begun, carry_out(begun, target, rows, options), target)
        outcome.checkpoint.finish(outcome.state)
        return outcome
    if state.status in ("complete", "stopped"):
        budget = state.budget or (BUDGET if options.until_stop else 0)
        state = replace(state, budget=budget, budget_from=state.evaluations)
    if state.reserved and options.stop is not None:
        options = options.ended_by(options.stop | rule_of_budget(state))
    return carry_out_to_its_end(state, target, state.requested, options)


def since_visited(begun: RunState, outcome: Outcome, target: Target) -> Outcome:
    """Return the outcome of a run without a place that no chain had visited when it began."""
    state = without_visited(begun, outcome.state, target)
    return outcome if state is outcome.state else replace(outcome, state=state, found=None)


def draws_suffice(found: list[Finding], state: RunState) -> bool:
    """Whether further steps would correct nothing: no finding, and no rough standard deviation."""
    kinds = {one.kind for one in found}
    if kinds & HOPELESS:
        return True
    if kinds & (CURED_BY_STEPS - {"mcse_sd"}):
        return False
    if state.status != "complete" or kinds & {"tails", "mcse_sd"} == {"tails"}:
        return True
    return not has_rough_sd(state)


def has_rough_sd(state: RunState) -> bool:
    """Whether a standard deviation is rough, and less so with as many independent draws."""
    look = Look(state)
    which, columns = look.measured
    x = look.x[:, :, which].reshape(-1, len(which))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        kurtosis = (((x - x.mean(axis=0)) / x.std(axis=0)) ** 4).mean(axis=0)
        error = columns["mcse_sd"] / columns["sd"]
        least = np.sqrt((kurtosis - 1) / (4 * len(x)))
    return bool(((error > KNOWN) & (error > WORSE * least)).any())


def may_go_on(state: RunState, options: RunOptions) -> bool:
    """Whether the run may double its steps: within its budget, or until a rule ends it."""
    shield = options.shield
    if state.status != "complete" or shield.waiting or shield.leaving is not None:
        return False
    if options.until_stop and options.stop is not None and options.stop.limits() != Limits():
        return bool(state.budget)  # the rule itself limits the time, or the evaluations
    steps = state.trace.rows * state.thin
    more = (LONGER - 1) * steps / (steps + state.tune) * state.evaluated
    return state.evaluations + more <= state.budget_end


def carry_out(state: RunState, target: Target, rows: int, options: RunOptions) -> Outcome:
    """Continue a run to `rows` draws per chain."""
    if options.on_points:
        from fastkam.points.run import PointRun

        outcome = PointRun(state, target, rows, options.desk).go(options)
    elif options.executor is None:
        outcome = Run(state, target, rows).go(options)
    else:
        from fastkam.run.executors import run_through

        outcome = run_through(options, state, target, rows)
    seen = after_run(lambda: with_proper(outcome.state, target), options.shield)
    if seen is not None and seen is not outcome.state:
        outcome = replace(outcome, state=seen, found=None)
    options.parts[:] = [outcome]
    return outcome


def carry_out_thinned(state: RunState, target: Target, rows: int, options: RunOptions) -> Outcome:
    """Continue a run to `rows` draws per chain, thinned as its first draws suggest.

    The effective sample size of the first 250, 500, ... draws of each chain is the smallest among
    those of the means, variances and log density. Every k-th draw is kept, including the first
    ones, so that one in four of the draws kept is effective. All are kept if what the function
    returns is constant, or a density and not its logarithm: further steps would not help.
    """
    some = state.undecided
    while True:
        state = replace(state, requested=rows, undecided=some)
        outcome = carry_out(state, target, some, options)
        state = outcome.state
        if state.status != "complete":
            return outcome
        effective = least_effective(state)
        if effective < ENOUGH and state.may_tune and not options.until_stop:
            found = checks.findings(state)
            if some < rows:  # chains may yet agree
                found = [one for one in found if one.kind != "r_hat"]
            longer = with_longer_warmup(outcome, min(FIRST_ROWS, rows), found)
            if longer is not None:
                state, some = longer, longer.undecided
                continue
        if effective >= ENOUGH or some == rows:
            break
        some = min(2 * some, rows)
    state = replace(state, undecided=0)
    steps = some * state.chains
    thin = int(np.clip(np.ceil(WORTH * steps / max(effective, 1.0)), 1, most_thinned(state, rows)))
    if thin > 1 and not checks.NO_LOG_DENSITY.isdisjoint(
            one.kind for one in checks.findings(state)):
        thin = 1
    if thin == 1 and some == rows and not isinstance(state.trace, StoredTrace):
        return replace(outcome, state=state)
    return carry_out(thinned(state, thin), target, rows, options)


def most_thinned(state: RunState, rows: int) -> int:
    """The largest `thin` with which `rows` draws per chain stay within the budget, 50 at most."""
    if not state.budget:
        return MOST_THINNED
    # evaluations in a step of all chains
    each = max(1, state.evaluated) / (state.tune + state.trace.rows)
    left = max(0, state.budget_end - state.searched)
    if may_have_missed(state):
        left -= min(LOOK, left // 3)  # for a look for modes after the run
    return int(np.clip((left / each - state.tune) / rows, 1, MOST_THINNED))


def least_effective(state: RunState) -> float:
    """The least effective sample size of means and variances, and of the log density."""
    rows = state.trace.rows
    step = max(1, state.chains * rows // MOST_DRAWS)
    draws = state.in_one_period(state.trace.x[:, :rows:step])
    with np.errstate(all="ignore"):  # draws may be infinite
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
