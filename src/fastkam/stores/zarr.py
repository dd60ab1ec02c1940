"""A zarr group: columns (chains, draws, ...) in chunks, compressed on request."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_integer, import_extra, shown
from fastkam.stores.store import Rows, Store

ADVICE = "pip install fastkam[zarr]; or give store= a path without .zarr, for a folder of .npy"
LEVELS = {"zstd": 1, "gzip": 1, "lz4": 1}  # by default: quick rather than small
COUNTS, STATE = "counts", "state"
DIMS = ("chain", "draw")


class Zarr(Store):
    """A zarr group (format 3): ``zarr.open("run.zarr")["draws/x"]`` is (chains, draws, d).

    ``["draws/counts"]`` are the rows that each chain has, which may be fewer. It needs zarr.

    Parameters
    ----------
    path : path
        A folder that does not exist yet, or is empty.
    compression : str or None
        "zstd", "gzip" or "lz4"; None, the default, writes quickest.
    level : int, optional
        Of the compression: 1, the default, is the quickest.
    """

    KIND, MARK = "zarr", "zarr.json"

    def __init__(self, path: str | os.PathLike[str], *, compression: str | None = None,
                 level: int | None = None) -> None:
        super().__init__(path)
        self.zarr = import_extra("zarr", ADVICE)
        if compression is not None and compression not in LEVELS:
            raise ValueError(f"compression must be None or one of {list(LEVELS)}, not "
                             f"{shown(compression)}")
        if level is not None:
            if compression is None:
                raise ValueError(f"level must be given with compression=, not alone: {level!r}")
            check_integer("level", level, least=0, most=9)
        self.compression, self.level = compression, level
        self.alone = threading.RLock()
        self.arrays: dict[str, Any] = {}
        self.dirty: set[Path] = set()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"zarr": None, "alone": None, "arrays": {}}

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
                self.arrays[path] = self.zarr.open_array(self.path / path, mode="r+")
            return self.arrays[path]

    def add(self, section: str, column: str, chains: int, tail: tuple[int, ...], dtype: Any,
            block: int) -> None:
        with self.alone:
            group = self.zarr.open_group(self.path, mode="r+").require_group(section)
            for name, shape, chunks, kind in (
                    (column, (chains, 0, *tail), (1, block, *tail), dtype),
                    (COUNTS, (chains,), (1,), "i8")):
                if name not in group:
                    group.create_array(
                        name, shape=shape, chunks=chunks, dtype=kind,
                        compressors=self.codecs() if name == column else None,
                        dimension_names=(*DIMS, *(f"{column}_dim_{i}" for i in range(len(tail)))
                                         )[: len(shape)])
                    self.dirty.add(self.path / section / name / self.MARK)

    def write(self, section: str, column: str, k: int, start: int, rows: NDArray[Any]) -> None:
        array, stop = self.array(section, column), start + len(rows)
        with self.alone:  # its shape and its metadata are those of all chains
            if not self.path.is_dir():  # zarr would make it again
                raise FileNotFoundError(f"there is no folder {str(self.path)!r} any more")
            if array.shape[1] < stop:
                array.resize((array.shape[0], stop, *array.shape[2:]))
                self.dirty.add(self.path / section / column / self.MARK)
            array[k, start:stop] = rows
            block, end = array.chunks[1], "/0" * (array.ndim - 2)
            self.dirty.update(self.path / section / column / "c" / str(k) / f"{i}{end}"
                              for i in range(start // block, -(-stop // block)))

    def publish(self, section: str, columns: list[str], k: int, count: int) -> None:
        with self.alone:
            self.array(section, COUNTS)[k] = count
            self.dirty.add(self.path / section / COUNTS / "c" / str(k))

    def read(self, section: str, column: str, k: int, rows: Rows) -> NDArray[Any]:
        array = self.array(section, column)
        if isinstance(rows, slice):
            return np.asarray(array[k, rows])
        return np.asarray(array.oindex[k, rows])

    def room(self, section: str, column: str, k: int) -> int:
        return int(self.zarr.open_array(self.path / section / column, mode="r").shape[1])

    def remove(self, section: str) -> None:
        with self.alone:
            group = self.zarr.open_group(self.path, mode="r+")
            if section in group:
                del group[section]
            self.arrays = {path: array for path, array in self.arrays.items()
                           if not path.startswith(f"{section}/")}
            self.dirty = {path for path in self.dirty if self.path / section not in path.parents}

    def sync(self) -> None:
        with self.alone:
            dirty, self.dirty = self.dirty, set()
            for path in list(dirty):
                if path.exists():  # zarr writes no chunk whose elements are all its fill value
                    number = os.open(path, os.O_RDONLY)
                    try:
                        os.fsync(number)
                    finally:
                        os.close(number)
