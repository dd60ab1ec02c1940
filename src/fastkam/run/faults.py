"""Faults of a target, during a run and after it; and the loss of a task that an executor had."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from fastkam._core.density.estimator import OF_SURROGATE, WITHOUT_SURROGATE
from fastkam._core.density.space import OF_TRANSFORM
from fastkam._core.engine.fault import INFINITE, Fault
from fastkam.arguments import told
from fastkam.run.interrupts import Shield

log = logging.getLogger("fastkam")

Result = TypeVar("Result")


class TaskLost(Exception):
    """A task was lost four times, because its worker died or the connection broke.

    Attributes
    ----------
    chains : list of int
    cause : BaseException
        The error that the executor raised.
    """

    def __init__(self, chains: list[int], cause: BaseException) -> None:
        super().__init__(chains, cause)
        self.chains, self.cause = chains, cause

    def __str__(self) -> str:
        chains = f"chain {self.chains[0]}" if len(self.chains) == 1 else f"chains {self.chains}"
        return (f"{told(self.cause)} ({chains}, whose task was lost four times at the same draw)")


class Unwritten(OSError):
    """The file of calls cannot be written; the call is known in memory, and no other is made."""


def describe(fault: Fault, where: str) -> str:
    """Describe a fault and its place, such as "chain 0, step 3"."""
    if fault.code == 0:
        what = "no finite log density at the start, nor at 100 points around it"
    elif fault.code == WITHOUT_SURROGATE or isinstance(fault.cause, Unwritten):
        what = str(fault.cause)
    elif fault.cause is not None:
        who = of_transform(fault) or (
            "the surrogate" if is_of_surrogate(fault) else "the target")
        what = f"{who} raised {told(fault.cause)}"
    elif fault.code == INFINITE:
        what = "the log density is +inf, which no density is"
    else:
        what = f"the target returned the fatal code {fault.code}"
    return f"{what} ({where}, at x = {np.array2string(fault.x, threshold=8)})"


def is_of_surrogate(fault: Fault) -> bool:
    """Whether the surrogate, not the target, has raised the exception of a fault."""
    return OF_SURROGATE in getattr(fault.cause, "__notes__", [])


def of_transform(fault: Fault) -> str:
    """The method of a transform that has raised the exception of a fault, or ""."""
    return next((note.removeprefix(OF_TRANSFORM) for note in getattr(fault.cause, "__notes__", [])
                 if note.startswith(OF_TRANSFORM)), "")


def after_run(check: Callable[[], Result], shield: Shield) -> Result | None:
    """The result of a check after a run; None if an error or Ctrl-C has ended it, not the run.

    SystemExit is raised again at the end of the call (`Shield.leaving`).
    """
    if shield.leaving is not None:
        return None
    try:
        with shield.opened, np.errstate(all="ignore"):
            return check()
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        cause = error.cause if isinstance(error, Fault) else error
        if isinstance(cause, KeyboardInterrupt):
            shield.waiting = True
        if isinstance(cause, SystemExit):
            shield.leaving = cause
        log.info("a check after the run was ended by %r", cause)
        return None
