"""Checks that the parts of a run from a file fit each other, before anything is restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import (
    BOUNDS,
    MOST_COUNT,
    BadField,
    check_form,
    check_range,
    first,
)
from fastkam._core.engine.state import State, room_for
from fastkam._core.samplers.python_kernel import PythonKernel
from fastkam.run.state import MOST_SNAPSHOTS
from fastkam.run.stored import StoredTrace
from fastkam.samplers.importance import LOG_WEIGHT, ImportanceWeighted
from fastkam.samplers.python_sampler import PythonSampler
from fastkam.samplers.sampler import Composite, Sampler

if TYPE_CHECKING:
    from fastkam.run.state import RunState

FINITE = Field("an array of finite numbers", finite=True)


def check_run(run: RunState) -> None:
    """Refuse a run whose fields do not fit its sampler and schedule; BadField names the field."""
    check_snapshot_steps(run.snapshot_steps, run.tune)
    check_method(run)
    if run.trace.stat_names not in (None, run.sampler.stat_names):
        raise BadField("stat_names", f"must be {list(run.sampler.stat_names)}, those of the "
                                     f"sampler, not {list(run.trace.stat_names or ())}")
    if run.states:
        check_states(run)
    check_counts(run)
    check_rows(run)
    check_controls(run)


def check_snapshot_steps(steps: NDArray[np.int64], tune: int) -> None:
    """Refuse snapshots that do not divide warm-up evenly; the last must be at its end.

    Files of earlier versions may have the last one a step later, by rounding.
    """
    good = len(steps) <= MOST_SNAPSHOTS and (np.diff(steps) > 0).all() and (
        not len(steps) or (steps[0] > 0 and tune <= steps[-1] <= tune + 1))
    if not good:
        raise BadField("snapshot_steps", f"must increase from 1 on to tune, {tune}, not "
                                         f"{np.array2string(steps, threshold=8)}")


def check_method(run: RunState) -> None:
    """Refuse an incompatible sampler and schedule, as `sample` does."""
    try:
        plan = run.schedule.compiled(run.sampler, run.d, run.tune)
        if plan.start > MOST_COUNT:
            raise ValueError(f"start must be at most {MOST_COUNT}, not {plan.start}")
        run.sampler.check_run(run.schedule, run.tune)
        if run.share:
            run.sampler.check_share()
    except Exception as error:
        raise BadField("sampler", f"and schedule do not fit: {error}") from error


def check_states(run: RunState) -> None:
    """Refuse states that do not fit the chains of the run."""
    if len(run.generators) != run.chains:
        raise BadField("generators", f"must be {run.chains} states, not {len(run.generators)}")
    chain = empty_chain(run)
    for k, state in enumerate(run.states):
        try:
            chain.check(state)
        except BadField as error:
            raise error.within(f"chain{k}") from None
        check_learned(chain.kernel, state, f"chain{k}.kernel", "kernel.")
        if run.share and state["t"] != run.states[0]["t"]:
            raise BadField(f"chain{k}.t", f"must be {run.states[0]['t']}, as of the chain 0 with "
                                          f"which it learns, not {state['t']}")


def check_learned(kernel: State, state: dict[str, Any], path: str, within: str) -> None:
    """Refuse what a kernel has learned if it is not finite, since the chain would not move.

    Samplers written in Python declare themselves which of their fields are finite.
    """
    if isinstance(kernel, PythonKernel):
        return
    for name, part in kernel.parts().items():
        check_learned(part, state, f"{path}.{name}", f"{within}{name}.")
    for name, field in kernel.table().items():
        if field.learned and within + name in state:
            check_range(f"{path}.{name}", FINITE, state[within + name], {})


def empty_chain(run: RunState) -> ChainState:
    """A chain with the fields of the run's chains; its memory is bounded by the file's size."""
    x0 = run.x0[0] / run.scales
    size = max(sum(value.nbytes for value in state.values()) for state in run.states)
    try:
        with room_for(size):
            kernel = run.own_sampler.build(x0)
        chain = ChainState(kernel, run.generator(0), x0, n_aux=noise_of(run.states[0]))
    except BadField:
        raise
    except Exception as error:
        raise BadField("sampler", f"cannot be built: {error}") from error
    chain.keep_history(len(run.snapshot_steps))
    return chain


def noise_of(state: dict[str, Any]) -> int:
    """Number of standard normals that an estimate takes, 0 for a known density."""
    if "u" not in state:
        return 0
    if state["u"].ndim != 2 or not state["u"].size:
        raise BadField("chain0.u", f"must have shape (width, n_aux), not {state['u'].shape}")
    return int(state["u"].shape[1])


def check_counts(run: RunState) -> None:
    """Refuse more draws, or states of warm-up, than a chain has made steps for."""
    made = int(run.trace.counts.max())
    if made > run.requested:
        raise BadField("requested", f"must be at least {made}, the draws made, not {run.requested}")
    if run.undecided and (made > run.undecided or run.thin != 1):
        raise BadField("undecided", f"must be 0 or at least {made}, the draws made, with thin 1, "
                                    f"not {run.undecided}")
    for k in range(run.chains):
        t = int(run.states[k]["t"]) if run.states else 0
        steps = max(0, t // run.thin - run.tune // run.thin)
        warm_up = min(t, run.tune) if run.keep_warmup else 0
        for name, trace, most in (("trace", run.trace, steps), ("warmup", run.warmup, warm_up)):
            if trace.counts[k] > most:
                raise BadField(f"{name}.counts", f"must be at most {most} for chain {k}, which has "
                                                 f"made {t} steps, not {trace.counts[k]}")


def check_rows(run: RunState) -> None:
    """Refuse rows that no run makes; of a run with a store those that are not there yet.

    A draw may be infinite if a density without an integral lets the chain go on for ever.
    """
    weighted, fields = LOG_WEIGHT in (run.trace.stat_names or ()), fields_of(run.sampler)
    for part, trace in (("trace", run.trace), ("warmup", run.warmup)):
        rows = trace.window if isinstance(trace, StoredTrace) else trace
        for k, count in enumerate(rows.counts.tolist()):
            x, logp = rows.x[k, :count], rows.logp[k, :count]
            if weighted:
                refuse(f"{part}.x", k, x, np.isfinite(x), "finite")
                refuse(f"{part}.logp", k, logp, logp < np.inf, "a number below inf")
                log_w = rows.extra[k, :count, run.sampler.stat_names.index(LOG_WEIGHT)]
                refuse(f"{part}.extra, {LOG_WEIGHT},", k, log_w, log_w < np.inf,
                       "a number below inf")
            else:
                refuse(f"{part}.x", k, x, ~np.isnan(x), "a number")
                refuse(f"{part}.logp", k, logp, np.isfinite(logp), "finite")
            ratio = rows.log_ratio[k, :count]
            unknown = np.isnan(ratio)
            if part == "trace":  # the first draws may be resampled ones, without steps
                unknown &= ~np.logical_and.accumulate(unknown)
            refuse(f"{part}.log_ratio", k, ratio, ~unknown, "a number")
            for i, name in enumerate(trace.stat_names or ()):
                if name in fields:
                    check_statistic(f"{part}.extra, {name},", k, rows.extra[k, :count, i],
                                    fields[name])
    records = run.trace.records
    short = records.filled < run.trace.counts
    if records.fields and short.any() and run.status in ("complete", "stopped"):
        raise BadField("trace.recorded", f"must be counts, {run.trace.counts}, of a run that is "
                                         f"{run.status}, not {records.filled}")


def fields_of(sampler: Sampler) -> dict[str, Field]:
    """Find the fields of a compiled sampler's statistics, by their names.

    Of the parts of a sampler, only the statistics of the first are recorded.
    """
    if isinstance(sampler, PythonSampler):
        return {}
    found = fields_of(sampler.parts()[0]) if isinstance(sampler, Composite) else {}
    table = sampler.kernel_class().FIELDS if sampler.KERNEL else {}
    return found | {field.stat: field for field in table.values() if field.stat}


def check_statistic(name: str, k: int, values: NDArray[np.float64], field: Field) -> None:
    """Refuse values of a statistic in chain k that are out of the range of its field."""
    if field.dtype == "i8":
        refuse(name, k, values, (values == np.rint(values)) & (np.abs(values) <= MOST_COUNT),
               "an integer")
    if field.learned:
        refuse(name, k, values, np.isfinite(values), "finite")
    for bound, (holds, words) in BOUNDS.items():
        limit = getattr(field, bound)
        if limit is not None and not isinstance(limit, str):  # the name of a size of the kernel
            refuse(name, k, values, holds(values, limit), f"{words} {limit}")


def refuse(name: str, k: int, values: NDArray[Any], good: NDArray[np.bool_], what: str) -> None:
    """Raise BadField unless all values of chain k are good."""
    if not good.all():
        raise BadField(name, f"must be {what} in chain {k}, not {first(values, good)}")


def check_controls(run: RunState) -> None:
    """Refuse controls of other draws than those of the run, or of draws without weights."""
    if run.controls is None:
        return
    if not isinstance(run.sampler, ImportanceWeighted):
        raise BadField("controls", "must be missing: the draws have no weights")
    check_form("controls", run.controls.values, (run.chains, run.trace.rows, None), np.float64)
