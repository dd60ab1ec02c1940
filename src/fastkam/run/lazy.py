"""Arrays of a stored run that read only the rows that are indexed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from fastkam.stores import Store
from fastkam.stores.store import Rows

BLOCK = 65_536  # rows that are read at once
MOST_DRAWS, MOST_NUMBERS = 2_000_000, 20_000_000  # most that a summary reads
FEWEST_ROWS = 1000  # per chain
Reader = Callable[[int, Rows], NDArray[Any]]  # reads some rows of a chain


class StoredArray(NDArrayOperatorsMixin):
    """An array (chains, draws, ...) that is read from a store when it is indexed.

    A part, ``draws[0, :100]`` or ``draws[:, ::1000]``, is a NumPy array, and ``np.asarray(draws)``
    reads everything. NumPy's functions and operators take it as an array.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, reader: Reader, chains: int, rows: int, tail: tuple[int, ...],
                 dtype: Any) -> None:
        self.reader = reader
        self.shape = (chains, rows, *tail)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"<StoredArray {self.shape} of {self.dtype}; np.asarray reads it>"

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise AttributeError(
                f"draws in a store are read when they are indexed, and have no {name!r}: write "
                f"np.asarray(...).{name} to read all of them, or take a part, draws[:, ::100]")
        raise AttributeError(name)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        keys = expanded(key, self.ndim)
        if keys is None:
            return np.asarray(np.asarray(self)[key])
        chain, row, *rest = keys
        rows, backwards, single = as_rows(row, self.shape[1])
        chains = np.arange(self.shape[0])[chain]
        parts = [self.reader(int(k), rows) for k in np.atleast_1d(chains)]
        found = np.stack(parts) if parts else np.empty(
            (0, number(rows), *self.shape[2:]), self.dtype)
        if backwards:
            found = found[:, ::-1]
        if rest:
            found = found[(slice(None), slice(None), *rest)]
        if single:
            found = found[:, 0]
        return found[0] if np.ndim(chains) == 0 else found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("draws in a store must be copied to be an array")
        array = np.empty(self.shape, self.dtype if dtype is None else dtype)
        for k, start, part in self.blocks():
            array[k, start : start + len(part)] = part
        return array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        read = (np.asarray(one) if isinstance(one, StoredArray) else one for one in inputs)
        return getattr(ufunc, method)(*read, **options)

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield (chain, row, rows from there on), `size` rows at a time."""
        for k in range(self.shape[0]):
            for start in range(0, self.shape[1], size):
                stop = min(start + size, self.shape[1])
                yield k, start, self.reader(k, slice(start, stop, 1))

    def mapped(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> StoredArray:
        """Apply `function` to these rows (n, ...) when they are read."""
        def reader(k: int, rows: Rows) -> NDArray[Any]:
            return function(self.reader(k, rows))

        example = function(np.zeros((1, *self.shape[2:]), self.dtype))
        return StoredArray(reader, self.shape[0], self.shape[1], example.shape[1:], example.dtype)


def mapped(array: Any, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Any:
    """Apply `function` to an array (chains, draws, ...); when it is read, if it is in a store."""
    return array.mapped(function) if isinstance(array, StoredArray) else function(array)


def read_only(array: Any) -> Any:
    """A view of an array that cannot be written to; an array in a store is returned as it is."""
    if isinstance(array, StoredArray):  # its parts are copies
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def distance(draws: Any) -> int:
    """Step between the draws that are examined together: 1 for an array in memory."""
    if not isinstance(draws, StoredArray):
        return 1
    chains, rows, d = draws.shape
    most = max(FEWEST_ROWS * chains, min(MOST_DRAWS, MOST_NUMBERS // max(d, 1)))
    return max(1, -(-chains * rows // most))


def expanded(key: Any, ndim: int) -> tuple[Any, ...] | None:
    """The key with an index for each dimension; None if the whole array has to be read."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(one is None or isinstance(one, (bool, np.bool_)) for one in keys):
        return None
    if sum(one is Ellipsis for one in keys) > 1:
        return None
    wide = [one for one in keys if np.ndim(one) > 1]
    several = [one for one in keys if not isinstance(one, (slice, int, np.integer))
               and one is not Ellipsis]
    if wide or len(several) > 1:
        return None
    at = next((i for i, one in enumerate(keys) if one is Ellipsis), len(keys))
    before, after = keys[:at], keys[at + 1 :]
    keys = (*before, *(slice(None),) * (ndim - len(before) - len(after)), *after)
    if len(keys) > ndim:
        raise IndexError(f"too many indices: the array has {ndim} dimensions")
    if several and any(isinstance(one, (int, np.integer)) for one in keys):
        return None  # NumPy treats a number beside an array as an array
    return keys


