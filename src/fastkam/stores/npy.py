"""A folder of .npy files: one per column and chain, which grows at its end."""

from __future__ import annotations

import io
import json
import os
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.stores.store import Rows, Store

if TYPE_CHECKING:
    from pathlib import Path

STATE, ABOUT = "state.npz", "store.json"
PIECE = 2**24  # bytes of a file that are mapped at once if some rows are left out


class Npy(Store):
    """A folder of .npy files, one for each chain and column: ``draws/x.0.npy`` is (n, d).

    ``np.load(path, mmap_mode="r")`` opens each of them, also during the run: the length in its
    header is written after the rows.

    Parameters
    ----------
    path : path
        A folder that does not exist yet, or is empty.
    """

    KIND, MARK = "npy", ABOUT

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.forms: dict[tuple[str, str], tuple[tuple[int, ...], np.dtype[Any], int]] = {}

    def make(self, about: dict[str, Any]) -> None:
        # whole or not at all: another process may be reading
        temporary = self.path / f"{ABOUT}.new"
        temporary.write_text(json.dumps(about))
        os.replace(temporary, self.path / ABOUT)

    def about(self) -> dict[str, Any]:
        return dict(json.loads((self.path / ABOUT).read_text()))

    @property
    def state_path(self) -> Path:
        return self.path / STATE

    def file(self, section: str, column: str, k: int) -> Path:
        """The file of one column of chain k."""
        return self.path / section / f"{column}.{k}.npy"

    def add(self, section: str, column: str, chains: int, tail: tuple[int, ...], dtype: Any,
            block: int) -> None:
        self.check_own()
        self.sections.add(section)
        (self.path / section).mkdir(exist_ok=True)
        for k in range(chains):
            with suppress(FileExistsError), open(self.file(section, column, k), "xb") as file:
                file.write(header(0, tail, np.dtype(dtype)))

    def check_form(self, section: str, column: str, k: int, tail: tuple[int, ...],
                   dtype: Any) -> None:
        with open(self.file(section, column, k), "rb") as file:
            data = file.read(len(header(0, tail, np.dtype(dtype))))
        try:
            (count, *_), _ = read_header(io.BytesIO(data))
            good = data == header(count, tail, np.dtype(dtype))
        except Exception:  # numpy's reader raises errors of many types for other files
            good = False
        if not good:
            raise ValueError("has a damaged header")

    def form(self, section: str, column: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
        """The shape and type of a column's rows, and how many bytes its header has."""
        if (section, column) not in self.forms:
            with open(self.file(section, column, 0), "rb") as file:
                shape, dtype = read_header(file)
                self.forms[section, column] = shape[1:], dtype, file.tell()
        return self.forms[section, column]

    def write(self, section: str, column: str, k: int, start: int, rows: NDArray[Any]) -> None:
        tail, dtype, before = self.form(section, column)
        place = before + start * dtype.itemsize * prod(tail)
        self.put(self.file(section, column, k), np.ascontiguousarray(rows, dtype), place,
                 size=place)

    def publish(self, section: str, columns: list[str], k: int, count: int) -> None:
        for column in columns:
            tail, dtype, before = self.form(section, column)
            self.put(self.file(section, column, k), header(count, tail, dtype), 0,
                     size=before + count * dtype.itemsize * prod(tail))

    def read(self, section: str, column: str, k: int, rows: Rows) -> NDArray[Any]:
        tail, dtype, before = self.form(section, column)
        count = self.room(section, column, k)
        if not count or not prod(tail):
            return np.empty((count, *tail), dtype)[rows]
        # mapped for each read: thousands of chains have more files than a process may have open;
        # and in pieces, since the pages of all rows between the requested ones count as memory
        path, size = self.file(section, column, k), dtype.itemsize * prod(tail)
        if not isinstance(rows, slice) or rows.step == 1:
            return np.array(np.memmap(path, dtype, "r", before, (count, *tail))[rows])
        some = range(count)[rows]
        each = max(1, PIECE // (size * rows.step))
        pieces = [some[i : i + each] for i in range(0, len(some), each)]
        return np.concatenate([np.empty((0, *tail), dtype), *(
            np.array(np.memmap(path, dtype, "r", before + size * piece.start,
                               (piece[-1] - piece.start + 1, *tail))[:: rows.step])
            for piece in pieces)])

    def room(self, section: str, column: str, k: int) -> int:
        tail, dtype, before = self.form(section, column)
        size = os.stat(self.file(section, column, k)).st_size - before
        if not prod(tail):
            return 2**62
        return int(max(0, size) // (dtype.itemsize * prod(tail)))

    def remove(self, section: str) -> None:
        folder = self.path / section
        if not folder.is_dir():
            return
        for path in folder.glob("*.*.npy"):
            path.unlink()
            self.dirty.discard(path)
        with suppress(OSError):  # there are other files
            folder.rmdir()
        self.forms = {key: form for key, form in self.forms.items() if key[0] != section}


def header(count: int, tail: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """The header of a .npy file; its length is the same for all counts, as numpy leaves room."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {
        "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
        "shape": (count, *tail)})
    return file.getvalue()


def read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type in the header of an open .npy file."""
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype
