"""Executors made of other pools: of those with `apply_async`, and of those with `map` alone."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastkam.arguments import shown

POLL_SECONDS = 0.05
UNBEGUN_SECONDS = 10.0  # after a worker's death, until a task that has not begun is lost
GATHER_SECONDS = 0.01  # within which submitted tasks are collected for one call of map


class PolledPool(Executor):
    """An Executor made of a pool with `apply_async`, such as multiprocessing.Pool.

    The pool is given at most one task for each worker, so that the other tasks can be cancelled.
    multiprocessing.Pool replaces a worker that dies, and its task never returns. Therefore each
    task writes the process in which it runs to a file, and is lost if that process ends.

    Parameters
    ----------
    pool : multiprocessing.Pool or similar
    local : bool
        Whether its workers are threads of this process.
    """

    def __init__(self, pool: Any, *, local: bool) -> None:
        self.pool, self.local = pool, local
        self.processes = isinstance(getattr(pool, "_pool", None), list) and not local
        self._max_workers = int(getattr(pool, "_processes", 0) or os.cpu_count() or 1)
        self.threads = ThreadPoolExecutor(self._max_workers, thread_name_prefix="fastkam-pool")
        self.folder = tempfile.TemporaryDirectory(prefix="fastkam-")
        self.closed = threading.Event()
        self.number = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.number += 1
        mark = Path(self.folder.name) / f"{self.number}" if self.processes else None
        return self.threads.submit(self.call, mark, function, args, kwargs)

    def call(self, mark: Path | None, function: Any, args: Any, kwargs: Any) -> Any:
        """Run a task in the pool, and wait for it."""
        if mark is None:
            task = self.pool.apply_async(function, args, kwargs)
        else:
            task = self.pool.apply_async(marked, (str(mark), function, args, kwargs))
        watch = TaskWatch(self.pool, mark) if mark is not None else None
        while True:
            task.wait(POLL_SECONDS)
            if task.ready():
                return task.get()
            if self.closed.is_set():
                raise BrokenExecutor("the run has ended")
            if watch is not None and watch.lost() and not task.ready():
                raise BrokenExecutor("a worker of the pool has died")

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads; the pool belongs to the user."""
        self.closed.set()
        self.threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        with suppress(OSError):  # tasks may begin only now and write files
            self.folder.cleanup()


def marked(mark: str, function: Any, args: Any, kwargs: Any) -> Any:
    """Run a task in a worker, which writes its process id first."""
    with suppress(OSError):  # the run has ended
        Path(mark).write_text(str(os.getpid()))
    return function(*args, **kwargs)


class TaskWatch:
    """Whether a task is lost because the process that ran it has ended."""

    def __init__(self, pool: Any, mark: Path) -> None:
        self.pool, self.mark = pool, mark
        self.known = self.living()
        self.since = 0.0  # when a worker died, while no worker had begun this task
        self.gone = 0  # times that the worker of the task was found gone

    def living(self) -> set[int]:
        """The process ids of the pool's workers."""
        return {process.pid for process in list(self.pool._pool) if process.exitcode is None}

    def lost(self) -> bool:
        """Whether the task's worker has ended, or no worker has begun it for a long time."""
        living = self.living()
        begun = self.mark.read_text() if self.mark.exists() else ""
        if begun:
            self.gone += int(begun) not in living
            return self.gone > 2  # the last result of a worker may still arrive
        if self.known - living and not self.since:
            self.since = time.monotonic()
        self.known |= living
        return bool(self.since) and time.monotonic() - self.since > UNBEGUN_SECONDS


class MapPool(Executor):
    """An Executor made of a pool with `map` alone: waiting tasks are submitted together.

    Parameters
    ----------
    map : callable
        ``map(function, list)`` returns the function's values at the elements.
    size : int, optional
        Number of workers.
    """

    def __init__(self, map: Callable[..., Any], size: Any = None) -> None:
        self.map_tasks = map
        self._max_workers = size
        self.waiting: deque[Any] = deque()
        self.condition = threading.Condition()
        self.closed = False
        self.thread: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self.condition:
            self.waiting.append((future, (function, args, kwargs)))
            if self.thread is None:
                # a daemon, so that the program can end even if a call of map never returns
                self.thread = threading.Thread(target=self.serve, name="fastkam-map", daemon=True)
                self.thread.start()
            self.condition.notify()
        return future

    def serve(self) -> None:
        """Submit waiting tasks until the executor is shut down."""
        while True:
            with self.condition:
                while not (self.waiting or self.closed):
                    self.condition.wait()
                if self.closed:
                    return
            time.sleep(GATHER_SECONDS)
            with self.condition:
                some = [one for one in self.waiting if one[0].set_running_or_notify_cancel()]
                self.waiting.clear()
            self.hand_out([future for future, _ in some], [task for _, task in some])

    def hand_out(self, futures: list[Future[Any]], tasks: list[Any]) -> None:
        """Run tasks by one call of the pool's map."""
        try:
            results = list(self.map_tasks(attempted, tasks)) if tasks else []
            check_results(results, len(tasks))
        except BaseException as error:
            results = [(None, error)] * len(tasks)
        for future, (value, problem) in zip(futures, results, strict=True):
            if problem is None:
                future.set_result(value)
            else:
                future.set_exception(problem)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread; the pool belongs to the user."""
        with self.condition:
            self.closed = True
            while self.waiting:
                self.waiting.pop()[0].cancel()
            self.condition.notify()
        if wait and self.thread is not None:
            self.thread.join()


def check_results(results: list[Any], n: int) -> None:
    """Refuse what a map has returned if it is not the value of `attempted` for each of n tasks."""
    if len(results) != n:
        raise TypeError(f"executor must return from its map a value for every task, {n}, not "
                        f"{len(results)}")
    for one in results:
        if not (isinstance(one, (tuple, list)) and len(one) == 2
                and (one[1] is None or isinstance(one[1], BaseException))):
            raise TypeError("executor must return from its map what the function returns, not "
                            f"{shown(one)}")


def attempted(task: Any) -> tuple[Any, BaseException | None]:
    """Run a task: (value, error), so that one that fails does not affect others."""
    function, args, kwargs = task
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error
