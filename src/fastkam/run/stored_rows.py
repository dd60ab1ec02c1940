"""Reading a run in a store: its columns, statistics and extras, read when they are indexed."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import unpacked
from fastkam._core.numerics.elementary import exp
from fastkam.run.lazy import StoredArray, number, read_column
from fastkam.run.records import Fields, Records
from fastkam.run.trace import COLUMNS, TYPES, AnyTrace, Stats, Trace
from fastkam.stores import Store
from fastkam.stores.store import Rows

RECORDS = "records"  # the column of extras and derived quantities


class StoredRows(AnyTrace):
    """The part of `StoredTrace` that reads.

    For chain k the rows below ``base[k]`` are in the store, and those up to ``counts[k]`` in
    `window`, whose row 0 is the row ``base[k]``.
    """

    store: Store
    identity: str
    removals: int
    section: str
    window: Trace
    records: Records
    base: NDArray[np.int64]

    @property
    def columns(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """The store's columns of each draw, its records excepted: {name: (shape, type)}."""
        some = COLUMNS if self.stat_names is not None else COLUMNS[:1]
        arrays = {name: getattr(self.window, name) for name in some}
        return {name: (array.shape[2:], np.dtype(bool) if name == "accepted" else array.dtype)
                for name, array in arrays.items() if prod(array.shape[2:])}

    def column(self, name: str, rows: int | None = None) -> StoredArray:
        """A column of all chains, with `rows` rows or, by default, those of the longest chain."""
        array = self.records.block if name == RECORDS else getattr(self.window, name)
        kept = name in ("x", RECORDS) or self.stat_names is not None
        rows = int(self.counts.max(initial=0)) if rows is None else rows
        return StoredArray(partial(self.read, name), len(self.counts), rows if kept else 0,
                           array.shape[2:], array.dtype)

    def read(self, name: str, k: int, rows: Rows) -> NDArray[Any]:
        """Rows of chain k; zeros for rows that it does not have.

        ValueError if other ones have replaced them.
        """
        array = self.records.block if name == RECORDS else getattr(self.window, name)
        if not prod(array.shape[2:]):
            return np.empty((number(rows), *array.shape[2:]), array.dtype)
        count = int(self.counts[k])
        some = rows if isinstance(rows, slice) else rows[rows < count]
        if isinstance(rows, slice):
            some = slice(rows.start, max(rows.start, min(rows.stop, count)), rows.step)
        base = int(self.base[k])
        if base:
            self.check_place()
        found = read_column(self.store, self.section, name, k, some, base, array[k])
        if len(found) == number(rows):
            return found.astype(array.dtype, copy=False)
        whole = np.zeros((number(rows), *found.shape[1:]), array.dtype)
        whole[: len(found)] = found
        return whole

    def check_place(self) -> None:
        """Refuse to read rows that other ones have replaced."""
        self.store.check_identity(self.identity)
        if self.store.removals.get(self.section, 0) != self.removals:
            raise ValueError(f"the draws of this result are not in {str(self.store.path)!r} any "
                             "more: the run that has continued from it has thinned them, or made "
                             "others after a longer warm-up; use its result")

    def __getattr__(self, name: str) -> StoredArray:
        if name in COLUMNS:
            return self.column(name)
        raise AttributeError(name)

    @property
    def draws(self) -> StoredArray:
        """The states, (chains, draws, d)."""
        return self.column("x", self.rows)

    @property
    def stats(self) -> dict[str, StoredArray]:
        """Statistics of each state, {name: (chains, draws)}; {} if they were not recorded."""
        if self.stat_names is None:
            return Stats()
        rows = self.rows
        named: dict[str, StoredArray] = {
            "lp": self.column("logp", rows),
            "acceptance_rate": self.column("log_ratio", rows).mapped(
                lambda some: exp(np.minimum(some, 0.0))),
            "accepted": self.column("accepted", rows).mapped(lambda some: some.astype(bool)),
        }
        for i, name in enumerate(self.stat_names):
            named[name] = self.column("extra", rows).mapped(partial(one_of, i, TYPES.get(name)))
        return Stats(named)

    @property
    def extras(self) -> dict[str, StoredArray]:
        """Extras and derived quantities of each draw, {name: (chains, draws, ...)}."""
        fields = self.records.fields or {}
        rows = self.column(RECORDS, self.rows)
        return {name: rows.mapped(partial(named_of, fields, name)) for name in fields}


def one_of(i: int, dtype: Any, some: NDArray[Any]) -> NDArray[Any]:
    """One of the sampler's statistics, (n,), from an array of all."""
    return some[..., i] if dtype is None else some[..., i].astype(dtype)


def named_of(fields: Fields, name: str, some: NDArray[Any]) -> NDArray[Any]:
    """An extra, (n, ...), from rows of all."""
    return np.asarray(unpacked(some, fields)[name])
