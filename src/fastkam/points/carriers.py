"""Who evaluates points: this process, or the workers of an executor."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from concurrent.futures import BrokenExecutor, Future
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import told
from fastkam.points.evaluate import OfAnother, evaluate_sent, replies_at
from fastkam.points.executor import Points, Returned, tasks_at_once
from fastkam.points.reply import PointLost, Reply
from fastkam.run.same_target import other_in_workers
from fastkam.run.tasks import OneEach, error_of, not_returned, numbers, one_like, value_of

Array = NDArray[np.float64]

TASK_RATE = 200.0  # tasks per second that a scheduler can handle
DEPTH = 2  # pending tasks per worker, so that one is ready when another ends
MOST_TASK = 4096  # points per task
WATCH_SECONDS = 0.01  # between two checks of the workers that replace a broken pool
COUNT_SECONDS = 10.0  # after which workers are counted again
UNKNOWN = 10**9  # limit of pending points if the number of workers is not known


class Here:
    """Evaluates points in this process, one after the other; all at once if the target can."""

    workers: int | None = 1

    def __init__(self, target: Any) -> None:
        self.target = target.bind()
        self.points: deque[tuple[bytes, Array]] = deque()

    def room(self) -> int:
        return MOST_TASK - len(self.points)

    def send(self, points: Points, priorities: list[float]) -> None:
        self.points.extend(points)

    def collect(self, timeout: float | None) -> Returned:
        if timeout == 0.0 or not self.points:
            return []
        some = [self.points.popleft()
                for _ in range(len(self.points) if self.target.batched else 1)]
        X = np.array([x for _, x in some])
        return list(zip((key for key, _ in some), replies_at(self.target, X), strict=True))

    def cancel(self) -> None:
        self.points.clear()

    def close(self) -> None:
        """Do nothing: no resource is open."""


class OverExecutor:
    """Evaluates points in the workers of an executor, several per task if calls are short.

    The target is sent with the first tasks, and again to a worker that does not have it. A process
    pool that breaks when a worker dies is replaced by one pool for each worker.

    Parameters
    ----------
    executor : fastkam.run.workers.CallExecutor
    target : Target
    """

    def __init__(self, executor: Any, target: Any) -> None:
        self.executor, self.target = executor, target
        self.workers, self.counted = tasks_at_once(executor.executor), time.monotonic()
        self.sending = None if executor.local else executor.sending(target)
        self.bounced = False  # whether a worker did not have the target, after the last that had it
        self.own: OneEach | None = None
        self.lock, self.bound = threading.Lock(), threading.local()
        self.flying: dict[Future[Any], Points] = {}
        self.carrying: set[Future[Any]] = set()  # those that bring the target
        self.numbers: dict[Future[Any], int] = {}  # numbers of the tasks sent to other processes
        self.n_flying = 0
        self.done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self.seconds = math.inf  # mean time of an evaluation; infinite if unknown
        self.other: ValueError | None = None  # if workers evaluate another density

    # ---- out ----

    @property
    def task_size(self) -> int:
        """Number of points per task, which limits the number of tasks per second."""
        if not self.workers:
            return 1
        size = self.workers / (TASK_RATE * max(self.seconds, 1e-7))
        return int(min(MOST_TASK, max(1, math.ceil(size))))

    def room(self) -> int:
        if time.monotonic() > self.counted + COUNT_SECONDS:  # clusters may grow
            self.workers, self.counted = tasks_at_once(self.executor.executor), time.monotonic()
        if not self.workers:
            return UNKNOWN
        return max(0, DEPTH * self.workers * self.task_size - self.n_flying)

    def send(self, points: Points, priorities: list[float]) -> None:
        # leave work for every worker
        size = min(self.task_size, max(1, math.ceil(len(points) / (self.workers or 1))))
        for start in range(0, len(points), size):
            self.send_task(points[start : start + size])

    def send_task(self, points: Points) -> None:
        """Submit one task."""
        X = np.array([x for _, x in points])
        future = self.submit(X)
        self.flying[future] = points
        self.n_flying += len(points)
        future.add_done_callback(self.done.put)

    def submit(self, X: Array) -> Future[Any]:
        if self.sending is None:
            return self.executor.submit(self.evaluate_here, X)
        payload = self.sending.for_task(again=self.bounced)
        number = next(numbers)
        future = self.submit_sent(evaluate_sent, number, self.executor.run,
                                  self.sending.digest, payload, self.sending.function, X)
        self.numbers[future] = number
        if payload is not None:
            self.carrying.add(future)
        return future

    def submit_sent(self, *task: Any) -> Future[Any]:
        """Submit a task to the executor, or to its replacement."""
        if self.own is None:
            try:
                return self.executor.submit(*task)
            except BrokenExecutor:
                if one_like(self.executor.executor) is None:
                    raise
                self.own = OneEach(self.executor.executor)
        return self.own.submit(*task)

    def evaluate_here(self, X: Array) -> list[Reply]:
        """The replies at points, in a thread of this process."""
        if not hasattr(self.bound, "target"):
            self.bound.target = self.target.bind()
        with self.lock if self.target.serial else nullcontext():
            return replies_at(self.bound.target, X)

    # ---- back ----

    def collect(self, timeout: float | None) -> Returned:
        returned: Returned = []
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self.flying and not returned:
            left = until - time.monotonic()
            self.gather(min(left, WATCH_SECONDS if self.own else 1.0), returned)
            if left <= 0:
                break
        return returned

    def gather(self, timeout: float, returned: Returned) -> None:
        """Add the replies that arrive within `timeout` seconds to `returned`."""
        if self.own is not None:
            self.own.tend()
        try:
            future = self.done.get(timeout=timeout) if timeout > 0 else self.done.get_nowait()
            while True:
                points = self.flying.pop(future, None)
                if points is not None:
                    self.n_flying -= len(points)
                    returned += self.replies(future, points)
                future = self.done.get_nowait()
        except queue.Empty:
            pass

    def replies(self, future: Future[Any], points: Points) -> Returned:
        """The replies of a task for its points."""
        carried, number = future in self.carrying, self.numbers.pop(future, None)
        self.carrying.discard(future)
        error = error_of(future)
        if error is not None:  # including SystemExit in a worker's thread
            return all_lost(points, told(error), error)
        try:
            replies = (future.result() if number is None
                       else value_of(future, number, self.executor.executor))
            if replies is None and number is not None and not carried:
                self.bounced = True  # all tasks carry the target until one succeeds
                return [(key, None) for key, _ in points]
            if not (isinstance(replies, list) and len(replies) == len(points)
                    and all(isinstance(reply, Reply) for reply in replies)):
                raise not_returned(self.executor.executor, future)
        except TypeError as garbage:
            return all_lost(points, str(garbage))
        self.bounced = False
        if self.sending is not None:
            self.sending.arrived = True
            if isinstance(replies, OfAnother) and self.sending.to_compare():
                self.other = other_in_workers(self.target, (
                    (x, reply.value) for (_, x), reply in zip(points, replies, strict=True)))
        if self.other is not None:
            return [(key, Reply(error=self.other)) for key, _ in points]
        self.note(replies)
        return [(key, reply) for (key, _), reply in zip(points, replies, strict=True)]

    def note(self, replies: list[Reply]) -> None:
        """Update the mean time of an evaluation from replies."""
        seconds = float(np.median([reply.seconds for reply in replies]))
        known = self.seconds < math.inf
        self.seconds = 0.9 * self.seconds + 0.1 * seconds if known else seconds

    def cancel(self) -> None:
        for future in list(self.flying):
            future.cancel()
        self.flying.clear()
        self.carrying.clear()
        self.numbers.clear()
        self.n_flying = 0

    def close(self) -> None:
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)


def all_lost(points: Points, why: str, cause: BaseException | None = None) -> Returned:
    """Return a lost reply for each point of a task that has failed as a whole."""
    lost = PointLost(why)
    lost.__cause__ = cause
    return [(key, Reply(error=lost)) for key, _ in points]
