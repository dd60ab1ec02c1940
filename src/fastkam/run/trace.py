"""The trace: one block of arrays for all chains, filled row by row by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import width
from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import MOST_COUNT, BadField, check_form, check_names, check_range
from fastkam._core.numerics.elementary import exp
from fastkam.arguments import near, shown
from fastkam.run.lazy import read_only
from fastkam.run.records import Fields, Records

# dtypes of the statistics that are not floating-point numbers
TYPES = {"diverging": np.bool_, "tree_depth": np.int64, "n_steps": np.int64}
BLOCK = 65_536  # rows processed at once
COLUMNS = ("x", "logp", "log_ratio", "accepted", "extra")
# ranges of the arrays of a file
COUNT = Field("rows that are filled", ("chains",), "i8", least=0, most="rows")
FLAG = Field("whether the proposal was accepted", ("rows",), "i1", least=0, most=1)


class Stats(dict[str, Any]):
    """Statistics by name."""

    def __missing__(self, name: object) -> Any:
        there = f"there are {list(self)}" if self else "they were not recorded (keep_stats=False)"
        raise KeyError(f"there is no statistic {shown(name)}; {there}{near(name, self)}")


class AnyTrace:
    """Attributes that a trace in memory and one in a store share."""

    x: Any
    log_ratio: Any
    extra: Any
    counts: NDArray[np.int64]
    stat_names: tuple[str, ...] | None

    @property
    def rows(self) -> int:
        """Number of rows that every chain has filled."""
        return int(self.counts.min())

    @property
    def acceptance(self) -> NDArray[np.float64]:
        """Mean acceptance probability over the rows, (chains,); NaN if it was not recorded."""
        rows, total = self.rows, np.zeros(len(self.counts))
        if self.stat_names is None or rows == 0:
            return np.full(len(self.counts), np.nan)
        for start in range(0, rows, BLOCK):
            part = self.log_ratio[:, start : min(start + BLOCK, rows)]
            total += exp(np.minimum(part, 0.0)).sum(axis=1)
        return total / rows

    @property
    def n_diverging(self) -> int:
        """Number of divergent trajectories, where the sampler records them."""
        if self.stat_names is None or "diverging" not in self.stat_names:
            return 0
        i, rows = self.stat_names.index("diverging"), self.rows
        return sum(int(self.extra[:, start : min(start + BLOCK, rows), i].sum())
                   for start in range(0, rows, BLOCK))


class Trace(AnyTrace):
    """Draws and statistics of every chain, in memory.

    Attributes
    ----------
    x : ndarray, shape (chains, rows, d)
    logp, log_ratio : ndarray, shape (chains, rows)
        Log density, and logarithm of the acceptance ratio of the step that led there.
    accepted : ndarray of int8, shape (chains, rows)
    extra : ndarray, shape (chains, rows, n_stats)
        The sampler's statistics, a column for each name of `stat_names`. If that is None, no
        statistics are recorded, and only x has rows.
    counts : ndarray of int64, shape (chains,)
        Number of filled rows of each chain.
    records : Records
        Extras and derived quantities of each row.
    """

    def __init__(
        self, chains: int, rows: int, d: int, stat_names: Sequence[str] | None = ()
    ) -> None:
        self.stat_names = None if stat_names is None else tuple(stat_names)
        self.x = np.empty((chains, rows, d))
        rows = 0 if stat_names is None else rows
        self.logp = np.empty((chains, rows))
        self.log_ratio = np.empty((chains, rows))
        self.accepted = np.empty((chains, rows), np.int8)
        self.extra = np.empty((chains, rows, len(self.stat_names or ())))
        self.counts = np.zeros(chains, np.int64)
        self.records = Records(chains, len(self.x[0]) if chains else 0)

    @property
    def capacity(self) -> int:
        """Number of rows that a chain may fill."""
        return int(self.x.shape[1])

    @property
    def draws(self) -> NDArray[np.float64]:
        """The states, (chains, draws, d), read-only."""
        return read_only(self.x[:, : self.rows])

    @property
    def stats(self) -> dict[str, NDArray[Any]]:
        """Statistics of each state, {name: (chains, draws)}, read-only.

        {} if they were not recorded.
        """
        if self.stat_names is None:
            return Stats()
        rows = self.rows
        named: dict[str, NDArray[Any]] = {
            "lp": self.logp[:, :rows],
            "acceptance_rate": exp(np.minimum(self.log_ratio[:, :rows], 0.0)),
            "accepted": self.accepted[:, :rows].view(np.bool_),
        }
        for i, name in enumerate(self.stat_names):
            column = self.extra[:, :rows, i]
            named[name] = column.astype(TYPES[name]) if name in TYPES else column
        return Stats({name: read_only(values) for name, values in named.items()})

    @property
    def extras(self) -> dict[str, NDArray[Any]]:
        """Extras and derived quantities of each draw, {name: (chains, draws, ...)}, read-only."""
        return {name: read_only(values) for name, values in self.records.read(self.rows).items()}

    # ---- during the run ----

    def emptied(self) -> Trace:
        """A trace without rows."""
        return Trace(len(self.counts), 0, self.x.shape[2], self.stat_names)

    def chain(self, k: int) -> dict[str, NDArray[Any]]:
        """The arrays of chain `k` and its count, as views."""
        return {name: getattr(self, name)[k] for name in COLUMNS} | {
            "counts": self.counts[k : k + 1]}

    def room(self, chains: list[int]) -> int:
        """Number of rows that each of these chains can be given now."""
        return MOST_COUNT

    def settle(self, chains: list[int], expected: bool) -> bool:
        """Whether rows of these chains have moved; here they never do."""
        return False

    def flush(self, chains: list[int], expected: bool) -> None:
        """Do nothing: there is no store to which rows could be moved."""

    def mark(self) -> NDArray[np.int64]:
        """Number of rows so far, to which `back` may return."""
        return self.counts.copy()

    def back(self, mark: NDArray[np.int64]) -> None:
        """Remove the rows added since `mark`."""
        self.counts[:] = mark
        self.records.filled = np.minimum(self.records.filled, mark)

    def held(self) -> Trace:
        """The same arrays, shared, with the rows that are filled now."""
        return self.first(self.counts.copy())

    def hold(self, held: Trace, chains: list[int]) -> None:
        """Update the rows of these chains in `held`."""
        held.counts[chains] = self.counts[chains]

    # ---- parts and copies ----

    def first(self, counts: NDArray[np.int64]) -> Trace:
        """The same arrays, shared, with `counts` as the number of filled rows of each chain."""
        new = object.__new__(Trace)
        new.__dict__ |= self.__dict__ | {"counts": counts}
        return new

    def grown(self, rows: int) -> Trace:
        """The same trace with room for `rows` rows per chain."""
        chains, _, d = self.x.shape
        new = Trace(chains, rows, d, self.stat_names)
        filled = int(self.counts.max(initial=0))
        for name in COLUMNS:
            getattr(new, name)[:, :filled] = getattr(self, name)[:, :filled]
        new.counts = self.counts.copy()
        new.records = self.records.grown(rows)
        new.records.filled = np.minimum(new.records.filled, new.counts)
        return new

    def select(self, chains: list[int], start: int = 0) -> Trace:
        """A copy of these chains' filled rows, from the row `start` on."""
        new = self.first(self.counts[chains] - start)
        for name in COLUMNS:
            setattr(new, name, self.arrays()[name][chains, start:])
        new.records = self.records.select(chains, start, start + new.x.shape[1])
        new.records.filled = np.minimum(new.records.filled, new.counts)
        return new

    def take(self, rows: NDArray[np.int64]) -> Trace:
        """A copy of these rows of every chain, all of which are filled."""
        new = self.first(np.full(len(self.counts), len(rows)))
        for name in COLUMNS:
            array = getattr(self, name)
            setattr(new, name, array[:, rows] if array.shape[1] else array)
        new.records = self.records.take(rows)
        return new

    def put(self, chains: list[int], start: int, part: Trace) -> None:
        """Write the rows of `part`, a trace of these chains, from the row `start` on."""
        stop = start + int(part.counts.max(initial=0))
        for name in COLUMNS:
            getattr(self, name)[chains, start:stop] = getattr(part, name)[:, : stop - start]
        self.counts[chains] = start + part.counts
        self.records.merge(chains, start, part.records)

    def __getstate__(self) -> dict[str, Any]:
        filled = int(self.counts.max(initial=0))
        everyone = list(range(len(self.counts)))
        return self.__dict__ | {
            name: getattr(self, name)[:, :filled] for name in COLUMNS
        } | {"records": self.records.select(everyone, 0, filled)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every filled row of every chain, for a file."""
        filled = int(self.counts.max(initial=0))
        arrays = {name: getattr(self, name)[:, :filled] for name in COLUMNS}
        arrays["counts"] = self.counts
        if self.records.fields is not None:
            arrays["records"] = self.records.block[:, :filled]
            arrays["recorded"] = np.minimum(self.records.filled, self.counts)
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, NDArray[Any]],
        stat_names: Sequence[str] | None,
        fields: Fields | None = None,
        n_extras: int = 0,
    ) -> Trace:
        """The trace from the output of `arrays`; BadField if an array does not fit."""
        names = [*COLUMNS, "counts", *(("records", "recorded") if fields is not None else ())]
        check_names(names, arrays)
        chains, rows, d = check_form("x", arrays["x"], (None, None, None), np.float64).shape
        self = cls(chains, 0, d, stat_names)
        some = 0 if stat_names is None else rows
        for name in COLUMNS[1:]:
            own = getattr(self, name)
            check_form(name, arrays[name], (chains, some, *own.shape[2:]), own.dtype)
        check_form("counts", arrays["counts"], (chains,), np.int64)
        check_range("counts", COUNT, arrays["counts"], {"rows": rows})
        for accepted, count in zip(arrays["accepted"], arrays["counts"], strict=True):
            check_range("accepted", FLAG, accepted[:count], {})  # the others are not filled
        for name in (*COLUMNS, "counts"):
            setattr(self, name, arrays[name])
        self.records = Records(chains, 0, fields, n_extras)
        self.records.rows = rows
        if fields is not None:
            check_form("records", arrays["records"], (chains, rows, width(fields)), np.float64)
            filled = check_form("recorded", arrays["recorded"], (chains,), np.int64)
            if ((filled < 0) | (filled > self.counts)).any():
                raise BadField("recorded", f"must be from 0 to counts, {self.counts}, not {filled}")
            self.records.block, self.records.filled = arrays["records"], filled
        return self
