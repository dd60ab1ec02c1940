"""Asked: the points for which a run in another thread waits, and their values."""

from __future__ import annotations

import heapq
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.points.executor import Points, Returned, TakesPoints
from fastkam.points.reply import Reply

Array = NDArray[np.float64]
UNLIMITED = 2**30


class Closed(BaseException):
    """Raised in the thread of a run whose owner was deleted."""


class Asked(TakesPoints):
    """Holds the points of a run, with numbers, until their values are known.

    A run in a separate thread waits in `collect` for values; other threads access the run, or the
    points, only while it waits there.

    Attributes
    ----------
    numbers : dict of bytes to int
        The number of each open point, by its bytes.
    open : dict of int to tuple (bytes, ndarray)
        Points without a value.
    given : dict of int
        The numbers of open points that have been handed out, in that order.
    fresh : list of tuple (float, int)
        A heap of the other open points, by priority.
    left : dict of int
        The numbers of points that were handed out before the run was pickled: they are handed out
        again once no others are left.
    """

    workers: int | None = None

    def __init__(self) -> None:
        self.own, self.process = threading.Condition(), os.getpid()
        self.numbers: dict[bytes, int] = {}
        self.open: dict[int, tuple[bytes, Array]] = {}
        self.given: dict[int, None] = {}
        self.fresh: list[tuple[float, int]] = []
        self.left: dict[int, None] = {}
        self.n = 0
        self.replies: Returned = []
        self.history: dict[bytes, Reply] = {}
        self.still, self.ended, self.closed = False, False, False
        self.restarts = False  # whether the run must first repeat the part before it was pickled

    @property
    def condition(self) -> threading.Condition:
        """The lock of the run; RuntimeError in a forked process, which has none."""
        if os.getpid() != self.process:
            raise RuntimeError("an AskTell runs in the process that made it: give others a "
                               "pickled copy")
        return self.own

    # ---- for the run ----

    def room(self) -> int:
        return UNLIMITED

    def send(self, points: Points, priorities: list[float]) -> None:
        with self.condition:
            for (key, x), priority in zip(points, priorities, strict=True):
                if key in self.history:  # the run is repeated
                    self.replies.append((key, self.history[key]))
                    continue
                number = self.numbers.get(key)
                if number is None:
                    number, self.n = self.n, self.n + 1
                    self.numbers[key] = number
                if number not in self.open and number not in self.given:
                    heapq.heappush(self.fresh, (priority, number))
                self.open[number] = key, x

    def collect(self, timeout: float | None) -> Returned:
        with self.condition:
            if timeout != 0.0:
                self.still = not self.replies
                self.restarts = self.restarts and not self.still
                self.condition.notify_all()
                self.condition.wait_for(lambda: self.replies or self.closed, timeout)
                self.still = False
            if self.closed:
                raise Closed
            replies, self.replies = self.replies, []
            return replies

    def cancel(self) -> None:
        """Leave points open: a run that continues reuses them."""

    def close(self) -> None:
        """Do nothing: no resource is open."""

    # ---- for others ----

    def wait_still(self) -> None:
        """Wait until the run waits for values or has ended; `condition` is held."""
        self.condition.wait_for(
            lambda: self.ended or (self.still and not self.replies))

    def ask(self, most: int) -> list[int]:
        """Hand out the most urgent points that are left; return their numbers.

        `condition` is held.
        """
        numbers: list[int] = []
        while self.fresh and len(numbers) < most and not self.ended:
            _, number = heapq.heappop(self.fresh)
            if number in self.open:  # it may have received its value without `ask`
                numbers.append(number)
        while self.left and len(numbers) < most and not self.ended:
            number = next(iter(self.left))
            del self.left[number]
            if number in self.open:
                numbers.append(number)
        self.given.update(dict.fromkeys(numbers))
        return numbers

    def tell(self, replies: list[tuple[int, Reply]]) -> None:
        """Give values to points by their numbers; `condition` is held."""
        for number, reply in replies:
            key, _ = self.open.pop(number)
            del self.numbers[key]
            self.given.pop(number, None)
            self.history[key] = reply
            self.replies.append((key, reply))
        self.condition.notify_all()

    def end(self) -> None:
        """Record that the run has ended."""
        with self.condition:
            self.ended = True
            self.condition.notify_all()

    def stop(self) -> None:
        """Let the thread of the run end, if it is one of this process."""
        if os.getpid() == self.process:
            with self.condition:
                self.closed = True
                self.condition.notify_all()

    # ---- to another process ----

    def __getstate__(self) -> dict[str, Any]:
        with self.condition:
            self.wait_still()
            return {"numbers": dict(self.numbers), "given": dict(self.given), "n": self.n,
                    "history": dict(self.history)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.__dict__.update(state)
        self.restarts, self.left = True, dict(self.given)
