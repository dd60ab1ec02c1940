"""Draws of a fixed surrogate s, weighted by pi / s, with one call for all equal draws in a row.

The chains on s are made by the sampler `jumps`, with the mixture that was fitted to s, around a
random walk. They are thinned until the draws are nearly independent: the time of steps on s is
negligible beside that of a call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import width
from fastkam.diagnostics.controls import Controls, calibrated
from fastkam.run.drive import carry_out, least_effective
from fastkam.run.options import RunOptions
from fastkam.run.records import derived
from fastkam.run.state import RunState, snapshot_steps
from fastkam.run.trace import Trace
from fastkam.samplers.importance import ImportanceWeighted
from fastkam.samplers.metropolis import RandomWalk
from fastkam.schedules import as_schedule
from fastkam.search.choice import LEARNED_TUNE, around_mixture
from fastkam.search.found import Search
from fastkam.search.watch import Spent
from fastkam.surrogate.calls import HAS_DENSITY, Calls
from fastkam.surrogate.learning import Learned

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.shapes import Layout

Array = NDArray[np.float64]

PILOT = 500  # draws per chain, which show how far apart independent ones are
APART = 2.0  # times that distance
MOST_THIN = 500
BLOCK = 64  # points evaluated at once


def surrogate_run(
    learned: Learned, chains: int, seed: np.random.SeedSequence, bit_generator: str, layout: Layout,
    rng: np.random.Generator,
) -> RunState:
    """Return the state of chains on s after warm-up, thinned to nearly independent draws."""
    window = learned.window
    states = window.x[-1][rng.permutation(window.x.shape[1])]
    points = states[np.arange(chains) % len(states)]
    found = Search(points, np.ones(points.shape[1]), np.zeros(0, np.intp), 0,
                   mixture=learned.mixture, components=learned.mixture.n,
                   independent_acceptance=window.acceptance)
    sampler = around_mixture(found, "", gradient=False).sampler
    d = points.shape[1]
    return RunState(
        sampler=sampler, schedule=as_schedule("finite"), x0=points, tune=LEARNED_TUNE, thin=1,
        keep_warmup=False, share=False, requested=PILOT, seed=seed, bit_generator=bit_generator,
        layout=layout, trace=Trace(chains, 0, d, sampler.stat_names),
        warmup=Trace(chains, 0, d, sampler.stat_names),
        snapshot_steps=snapshot_steps(sampler.build(points[0]), LEARNED_TUNE), scales=np.ones(d))


def drawn(state: RunState, learned: Learned, rows: int) -> RunState:
    """Return the state of a run on s with `rows` draws for each chain."""
    effective = max(1.0, least_effective(carried_on(state, learned, PILOT)))
    thin = int(np.clip(np.ceil(APART * PILOT * state.chains / effective), 1, MOST_THIN))
    return carried_on(replace(state, thin=thin, requested=rows), learned, rows)


def continued(state: RunState, learned: Learned, rows: int) -> Array:
    """Return the next `rows` draws (chains, rows, d) of s after those of a run."""
    total = state.trace.rows + rows
    more = carried_on(replace(state, requested=total), learned, total)
    return np.ascontiguousarray(more.trace.x[:, -rows:])


def carried_on(state: RunState, learned: Learned, rows: int) -> RunState:
    """Return the state of a run on s once each chain has this number of draws."""
    options = RunOptions(progress=False, diagnose=False, threads=1)
    outcome = carry_out(state, cast("Target", learned.density), rows, options)
    if outcome.failure is not None:
        raise outcome.failure
    if outcome.state.status == "interrupted":
        raise KeyboardInterrupt
    return outcome.state


class Weighting:
    """The log densities at draws of s, (chains, rows), evaluated row by row.

    Attributes
    ----------
    logp : ndarray, shape (chains, n)
        Log densities of the rows so far.
    kinds : ndarray, shape (chains, n)
        The kinds of the draws: see `Calls.kinds`. Of equal draws in a row only the first is marked.
    made : ndarray, shape (chains,)
        Number of calls of each chain.
    """

    def __init__(self, x: Array, calls: Calls) -> None:
        self.x, self.calls = x, calls
        chains, rows = x.shape[:2]
        self.new = np.ones((chains, rows), bool)
        self.new[:, 1:] = (x[:, 1:] != x[:, :-1]).any(axis=2)
        self.logp: Array = np.empty((chains, 0))
        self.kinds = np.empty((chains, 0), np.int8)
        self.extras: dict[tuple[int, int], Array] = {}  # by chain and row

    @property
    def made(self) -> NDArray[np.intp]:
        return np.asarray(self.new[:, : self.logp.shape[1]].sum(axis=1))

    def until(self, rows: int) -> None:
        """Call the density at the draws up to row `rows`, once for equal draws in a row.

        If the budget ends first, raise Spent after the last row that it allows.
        """
        at = max(1, BLOCK // len(self.x))
        while self.logp.shape[1] < rows:
            n = self.logp.shape[1]
            part = slice(n, min(n + at, rows))
            while self.new[:, part].sum() > self.calls.room and part.stop > n:
                part = slice(n, part.stop - 1)
            if part.stop == n:
                raise Spent
            self.add(part)
            self.calls.evaluator.watch.drawn = part.stop

    def add(self, part: slice) -> None:
        """Call the density at the draws of these rows."""
        new = self.new[:, part]
        values: Array = np.full(new.shape, np.nan)
        kinds = np.full(new.shape, HAS_DENSITY, np.int8)
        points = self.x[:, part][new]
        values[new] = self.calls.at_draws(points)
        kinds[new] = self.calls.kinds(points, values[new])
        for t in range(values.shape[1]):
            before = values[:, t - 1] if t else self.logp[:, -1:].ravel()
            values[:, t] = np.where(new[:, t], values[:, t], before if before.size else np.nan)
        self.note(part.start, new & np.isfinite(values))
        self.logp = np.concatenate([self.logp, values], axis=1)
        self.kinds = np.concatenate([self.kinds, kinds], axis=1)

    def note(self, start: int, new: NDArray[np.bool_]) -> None:
        """Note the extras of draws, which the target has stored in its calls."""
        target = self.calls.evaluator.target
        if not target.returns_extras:
            return
        self.calls.evaluator.spread = None  # workers of a search do not return them
        for k, t in np.argwhere(new).tolist():
            row = target.extras_at(self.x[k, start + t].copy())
            if row is None:
                raise TypeError("the function must return extras at every point with a density, or "
                                f"at none, and returned none at draw {start + t} of chain {k}")
            self.extras[k, start + t] = row

    def rejected(self, k: int, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the number of draws of chain k without a density, by kind, and the first of them.

        They replace those of `state`, which are of the surrogate.
        """
        counts = np.zeros_like(state["n_rejected"])
        offending = np.full_like(state["offending"], np.nan)
        for kind, first in enumerate(offending):
            rows = np.flatnonzero(self.kinds[k] == kind)
            counts[kind] = len(rows)
            first[: len(rows)] = self.x[k, rows[: len(first)]]
        return {"n_rejected": counts, "offending": offending}

    def record(self, trace: Trace) -> None:
        """Record extras and derived quantities of the draws.

        At a draw whose density and weight are 0 they are NaN, False, or a meaningless integer.
        """
        target = self.calls.evaluator.target
        chains, n = self.logp.shape
        fields = (target.extras_fields() or {}) if self.extras else {}
        rows = np.full((chains, n, width(fields)), np.nan)
        for (k, t), row in self.extras.items():
            rows[k, t] = row
        n_extras = len(fields)
        if target.derived is not None:
            some = self.new[:, :n] & np.isfinite(self.logp)
            if not some.any():
                return
            more, own = derived(target, target.points_of(np.ascontiguousarray(self.x[:, :n][some])))
            if both := set(fields) & set(own):
                raise TypeError(f"derived and the extras of the density both have {sorted(both)}")
            wide = np.full((chains, n, more.shape[1]), np.nan)
            wide[some] = more
            fields, rows = fields | own, np.concatenate([rows, wide], axis=2)
        if not fields:
            return
        for t in range(1, n):
            rows[:, t] = np.where(self.new[:, t, None], rows[:, t], rows[:, t - 1])
        trace.records.find(fields, n_extras)
        for k in range(chains):
            trace.records.put(k, rows[k])