def as_rows(key: Any, n: int) -> tuple[Rows, bool, bool]:
    """The rows to read for an index along n draws; whether reversed, and whether a single one."""
    if isinstance(key, (int, np.integer)):
        if not -n <= key < n:
            raise IndexError(f"draw {key} is out of bounds: there are {n}")
        i = int(key) % n
        return slice(i, i + 1, 1), False, True
    if isinstance(key, slice):
        some = range(n)[key]
        if some.step < 0:
            return as_slice(some[::-1]), True, False
        return as_slice(some), False, False
    array = np.asarray(key)
    if array.dtype == bool:
        if len(array) != n:
            raise IndexError(f"the mask has {len(array)} elements, not {n}, one per draw")
        return np.flatnonzero(array), False, False
    if array.size and array.dtype.kind not in "iu":
        raise IndexError(f"draws are chosen by integers, not {array.dtype}")
    array = array.astype(np.int64)
    if ((array < -n) | (array >= n)).any():
        raise IndexError(f"some draws are out of bounds: there are {n}")
    return np.where(array < 0, array + n, array), False, False


def as_slice(some: range) -> slice:
    """The slice of these numbers, which increase."""
    return slice(some.start, some[-1] + 1, some.step) if len(some) else slice(0, 0, 1)


def number(rows: Rows) -> int:
    """Number of rows in an index."""
    return len(range(rows.start, rows.stop, rows.step)) if isinstance(rows, slice) else len(rows)


def parts_of(rows: Rows, base: int) -> tuple[Rows, Rows]:
    """Split `rows` at `base`: those below, and the others counted from there."""
    if not isinstance(rows, slice):
        return rows[rows < base], rows[rows >= base] - base
    some = range(rows.start, rows.stop, rows.step)
    n = len(range(rows.start, min(rows.stop, base), rows.step))
    below, above = some[:n], some[n:]
    return as_slice(below), as_slice(range(above.start - base, above.stop - base, above.step))


def read_column(
    store: Store, section: str, column: str, k: int, rows: Rows, base: int,
    window: NDArray[Any] | None,
) -> NDArray[Any]:
    """Rows of chain k: the first `base` are in the store, later ones in `window` (n, ...)."""
    below, above = parts_of(rows, base)
    if not number(above) or window is None:
        return read_below(store, section, column, k, below, base)
    if not number(below):
        return np.array(window[above])
    found = np.empty((number(rows), *window.shape[1:]), window.dtype)
    where = np.arange(len(found)) < number(below)
    if not isinstance(rows, slice):
        where = rows < base
    found[where] = read_below(store, section, column, k, below, base)
    found[~where] = window[above]
    return found


def read_below(
    store: Store, section: str, column: str, k: int, rows: Rows, base: int
) -> NDArray[Any]:
    """Rows of chain k from the store; an error that names the store if they are missing."""
    if not number(rows):
        rows = slice(0, 0, 1)
    try:
        found = store.read(section, column, k, rows)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"the draws of this run are not in {str(store.path)!r} any more: {error}") from error
    except IndexError:  # for an array of indices; a slice returns fewer rows
        found = np.empty(0)
    if len(found) != number(rows):
        raise ValueError(f"{str(store.path)!r} has fewer than the {base} rows in {section}/{column}"
                         f" that its state records for chain {k}")
    return found
