"""A zarr group: columns (chains, draws, ...) in chunks, compressed on request."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_integer, import_extra, shown
from fastkam.stores.store import Rows, Store

if TYPE_CHECKING:
    from pathlib import Path

ADVICE = "pip install fastkam[zarr]; or give store= a path without .zarr, for a folder of .npy"
LEVELS = {"zstd": 1, "gzip": 1, "lz4": 1}  # by default: quick rather than small
COUNTS, STATE = "counts", "state"
COUNT = np.dtype("<i8")
DIMS = ("chain", "draw")


class Form:
    """The metadata of a column, zarr.json of format 3, which is read and written here.

    `check` is called before they are replaced, and raises an error if they must not be.

    Attributes
    ----------
    rows : int
        Rows of each chain for which there is room.
    chunks : tuple of int
    dtype : dtype
    compressed : bool
    """

    def __init__(self, path: Path, check: Callable[[], None]) -> None:
        self.path, self.check = path, check
        self.metadata: dict[str, Any] = json.loads(path.read_text())
        self.rows = int(self.metadata["shape"][1])
        self.chunks = tuple(self.metadata["chunk_grid"]["configuration"]["chunk_shape"])
        self.dtype = np.dtype(self.metadata["data_type"])
        self.compressed = any(codec["name"] != "bytes" for codec in self.metadata["codecs"])

    def resize(self, rows: int) -> None:
        """Resize the column to this many rows; a reader sees the old metadata or the new."""
        self.metadata["shape"][1] = self.rows = rows
        temporary = self.path.with_name(f"{self.path.name}.new")
        temporary.write_text(json.dumps(self.metadata))
        self.check()
        os.replace(temporary, self.path)


class Zarr(Store):
    """A zarr group (format 3): ``zarr.open("run.zarr")["draws/x"]`` is (chains, draws, d).

    ``["draws/counts"]`` are the numbers of rows of the chains, which may be smaller. It needs zarr.

    Parameters
    ----------
    path : path
        A folder that does not exist yet, or is empty.
    compression : str or None
        "zstd", "gzip" or "lz4"; None, the default, is the fastest.
    level : int, optional
        Level of the compression: 1, the default, is the fastest.
    """

    KIND, MARK = "zarr", "zarr.json"

    def __init__(self, path: str | os.PathLike[str], *, compression: str | None = None,
                 level: int | None = None) -> None:
        super().__init__(path)
        self.zarr = import_extra("zarr", ADVICE)
        if compression is not None and not (
                isinstance(compression, str) and compression in LEVELS):
            raise ValueError(f"compression must be None or one of {list(LEVELS)}, not "
                             f"{shown(compression)}")
        if level is not None:
            if compression is None:
                raise ValueError(f"level must be given with compression=, not alone: {level!r}")
            check_integer("level", level, least=0, most=9)
        self.compression, self.level, self.blocked = compression, level, compression is not None
        self.alone = threading.RLock()
        self.arrays: dict[str, Any] = {}
        self.forms: dict[str, Form] = {}  # forms of the columns that are written
        self.counts: dict[str, int] = {}  # rows of the longest chain, by section

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"zarr": None, "alone": None, "arrays": {}, "forms": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"zarr": import_extra("zarr", ADVICE), "alone": threading.RLock()}

    def make(self, about: dict[str, Any]) -> None:
        group = self.zarr.create_group(self.path, attributes={"fastkam": about}, zarr_format=3)
        # its one chunk is the file of the state, as it is
        group.create_array(STATE, shape=(1,), chunks=(1,), dtype="u1", compressors=None,
                           dimension_names=("byte",))
        self.state_path.parent.mkdir(exist_ok=True)

    def about(self) -> dict[str, Any]:
        text = (self.path / self.MARK).read_text()
        found = json.loads(text).get("attributes", {}).get("fastkam", {})
        return dict(found) if isinstance(found, dict) else {}

    @property
    def state_path(self) -> Path:
        return self.path / STATE / "c" / "0"

    def codecs(self) -> Any:
        """The compressors of new arrays."""
        if self.compression is None:
            return None
        codecs, level = self.zarr.codecs, self.level
        level = LEVELS[self.compression] if level is None else level
        if self.compression == "zstd":
            return codecs.ZstdCodec(level=level)
        if self.compression == "gzip":
            return codecs.GzipCodec(level=level)
        return codecs.BloscCodec(cname="lz4", clevel=level, shuffle="shuffle", typesize=8)

    def array(self, section: str, column: str) -> Any:
        """The array of a column."""
        path = f"{section}/{column}"
        with self.alone:
            if path not in self.arrays:
                self.arrays[path] = self.zarr.open_array(
                    self.path / path, mode="r+", config={"write_empty_chunks": True})
            return self.arrays[path]

    def add(self, section: str, column: str, chains: int, tail: tuple[int, ...], dtype: Any,
            block: int) -> None:
        self.check_own()
        self.sections.add(section)
        with self.alone:
            group = self.zarr.open_group(self.path, mode="r+").require_group(section)
            for name, shape, chunks, kind in (
                    (column, (chains, block, *tail), (1, block, *tail), dtype),
                    (COUNTS, (chains,), (1,), COUNT)):
                if name not in group:
                    group.create_array(
                        name, shape=shape, chunks=chunks, dtype=kind,
                        compressors=self.codecs() if name == column else None,
                        config={"write_empty_chunks": True},
                        dimension_names=(*DIMS, *(f"{column}_dim_{i}" for i in range(len(tail)))
                                         )[: len(shape)])
            for k in range(chains):
                (self.path / section / column / "c" / str(k)).mkdir(parents=True, exist_ok=True)
                count = self.path / section / COUNTS / "c" / str(k)
                count.parent.mkdir(exist_ok=True)
                with suppress(FileExistsError), open(count, "xb") as file:
                    file.write(bytes(COUNT.itemsize))

    def form(self, section: str, column: str) -> Form:
        """The form of a column, from its metadata; reading them by zarr takes much longer."""
        path = f"{section}/{column}"
        with self.alone:
            if path not in self.forms:
                self.forms[path] = Form(self.path / path / self.MARK, self.check_own)
            return self.forms[path]

    def resize(self, section: str, column: str, rows: int) -> None:
        """Make room in a column for this many rows of each chain."""
        path = f"{section}/{column}"
        self.form(section, column).resize(rows)
        self.arrays.pop(path, None)  # it has the old shape
        self.dirty.add(self.path / path / self.MARK)

    def write(self, section: str, column: str, k: int, start: int, rows: NDArray[Any]) -> None:
        stop, folder = start + len(rows), self.path / section / column
        with self.alone:  # its shape and its metadata are those of all chains
            self.check_own()  # zarr would make folders again
            form = self.form(section, column)
            block = form.chunks[1]
            if form.rows < stop:
                # by many rows, as replacing a file that a file system has just written takes long
                self.resize(section, column, max(4 * form.rows, -(-stop // block) * block))
            end = "/0" * (len(form.chunks) - 2)
            paths = [folder / "c" / str(k) / f"{i}{end}"
                     for i in range(start // block, -(-stop // block))]
            if form.compressed:
                self.write_compressed(self.array(section, column), paths, k, start, rows)
        if not form.compressed:
            self.write_plain(paths, np.ascontiguousarray(rows, form.dtype), start, form.chunks)

    def write_compressed(self, array: Any, paths: list[Path], k: int, start: int,
                         rows: NDArray[Any]) -> None:
        """Write rows into compressed chunks; OSError if the first, which has others, is damaged."""
        if start % array.chunks[1] and not paths[0].exists():  # zarr would take zeros for them
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(paths[0]))
        try:
            array[k, start : start + len(rows)] = rows
        except OSError:
            raise
        except Exception as error:  # each codec has its own
            raise OSError(errno.EIO, f"a file was damaged during the run: {error}",
                          str(paths[0])) from error
        self.dirty.update(paths)

    def write_plain(self, paths: list[Path], rows: NDArray[Any], start: int,
                    chunks: tuple[int, ...]) -> None:
        """Write rows into chunks without compression, files of their bytes as they are.

        zarr would read and write a whole chunk for each piece of it. A chunk with earlier rows must
        be there.
        """
        block, size = chunks[1], rows.dtype.itemsize * prod(chunks[2:])
        first = start // block
        for i, path in enumerate(paths, first):
            a, b = max(start, i * block), min(start + len(rows), (i + 1) * block)
            if a == i * block:
                self.check_own()
                for folder in list(path.parents)[len(chunks) - 3 :: -1] if len(chunks) > 2 else []:
                    folder.mkdir(exist_ok=True)
                with open(path, "ab") as file:
                    file.truncate(block * size)
            self.put(path, rows[a - start : b - start], (a - i * block) * size, size=block * size)

    def publish(self, section: str, columns: list[str], k: int, count: int) -> None:
        self.counts[section] = max(self.counts.get(section, 0), count)
        path = self.path / section / COUNTS / "c" / str(k)
        self.put(path, np.array([count], COUNT), 0, size=COUNT.itemsize)

    def finish(self) -> None:
        """Set the shapes to those of the longest chains."""
        for path, form in self.forms.items():
            section, _, column = path.partition("/")
            count = self.counts.get(section)
            if count is not None and form.rows > count:
                self.resize(section, column, count)

    def read(self, section: str, column: str, k: int, rows: Rows) -> NDArray[Any]:
        array = self.array(section, column)
        self.check_chunks(section, column, k, array, rows)
        if isinstance(rows, slice):
            return np.asarray(array[k, rows])
        return np.asarray(array.oindex[k, rows])

    def check_chunks(self, section: str, column: str, k: int, array: Any, rows: Rows) -> None:
        """Raise FileNotFoundError for missing chunks, which zarr reads as zeros."""
        block = array.chunks[1]
        chunks = np.unique(rows // block) if not isinstance(rows, slice) else np.arange(
            rows.start // block, -(-max(rows.start, rows.stop) // block))
        if isinstance(rows, slice) and rows.stop <= rows.start:
            chunks = chunks[:0]
        end = "/0" * (array.ndim - 2)
        for i in chunks:
            path = self.path / section / column / "c" / str(k) / f"{i}{end}"
            if not path.exists():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    def check_form(self, section: str, column: str, k: int, tail: tuple[int, ...],
                   dtype: Any) -> None:
        array = self.zarr.open_array(self.path / section / column, mode="r")
        if array.shape[2:] != tail or array.dtype != np.dtype(dtype) or k >= array.shape[0]:
            raise ValueError(f"is an array of {array.dtype} of shape {array.shape}")

    def room(self, section: str, column: str, k: int) -> int:
        return int(self.zarr.open_array(self.path / section / column, mode="r").shape[1])

    def remove(self, section: str) -> None:
        with self.alone:
            group = self.zarr.open_group(self.path, mode="r+")
            if section in group:
                del group[section]
            self.counts.pop(section, None)
            self.arrays = {path: array for path, array in self.arrays.items()
                           if not path.startswith(f"{section}/")}
            self.forms = {path: form for path, form in self.forms.items()
                          if not path.startswith(f"{section}/")}
            self.dirty = {path for path in self.dirty if self.path / section not in path.parents}
