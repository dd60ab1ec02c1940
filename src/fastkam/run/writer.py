"""Writing of checkpoints at intervals, and errors in doing so."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fastkam.errors import SamplingWarning, warn
from fastkam.run import checkpoint
from fastkam.run.files import backup_of, clear, naming
from fastkam.run.state import RunState
from fastkam.run.stored import DRAWS, OF_DRAWS, OF_WARMUP, UNDECIDED, WARMUP, StoredTrace
from fastkam.run.trace import Trace
from fastkam.stores import Store


class EarlierFile:
    """The file of an earlier run at the path of a checkpoint, which a new run moves aside.

    All parts of a call that write to the path share this object.

    Attributes
    ----------
    possible : bool or None
        Whether the run is new and has not been written yet; None before its first part.
    message : str
        The text of a warning that has not been given yet, or "".
    """

    def __init__(self) -> None:
        self.possible: bool | None = None
        self.message = ""

    def begin(self, new: bool) -> None:
        """Note, at the first part of a call, whether it begins a `new` run."""
        if self.possible is None:
            self.possible = new

    def replace(self, path: str | os.PathLike[str], run: RunState) -> None:
        """Write the file of `run`; before the first time, move aside one with other draws.

        It is replaced if the file of an even earlier run, which was moved aside, has more draws.
        """
        draws = checkpoint.draws_in(path) if self.possible else 0
        number = 1
        while draws != 0 and checkpoint.draws_in(backup_of(path, number)) is None:
            number += 1  # a file of another kind
        aside = backup_of(path, number)
        if draws == 0:
            checkpoint.write(path, run)
        elif draws is not None and (checkpoint.draws_in(aside) or 0) > draws:
            checkpoint.write(path, run)
            self.message = (f"checkpoint={str(path)!r} had {draws} draws of another run, which are "
                            f"replaced: {str(aside)!r} has more, of an earlier one")
        else:
            checkpoint.write(path, run, aside=aside)
            self.message = moved(str(path), str(aside), draws)
        self.possible = False

    def take_message(self) -> str:
        """Return the text of the warning, once."""
        message, self.message = self.message, ""
        return message


def moved(path: str, aside: str, draws: int | None) -> str:
    """The text of a warning about a file that was moved aside, and how its run is continued."""
    if draws is None:
        return f"checkpoint={path!r} had something else: that file is now {aside!r}"
    return (f"checkpoint={path!r} had {draws} draws of another run: that file is now {aside!r}, "
            f"and fk.resume({aside!r}, target=...) continues its run")


class CheckpointWriter:
    """Writes checkpoints, if there is a path or a store.

    A file that cannot be written does not end a run that may have taken days: the writer warns and
    tries again after the next interval; only a failure at the end is an error, with the draws.

    Attributes
    ----------
    error : Exception or None
        Error of the last attempt.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, interval: float = 0.0,
                 store: Store | None = None, earlier: EarlierFile | None = None) -> None:
        self.path, self.interval, self.store = path, interval, store
        self.earlier = EarlierFile() if earlier is None else earlier
        self.last = time.monotonic()
        self.error: Exception | None = None
        self.written: RunState | None = None
        self.revision: int | None = None  # number of the last state in the store
        self.failed, self.tidy = ("", ""), False  # the argument that failed, and its path
        if path is not None:
            clear(path)
        if store is not None:
            clear(store.state_path)

    def begin(self, state: RunState) -> None:
        """Write the first state of a run with a store; raise an error if that is not possible.

        A store that was made for this run is then undone, also if only the checkpoint has failed.
        """
        assert self.store is not None
        new = self.store.unfinished
        self.write(state)
        if self.error is not None:
            self.store.unfinished = new
            with naming(*self.failed):
                raise self.error

    def due(self, state: Callable[[], RunState]) -> None:
        """Write a checkpoint of the run that `state` returns, if it is due."""
        if self.path is None and self.store is None:
            return
        if time.monotonic() - self.last < self.interval:
            return
        known = self.error is not None
        self.write(state())
        if self.error and not known:
            warn(SamplingWarning(f"the run goes on{self.problem}"))
        if message := self.earlier.take_message():
            warn(SamplingWarning(message))
        self.last = time.monotonic()

    def finish(self, run: RunState) -> None:
        """Write the last checkpoint, unless it has been written."""
        if run is not self.written:
            self.write(run)

    def write(self, run: RunState) -> None:
        """Write a checkpoint."""
        self.written = run
        try:
            if self.store is not None:
                self.failed = "store", str(self.store.path)
                self.write_store(self.store, run)
            if self.path is not None:
                self.failed = "checkpoint", str(self.path)
                self.earlier.replace(self.path, run)
            self.error = None
        except Exception as error:  # whatever it is, the draws and the density's own error are kept
            self.error = error

    def write_store(self, store: Store, run: RunState) -> None:
        """Write the state of a run into its store, after its rows are on the disk."""
        assert isinstance(run.trace, StoredTrace)
        assert isinstance(run.warmup, StoredTrace)
        self.revision = (run.trace.revision if self.revision is None else self.revision) + 1
        run.trace.revision = self.revision
        store.check_own()
        store.sync()
        checkpoint.write(store.state_path, run)
        store.unfinished = ""
        if not self.tidy:  # the sections before thinning, or before a longer warm-up
            for section in {*OF_DRAWS, *OF_WARMUP} - {run.trace.section, run.warmup.section}:
                store.clear(section)
            self.tidy = True

    @property
    def problem(self) -> str:
        """Describe what is wrong with the file, as the end of a message; "" if nothing is."""
        name, path = self.failed
        return f", but {name}={path!r} cannot be written: {self.error}" if self.error else ""


@contextmanager
def writing(run: RunState) -> Iterator[None]:
    """A context in which only this run may write to its store, if it has one."""
    if not isinstance(run.trace, StoredTrace):
        yield
        return
    store = run.trace.store
    with store.writing():
        check_last(run.trace)
        yield


def check_last(trace: StoredTrace) -> None:
    """Refuse to continue from a state if another run has written to the store since."""
    path = str(trace.store.path)
    if trace.identity != trace.store.identity():
        raise ValueError(f"store={path!r} belongs to another run")
    if not trace.store.state_path.exists():
        return  # a new run
    header, _ = checkpoint.read_parts(trace.store.state_path)
    about: dict[str, Any] = header.get("store") or {}
    if about.get("revision", 0) > trace.revision:
        raise ValueError(f"store={path!r} has draws of a run that has gone on from this result: "
                         f"resume from its last state, fk.load({path!r}), or save this result to "
                         "a file of its own and resume from that")


def moved_into(store: Store, run: RunState) -> RunState:
    """Move the rows of a run in memory to a new store."""
    assert isinstance(run.trace, Trace)
    assert isinstance(run.warmup, Trace)
    store.create()
    section = UNDECIDED if run.undecided else DRAWS
    with store.writing():
        return replace(run, trace=StoredTrace.of(run.trace, store, section),
                       warmup=StoredTrace.of(run.warmup, store, WARMUP))
