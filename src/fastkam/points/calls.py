"""The known calls of a density: in memory, and in a file to which they are appended."""

from __future__ import annotations

import errno
import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import fields_of, packed, unpacked, width
from fastkam.arguments import told
from fastkam.points.evaluations import all_of, read_sections
from fastkam.points.records import (
    ERROR_BYTES,
    WORKER_BYTES,
    Fields,
    Form,
    blank,
    end_of_first,
    sealed,
)
from fastkam.points.reply import PointLost, Reply
from fastkam.run.faults import Unwritten
from fastkam.run.files import check_path, place_of

START = 4096  # bytes in which the first record is looked for, then in twice as many

open_files: weakref.WeakSet[FileOfCalls] = weakref.WeakSet()


def let_go_after_fork() -> None:
    """Close the files that a forked process has inherited.

    It must neither hold their locks after its parent has ended, nor append to them.
    """
    for calls in list(open_files):
        calls.let_go()


os.register_at_fork(after_in_child=let_go_after_fork)


class Calls:
    """Replies by the bytes of their points.

    Parameters
    ----------
    keep_failures : bool
        Whether a failed call is known too; otherwise it is made again.
    """

    def __init__(self, keep_failures: bool = True) -> None:
        self.known: dict[bytes, Reply] = {}
        self.keep_failures = keep_failures

    def get(self, key: bytes) -> Reply | None:
        """The reply at a point, if it is known."""
        return self.known.get(key)

    def repeat(self, key: bytes) -> None:
        """Forget the reply at a point, so that the call is made again."""
        self.known.pop(key, None)

    def add(self, replies: list[tuple[bytes, Reply]]) -> None:
        """Keep the replies of calls."""
        self.known.update(replies)

    def start(self) -> bytes:
        """Return the file's bytes up to the end of its first record, which stay as they are.

        They are b"" without a file, or if it has no record or cannot be read.
        """
        return b""

    def close(self) -> None:
        """Do nothing: no resource is open."""


