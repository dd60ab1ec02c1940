"""Chains as tasks of an executor: within this process, or in other ones."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from functools import partial
from typing import Any

from fastkam.run.worker import GRACE_SECONDS, Asked, run_part, run_sent
from fastkam.stop import Time

numbers = itertools.count()  # of tasks


class LocalTasks:
    """Tasks of a thread pool: they share the target, and can be asked to stop."""

    patience = None

    def __init__(self, workers, target, seconds):
        self.workers, self.target, self.seconds = workers, target, seconds
        self.halted = threading.Event()

    def submit(self, bounced, *task):
        stop = Time(self.seconds) | Asked(self.halted)
        return self.workers.submit(run_part, self.target, *task, stop)

    def arrived(self, future):
        """Nothing to do: the target is not sent."""

    def tend(self):
        """Nothing to do: no task waits here."""

    def halt(self, pending):
        self.halted.set()
        withdraw(pending)

    def close(self):
        """Nothing to do: no resource is open."""


class RemoteTasks:
    """Tasks of any other executor: some carry the target, the others its digest.

    A process pool in which a worker has died cannot run further tasks: `OneEach` replaces it.
    """

    patience = GRACE_SECONDS

    def __init__(self, workers, target, seconds):
        self.workers, self.seconds = workers, seconds
        self.sending = workers.sending(target)
        self.carrying = set()  # the tasks that bring the target
        self.own = None

    def submit(self, bounced, *task):
        """Submit a task, which has come back `bounced` times from workers without the target."""
        payload = self.sending.for_task(again=bounced > 1 or (bounced > 0 and not self.carrying))
        task = (run_sent, next(numbers), self.workers.run, self.sending.digest, payload,
                self.seconds, *task)
        future = self.send(task)
        if payload is not None:
            self.carrying.add(future)
        return future

    def send(self, task):
        if self.own is None:
            try:
                return self.workers.submit(*task)
            except BrokenExecutor:
                if one_like(self.workers.executor) is None:
                    raise
                self.own = OneEach(self.workers.executor)
        return self.own.submit(*task)

    def arrived(self, future):
        """Record that a task has returned."""
        self.carrying.discard(future)
        if future.exception() is None and future.result() is not None:
            self.sending.arrived = True

    def tend(self):
        """Begin tasks that have waited for a worker."""
        if self.own is not None:
            self.own.tend()

    def halt(self, pending):
        withdraw(pending)
        self.workers.interrupt()

    def close(self):
        """End the workers of `OneEach`."""
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)


def withdraw(pending):
    """Cancel the tasks that have not begun."""
    for future in list(pending):
        if future.cancel():
            del pending[future]


def one_like(pool):
    """A function that makes a pool of one worker like those of a process pool, if this is one."""
    alike = {"initializer": getattr(pool, "_initializer", None),
             "initargs": getattr(pool, "_initargs", ())}
    if type(pool) is ProcessPoolExecutor:
        return partial(ProcessPoolExecutor, 1, mp_context=pool._mp_context, **alike)
    if type(pool).__module__.partition(".")[0] == "loky":
        from loky.process_executor import ProcessPoolExecutor as LokyPool

        return partial(LokyPool, 1, context=pool._context, env=pool._env, **alike)
    return None


class OneEach(Executor):
    """Workers like those of a broken process pool, each in a separate pool.

    A worker that dies therefore does not affect tasks of others. `tend` begins and ends tasks.
    """

    def __init__(self, pool):
        self.pool = one_like(pool)
        self.free = [None] * pool._max_workers  # pools without a task; None for one yet to be made
        self.waiting: deque[Any] = deque()
        self.running = {}  # the future of a pool -> the pool, and the future that we have returned

    def submit(self, function, /, *args, **kwargs):
        future: Future[Any] = Future()
        self.waiting.append((future, partial(function, **kwargs), args))
        self.tend()
        return future

    def tend(self):
        for inner in [inner for inner in self.running if inner.done()]:
            pool, future = self.running.pop(inner)
            error = inner.exception()
            if isinstance(error, BrokenExecutor):
                pool.shutdown(wait=False)
                pool = None
            self.free.append(pool)
            if error is None:
                future.set_result(inner.result())
            else:
                future.set_exception(error)
        while self.waiting and self.free:
            future, function, args = self.waiting.popleft()
            if future.set_running_or_notify_cancel():
                pool = self.free.pop() or self.pool()
                self.running[pool.submit(function, *args)] = pool, future

    def shutdown(self, wait=True, *, cancel_futures=False):
        for pool in [*self.free, *(pool for pool, _ in self.running.values())]:
            if pool is not None:
                pool.shutdown(wait=wait)
