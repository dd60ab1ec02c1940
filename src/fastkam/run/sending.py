"""Pickled targets, and the tasks that bring them to the workers of an executor."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

SPAWNED = "__mp_main__"     # the main program in a process that multiprocessing has started
one_at_a_time = threading.RLock()


def renew_lock() -> None:
    """Make a new lock: a process forked while a thread held the old one would never get it."""
    global one_at_a_time
    one_at_a_time = threading.RLock()


os.register_at_fork(after_in_child=renew_lock)


class Sending:
    """A target for workers: it is pickled once, and sent once to each worker.

    The first tasks, one for each worker, include it; later tasks only name it. A worker that does
    not have it returns at once, and the task is sent again: with the target if no other task is
    bringing it, or if this task has come back before.

    Parameters
    ----------
    target : Target
    number : int or None
        Number of workers, if it is known.
    anywhere : bool
        Whether workers import the main program as a module, and so have its definitions.
    function : str
        The digest of its function, "" if it is not known.

    Attributes
    ----------
    payload : bytes
    shared : object
        The reference to data that the executor itself distributes, or None.
    digest : str
        The name of the target among workers.
    carried : int
        Number of tasks that included the target.
    arrived : bool
        Whether any of these has returned.
    compared : bool
        Whether a value of a worker with another function has been compared.
    """

    def __init__(
        self, target: Any, number: int | None, *, anywhere: bool = True, function: str = ""
    ) -> None:
        self.number, self.function = number, function
        self.payload = portable_target(target, anywhere=anywhere)
        self.digest = hashlib.sha256(self.payload).hexdigest()
        self.shared: Any = None
        self.carried, self.arrived = 0, False
        self.compared = False

    def to_compare(self) -> bool:
        """Whether no value of a worker with another function has been compared; then one is."""
        first, self.compared = not self.compared, True
        return first

    def for_task(self, *, again: bool) -> Any:
        """Return the payload of the next task: the target (always with `again`), or None."""
        first = not self.arrived if self.number is None else self.carried < self.number
        if not (again or first):
            return None
        self.carried += 1
        return self.payload if again or self.shared is None else self.shared


def portable_target(target: Any, *, anywhere: bool = True) -> bytes:
    """The target as bytes: by pickle, or else by cloudpickle if it is installed.

    With `anywhere`, and without cloudpickle, definitions of the main program are pickled by name,
    for workers that import the main program.
    """
    try:
        return portable(target, anywhere=anywhere)
    except Exception as error:
        what = getattr(target, "function", target)
        raise TypeError(
            f"target {what!r} cannot be sent to the workers of executor: {error}; define the "
            f"function in a module{or_cloudpickle()}, or give a fastkam.TargetRecipe"
        ) from error


def or_cloudpickle() -> str:
    """The advice to install cloudpickle, unless it is installed."""
    return ", install cloudpickle" if import_cloudpickle() is None else ""


def import_cloudpickle() -> Any:
    """The module cloudpickle, or None if it is not installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def portable(thing: Any, *, anywhere: bool) -> bytes:
    """An object as bytes, by cloudpickle if pickle does not suffice.

    pickle stores only the names of the main program's definitions, and workers may have another
    main program.
    """
    writers: list[Callable[[Any], bytes]] = [pickle.dumps]
    if import_cloudpickle() is not None:
        writers.append(by_value)
    problem: Exception = TypeError("it is defined in the main program, which workers do not import")
    for dumps in writers:
        try:
            data = dumps(thing)
        except Exception as error:
            problem = error
        else:
            last = dumps is writers[-1] and (anywhere or len(writers) > 1)
            by_name = b"__main__" in data or SPAWNED.encode() in data
            if last or not by_name:
                return bytes(data)
    raise problem


def by_value(thing: Any) -> bytes:
    """An object as bytes, by cloudpickle, with the definitions of the main program in any process.

    In a spawned process these belong to `SPAWNED`, of which cloudpickle stores the names alone.
    """
    cloudpickle = import_cloudpickle()
    main = sys.modules.get(SPAWNED)     # in other processes it is __main__, if it is there
    with one_at_a_time:
        if (main is None or main.__name__ != SPAWNED
                or SPAWNED in cloudpickle.list_registry_pickle_by_value()):
            return bytes(cloudpickle.dumps(thing))
        cloudpickle.register_pickle_by_value(main)
        try:
            return bytes(cloudpickle.dumps(thing))
        finally:
            cloudpickle.unregister_pickle_by_value(main)
