"""Draws in a store: the latest rows are in memory, all earlier ones in files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import width
from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import MOST_COUNT, BadField, check_form, check_range
from fastkam.run.lazy import BLOCK, number
from fastkam.run.records import Fields, Records, alone
from fastkam.run.stored_rows import RECORDS, StoredRows
from fastkam.run.trace import COLUMNS, Trace
from fastkam.stores import Store
from fastkam.stores.store import Rows

WINDOW_BYTES = 2**23  # for the rows of all chains in memory, which fit into the cache
CHAIN_BYTES = 2**16  # at least per chain, since every write has a fixed cost
BLOCKED_BYTES = 2**26  # if the store writes larger blocks as a whole
FEWEST_ROWS = 16  # per chain in memory
BLOCK_ROWS, BLOCK_BYTES = 2**18, 2**23  # limits of a chunk that is written in pieces
EVERY_SECONDS = 1.0  # between two writes, unless the window is half full
SHARE = 20  # the next write waits this many times the duration of the last
WARMUP, DRAWS, UNDECIDED, THINNED = "warmup", "draws", "undecided", "thinned"  # sections
OF_DRAWS, OF_WARMUP = (UNDECIDED, DRAWS, THINNED), (WARMUP, "longer")
STORED = Field("rows in the store", ("chains",), "i8", least=0, most=MOST_COUNT)


class StoredTrace(StoredRows):
    """Draws and statistics of every chain; a store has all except the latest rows.

    For chain k the rows below ``base[k]`` are in the store, and those up to ``counts[k]`` in
    `window`, where the engine records. x, logp, log_ratio, accepted and extra are those of `Trace`,
    each a `StoredArray`.

    Attributes
    ----------
    store : Store
    identity : str
        Identity of the run's store, since another store may have replaced it.
    section : str
        Section of the store.
    removals : int
        How often that section had been removed when this trace was made.
    base, counts : ndarray of int64, shape (chains,)
    window : Trace
        Its row 0 is the row ``base[k]``.
    records : Records
        Extras and derived quantities of the rows in the window.
    capacity : int
        Number of rows that a chain may fill.
    revision : int
        Number of the store's state that has these rows: 1, 2, ...
    """

    def __init__(self, store: Store, section: str, chains: int, d: int,
                 stat_names: Sequence[str] | None = ()) -> None:
        self.store, self.section, self.d = store, section, d
        self.identity, self.removals = store.identity(), store.removals.get(section, 0)
        self.stat_names = None if stat_names is None else tuple(stat_names)
        self.base, self.counts = np.zeros(chains, np.int64), np.zeros(chains, np.int64)
        self.window = Trace(chains, 0, d, self.stat_names)
        self.records = self.window.records
        self.capacity, self.revision = 0, 0
        self.ready: set[str] = set()  # columns that the store has
        self.next: dict[int, float] = {}  # time of the next write of a group, by its first chain

    # ---- writing during the run ----

    def grown(self, rows: int) -> StoredTrace:
        """The same trace, to which up to `rows` rows per chain can be added."""
        new = self.held()
        new.capacity = rows
        left = rows - int(self.base.min(initial=rows))
        new.widen(max(min(left, self.window_rows), int((self.counts - self.base).max(initial=0))))
        with self.store.naming():
            new.prepare()
        return new

    @property
    def window_rows(self) -> int:
        """The rows of a chain in memory."""
        size = 8 * self.d + sum(prod(shape) * dtype.itemsize
                                for shape, dtype in self.columns.values())
        many = min(CHAIN_BYTES * len(self.counts), 16 * WINDOW_BYTES)
        room = BLOCKED_BYTES if self.store.blocked else max(WINDOW_BYTES, many)
        return int(max(FEWEST_ROWS, room // (size * len(self.counts))))

    @property
    def block(self) -> int:
        """The rows of a chunk of the store's files."""
        if self.store.blocked:
            return max(1, self.window_rows // 4)
        return max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * self.d), self.capacity))

    def widen(self, rows: int) -> None:
        """Give the window this many rows, which are no fewer than those in it."""
        old, n = self.window, int((self.counts - self.base).max(initial=0))
        self.window = Trace(len(self.counts), rows, self.d, self.stat_names)
        for name in self.columns:
            getattr(self.window, name)[:, :n] = getattr(old, name)[:, :n]
        before, self.records = self.records, Records(
            len(self.counts), rows, self.records.fields, self.records.n_extras)
        if before.fields:
            self.records.block[:, :n] = before.block[:, :n]
        self.records.filled, self.records.base = before.filled.copy(), self.base

    def prepare(self) -> None:
        """Create the columns in the store."""
        columns = self.columns if self.capacity else {}
        if self.records.fields and RECORDS not in self.ready:
            columns[RECORDS] = (width(self.records.fields),), np.dtype(float)
        with alone:
            for name, (shape, dtype) in columns.items():
                if name not in self.ready and shape != (0,):
                    self.store.add(self.section, name, len(self.counts), shape, dtype, self.block)
                    self.ready.add(name)

    def chain(self, k: int) -> dict[str, Any]:
        """The window's arrays of chain `k`, the number of their first row, and the count."""
        return {name: getattr(self.window, name)[k] for name in COLUMNS} | {
            "counts": self.counts[k : k + 1], "first": int(self.base[k])}

    def room(self, chains: list[int]) -> int:
        """Number of rows that each of these chains can be given now."""
        if self.window.capacity == 0:  # none is recorded
            return MOST_COUNT
        return int((self.window.capacity + self.base - self.counts)[chains].min())

    def settle(self, chains: list[int], expected: bool) -> bool:
        """Write these chains' rows if they are due; return whether they were written.

        Rows are due when the window is half full or after a second, unless writing has taken more
        than a twentieth of the time. With `expected`, rows wait for their extras.
        """
        used, now = (self.counts - self.base)[chains], time.monotonic()
        if not used.any():
            return False
        full = 2 * used.max() >= min(self.window.capacity, self.window_rows)
        if not full and now < self.next.setdefault(chains[0], now + EVERY_SECONDS):
            return False
        self.flush(chains, expected, whole=full)
        last = time.monotonic()
        self.next[chains[0]] = last + max(EVERY_SECONDS, SHARE * (last - now))
        return True

    def flush(self, chains: list[int], expected: bool, whole: bool = False) -> None:
        """Write these chains' rows; OSError, without loss of rows, if that is not possible.

        With `whole` only full blocks are written, if the store writes whole blocks.
        """
        todo = []
        for k in chains:
            stop = int(min(self.counts[k], self.records.filled[k]) if expected else self.counts[k])
            if whole and self.store.blocked and stop - self.base[k] > self.block:
                stop -= stop % self.block
            if stop > self.base[k]:
                todo.append((k, stop))
        if not todo:
            return
        with self.store.naming():
            self.write(todo)
        for k, stop in todo:
            n, rest = stop - int(self.base[k]), int(self.counts[k]) - stop
            self.base[k] = stop
            if not rest:
                continue
            for array in self.arrays_of(k).values():
                array[:rest] = array[n : n + rest].copy()

    def arrays_of(self, k: int) -> dict[str, NDArray[Any]]:
        """The window of chain k, of each column in the store."""
        arrays = {name: getattr(self.window, name)[k].view(dtype) if name == "accepted" else
                  getattr(self.window, name)[k] for name, (_, dtype) in self.columns.items()}
        return arrays | ({RECORDS: self.records.block[k]} if self.records.fields else {})

    def write(self, todo: list[tuple[int, int]]) -> None:
        """Write the rows of chains up to some row, (chain, row), and then the lengths."""
        if self.records.fields and RECORDS not in self.ready:
            self.prepare()
        for k, stop in todo:
            start = int(self.base[k])
            for name, array in self.arrays_of(k).items():
                if name in self.ready:
                    self.store.write(self.section, name, k, start, array[: stop - start])
        for k, stop in todo:
            self.store.publish(self.section, sorted(self.ready), k, stop)

    # ---- parts and copies ----

    def held(self) -> StoredTrace:
        """The rows that are filled now, as a separate trace."""
        new = object.__new__(StoredTrace)
        new.__dict__ |= self.__dict__
        new.base, new.counts = self.base.copy(), self.counts.copy()
        new.ready, new.next = set(self.ready), {}
        new.widen(int((self.counts - self.base).max(initial=0)))
        return new

    def hold(self, held: StoredTrace, chains: list[int]) -> None:
        """Update the rows of these chains in `held`."""
        held.base[chains], held.counts[chains] = self.base[chains], self.counts[chains]
        records = held.records
        if self.records.fields and not records.fields:
            records.find(self.records.fields, self.records.n_extras)
        rest = int((self.counts - self.base)[chains].max(initial=0))
        if rest > held.window.capacity:
            held.widen(rest)
        held.records.filled[chains] = self.records.filled[chains]
        held.ready = set(self.ready)
        for k in chains:
            n = int(self.counts[k] - self.base[k])
            for name, array in held.arrays_of(k).items():
                array[:n] = self.arrays_of(k)[name][:n]

    def select(self, chains: list[int], start: int = 0) -> Trace:
        """These chains' filled rows from `start` on, in memory."""
        rows = max(0, int(self.counts[chains].max(initial=0)) - start)
        return self.part(chains, slice(start, start + rows, 1), self.counts[chains] - start)

    def part(self, chains: list[int], rows: Rows, counts: NDArray[np.int64]) -> Trace:
        """These rows of these chains in memory; the first `counts` are filled."""
        records, n = self.records, number(rows)
        new = Trace(len(chains), n, self.d, self.stat_names)
        new.records = Records(len(chains), n, records.fields, records.n_extras)
        for j, k in enumerate(chains):
            for name in self.columns:
                getattr(new, name)[j] = self.read(name, k, rows)
            if records.fields:
                new.records.block[j] = self.read(RECORDS, k, rows)
        new.counts = counts
        if records.fields is not None and isinstance(rows, slice):
            new.records.filled = np.clip(records.filled[chains] - rows.start, 0, counts)
        elif records.fields is not None:
            new.records.filled = counts.copy()
        return new

    def put(self, chains: list[int], start: int, part: Trace) -> None:
        """Add the rows of `part`, a trace of these chains that begins with the row `start`.

        Rows that exist already are skipped. OSError if the store cannot be written; call `back`
        then.
        """
        records = part.records
        if records.fields is not None:
            self.records.find(records.fields, records.n_extras)
        if self.window.capacity == 0:
            self.widen(min(self.window_rows, part.capacity))
        for j, k in enumerate(chains):
            i = int(self.counts[k]) - start
            while i < part.counts[j]:
                i += self.append(k, part, j, i)
                self.settle([k], bool(records.fields))

    def mark(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of rows so far, to which `back` may return."""
        return self.counts.copy(), self.records.filled.copy()

    def back(self, mark: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
        """Remove the rows added since `mark`."""
        self.counts[:], self.records.filled[:] = mark
        np.minimum(self.base, self.counts, out=self.base)

    def append(self, k: int, part: Trace, j: int, i: int) -> int:
        """Copy rows of the chain j of `part`, from `i` on, into the window; return their number."""
        start = int(self.counts[k] - self.base[k])
        n = min(self.window.capacity - start, int(part.counts[j]) - i)
        for name in self.columns:
            getattr(self.window, name)[k, start : start + n] = getattr(part, name)[j, i : i + n]
        if self.records.fields and part.records.fields:
            self.records.next(k)  # an error if earlier rows have no extras
            self.records.block[k, start : start + n] = part.records.block[j, i : i + n]
            self.records.filled[k] = self.base[k] + start + n
        self.counts[k] += n
        return n

    def take(self, rows: NDArray[np.int64]) -> StoredTrace:
        """Copy these rows of every chain, all of which are filled, to another section.

        The old rows stay until a state with the new ones is written.
        """
        chains = list(range(len(self.counts)))
        section = THINNED if self.section == DRAWS else DRAWS
        self.store.clear(section)
        new = StoredTrace(self.store, section, len(chains), self.d, self.stat_names)
        new.revision = self.revision
        new = new.grown(len(rows))
        size = max(1, min(BLOCK, self.window_rows))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            new.put(chains, start, self.part(chains, some, np.full(len(chains), len(some))))
        new.flush(chains, expected=False)
        return new

    def emptied(self) -> StoredTrace:
        """A trace without rows, in another section.

        The old rows stay until a state with the new ones is written.
        """
        sections = OF_DRAWS if self.section in OF_DRAWS else OF_WARMUP
        section = next(one for one in sections if one != self.section)
        self.store.clear(section)
        new = StoredTrace(self.store, section, len(self.counts), self.d, self.stat_names)
        new.revision = self.revision
        return new

    @classmethod
    def of(cls, trace: Trace, store: Store, section: str) -> StoredTrace:
        """The rows of a trace in memory, in a section of `store`."""
        chains = list(range(len(trace.counts)))
        new = cls(store, section, len(chains), trace.x.shape[2], trace.stat_names)
        new = new.grown(int(trace.counts.max(initial=0)))
        new.put(chains, 0, trace)
        new.flush(chains, expected=bool(trace.records.fields))
        return new

    # ---- in files ----

    def __getstate__(self) -> dict[str, Any]:
        return self.held().__dict__

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The lengths, and the rows that are not in the store, for the file of the state."""
        new = self.held()
        tail, tail.counts, tail.records = new.window, new.counts - new.base, new.records
        tail.records.filled = np.maximum(new.records.filled - new.base, 0)
        return tail.arrays() | {"stored": new.base}

    def whole(self) -> dict[str, Any]:
        """Every filled row of every chain, read block by block, for a file without a store."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        arrays["counts"] = self.counts
        if self.records.fields is not None:
            arrays[RECORDS] = self.column(RECORDS)
            arrays["recorded"] = np.minimum(self.records.filled, self.counts)
        return arrays

    @classmethod
    def from_arrays(
        cls, store: Store, section: str, revision: int, arrays: dict[str, NDArray[Any]],
        stat_names: Sequence[str] | None, fields: Fields | None = None, n_extras: int = 0,
    ) -> StoredTrace:
        """The trace from the output of `arrays`; BadField if the store has fewer rows."""
        arrays = dict(arrays)
        stored = arrays.pop("stored", None)
        tail = Trace.from_arrays(arrays, stat_names, fields, n_extras)
        check_form("stored", stored, (len(tail.counts),), np.int64)
        assert stored is not None
        check_range("stored", STORED, stored, {})
        self = cls(store, section, len(tail.counts), tail.x.shape[2], stat_names)
        self.window, self.records, self.revision = tail, tail.records, revision
        self.base, self.counts = stored, stored + tail.counts
        self.records.filled = stored + self.records.filled if fields is not None else (
            np.zeros_like(stored))
        self.records.base = self.base
        self.check_room()
        return self

    def check_room(self) -> None:
        """Refuse a store in which rows are missing or damaged; BadField names the column."""
        kinds = dict(self.columns)
        if width(self.records.fields or {}):
            kinds[RECORDS] = (width(self.records.fields or {}),), np.dtype(float)
        for k in np.flatnonzero(self.base).tolist():
            for name, (shape, dtype) in kinds.items():
                what = "is not there"
                try:
                    self.store.check_form(self.section, name, k, shape, dtype)
                    room = self.store.room(self.section, name, k)
                    if room >= self.base[k]:
                        self.ready.add(name)
                        continue
                    what = f"has {room} rows"
                except ValueError as error:
                    what = str(error)
                except (OSError, KeyError):
                    pass
                raise BadField("stored", f"says {self.base[k]} rows for chain {k}, but "
                                         f"{self.section}/{name} of the store {what}")


def new_trace(store: Store | None, section: str, chains: int, d: int,
              stat_names: Sequence[str] | None) -> Trace | StoredTrace:
    """A trace without rows, in a store if there is one."""
    if store is None:
        return Trace(chains, 0, d, stat_names)
    return StoredTrace(store, section, chains, d, stat_names)
