"""Calls, one at a time, of densities that are not thread-safe: in all runs of this process."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastkam._core.density.target import Target

lock = threading.RLock()  # a density may itself make a run


def renew_lock() -> None:
    """Make a new lock: a process forked while a thread held the old one would never get it."""
    global lock
    lock = threading.RLock()


os.register_at_fork(after_in_child=renew_lock)


def serially(target: Target) -> AbstractContextManager[Any]:
    """A context in which no other thread calls a serial target; it waits for them."""
    return lock if target.serial else nullcontext()
