"""The calls of a run that are known: in memory, and in a file to which they are appended."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import fields_of, packed, unpacked
from fastkam.points.evaluations import read_sections
from fastkam.points.records import ERROR_BYTES, WORKER_BYTES, Fields, Form, blank, sealed
from fastkam.points.reply import PointLost, Reply
from fastkam.run.files import check_path, place_of

in_use: set[str] = set()  # files to which this process appends: its locks do not see each other


class Calls:
    """Replies by the bytes of their points.

    Parameters
    ----------
    keep_failures : bool
        Whether a call that has failed is known too, or is made again.
    """

    def __init__(self, keep_failures: bool = True) -> None:
        self.known: dict[bytes, Reply] = {}
        self.keep_failures = keep_failures

    def get(self, key: bytes) -> Reply | None:
        """The reply at a point, if it is known."""
        return self.known.get(key)

    def add(self, replies: list[tuple[bytes, Reply]]) -> None:
        """Keep what calls have returned."""
        self.known.update(replies)

    def close(self) -> None:
        """Nothing has been opened."""


class FileOfCalls(Calls):
    """Calls that a file keeps.

    Each is written as it comes in, in one piece, and not held back in memory of this process; what
    the system has is sent to the disk when the file is closed. A record that is torn, at the end,
    is cut off before others are added.

    Parameters
    ----------
    path : path
        The file, which is made where there is none.
    form : Form
        Of the calls to come; without extras, which the first of them shows.
    keep_failures : bool
        Whether a call in the file that has failed counts as made.

    Raises
    ------
    ValueError
        If the file is damaged, has points of another dimension or other names, or is in use.
    """

    def __init__(
        self, path: str | os.PathLike[str], form: Form, keep_failures: bool
    ) -> None:
        super().__init__(keep_failures)
        check_path("evaluations", path)
        self.path, self.form = path, form
        self.name = os.fspath(place_of(path))
        self.file = -1
        self.written = form  # the last header of the file
        if self.name in in_use:
            raise ValueError(f"evaluations={os.fspath(path)!r} is in use by another run")
        there = os.path.exists(self.name) and os.path.getsize(self.name) > 0
        self.file = os.open(self.name, os.O_RDWR | os.O_CREAT, 0o666)
        in_use.add(self.name)
        try:
            self.lock()
            self.take(there)
        except BaseException:
            self.close()
            raise

    def lock(self) -> None:
        """Refuse a file to which another process appends."""
        try:
            # not of the open file, which processes that are forked would hold on to
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"evaluations={os.fspath(self.path)!r} is in use by another run") from None
        except OSError:  # a file system without locks
            pass

    def take(self, there: bool) -> None:
        """Read what the file has, and cut off what is torn; begin a new one."""
        if there:
            with open(os.dup(self.file), "rb", closefd=True) as file:
                file.seek(0)
                sections, self.end = read_sections(self.path, file.read())
            last = sections[-1][0]
            self.check(last)
            for form, rows in sections:
                self.known.update((key, reply) for key, reply in replies_of(form, rows)
                                  if self.keep_failures or reply.error is None)
            self.written, self.form = last, replace(self.form, extras=last.extras)
            os.ftruncate(self.file, self.end)
        else:
            self.end = 0
            self.append(self.form.header())

    def check(self, form: Form) -> None:
        """Refuse a file of another density."""
        path = os.fspath(self.path)
        if form.d != self.form.d:
            raise ValueError(f"evaluations={path!r} has points of {form.d} coordinates, and those "
                             f"of this density have {self.form.d}")
        if form.names and self.form.names and form.names != self.form.names:
            raise ValueError(f"evaluations={path!r} has points with the coordinates {form.names}, "
                             f"and those of this density are {self.form.names}")

    def add(self, replies: list[tuple[bytes, Reply]]) -> None:
        super().add(replies)
        fields: Fields = next(
            (fields_of(reply.extras) for _, reply in replies if reply.extras), {})
        gradient = self.form.gradient or any(r.gradient is not None for _, r in replies)
        form = replace(self.form, gradient=gradient, extras=self.form.extras or fields)
        head = b"" if form == self.written else form.header()
        self.append(head + sealed(rows_of(form, replies)))
        self.form = self.written = form

    def append(self, data: bytes) -> None:
        """Write at the end; where that fails, leave the file as it was."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self.file, data[written:], self.end + written)
        except OSError:
            os.ftruncate(self.file, self.end)
            raise
        self.end += len(data)

    def close(self) -> None:
        """Close the file."""
        if self.file < 0:
            return
        file, self.file = self.file, -1
        in_use.discard(self.name)
        try:
            os.fsync(file)
        except OSError:  # of a pipe and the like
            pass
        finally:
            os.close(file)


def rows_of(form: Form, replies: list[tuple[bytes, Reply]]) -> NDArray[Any]:
    """Records of replies."""
    rows = np.zeros(len(replies), form.dtype)
    rows["x"] = np.frombuffer(b"".join(key for key, _ in replies)).reshape(len(replies), form.d)
    rows["time"] = time.time()
    for row, (_, reply) in zip(rows, replies, strict=True):
        row["value"], row["seconds"] = reply.value, reply.seconds
        row["worker"] = reply.worker.encode()[:WORKER_BYTES]
        if reply.error is not None:
            row["error"] = text_of(reply.error).encode("utf-8", "replace")[:ERROR_BYTES]
        if form.gradient:
            row["gradient"] = np.nan if reply.gradient is None else reply.gradient
        if form.extras:
            row["extras"] = packed(reply.extras or blank(form.extras), form.extras)
    return rows


def text_of(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"


def replies_of(form: Form, rows: NDArray[Any]) -> Iterator[tuple[bytes, Reply]]:
    """The replies in records, by the bytes of their points."""
    extras = unpacked(rows["extras"], form.extras) if form.extras else {}
    for i, row in enumerate(rows):
        error = row["error"].decode("utf-8", "replace")
        gradient = row["gradient"].copy() if form.gradient else None
        yield row["x"].tobytes(), Reply(
            float(row["value"]),
            None if gradient is None or np.isnan(gradient).all() else gradient,
            {name: value[i] for name, value in extras.items()} or None,
            float(row["seconds"]), row["worker"].decode("utf-8", "replace"),
            PointLost(error) if error else None)
