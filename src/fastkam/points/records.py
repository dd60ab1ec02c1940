"""The file of evaluations as bytes: headers, each followed by the records that it describes.

    file    := section+
    section := header record*
    header  := MAGIC, length of the text (u4), its CRC-32 (u4), text (JSON), spaces to 8 bytes
    record  := MARK, CRC-32 of what follows (u4), x, log density, seconds, time, worker, error,
               gradient, extras

All numbers are little-endian. All records of a section have the same size. A new section begins
with the first extras, which the header before does not describe. Nothing is pickled.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"fkcalls1"
MARK = b"call"
WORKER_BYTES, ERROR_BYTES = 32, 96
MOST_HEADER = 2**24  # bytes; longer headers are invalid
MOST_RECORD = 2**30
MOST_AXES = 32  # axes of an extra
MOST_LOOKS = 64  # possible headers examined in a damaged end
FIRST_ROWS = 1024  # first examined for their marks, then twice as many while all have them

Fields = dict[str, tuple[tuple[int, ...], str]]


@dataclass(frozen=True)
class Form:
    """The layout of the records of a section.

    Attributes
    ----------
    d : int
        Coordinates of x.
    names : list of str
        Labels of the coordinates; empty if they have none.
    gradient : bool
        Whether there are gradients.
    extras : dict
        {name: (shape, type)} of the extras that the function returns.
    target : str
        A digest of the function; "" if there is none.
    """

    d: int
    names: list[str] = field(default_factory=list)
    gradient: bool = False
    extras: Fields = field(default_factory=dict)
    target: str = ""

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of a record."""
        parts: list[Any] = [
            ("mark", "S4"), ("crc", "<u4"), ("x", "<f8", (self.d,)), ("value", "<f8"),
            ("seconds", "<f8"), ("time", "<f8"), ("worker", f"S{WORKER_BYTES}"),
            ("error", f"S{ERROR_BYTES}")]
        if self.gradient:
            parts.append(("gradient", "<f8", (self.d,)))
        width = sum(prod(shape) for shape, _ in self.extras.values())
        if width:
            parts.append(("extras", "<f8", (width,)))
        return np.dtype(parts)

    def header(self) -> bytes:
        """The header of a section."""
        text = json.dumps({
            "d": self.d, "names": self.names, "gradient": self.gradient, "target": self.target,
            "extras": {name: [list(shape), kind] for name, (shape, kind) in self.extras.items()},
        }).encode()
        text += b" " * (-len(text) % 8)
        return MAGIC + np.array([len(text), zlib.crc32(text)], "<u4").tobytes() + text


def read_header(data: bytes, start: int) -> tuple[Form, int] | None:
    """The header at a position of a file and its end; None if it is incomplete.

    ValueError if there is something else.
    """
    head = data[start : start + 16]
    if not (MAGIC + head[8:]).startswith(head[: len(MAGIC)]) or head[:8] != MAGIC[: len(head)]:
        raise ValueError("it does not begin like such a file")
    if len(head) < 16:
        return None
    length, crc = (int(n) for n in np.frombuffer(head[8:], "<u4"))
    text = data[start + 16 : start + 16 + length]
    if length > MOST_HEADER:
        raise ValueError("its header is damaged")
    if len(text) < length:
        return None
    if zlib.crc32(text) != crc:
        raise ValueError("its header is damaged")
    try:
        return form_of(json.loads(text)), start + 16 + length
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
            RecursionError) as error:
        raise ValueError(f"its header is not understood: {error}") from None


def end_of_first(data: bytes) -> int | None:
    """Find the end of the first record of a file; None if it is not among its bytes `data`."""
    form, end = None, 0
    while data[end : end + len(MAGIC)] == MAGIC:
        found = read_header(data, end)
        if found is None:
            return None
        form, end = found
    if form is not None:
        end += form.dtype.itemsize
    return end if form is not None and end <= len(data) else None


