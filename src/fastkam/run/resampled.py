"""Resampling: from a run of weighted draws to one whose draws have equal weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.weights import systematic
from fastkam.run.state import RunState
from fastkam.run.trace import Trace
from fastkam.samplers.importance import ImportanceWeighted


def evenly(
    state: RunState, log_weights: NDArray[np.float64], rows: int, rng: np.random.Generator
) -> RunState:
    """Resample `rows` draws per chain by the logs of weights (chains, draws)."""
    assert isinstance(state.sampler, ImportanceWeighted)
    if not np.isfinite(log_weights.max(initial=-np.inf)):
        raise ValueError("the weights are all 0: no draw of the surrogate has a density")
    sampler, old = state.sampler.sampler, state.trace
    chosen = systematic(log_weights.ravel(), state.chains * rows, rng)
    k, t = np.unravel_index(chosen, log_weights.shape)
    trace = Trace(state.chains, rows, state.d, sampler.stat_names)
    for name in ("x", "logp", "accepted"):
        array = getattr(trace, name)
        array[:] = getattr(old, name)[k, t].reshape(array.shape)
    trace.log_ratio[:] = np.nan  # the steps were those of chains on the surrogate
    trace.extra[:] = old.extra[k, t, :-1].reshape(trace.extra.shape)
    trace.counts[:] = rows
    records = old.records
    if records.fields is not None:
        trace.records.find(records.fields, records.n_extras)
        trace.records.block[:] = records.block[k, t].reshape(trace.records.block.shape)
        trace.records.filled[:] = rows
    return replace(state, sampler=sampler, requested=rows, trace=trace, controls=None,
                   warmup=Trace(state.chains, 0, state.d, sampler.stat_names))


def spread(state: RunState, rows: int) -> RunState:
    """Keep `rows` evenly spaced draws of each chain, the last among them, in memory."""
    old = state.trace
    kept = old.rows - 1 - np.arange(rows)[::-1] * old.rows // rows
    if not isinstance(old, Trace):
        raise ValueError("draws in a store are not copied: take some, result.draws[:, ::10]")
    return replace(state, requested=rows, trace=old.take(kept))
