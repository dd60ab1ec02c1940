"""Options of a run that do not change its draws."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastkam.arguments import check_flag, check_number, check_threads, shown
from fastkam.progress.reporter import Reporter, check_progress
from fastkam.run.files import alone, check_path, in_place, place_of
from fastkam.run.interrupts import Shield
from fastkam.run.rules import StopRule, as_stop
from fastkam.run.trial import Trial, processors
from fastkam.run.workers import as_workers
from fastkam.run.writer import EarlierFile
from fastkam.stores import Store
from fastkam.stores.store import check_outside

if TYPE_CHECKING:
    from fastkam.run.loop import Outcome
    from fastkam.samplers import Sampler


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RunOptions:
    """Options of a run, checked; `fastkam.sample` describes each.

    Attributes
    ----------
    shield : Shield
    begun : float
        Time of the call, on the clock of `time.perf_counter`.
    report : Reporter
        Called with each Progress.
    executor : CallExecutor or None
        The argument `executor`, as CallExecutor.
    trial : Trial
        Whether threads are useful for a Python function, as measured in all parts of the run.
    until_stop : bool
        Whether a run without a number of draws continues until `stop` is met.
    desk : Desk or None
        Evaluates points (`fastkam.points.desk`), if the chains do not do it themselves.
    parts : list of Outcome
        That of the last part of the run, once there is one.
    earlier : EarlierFile
        The file of another run at `checkpoint`, which a new run moves aside.
    """

    threads: int | None = None
    progress: Any = None
    stop: StopRule | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_interval: float = 60.0
    store: Store | None = None
    executor: Any = None
    diagnose: bool = True
    until_stop: bool = False
    desk: Any = None
    shield: Shield = field(default_factory=Shield, init=False)
    begun: float = field(default_factory=time.perf_counter, init=False)
    report: Reporter = field(init=False)
    trial: Trial = field(default_factory=Trial, init=False)
    parts: list[Outcome] = field(default_factory=list, init=False)
    earlier: EarlierFile = field(default_factory=EarlierFile, init=False)

    def __post_init__(self) -> None:
        check_flag("diagnose", self.diagnose)
        if self.threads is not None:
            check_threads(self.threads)
        check_progress(self.progress)
        object.__setattr__(self, "report", Reporter(self.progress))
        as_stop(self.stop)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint, result=True)
            check_outside("checkpoint", self.checkpoint)
            # the function may change the current folder
            object.__setattr__(self, "checkpoint", in_place(self.checkpoint))
            others = {"evaluations": None if self.desk is None else self.desk.evaluations,
                      "store": None if self.store is None else self.store.path}
            for name, other in others.items():
                if other is not None and place_of(other) == place_of(self.checkpoint):
                    raise ValueError(f"checkpoint and {name} must have different paths, not both "
                                     f"{shown(other)}")
        check_number("checkpoint_interval", self.checkpoint_interval, least=0)
        if self.store is not None:
            self.store.check_free()
        object.__setattr__(self, "executor", as_workers(self.executor))

    def ended_by(self, stop: StopRule | None) -> RunOptions:
        """The same options, of the same call, with another rule."""
        other = copy.copy(self)
        object.__setattr__(other, "stop", stop)
        return other

    @property
    def closing(self) -> AbstractContextManager[Any]:
        """A context that closes, at its end, the resources opened for this call."""
        return self.executor or nullcontext()

    @contextmanager
    def outputs(self) -> Iterator[None]:
        """A context in which no other run writes the checkpoint, or begins to write the store."""
        with ExitStack() as stack:
            if self.checkpoint is not None:
                stack.enter_context(alone("checkpoint", self.checkpoint))
            if self.store is not None:
                stack.enter_context(self.store.new())
            yield

    @property
    def on_points(self) -> bool:
        """Whether points are evaluated one by one."""
        return self.desk is not None and bool(self.desk.on_points)

    @property
    def for_chains(self) -> Any:
        """The executor whose tasks are chains or parts of a search."""
        return None if self.on_points else self.executor

    def number_of_threads(self, target: Any, sampler: Sampler) -> int:
        """Number of threads in which to run the chains of a target."""
        if target.serial:
            return 1
        if self.threads is not None:
            return self.threads
        if (target.needs_gil or sampler.needs_gil) and has_gil():
            return 1
        return processors()


def has_gil() -> bool:
    """Whether Python code runs in one thread at a time."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())
