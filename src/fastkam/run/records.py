"""Records of each draw besides the draw itself: extras of the density, derived quantities."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import fields_of, packed, unpacked, width
from fastkam._core.density.kept import Kept
from fastkam.errors import SamplingWarning, warn

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam._core.engine.chain import ChainState
    from fastkam.run.trace import Trace

Fields = dict[str, tuple[tuple[int, ...], str]]  # name -> shape and type

alone = threading.Lock()  # chains in several threads may find the fields at once


def renew_lock() -> None:
    """Make a new lock: a process forked while a thread held the old one would never get it."""
    global alone
    alone = threading.Lock()


os.register_at_fork(after_in_child=renew_lock)


class Records:
    """Named numbers and arrays of each draw, all chains in one block.

    Attributes
    ----------
    fields : dict or None
        {name: (shape, type)}; None before the first row, or if there are no fields.
    block : ndarray, shape (chains, rows, width)
        A row of doubles for each draw; empty until `fields` are known.
    filled : ndarray of int64, shape (chains,)
        Number of filled rows of each chain.
    base : ndarray of int64, shape (chains,)
        Number of the block's first row; above 0 if earlier rows are in a store.
    n_extras : int
        Number of the first fields that are extras; the others are derived quantities.
    """

    def __init__(
        self, chains: int, rows: int, fields: Fields | None = None, n_extras: int = 0
    ) -> None:
        self.fields, self.rows, self.n_extras = fields, rows, n_extras
        self.filled, self.base = np.zeros(chains, np.int64), np.zeros(chains, np.int64)
        self.block = np.full((chains, rows, width(fields or {})), np.nan)

    def read(self, rows: int) -> dict[str, NDArray[Any]]:
        """The first rows, {name: (chains, rows, *shape)}."""
        return unpacked(self.block[:, :rows], self.fields) if self.fields else {}

    def find(self, fields: Fields, n_extras: int) -> None:
        """Set the fields; refuse fields that differ from those of earlier rows."""
        with alone:
            if self.fields is None:
                self.block = np.full((len(self.filled), self.rows, width(fields)), np.nan)
                self.fields, self.n_extras = fields, n_extras
        if self.fields != fields:
            raise TypeError(f"the draws of this run have the extras and derived quantities "
                            f"{named(self.fields)}, and the target now returns {named(fields)}")

    def ordered(self, rows: NDArray[np.float64], fields: Fields) -> NDArray[np.float64]:
        """Rows (..., width) in the order of these `fields`, in the order of the own ones.

        They are the same, but a function may return them in another order at some of the points.
        """
        assert self.fields is not None
        if list(fields) == list(self.fields):
            return rows
        ends = np.cumsum([width({name: field}) for name, field in fields.items()])
        parts = dict(zip(fields, np.split(rows, ends[:-1], axis=-1), strict=True))
        return np.concatenate([parts[name] for name in self.fields], axis=-1)

    def next(self, k: int) -> int:
        """Row of the block after those of chain k."""
        start = int(self.filled[k] - self.base[k])
        if start < 0:  # the rows are in a store, without extras
            raise TypeError("the function must return extras at every point with a density, or at "
                            f"none, and the first draws of chain {k}, which are in a store, have "
                            "none")
        return start

    def put(self, k: int, rows: NDArray[np.float64]) -> None:
        """Append rows to those of chain k."""
        start = self.next(k)
        self.block[k, start : start + len(rows)] = rows
        self.filled[k] += len(rows)

    # ---- as a part of a trace ----

    def grown(self, rows: int) -> Records:
        """The same records with room for `rows` rows per chain."""
        new = Records(len(self.filled), rows, self.fields, self.n_extras)
        n = min(rows, self.block.shape[1])
        new.block[:, :n] = self.block[:, :n]
        new.filled = self.filled.copy()
        return new

    def select(self, chains: list[int], start: int, stop: int) -> Records:
        """A copy of these chains' rows from `start` to `stop`."""
        new = Records(len(chains), stop - start, self.fields, self.n_extras)
        new.block = self.block[chains, start:stop]
        new.filled = np.clip(self.filled[chains], start, stop) - start
        return new

    def take(self, rows: NDArray[np.int64]) -> Records:
        """A copy of those of these rows of every chain that are filled."""
        new = Records(len(self.filled), len(rows), self.fields, self.n_extras)
        new.block = self.block[:, rows] if self.block.shape[1] else new.block
        new.filled = (rows < self.filled[:, None]).sum(axis=1)
        return new

    def merge(self, chains: list[int], start: int, part: Records) -> None:
        """Write the rows of `part`, records of these chains, from the row `start` on."""
        if part.fields is None:
            return
        self.find(part.fields, part.n_extras)
        n = int(part.filled.max(initial=0))
        self.block[chains, start : start + n] = self.ordered(part.block[:, :n], part.fields)
        self.filled[chains] = start + part.filled


def named(fields: Fields) -> str:
    """Describe fields, for messages."""
    return ", ".join(f"{name} {shape}" for name, (shape, _) in fields.items()) or "none"


