"""Base class of stores: a folder with columns of rows for each chain, a state, one writer."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import shown
from fastkam.run.files import alone, check_place, naming, place_of
from fastkam.run.interrupts import Shield

if TYPE_CHECKING:
    from pathlib import Path

LOCK = "lock"  # a file that the writing process holds locked
TRIED_BYTES = 2**17
MOMENT = 0.02  # seconds after which it is locked again if the first time fails
Rows = slice | NDArray[np.int64]  # a slice with a positive step, or indices (n,)
KINDS: list[type[Store]] = []  # in the order in which a path is offered to them

held: weakref.WeakSet[Store] = weakref.WeakSet()  # stores that this process writes


def let_go_after_fork() -> None:
    """Close inherited locks: a forked process must not hold them after its parent has ended."""
    for store in list(held):
        store.close_lock()


os.register_at_fork(after_in_child=let_go_after_fork)


class Store(ABC):
    """A folder that holds the rows of a run.

    Rows of chain k are kept in columns, which belong to sections ("draws", "warmup"). They are
    written first, and then published: a reader sees no more rows than are there. Rows after those
    of the last state are overwritten when a run continues.

    Attributes
    ----------
    path : Path
    blocked : bool
        Whether rows are better written in whole blocks.
    """

    KIND: ClassVar[str]
    MARK: ClassVar[str]  # a file by which a folder of this kind is recognized

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        KINDS.append(cls)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"store must be the path of a folder, not {shown(path)}")
        self.path = check_place("store", os.fsdecode(path))
        self.lock: int | None = None
        self.reserved = ExitStack()  # a lock until the store is there
        self.unfinished = ""  # the identity, until the first state has been written
        self.sections: set[str] = set()  # those that were made here
        self.own: tuple[str, int, int] | None = None  # path, device and inode of the locked file
        self.blocked = False
        self.dirty: set[Path] = set()  # files that may not be on the disk yet
        self.known: tuple[tuple[int, int], str] | None = None  # see `check_identity`
        self.removals: dict[str, int] = {}  # how often each section has been removed

    # ---- what a kind of store implements ----

    @abstractmethod
    def make(self, about: dict[str, Any]) -> None:
        """Make an empty store, which keeps `about` (JSON)."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """The description that `make` has stored."""

    @property
    @abstractmethod
    def state_path(self) -> Path:
        """The file for the state of the run."""

    @abstractmethod
    def add(self, section: str, column: str, chains: int, tail: tuple[int, ...], dtype: Any,
            block: int) -> None:
        """Make an empty column with rows of shape `tail`, or leave one that is there.

        `block` is the number of rows that are usually written at once.
        """

    @abstractmethod
    def write(self, section: str, column: str, k: int, start: int, rows: NDArray[Any]) -> None:
        """Write rows of chain k, from the row `start` on."""

    @abstractmethod
    def publish(self, section: str, columns: list[str], k: int, count: int) -> None:
        """Let readers know that chain k has `count` rows."""

    @abstractmethod
    def read(self, section: str, column: str, k: int, rows: Rows) -> NDArray[Any]:
        """A copy of some rows of chain k."""

    @abstractmethod
    def check_form(self, section: str, column: str, k: int, tail: tuple[int, ...],
                   dtype: Any) -> None:
        """Raise ValueError, with what chain k has, unless it has rows of this kind."""

    @abstractmethod
    def room(self, section: str, column: str, k: int) -> int:
        """Number of rows of chain k that can be read."""

    @abstractmethod
    def remove(self, section: str) -> None:
        """Remove a section, if it is there."""

    def finish(self) -> None:  # noqa: B027  (not all kinds have something to do)
        """Bring the files into the form that other programs expect, at the end of a run."""

    # ---- what they have in common ----

    def clear(self, section: str) -> None:
        """Remove a section; traces of its rows so far are refused from then on."""
        self.check_own()
        self.remove(section)
        self.removals[section] = self.removals.get(section, 0) + 1

    def put(self, path: Path, data: Any, place: int, size: int) -> None:
        """Write bytes into a file that has at least `size` bytes.

        FileNotFoundError if it was deleted, or is that of another run; OSError if it was cut.
        """
        view = memoryview(data).cast("B")
        number = os.open(path, os.O_WRONLY)
        try:
            found = os.fstat(number).st_size
            if found < size:  # bytes beyond its end would leave zeros before them
                raise OSError(errno.EIO, f"a file was cut to {found} bytes during the run",
                              str(path))
            self.check_own()  # once the file is open, so that it cannot be exchanged any more
            while len(view):
                written = os.pwrite(number, view, place)
                if not written:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
                view, place = view[written:], place + written
        finally:
            os.close(number)
        self.dirty.add(path)

    def sync(self) -> None:
        """Flush to the disk what was written since the last call."""
        dirty, self.dirty = self.dirty, set()
        for path in list(dirty):  # other threads may add to it
            with suppress(FileNotFoundError):  # a file of a section that has been removed
                number = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(number)
                finally:
                    os.close(number)

    # ---- its life ----

    def check_free(self) -> None:
        """Refuse a place where no new store can be made."""
        path = self.path
        if not path.parent.is_dir():
            raise ValueError(f"store must be in a folder that exists, not {str(path)!r}")
        if path.is_dir() and not is_beginning(path):
            if self.holds_run():
                raise FileExistsError(
                    f"store={str(path)!r} holds a run already: go on with it, "
                    f"fk.resume({str(path)!r}, target=...), or give another path")
            raise FileExistsError(f"store={str(path)!r} is a folder with other files, and no store "
                                  "of fastkam: give a path that does not exist yet")
        if path.exists() and not path.is_dir():
            raise FileExistsError(f"store={str(path)!r} is a file: give the path of a folder")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(f"store={str(path)!r} is in a folder without permission to write")

    def holds_run(self) -> bool:
        """Whether the folder is a store of fastkam, perhaps of another version."""
        try:
            return "fastkam" in self.about()
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return False

    @contextmanager
    def new(self) -> Iterator[None]:
        """A context in which the store of a run is made, and for which no other run may have begun.

        The folder is tried before any work; if no state has been written at the end, it is as
        before.
        """
        self.check_free()
        found = self.path.exists()
        # a lock cannot be beside an empty folder in one without permission
        beside = os.access(self.path.parent, os.W_OK)
        with ExitStack() as stack:
            if beside:
                stack.enter_context(alone("store", self.path))
            self.reserved = stack  # not before a second run with this object has been refused
            with self.naming():
                self.try_out()
            try:
                yield
            finally:
                own, self.unfinished = self.unfinished, ""
                with suppress(OSError, ValueError):  # moved, or replaced by that of another run
                    if own and self.identity() == own:
                        self.undo(found)

    def try_out(self) -> None:
        """Write as many bytes as a short run needs, and remove them."""
        found = self.path.exists()
        self.path.mkdir(exist_ok=True)
        # by a process that was killed here
        for left in self.path.glob("." + 16 * "[0-9a-f]" + ".partial"):
            left.unlink(missing_ok=True)
        trial = self.path / f".{secrets.token_hex(8)}.partial"
        try:
            with trial.open("xb") as file:
                file.write(bytes(TRIED_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            trial.unlink(missing_ok=True)
            if not found:
                self.path.rmdir()

    def undo(self, found: bool) -> None:
        """Remove what was written here, and the folder unless it was `found` or holds more."""
        state = self.state_path.relative_to(self.path).parts[0]
        for name in (self.MARK, f"{self.MARK}.new", state, LOCK, *self.sections):
            if (self.path / name).is_dir():
                shutil.rmtree(self.path / name, ignore_errors=True)
            else:
                (self.path / name).unlink(missing_ok=True)
        if not found:
            self.path.rmdir()

    def naming(self) -> AbstractContextManager[None]:
        """A context in which an OSError says that this store cannot be written, and why."""
        return naming("store", str(self.path))

    def create(self) -> str:
        """Make the store; return its identity."""
        self.check_free()
        found = self.path.exists()
        identity = secrets.token_hex(8)
        with self.naming(), Shield():
            try:
                self.path.mkdir(exist_ok=True)
                self.make({"fastkam": 1, "kind": self.KIND, "id": identity})
            except Exception:  # the same call could not be repeated
                with suppress(OSError):
                    self.undo(found)
                raise
            self.unfinished = identity
        self.reserved.close()
        return identity

    def identity(self) -> str:
        """The identity that `create` returned; ValueError if there is no store."""
        try:
            about = self.about()
        except FileNotFoundError:
            what = "is not there any more" if not self.path.exists() else "holds no run of fastkam"
            raise ValueError(f"store {str(self.path)!r} {what}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"store {str(self.path)!r} has a damaged {self.MARK}: {error}"
                             ) from None
        if about.get("fastkam") != 1 or not isinstance(about.get("id"), str):
            raise ValueError(f"store {str(self.path)!r} is not one that this version of fastkam "
                             "writes")
        return str(about["id"])

    def check_identity(self, identity: str) -> None:
        """Refuse to read the rows of a run if its store has been replaced by that of another run.

        The file with the identity is read again only if it has changed. If it is missing, the files
        with the rows will be, too.
        """
        try:
            about = os.stat(self.path / self.MARK)
        except FileNotFoundError:
            return
        version = about.st_ino, about.st_ctime_ns
        if self.known is None or self.known[0] != version:
            self.known = version, self.identity()
        if self.known[1] != identity:
            raise ValueError(f"the draws of this run are not in {str(self.path)!r} any more: that "
                             "store belongs to another run now")

    def check_own(self) -> None:
        """Raise FileNotFoundError if the path leads to another folder than that which is locked.

        It has been moved or deleted, and another run may have made a store there. The lock tells
        them apart, since no other file gets the inode of one that is open.
        """
        if self.own is None:
            return
        path, *own = self.own
        with suppress(OSError):
            found = os.stat(path)
            if own == [found.st_dev, found.st_ino]:
                return
        raise FileNotFoundError(
            errno.ENOENT, "this folder, or the file lock in it, was moved, deleted or replaced "
                          "during the run; resume from the folder where it is now",
            str(self.path))

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """A context in which this process alone writes; BlockingIOError if another one does."""
        if self.lock is not None:  # a run within a run of the same thread: a progress function
            raise BlockingIOError(errno.EWOULDBLOCK, f"store={str(self.path)!r} is being written "
                                                     "by another run of this process")
        self.identity()
        self.take_lock()
        held.add(self)
        try:
            yield self
        finally:
            with suppress(OSError):
                self.finish()
            held.discard(self)
            self.close_lock()

    def take_lock(self) -> None:
        """Lock the store, if the file system has locks."""
        path = self.state_path.parent / LOCK
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # perhaps for a moment, by `being_written` of a reader
                time.sleep(MOMENT)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise BlockingIOError(
                errno.EWOULDBLOCK,
                f"store={str(self.path)!r} is being written by another run: wait for its end, or "
                "give another path") from None
        except OSError:  # a file system without locks
            pass
        status = os.fstat(lock)
        self.lock, self.own = lock, (str(path), status.st_dev, status.st_ino)

    @property
    def being_written(self) -> bool:
        """Whether a process holds the lock."""
        try:
            number = os.open(self.state_path.parent / LOCK, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
        finally:
            os.close(number)
        return False

    def close_lock(self) -> None:
        """Close the locked file, which releases the lock."""
        lock, self.lock, self.own = self.lock, None, None
        if lock is not None:
            os.close(lock)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"lock": None, "own": None, "known": None, "reserved": None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"


def as_store(store: Any) -> Store | None:
    """The Store of the argument `store`: a path that ends with .zarr is that of a zarr group."""
    if store is None or isinstance(store, Store):
        return store
    if not isinstance(store, (str, os.PathLike)):
        raise TypeError(f"store must be the path of a folder, or an object of fastkam.stores, not "
                        f"{shown(store)}")
    kinds = {kind.KIND: kind for kind in KINDS}
    return kinds["zarr" if os.fsdecode(store).rstrip("/").endswith(".zarr") else "npy"](store)


def is_beginning(path: Path) -> bool:
    """Whether a folder is empty, as a store is while it is being made, but for parts of files."""
    return all(".partial" in one.name for one in path.iterdir())


def check_outside(name: str, path: str | os.PathLike[str]) -> None:
    """Refuse a path inside the folder of a store, where the file could replace one of the store."""
    for folder in place_of(path).parents:
        if store_at(folder) is not None:
            raise ValueError(f"{name} must be a file outside of the store {str(folder)!r}, not "
                             f"{shown(path)}: give another name")


def store_at(path: Path) -> Store | None:
    """The store in a folder; None if it holds none."""
    for kind in KINDS:
        if (path / kind.MARK).exists():
            return kind(path)
    return None