def no_draws(
    points: Array, chains: int, seed: np.random.SeedSequence, bit_generator: str, layout: Layout
) -> RunState:
    """Return the state of a run that has no draws yet."""
    d = points.shape[1]
    sampler = ImportanceWeighted(sampler=RandomWalk())
    x0 = points[np.arange(chains) % len(points)]
    return RunState(
        sampler=sampler, schedule=as_schedule("finite"), x0=x0, tune=0, thin=1,
        keep_warmup=False, share=False, requested=0, seed=seed, bit_generator=bit_generator,
        layout=layout, trace=Trace(chains, 0, d, sampler.stat_names),
        warmup=Trace(chains, 0, d, sampler.stat_names),
        snapshot_steps=np.zeros(0, np.int64), scales=np.ones(d))


def with_weights(
    state: RunState, log_s: Array, weighting: Weighting, controls: Controls | None = None
) -> RunState:
    """Return the state of weighted draws, from log s (chains, n) and log pi in `weighting`.

    With controls the weights are calibrated: see `fastkam.diagnostics.controls`.
    """
    logp = weighting.logp
    found = None if controls is None else calibrated(controls)
    log_f, controls = (0.0, None) if found is None else found
    chains, n = logp.shape
    d, old = state.d, state.trace
    x = np.ascontiguousarray(old.x[:, :n])
    sampler = ImportanceWeighted(sampler=state.sampler)
    trace = Trace(chains, n, d, sampler.stat_names)
    trace.x[:], trace.logp[:] = x, logp
    trace.log_ratio[:], trace.accepted[:] = old.log_ratio[:, :n], old.accepted[:, :n]
    trace.extra[:, :, :-1] = old.extra[:, :n]
    trace.extra[:, :, -1] = logp - log_s + log_f
    trace.counts[:] = n
    states = [one | weighting.rejected(k, one)
              | {"n_evaluations": np.array(int(made)).astype(one["n_evaluations"].dtype)}
              for k, (one, made) in enumerate(zip(state.states, weighting.made, strict=True))]
    return replace(
        state, sampler=sampler, trace=trace, states=states, requested=n, controls=controls,
        warmup=Trace(chains, 0, d, sampler.stat_names))