class FileOfCalls(Calls):
    """Calls that are kept in a file.

    Each call is written at once, in one piece, without a buffer in this process; the file is
    flushed to the disk when it is closed. An incomplete record at its end is removed before others
    are added.

    Parameters
    ----------
    path : path
        The file, which is created if it does not exist.
    form : Form
        Layout of new calls, without extras, which the first call determines.
    keep_failures : bool
        Whether a failed call in the file counts as made.

    Raises
    ------
    ValueError
        If the file is damaged, has points of another dimension or other names, or is in use.
    """

    file = -1

    def __init__(
        self, path: str | os.PathLike[str], form: Form, keep_failures: bool
    ) -> None:
        super().__init__(keep_failures)
        self.read: dict[bytes, Reply] = {}  # the last reply at each point in the file
        check_path("evaluations", path)
        self.path, self.form = path, form
        self.written = form  # the last header of the file
        self.file = os.open(place_of(path), os.O_RDWR | os.O_CREAT, 0o666)
        open_files.add(self)
        try:
            self.lock()
            self.take()
        except BaseException:
            self.close()
            raise

    def lock(self) -> None:
        """Refuse a file to which another run appends.

        The lock belongs to the open file: a lock of the process would be lost if any code in it
        read the file and closed it.
        """
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"evaluations={os.fspath(self.path)!r} is in use by another run") from None
        except OSError:  # a file system without locks
            pass

    def take(self) -> None:
        """Read the file and remove an incomplete record at its end; begin an empty file."""
        data = all_of(self.file)
        if data:
            sections, self.end = read_sections(self.path, data)
            last = sections[-1][0]
            self.check(last)
            for form, rows in sections:
                for key, reply in replies_of(form, rows):
                    if self.keep_failures or reply.error is None:
                        self.read[key] = reply
                        if key not in self.known or self.known[key].error is not None:
                            self.known[key] = reply
            self.written, self.form = last, replace(self.form, extras=last.extras)
            os.ftruncate(self.file, self.end)
        else:
            self.end = 0
            self.append(self.form.header())

    def start(self) -> bytes:
        size = START
        with suppress(OSError, ValueError):  # ValueError: another process has changed it
            while True:
                data = os.pread(self.file, size, 0)
                end = end_of_first(data)
                if end is not None:
                    return data[:end]
                if len(data) < size:
                    break
                size *= 2
        return b""

    def check(self, form: Form) -> None:
        """Refuse a file of another density."""
        path = os.fspath(self.path)
        if form.d != self.form.d:
            raise ValueError(f"evaluations={path!r} has points of {form.d} coordinates, and those "
                             f"of this density have {self.form.d}")
        if form.names and self.form.names and form.names != self.form.names:
            raise ValueError(f"evaluations={path!r} has points with the coordinates {form.names}, "
                             f"and those of this density are {self.form.names}")

    def repeat(self, key: bytes) -> None:
        """Have the call at a point made again, unless it is in the file.

        The reply is then the last one there: if the call was repeated by the run that made it, and
        the density is random, it differs from the first.
        """
        if key in self.read:
            self.known[key] = self.read[key]
        else:
            super().repeat(key)

    def add(self, replies: list[tuple[bytes, Reply]]) -> None:
        super().add(replies)
        fields: Fields = next(
            (fields_of(reply.extras) for _, reply in replies if reply.extras), {})
        gradient = self.form.gradient or any(r.gradient is not None for _, r in replies)
        form, extras = self.form, self.form.extras or fields
        if (gradient, extras) != (form.gradient, form.extras):  # a new form has to make its dtype
            form = replace(form, gradient=gradient, extras=extras)
        head = b"" if form is self.written or form == self.written else form.header()
        self.append(head + sealed(rows_of(form, replies)))
        self.form = self.written = form

    def append(self, data: bytes) -> None:
        """Write at the end; if that fails, raise Unwritten and leave the file as it was."""
        try:
            self.check_alone()
            self.write(data)
        except OSError as error:
            code = error.errno or errno.EIO
            raise Unwritten(code, f"evaluations={os.fspath(self.path)!r} cannot be written: "
                                  f"{error.strerror or error}") from error

    def write(self, data: bytes) -> None:
        """Write at the end; if that fails, leave the file as it was."""
        end, written = self.end, 0
        try:
            while written < len(data):
                written += os.pwrite(self.file, data[written:], end + written)
            self.end = end + written
        except BaseException:  # an interrupt too
            self.end = end
            os.ftruncate(self.file, end)
            raise

    def check_alone(self) -> None:
        """Raise OSError if the file is not as this run has left it.

        It was deleted or replaced, or, without locks, changed by another process.
        """
        if self.file < 0:
            raise OSError(errno.EBADF, "a process that was forked does not write the file of calls "
                                       "of its parent")
        now = os.fstat(self.file)
        if now.st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "it has been deleted or replaced")
        if now.st_size != self.end:
            raise OSError(errno.EBUSY, f"another process has changed it: it has {now.st_size} "
                                       f"bytes in place of {self.end}")

    def let_go(self) -> None:
        """Close the file, whatever its state."""
        file, self.file = self.file, -1
        open_files.discard(self)
        if file >= 0:
            os.close(file)

    def close(self) -> None:
        """Close the file."""
        if self.file < 0:
            return
        try:
            with suppress(OSError):  # some file systems do not support it
                os.fsync(self.file)
        finally:
            self.let_go()


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
        if width(form.extras):
            row["extras"] = packed(reply.extras or blank(form.extras), form.extras)
    return rows


def text_of(error: BaseException) -> str:
    """An error in one line."""
    return told(error)


def replies_of(form: Form, rows: NDArray[Any]) -> Iterator[tuple[bytes, Reply]]:
    """The replies in records, by the bytes of their points."""
    packed_rows = rows["extras"] if width(form.extras) else np.empty((len(rows), 0))
    extras = unpacked(packed_rows, form.extras)
    for i, row in enumerate(rows):
        error = row["error"].decode("utf-8", "replace")
        yield row["x"].tobytes(), Reply(
            float(row["value"]),
            row["gradient"].copy() if form.gradient and not error else None,
            {name: value[i] for name, value in extras.items()} or None,
            float(row["seconds"]), row["worker"].decode("utf-8", "replace"),
            PointLost(error) if error else None)
