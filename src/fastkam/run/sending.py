"""Targets as bytes, and which tasks carry them to the workers of an executor."""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from typing import Any


class Sending:
    """A target that tasks bring to workers: it is pickled once, and travels once to each of them.

    The first tasks carry it, as many as there are workers; later ones name it. A worker that does
    not know it returns at once, and the task is sent again: with the target if no other task is
    bringing it, or if that has happened to this task before.

    Parameters
    ----------
    target : Target
    number : int or None
        How many workers there are, where that is known.
    anywhere : bool
        Whether workers import the main program as a module, and so find what it defines.

    Attributes
    ----------
    payload : bytes
    shared : object
        What an executor that spreads data by itself takes in its place, or None.
    digest : str
        By which workers know it.
    carried : int
        How many tasks have been given it.
    arrived : bool
        Whether any has come back.
    """

    def __init__(self, target: Any, number: int | None, *, anywhere: bool = True) -> None:
        self.number = number
        self.payload = portable_target(target, anywhere=anywhere)
        self.digest = hashlib.sha256(self.payload).hexdigest()
        self.shared: Any = None
        self.carried, self.arrived = 0, False

    def for_task(self, *, again: bool) -> Any:
        """What the next task carries; `again` if it must be the target."""
        first = not self.arrived if self.number is None else self.carried < self.number
        if not (again or first):
            return None
        self.carried += 1
        return self.payload if again or self.shared is None else self.shared


def portable_target(target: Any, *, anywhere: bool = True) -> bytes:
    """The target as bytes: by pickle, or else by cloudpickle where it is installed.

    With `anywhere` what the main program defines may be pickled by its name where cloudpickle is
    not installed, for workers that import the main program.
    """
    try:
        return portable(target, anywhere=anywhere)
    except Exception as error:
        what = getattr(target, "function", target)
        raise TypeError(
            f"target {what!r} cannot be sent to the workers of executor: {error}; define the "
            "function in a module, install cloudpickle, or give a fastkam.TargetRecipe"
        ) from error


def portable(thing: Any, *, anywhere: bool) -> bytes:
    """Something as bytes, by cloudpickle where pickle does not do.

    pickle names what the main program defines, and workers may have another main program.
    """
    writers = [pickle.dumps]
    with suppress(ImportError):
        import cloudpickle

        writers.append(cloudpickle.dumps)
    problem: Exception = TypeError("it is defined in the main program, which workers do not import")
    for dumps in writers:
        try:
            data = dumps(thing)
        except Exception as error:
            problem = error
        else:
            last = dumps is writers[-1] and (anywhere or len(writers) > 1)
            if b"__main__" not in data or last:
                return bytes(data)
    raise problem
