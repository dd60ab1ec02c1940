"""A run whose points are evaluated elsewhere, while other chains continue."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from fastkam._core.engine.fault import Fault
from fastkam.points.desk import Desk
from fastkam.points.target import Unevaluated, missing_of
from fastkam.run.groups import ChainGroup
from fastkam.run.loop import WATCH_SECONDS, Outcome, Run

PACE = 1000  # steps per chunk, which ends earlier at a point that is not known
LOOK_SECONDS = 0.02  # between two checks of stop rules, checkpoints and interrupts


class PointRun(Run):
    """A run that hands out the points for which its chains wait.

    Each chain continues as soon as its own point is known, without waiting for the others; chains
    that share their adaptation wait for each other at every step. The draws therefore do not depend
    on the order in which replies arrive.

    Parameters
    ----------
    desk : Desk
        Evaluates points; the values of `target` come from its pool.
    """

    def __init__(self, past: Any, target: Any, rows: int, desk: Desk) -> None:
        super().__init__(past, target, rows)
        self.desk = desk
        self.pool: Any = desk.pool
        self.lookup: Any = desk.lookup
        self.looked = 0.0

    def go(self, options: Any) -> Outcome:
        """Run, while the desk refers to this run."""
        self.desk.run = self
        try:
            outcome = super().go(options)
            self.desk.past = outcome.state
            return outcome
        finally:
            self.desk.run = None

    def together(self) -> bool:
        """Whether chains step together, which they do only if they share their adaptation."""
        return self.past.share

    def advance(self, rows: int, threads: int, between: Any) -> bool:
        """Bring every chain to `rows` draws; True if `between` asked to stop."""
        ready = deque(group for group in self.groups if not group.reached(rows))
        waiting: dict[int, ChainGroup] = {}  # groups by the numbers of points
        missing: dict[ChainGroup, int] = {}
        stopped: dict[ChainGroup, Any] = {}  # the points, by groups
        try:
            while ready or waiting:
                while ready:
                    group = ready.popleft()
                    points = self.step(group, rows)
                    if points is not None:
                        numbers = self.pool.submit(points, self.priority(group))
                        missing[group], stopped[group] = len(numbers), points
                        waiting.update(dict.fromkeys(numbers, group))
                    elif not group.reached(rows):
                        ready.append(group)
                    if self.over(between):
                        return True
                if self.desk.ahead is not None:
                    self.desk.ahead.fill(self, {group: stopped[group] for group in missing
                                                if missing[group]})
                for number in self.numbers_in() if waiting else []:
                    owner = waiting.pop(number, None)
                    if owner is None:
                        continue
                    missing[owner] -= 1
                    if not missing[owner]:
                        ready.append(owner)
                if self.over(between):
                    return True
            return False
        finally:
            self.pool.cancel()

    def numbers_in(self) -> list[int]:
        """The numbers of points whose values have arrived; an interrupt may be raised meanwhile."""
        with self.shield.opened:
            return [number for number, _ in self.pool.wait(WATCH_SECONDS)]

    def step(self, group: ChainGroup, rows: int) -> Any:
        """Advance a group; return the points (k, d) at which it has to stop, or None."""
        self.pace = PACE
        try:
            with self.lookup.deferring():
                if group.reached(rows):  # but extras had to be evaluated once more
                    group.record()
                else:
                    group.chunk(rows, 1, self.shield.opened)
        except (Unevaluated, Fault) as error:
            points = missing_of(error, self.lookup)
            if points is None:
                raise
            return points
        return None

    def priority(self, group: ChainGroup) -> float:
        """The priority of a group: chains that are behind come first, so that all end together."""
        return float(group.chains[0].n_evaluations)

    def over(self, between: Any) -> bool:
        """Whether the run has to stop, which is checked at intervals."""
        now = time.perf_counter()
        if now < self.looked + LOOK_SECONDS:
            return False
        self.looked = now
        return bool(between())
