"""Chains as tasks of an executor: within this process, or in other ones."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from functools import partial
from typing import Any

from fastkam.arguments import shown
from fastkam.run.same_target import other_in_workers
from fastkam.run.worker import GRACE_SECONDS, Asked, run_part, run_sent
from fastkam.stop import Time

numbers = itertools.count()  # numbers of tasks


class LocalTasks:
    """Tasks of a thread pool: they share the target, and can be asked to stop."""

    patience = None

    def __init__(self, workers, target, seconds):
        self.workers, self.target, self.seconds = workers, target, seconds
        self.halted = threading.Event()

    def submit(self, bounced, *task):
        stop = Time(self.seconds) | Asked(self.halted)
        return self.workers.submit(run_part, self.target, *task, stop)

    def value(self, future):
        """Return the state and the failure of a task; None after an error."""
        return None if error_of(future) is not None else future.result()

    def tend(self):
        """Do nothing: no task waits here."""

    def halt(self, pending):
        self.halted.set()
        withdraw(pending)

    def close(self):
        """Do nothing: no resource is open."""


class RemoteTasks:
    """Tasks of any other executor: some carry the target, the others its digest.

    A process pool in which a worker has died cannot run further tasks: `OneEach` replaces it.
    """

    patience = GRACE_SECONDS

    def __init__(self, workers, target, seconds):
        self.workers, self.target, self.seconds = workers, target, seconds
        self.sending = workers.sending(target)
        self.carrying = set()  # the tasks that bring the target
        self.numbers = {}  # numbers of the tasks that have not returned
        self.own = None

    def submit(self, bounced, *task):
        """Submit a task, which has come back `bounced` times from workers without the target."""
        payload = self.sending.for_task(again=bounced > 1 or (bounced > 0 and not self.carrying))
        number = next(numbers)
        task = (run_sent, number, self.workers.run, self.sending.digest, payload, self.seconds,
                *task, self.sending.function)
        future = self.send(task)
        self.numbers[future] = number
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

    def value(self, future):
        """Return the state and the failure of a task.

        None after an error, or if its worker did not have the target. TypeError for another value.
        """
        carried, number = future in self.carrying, self.numbers.pop(future)
        self.carrying.discard(future)
        if error_of(future) is not None:
            return None
        value = value_of(future, number, self.workers.executor)
        if value is None:
            if carried:
                raise not_returned(self.workers.executor, future)
            return None
        self.sending.arrived = True
        state, failure, another = value
        if another and failure is None and self.sending.to_compare():
            failure = other_in_workers(self.target, (
                (one["x"] * state.scales, float(one["logp_x"])) for one in state.states))
        return state, failure

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


def error_of(future):
    """The error that an executor has set in the future of a task, or None."""
    try:
        return future.exception()
    except CancelledError as error:  # cancelled by the executor itself
        return error


def value_of(future, number, executor):
    """The value of a task, which returns (its number, the value).

    TypeError if the executor has returned something else, or the value of another task.
    """
    returned = future.result()
    if not (isinstance(returned, tuple) and len(returned) == 2 and type(returned[0]) is int):
        raise not_returned(executor, future)
    if returned[0] != number:
        raise TypeError("executor must return the value of each task in the Future of that task, "
                        f"and {shown(executor)} has returned the value of another task")
    return returned[1]


def not_returned(executor, future):
    """The TypeError for a future whose value is not what its task returns."""
    return TypeError("executor must return what its tasks return, and "
                     f"{shown(executor)} has returned {shown(future.result())}")


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
        self.running = {}  # the future of a pool -> the pool, and the future that `submit` returned

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
                try:
                    inner = pool.submit(function, *args)
                except BrokenExecutor:  # its worker has died without a task
                    pool.shutdown(wait=False)
                    pool = self.pool()
                    inner = pool.submit(function, *args)
                self.running[inner] = pool, future

    def shutdown(self, wait=True, *, cancel_futures=False):
        for pool in [*self.free, *(pool for pool, _ in self.running.values())]:
            if pool is not None:
                pool.shutdown(wait=wait)
