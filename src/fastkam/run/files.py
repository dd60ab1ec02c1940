"""Files that are replaced as a whole: written under another name, then renamed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from fastkam.arguments import shown

if TYPE_CHECKING:
    from pathlib import Path

UNFINISHED, BACKUP, LOCK = ".unfinished", ".bak", ".lock"
MOST_NAME = 255 - len(".." + UNFINISHED) - 16  # bytes of a name that unfinished files keep


locks: set[int] = set()  # open files that this process has locked


def let_go_after_fork() -> None:
    """Close inherited locks: a forked process must not hold them after its parent has ended."""
    for number in locks:
        os.close(number)
    locks.clear()


os.register_at_fork(after_in_child=let_go_after_fork)


def check_path(name: str, path: Any, *, result: bool = False) -> None:
    """Refuse, before any work, the path of a file that could not be written.

    With `result`, the place of a run, a file that has something else is refused, too.
    """
    if path is None:
        return
    file = check_place(name, path)
    if file.is_symlink():
        raise ValueError(f"{name} must be a file, not {shown(path)}, a loop of symbolic links")
    if file.is_dir() or not file.parent.is_dir():
        raise ValueError(f"{name} must be a file in a folder that exists, not {shown(path)}")
    if file.exists() and not file.is_file():
        raise ValueError(f"{name} must be a plain file, not {shown(path)}, which is a device, "
                         "a pipe or a socket")
    if file.exists() and not os.access(file, os.W_OK):
        raise PermissionError(f"{name}={str(path)!r} is a file without permission to write")
    if not os.access(file.parent, os.W_OK):
        raise PermissionError(f"{name}={str(path)!r} is in a folder without permission")
    if result and file.exists() and not may_be_result(file):
        raise ValueError(f"{name} must be a new file or one that fastkam has written, not "
                         f"{shown(path)}, which has something else: give another name")


def check_output(name: str, path: Any) -> None:
    """Refuse the path of a file that could not be written, or that has a run or its calls."""
    if path is None:
        raise TypeError(f"{name} must be the path of a file, not None")
    check_path(name, path)
    file = place_of(path)
    if file.exists() and file.stat().st_size and (may_be_calls(file) or may_be_result(file)):
        raise ValueError(f"{name} must be another file than that of a run, or of its calls, not "
                         f"{shown(path)}: give another name")


def check_place(name: str, path: Any) -> Path:
    """The file to which a path leads; otherwise an error that names the argument."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, not {shown(path)}")
    try:
        if not os.fspath(path):
            raise ValueError("it is empty; is a variable not set?")
        place = place_of(path)
        for one in (place, path):  # a long name before ".." is in the second alone
            # a new file, or a folder of which the caller says that it does not exist
            with suppress(FileNotFoundError, NotADirectoryError):
                os.lstat(one)
    except ValueError as error:  # empty, a zero byte, or half of a surrogate pair
        raise ValueError(f"{name} must be a path, not {shown(path)}: {error}") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(f"{name} must be a shorter path, not {shown(path)}: the system allows "
                             "no such long name of a file or folder") from None
        raise OSError(error.errno, f"{name}={str(path)!r} cannot be reached: {error.strerror}"
                      ) from None
    return place


def may_be_result(file: Path) -> bool:
    """Whether a file begins as that of a run does (`fastkam.run.members`), or is empty."""
    with file.open("rb") as opened:
        start = opened.read(64)
    return not start or (start[:4] == b"PK\3\4" and b".npy" in start)


def may_be_calls(file: Path) -> bool:
    """Whether a file begins as one of stored calls does (`fastkam.points.records`)."""
    with file.open("rb") as opened:
        return opened.read(8) == b"fkcalls1"


def place_of(path: str | os.PathLike[str]) -> Path:
    """The file to which a path leads through symbolic links; it need not exist."""
    from pathlib import Path  # which takes long to load, and runs without files do not need

    return Path(os.path.realpath(path))


def in_place(path: str | os.PathLike[str]) -> str:
    """Name the folder of a file without symbolic links; one that is the file keeps its name."""
    folder, name = os.path.split(os.fspath(path))
    return os.path.join(os.path.realpath(folder), name)


@contextmanager
def replacing(
    path: str | os.PathLike[str], aside: Path | None = None
) -> Iterator[BinaryIO]:
    """A context with a new file, open for writing, that replaces `path` if the context succeeds.

    Until then an old file of that name is unchanged; then it is moved to `aside`, if that is given.
    The new file has its permissions. A symbolic link stays, and the file to which it leads is
    replaced.
    """
    place = place_of(path)
    old = plain_file(place)
    if aside is not None:
        plain_file(aside)
    temporary, file = unfinished(place)
    try:
        with file:
            if old is not None:
                if os.geteuid() == 0:  # otherwise root would become the owner
                    with suppress(OSError):
                        os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if aside is not None:
                with suppress(FileNotFoundError):  # another run has moved it
                    os.replace(place, aside)
            os.replace(temporary, place)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(place.parent)


def plain_file(place: Path) -> os.stat_result | None:
    """The status of a file, None if there is none; an error if it is not a plain file."""
    found = place.stat() if place.exists() else None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(place))
    return found


def backup_of(path: str | os.PathLike[str], number: int = 1) -> Path:
    """The path to which an old file is moved, beside it; with a number if that is not 1."""
    place = place_of(path)
    return place.with_name(beginning(place) + BACKUP + (str(number) if number > 1 else ""))


def unfinished(place: Path) -> tuple[Path, BinaryIO]:
    """A new file next to `place`, locked, so that other processes see that it is being written."""
    while True:
        temporary = place.with_name(f".{beginning(place)}.{secrets.token_hex(8)}{UNFINISHED}")
        file = open(temporary, "xb")  # noqa: SIM115  (the caller closes it)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            known = os.path.samestat(os.fstat(file.fileno()), temporary.stat())
        except (BlockingIOError, FileNotFoundError):
            known = False  # `clear` removed it before it was locked
        except OSError:
            known = True  # a file system without locks, where nothing is cleared
        if known:
            return temporary, file
        file.close()


@contextmanager
def alone(name: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which no other run writes `path`, the argument `name`; otherwise an OSError.

    A file beside it is locked, which a killed process may leave, but not locked.
    """
    place = place_of(path)
    lock = place.with_name(f".{beginning(place)}{LOCK}")
    try:
        number = locked(lock)
    except BlockingIOError:
        raise BlockingIOError(
            errno.EWOULDBLOCK, f"{name}={str(path)!r} is being written by another run: wait for "
                               "its end, or give another path") from None
    except OSError as error:
        hint = ": it may belong to another user: delete it if no run is using it" if (
            isinstance(error, PermissionError) and os.path.lexists(lock)) else ""
        raise OSError(error.errno, f"{name}={str(path)!r} cannot be written: {error.strerror} "
                                   f"({error.filename}{hint})") from error
    locks.add(number)
    try:
        yield
    finally:
        if number in locks:  # not in a forked process
            locks.remove(number)
            with suppress(OSError):  # the folder may be gone, and then there is nothing to remove
                if os.path.samestat(os.fstat(number), lock.stat()):
                    lock.unlink()
            os.close(number)


@contextmanager
def naming(name: str, path: str) -> Iterator[None]:
    """A context in which an OSError says that `path`, the argument `name`, cannot be written."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if str(error.filename or path) != path else ""
        raise OSError(error.errno or errno.EIO, f"{name}={path!r} cannot be written: "
                                                f"{error.strerror or error}{where}") from error


def locked(path: Path) -> int:
    """Open and lock a file, made if it does not exist; BlockingIOError if it is locked already."""
    while True:
        number = opened_to_lock(path)
        try:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno == errno.EBADF:  # NFS locks no file that is open for reading alone
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)
                                          ) from None
                return number  # a file system without locks
            with suppress(FileNotFoundError):  # its last owner has removed it since
                if os.path.samestat(os.fstat(number), path.stat()):
                    return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)


def opened_to_lock(path: Path) -> int:
    """Open a file, made if it does not exist; for reading alone if it is that of another user."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError as refused:
        try:
            return os.open(path, os.O_RDONLY)  # which suffices for a lock
        except FileNotFoundError:  # its owner has removed it since, or this is refused again
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            raise refused from None


def clear(path: str | os.PathLike[str]) -> None:
    """Remove unfinished files for `path` that killed processes have left."""
    place = place_of(path)
    name = re.compile(re.escape(f".{beginning(place)}.") + "[0-9a-f]{16}" + re.escape(UNFINISHED))
    with suppress(OSError):
        for entry in os.scandir(place.parent):
            if name.fullmatch(entry.name):
                with suppress(OSError), open(entry.path, "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def beginning(place: Path) -> str:
    """A file's name, shortened so that text can be appended."""
    return place.name.encode(errors="surrogateescape")[:MOST_NAME].decode(errors="ignore")


def sync_folder(folder: Path) -> None:
    """Make the name of a new file survive a loss of power, if the file system allows it."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