def form_of(told: dict[str, Any]) -> Form:
    """The Form in the text of a header."""
    extras = {str(name): (tuple(int(n) for n in shape), str(kind))
              for name, (shape, kind) in told["extras"].items()}
    names, d = [str(name) for name in told["names"]], int(told["d"])
    shapes = [shape for shape, _ in extras.values()]
    kinds = {kind for _, kind in extras.values()}
    doubles = d + sum(prod(shape) for shape in shapes)
    if (d < 1 or len(names) not in (0, d) or kinds - {"f8", "i8", "b1"}
            or not 8 * doubles <= MOST_RECORD
            or any(len(shape) > MOST_AXES or not all(0 <= n <= MOST_RECORD for n in shape)
                   for shape in shapes)):
        raise ValueError("its numbers are impossible")
    return Form(d, names, bool(told["gradient"]), extras, str(told["target"]))


def read_records(data: bytes, start: int, form: Form) -> tuple[NDArray[Any], int]:
    """The valid records from a position on, and their end.

    They end with the file, before the next header, or before an incomplete record. ValueError if
    valid records follow a damaged one.
    """
    dtype, view = form.dtype, memoryview(data)
    size, n = dtype.itemsize, (len(data) - start) // dtype.itemsize
    rows = np.frombuffer(data, dtype, n, start)

    def good_at(i: int) -> bool:
        return rows["mark"][i] == MARK and is_good(view, start + i * size, size, rows["crc"][i])

    marked = marked_rows(rows)
    end = start + marked * size
    followed = data[end : end + len(MAGIC)] == MAGIC  # another section follows
    good = next((i for i in range(marked) if not good_at(i)), marked)
    later = range(good + 1, 0 if followed else n)
    if (followed and good < marked) or any(good_at(i) for i in later):
        raise ValueError(f"the record at byte {start + good * size} is damaged, and others follow")
    if not followed:
        check_end(data, start + good * size)
    return rows[:good].copy(), start + good * size


def marked_rows(rows: NDArray[Any]) -> int:
    """Count the rows before the first without the mark of a record."""
    start, n = 0, FIRST_ROWS
    while start < len(rows):
        other = np.flatnonzero(rows["mark"][start : start + n] != MARK)
        if len(other):
            return start + int(other[0])
        start, n = start + n, 2 * n
    return len(rows)


def check_end(data: bytes, start: int) -> None:
    """Refuse bytes after the last valid record, unless a killed process may have left them.

    They are damaged if they have a section, or a whole header with a damaged mark or length.
    """
    end = data[start : start + 16]
    whole = is_header(MAGIC + data[start + 8 : start + 16 + MOST_HEADER], 0)
    if end.startswith(MAGIC) and not whole:  # a damaged length
        text = data[start + 16 : start + 16 + MOST_HEADER].decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            whole = isinstance(json.JSONDecoder().raw_decode(text)[0], dict)
    at = start
    for _ in range(MOST_LOOKS):
        at = data.find(MAGIC, at + 1)
        if whole or at < 0:
            break
        whole = is_header(data, at)
    if whole:
        raise ValueError(f"it is damaged at byte {start}, and a section follows")


def is_header(data: bytes, start: int) -> bool:
    """Whether there is a whole header at a position of a file."""
    with suppress(ValueError):
        return read_header(data, start) is not None
    return False


def is_good(view: memoryview, start: int, size: int, crc: Any) -> bool:
    """Whether a record matches its checksum."""
    return zlib.crc32(view[start + 8 : start + size]) == int(crc)


def sealed(rows: NDArray[Any]) -> bytes:
    """Records as bytes, with marks and checksums."""
    rows["mark"] = MARK
    size, data = rows.dtype.itemsize, rows.tobytes()
    rows["crc"] = [zlib.crc32(data[i * size + 8 : (i + 1) * size]) for i in range(len(rows))]
    return rows.tobytes()


def blank(fields: Fields) -> dict[str, Any]:
    """Empty extras, for a point at which there were none."""
    return {name: np.full(shape, np.nan) if kind == "f8" else np.zeros(shape, kind)
            for name, (shape, kind) in fields.items()}