def record(
    trace: Trace, chains: list[tuple[int, ChainState]], target: Target, run: Target, *,
    ending: bool = False,
) -> None:
    """Fill the records of the draws that chains have made since the last call.

    `target` is the target that the chains call, and `run` that of the run, whose derived quantities
    are evaluated here. Rows that are missing, because an evaluation failed or was interrupted, are
    computed again. If the run is `ending` by an error or an interrupt, the density is not evaluated
    again to find out whether it returns extras: the rows are computed when the run is resumed.
    """
    records = trace.records
    if not (target.returns_extras or run.derived or records.fields):
        return  # no chain has noted any extras
    notes = {k: chain.take_notes() for k, chain in chains}
    errors = [error for _, chain in chains if (error := chain.take_note_error()) is not None]
    if records.n_extras:  # found by another chain
        target.expect_extras()
    for k, _ in chains:
        start, stop = int(records.filled[k]), int(trace.counts[k])
        if start == stop:
            continue
        # since the run was resumed, all points may have been without a density, and extras
        unknown = records.fields is None and not (target.returns_extras or target.is_estimate)
        if unknown and ending:
            continue
        if unknown and target.extras_at(trace.x[k, start].copy()) is not None:
            target.expect_extras()
        rows, fields = np.empty((stop - start, 0)), {}
        n_extras = 0
        if target.returns_extras:
            rows = noted(trace, k, notes[k], target, start, stop, errors)
            fields = target.extras_fields() or {}
            n_extras = len(fields)
        if run.derived is not None:
            more, own = derived(run, run.points_of(trace.x[k, start:stop]))
            if both := set(fields) & set(own):
                raise TypeError(f"derived and the extras of the density both have {sorted(both)}")
            fields = fields | own
            rows = np.concatenate([rows, more], axis=1)
        records.find(fields, n_extras)
        records.put(k, records.ordered(rows, fields))


def fill(trace: Trace, target: Target) -> None:
    """Compute the extras of all draws, which had none before the run was resumed."""
    target.expect_extras()
    for k, stop in enumerate(trace.counts.tolist()):
        if stop:
            rows, fields = noted(trace, k, {}, target, 0, stop, []), target.extras_fields() or {}
            trace.records.find(fields, len(fields))
            trace.records.put(k, trace.records.ordered(rows, fields))


def check_complete(trace: Trace) -> None:
    """Refuse a run in which only some chains have extras."""
    short = trace.records.filled < trace.counts
    if trace.records.fields and short.any():
        raise TypeError("the function must return extras at every point with a density, or at "
                        f"none, and returned none to chain {int(short.argmax())}")


def noted(
    trace: Trace, k: int, notes: dict[int, Any], target: Target, start: int, stop: int,
    errors: list[BaseException],
) -> NDArray[np.float64]:
    """The extras of chain k's rows from `start` to `stop`."""
    if errors:
        raise errors[0]
    rows: list[Any] = []
    for i in range(start, stop):
        row = notes.get(i)
        if row is None and not target.is_estimate:
            row = target.extras_at(trace.x[k, i].copy())
        if row is None and target.is_estimate:
            warn(SamplingWarning(f"the extras of draw {i} of chain {k} are lost: they were made "
                                 "with noise that is not kept, and the run was interrupted"))
            row = np.full(width(target.extras_fields() or {}), np.nan)
        if row is None:
            raise TypeError("the function must return extras at every point with a density, or at "
                            f"none, and returned none at draw {i} of chain {k}")
        rows.append(row)
    return np.array(rows)


def derived(run: Target, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], Fields]:
    """Derived quantities at x (n, n_x), as rows, and their fields."""
    assert run.derived is not None
    f, n = run.derived, len(x)
    if f.vectorized:
        extras = checked(f(x))
        fields = fields_of(extras, (n,))
        return packed(extras, fields, (n,)), fields
    kept = Kept()
    rows = np.array([kept.row_of(checked(f(point))) for point in x])
    assert kept.fields is not None
    return rows, kept.fields


def check_derived(
    run: Target, z: NDArray[np.float64], names: Collection[str]
) -> Fields | None:
    """Call a function of derived quantities at z (1, d); raise its error, or one for a bad result.

    A numerical error is ignored, since draws may be elsewhere: None is returned in place of the
    fields. The function must not return the `names` of parameters.
    """
    if run.derived is None:
        return {}
    try:
        _, fields = derived(run, run.points_of(z))
    except (ArithmeticError, ValueError):
        return None
    if both := sorted(set(fields) & set(names)):
        raise ValueError(f"derived must not return {both}, which are parameters")
    return fields


def checked(extras: Any) -> dict[str, Any]:
    """The dict that a function of derived quantities has returned; an error for anything else."""
    if not isinstance(extras, dict):
        raise TypeError("derived must return a dict of numbers and arrays by names, not "
                        f"{extras!r:.200}")
    return dict(extras)
