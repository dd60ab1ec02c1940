"""A pool of numbered points: they are handed out, and their replies come back in any order."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fastkam.errors import SamplingWarning, warn
from fastkam.points.calls import Calls
from fastkam.points.reply import PointLost, Reply
from fastkam.points.workers import Record, Workers
from fastkam.run.faults import Unwritten

Array = NDArray[np.float64]
WATCH_SECONDS = 0.05
ATTEMPTS = 2  # evaluations of a point before its failure counts
ATTEMPTS_ON_THE_WAY = 5  # the same where its tasks were lost on their way


class Carrier(Protocol):
    """An evaluator of points: this process, an executor, or the user.

    Points are submitted with their keys, and replies come back with these. A reply of None
    means that the point was lost, not that it failed, and must be sent again.
    """

    workers: int | None

    def room(self) -> int:
        """Number of points that it takes now."""

    def send(self, points: list[tuple[bytes, Array]], priorities: list[float]) -> None:
        """Take points (key, x (d,)), the most urgent first."""

    def collect(self, timeout: float | None) -> list[tuple[bytes, Reply | None]]:
        """The replies that have arrived, after at most `timeout` seconds; None waits."""

    def cancel(self) -> None:
        """Forget the points that have not begun."""

    def close(self) -> None:
        """End."""


@dataclass
class Task:
    """A point to be evaluated, the numbers that wait for it, and the time when it was sent."""

    x: Array
    indices: list[int] = field(default_factory=list)
    failures: int = 0
    sent: float | None = None


def attempts_of(reply: Reply) -> int:
    """Number of evaluations of a point before a failure such as that in the reply counts."""
    lost = isinstance(reply.error, PointLost) and isinstance(reply.error.__cause__, OSError)
    return ATTEMPTS_ON_THE_WAY if lost else ATTEMPTS


class PointPool:
    """Points with numbers, and their replies.

    A point whose value is known, from the file of calls or from an earlier evaluation, is not
    evaluated again; nor is one that is being evaluated. Points are evaluated by priority, the
    smallest first, and with equal priority in the order of submission.

    Parameters
    ----------
    carrier : Carrier
    calls : Calls, optional
        Known calls, to which new ones are added.
    on_error : str
        The treatment of a point that has failed twice: "stop" leaves its error in the reply, and
        "reject" takes its log density to be NaN, without an error.

    Attributes
    ----------
    failed : set of bytes
        The points, by their bytes, that have failed twice, in this run or according to the file.
    unwritten : Unwritten or None
        The error after which no point is evaluated, as its call cannot be kept in the file.

    Examples
    --------
    >>> import numpy as np, fastkam as fk
    >>> from fastkam.points.carriers import Here
    >>> from fastkam.points.pool import PointPool
    >>> pool = PointPool(Here(fk.as_target(lambda x: -0.5 * x @ x, 2)))
    >>> indices = pool.submit(np.ones((3, 2)) * [[1.0], [2.0], [3.0]])
    >>> {i: reply.value for i, reply in pool.wait()}
    {0: -1.0}
    >>> [reply.value for reply in pool.evaluate(np.ones((1, 2)))]
    [-1.0]
    """

    def __init__(
        self, carrier: Carrier, calls: Calls | None = None, on_error: str = "stop"
    ) -> None:
        self.carrier, self.on_error = carrier, on_error
        self.calls = Calls() if calls is None else calls
        self.tasks: dict[bytes, Task] = {}
        self.queue: list[tuple[float, int, bytes]] = []
        self.ready: list[tuple[int, Reply]] = []
        self.n = 0  # points submitted
        self.record = Record()
        self.failed: set[bytes] = set()
        self.unwritten: Unwritten | None = None

    def submit(self, points: Array, priority: float = 0.0) -> list[int]:
        """Add points (k, d); return their numbers, which the pool counts from 0."""
        indices = list(range(self.n, self.n + len(points)))
        self.n += len(points)
        for index, x in zip(indices, points, strict=True):
            x = np.array(x, dtype=float)
            key = x.tobytes()
            known = self.known(key)
            if known is not None:
                self.ready.append((index, known))
            elif key in self.tasks:
                self.tasks[key].indices.append(index)
            elif self.unwritten is not None:
                raise Unwritten(*self.unwritten.args)
            else:
                self.tasks[key] = Task(x, [index])
                heapq.heappush(self.queue, (priority, index, key))
        return indices

    def known(self, key: bytes) -> Reply | None:
        """The reply at a point, given by its bytes, if there is one."""
        reply = self.calls.get(key)
        return None if reply is None else self.judged(key, reply)

    def wait(self, timeout: float | None = None) -> list[tuple[int, Reply]]:
        """Return replies that have arrived, with their numbers; maybe none after `timeout` seconds.

        Without `timeout` there is at least one, unless no point is pending.
        """
        while not self.ready and self.tasks:
            self.hand_out()
            self.take(self.carrier.collect(timeout))
            if timeout is not None:
                break
        ready, self.ready = self.ready, []
        if self.tasks:
            self.hand_out()
        return ready

    def evaluate(
        self, points: Array, meanwhile: Callable[[], None] | None = None
    ) -> list[Reply]:
        """The replies at points (k, d), in their order; others that arrive are kept.

        An error that `meanwhile` raises, which is called while it waits, cancels all points.
        """
        timeout = None if meanwhile is None else WATCH_SECONDS
        indices, others = self.submit(points, -np.inf), []
        found: dict[int, Reply] = {}
        wanted = set(indices)
        while len(found) < len(indices):
            for index, reply in self.wait(timeout):
                if index in wanted:
                    found[index] = reply
                else:
                    others.append((index, reply))
            if meanwhile is not None and len(found) < len(indices):
                try:
                    meanwhile()
                except BaseException:
                    self.cancel()
                    raise
        self.ready = others + self.ready
        return [found[index] for index in indices]

    @property
    def waiting(self) -> int:
        """Number of distinct points that have no reply yet."""
        return len(self.tasks)

    def is_waiting(self, x: Array) -> bool:
        """Whether a point (d,) has been submitted, and has no reply yet."""
        return x.tobytes() in self.tasks

    def hand_out(self) -> None:
        """Give the carrier as many points as it takes; one that has failed is sent alone.

        A point that kills its worker therefore fails other points at most once.
        """
        points, priorities = [], []
        for _ in range(min(self.carrier.room(), len(self.queue))):
            priority, _, key = heapq.heappop(self.queue)
            task = self.tasks.get(key)
            if task is None:
                continue
            task.sent = time.perf_counter()
            if task.failures:
                self.carrier.send([(key, task.x)], [priority])
            else:
                points.append((key, task.x))
                priorities.append(priority)
        if points:
            self.record.sent()
            self.carrier.send(points, priorities)

    def take(self, replies: Sequence[tuple[bytes, Reply | None]]) -> None:
        """Keep replies; points that were lost or have failed once are sent again."""
        kept = []
        for key, reply in replies:
            task = self.tasks.get(key)
            if task is None:
                continue
            if reply is not None:
                self.record.took(task.x, reply)
            failed = reply is not None and reply.error is not None
            task.failures += failed
            if reply is None or (failed and task.failures < attempts_of(reply)):
                heapq.heappush(self.queue, (-np.inf, task.indices[0], key))
                continue
            del self.tasks[key]
            kept.append((key, reply))
            self.ready += [(index, self.judged(key, reply)) for index in task.indices]
        if kept:
            try:
                self.calls.add(kept)
            except Unwritten as error:  # no further call is to be lost
                self.unwritten = error
                self.carrier.cancel()
                self.tasks.clear()
                self.queue.clear()
                raise

    def judged(self, key: bytes, reply: Reply) -> Reply:
        """The reply at a point as the run sees it."""
        if reply.error is not None:
            self.failed.add(key)
        if self.on_error != "reject":
            return reply
        value = np.nan if reply.value == np.inf else reply.value
        return reply._replace(value=value, error=None)

    def cancel(self) -> None:
        """Forget all points that have no reply, without waiting for them."""
        self.take(self.carrier.collect(0.0))
        self.carrier.cancel()
        self.record.cancelled([(task.sent, task.x) for task in self.tasks.values()
                               if task.sent is not None])
        self.tasks.clear()
        self.queue.clear()
        self.ready.clear()

    def report(self) -> Workers:
        """The report on the workers."""
        return self.record.report(self.carrier.workers)

    def close(self) -> None:
        """Keep the replies that have arrived, and close the pool."""
        try:
            self.cancel()
        except Unwritten as error:  # the run has its draws, and none depends on these calls
            with suppress(SamplingWarning):  # as an error it would take the place of the result
                warn(SamplingWarning(f"{error}: the last calls are not in it"))
        finally:
            try:
                self.carrier.close()
            finally:
                self.calls.close()
