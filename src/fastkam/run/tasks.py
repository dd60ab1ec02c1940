"""How chains are sent to an executor: within this process, or to other ones."""

from __future__ import annotations

import hashlib
import pickle
import secrets
import threading
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from fastkam.run.worker import GRACE_SECONDS, Asked, run_part, run_sent
from fastkam.stop import Time


class LocalTasks:
    """Tasks of a thread pool: they share the target, and can be asked to stop."""

    patience = None

    def __init__(self, executor, target, seconds):
        self.executor, self.target, self.seconds = executor, target, seconds
        self.halted = threading.Event()

    def submit(self, again, *task):
        stop = Time(self.seconds) | Asked(self.halted)
        return self.executor.submit(run_part, self.target, *task, stop)

    def tend(self):
        """Nothing waits to be begun."""

    def halt(self, pending):
        self.halted.set()
        withdraw(pending)

    def close(self):
        """Nothing has been opened."""


class RemoteTasks:
    """Tasks of any other executor: the first carry the target, later ones its digest.

    A process pool in which a worker has died runs nothing more: `OneEach` takes its place.
    """

    patience = GRACE_SECONDS

    def __init__(self, executor, target, seconds):
        self.executor, self.seconds = executor, seconds
        self.payload = portable_target(target)
        self.digest = hashlib.sha256(self.payload).hexdigest()
        self.run = secrets.token_hex(8)
        self.sent = False
        self.own = None

    def submit(self, again, *task):
        payload = self.payload if again or not self.sent else None
        task = (run_sent, self.run, self.digest, payload, self.seconds, *task)
        if self.own is None:
            try:
                return self.executor.submit(*task)
            except BrokenExecutor:
                if type(self.executor) is not ProcessPoolExecutor:
                    raise
                self.own = OneEach(self.executor)
        return self.own.submit(*task)

    def tend(self):
        """Begin what has waited for a worker."""
        if self.own is not None:
            self.own.tend()

    def halt(self, pending):
        withdraw(pending)

    def close(self):
        """End the workers that stood in for others."""
        if self.own is not None:
            self.own.shutdown(wait=False, cancel_futures=True)


def withdraw(pending):
    """Take back the tasks that have not begun."""
    for future in list(pending):
        if future.cancel():
            del pending[future]


class OneEach(Executor):
    """Workers like those of a broken process pool, each a pool of its own.

    So one that dies takes no task of another along. Tasks begin, and end, when it is tended.
    """

    def __init__(self, pool):
        self.pool = partial(ProcessPoolExecutor, 1, mp_context=pool._mp_context,
                            initializer=pool._initializer, initargs=pool._initargs)
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
                pool.shutdown(wait=wait, cancel_futures=cancel_futures)


def portable_target(target):
    """The target as bytes: by pickle, or else by cloudpickle where it is installed."""
    writers = [pickle.dumps]
    with suppress(ImportError):
        import cloudpickle

        writers.append(cloudpickle.dumps)
    for dumps in writers:
        try:
            payload = dumps(target)
        except Exception as error:
            problem = error
        else:
            # pickle names what the main program defines; workers may have another main program
            if b"__main__" not in payload or dumps is writers[-1]:
                return payload
    what = getattr(target, "function", target)
    raise TypeError(
        f"target {what!r} cannot be sent to the workers of executor: {problem}; define the "
        "function in a module, install cloudpickle, or give a fastkam.TargetRecipe"
    ) from problem
