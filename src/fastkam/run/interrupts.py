"""Ctrl-C during a run: it is deferred while the run must not be interrupted."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Shield:
    """A context of the main thread that defers SIGINT, except within ``with shield.opened``.

    The previous handler is called only within such a part, at its beginning if a signal is pending.
    It is called at most once, and the exception that it raises closes the shield, so that the rest
    of the part is not interrupted again. The context does nothing in other threads, which receive
    no signals, or if Python does not handle SIGINT (if it is ignored, for example).

    Attributes
    ----------
    waiting : bool
        Whether a signal is pending.
    leaving : SystemExit or None
        An exception that was raised in a check after the run, and ends the call with it.
    """

    def __init__(self) -> None:
        self.previous: Callable[[int, FrameType | None], Any] | None = None
        self.waiting, self.closed = False, True
        self.process = 0
        self.leaving: SystemExit | None = None
        self.opened = Opened(self)

    def __enter__(self) -> Shield:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self.process, self.waiting, self.closed = os.getpid(), False, True
            self.previous = handler
            signal.signal(signal.SIGINT, self.receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.previous is None:
            return
        if signal.getsignal(signal.SIGINT) == self.receive:  # no other handler was set since
            signal.signal(signal.SIGINT, self.previous)
        previous, self.previous = self.previous, None
        if self.taken() and error is None:
            previous(signal.SIGINT, sys._getframe())

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT."""
        if self.closed and self.process == os.getpid():  # not in a forked process
            self.waiting = True
            return
        self.closed = True
        if self.previous is not None:
            self.previous(number, frame)
        self.closed = False  # the handler has raised nothing

    def taken(self) -> bool:
        """Whether a signal was pending; clears it."""
        waiting, self.waiting = self.waiting, False
        return waiting


class Opened:
    """The parts within a Shield that may be interrupted."""

    def __init__(self, shield: Shield) -> None:
        self.shield = shield

    def __enter__(self) -> None:
        shield = self.shield
        if shield.previous is None:
            return
        shield.closed = False
        if shield.taken():
            shield.receive(signal.SIGINT, sys._getframe())

    def __exit__(self, *error: object) -> None:
        self.shield.closed = True
