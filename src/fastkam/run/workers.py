"""Values of `executor=`: an Executor, a pool, a dask client, or a number of processes."""

from __future__ import annotations

import concurrent.futures
import secrets
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from numbers import Integral
from typing import Any

from fastkam.arguments import NO_NUMBERS, shown, told
from fastkam.points.digest import digest_of
from fastkam.run.sending import Sending

MOST_PROCESSES = 10_000
SCATTERED_BYTES = 2**20


class CallExecutor(Executor):
    """The executor of one call of `sample` or `resume`, and the targets sent to its workers.

    Parameters
    ----------
    executor : Executor
    own : bool
        Whether it was made for this call, and ends with it.
    anywhere : bool
        As in `Sending`; False for the processes of fastkam, which import no main program.

    Attributes
    ----------
    local : bool
        Whether tasks are run by threads of this process, which share the target.
    number : int or None
        Number of workers, if it is known.
    run : str
        Name of the call. A target that another call has sent is made again from its recipe.
    """

    def __init__(self, executor: Any, *, own: bool = False, anywhere: bool = True) -> None:
        self.executor, self.own, self.anywhere = executor, own, anywhere
        self.local = (type(executor) is concurrent.futures.ThreadPoolExecutor
                      or getattr(executor, "local", False))
        self.number = number_of_workers(executor)
        self.run = secrets.token_hex(8)
        self.sendings: dict[int, tuple[Any, Sending]] = {}  # by addresses of the targets kept

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a task; ValueError if the executor takes none, TypeError for no Future."""
        try:
            future = self.executor.submit(function, *args, **kwargs)
        except BrokenExecutor:  # a worker has died
            raise
        except RuntimeError as error:
            raise ValueError(f"executor must take tasks, and {shown(self.executor)} has raised "
                             f"{told(error)}: give one that is not shut down") from error
        if not callable(getattr(future, "add_done_callback", None)):
            raise TypeError("executor must return a Future from submit, and "
                            f"{shown(self.executor)} has returned {shown(future)}")
        return future

    def sending(self, target: Any) -> Sending:
        """The Sending of a target, which is packed once in a call, for all workers."""
        if id(target) not in self.sendings:
            new = Sending(target, self.number, anywhere=self.anywhere,
                          function=digest_of(target))
            alike = [one for _, one in self.sendings.values() if one.digest == new.digest]
            if not alike:
                new.shared = scattered(self.executor, new.payload)
            self.sendings[id(target)] = target, (alike or [new])[0]
        return self.sendings[id(target)][1]

    def interrupt(self) -> None:
        """Ask running tasks to return early, if they run in processes of fastkam."""
        if not self.anywhere:
            self.executor.interrupt()

    def __exit__(self, *error: object) -> None:
        self.sendings.clear()
        if self.own:
            self.executor.shutdown(wait=False, cancel_futures=True)


def as_workers(given: Any) -> CallExecutor | None:
    """The CallExecutor of an argument `executor`, or None if there is no executor.

    A TypeError suggests what to pass instead of an object that is none.
    """
    if given is None or isinstance(given, CallExecutor):
        return given
    if is_closed(given):
        raise ValueError(f"executor must take tasks, and {shown(given)} is shut down: give one "
                         "that is open")
    # these start processes or threads: runs without an executor need not load them
    from fastkam.run.pools import MapPool, PolledPool
    from fastkam.run.processes import Processes

    if isinstance(given, Integral) and not isinstance(given, NO_NUMBERS):
        processes = int(given)
        if not 1 <= processes <= MOST_PROCESSES:
            raise ValueError(f"executor must be a number of processes from 1 to {MOST_PROCESSES}, "
                             f"or an Executor, not {shown(processes)}")
        return CallExecutor(Processes(processes), own=True, anywhere=False)
    if type(given) is Executor:
        raise TypeError("executor must be a concurrent.futures.Executor of a kind that runs tasks, "
                        "not its base class: give ThreadPoolExecutor(4), or a number of processes")
    if isinstance(given, type):
        raise TypeError(f"executor must be an Executor, a pool, a dask client or a number of "
                        f"processes, not {shown(given)}: give an object, {given.__name__}(...)")
    if callable(getattr(given, "get_executor", None)):  # a dask client
        return CallExecutor(given.get_executor(pure=False))
    if callable(getattr(given, "submit", None)):
        return CallExecutor(given)
    if callable(getattr(given, "apply_async", None)) and hasattr(given, "terminate"):
        from multiprocessing.pool import ThreadPool  # needed by no other call

        return CallExecutor(PolledPool(given, local=isinstance(given, ThreadPool)), own=True)
    if type(given).__module__.partition(".")[0] == "joblib" and callable(given):
        return CallExecutor(MapPool(joblib_map(given)), own=True)
    if callable(getattr(given, "map", None)) and not hasattr(given, "Get_rank"):
        return CallExecutor(MapPool(given.map, getattr(given, "size", None)), own=True)
    mend = ""
    if hasattr(given, "Get_rank"):
        mend = ": give mpi4py.futures.MPIPoolExecutor()"
    elif isinstance(given, (bool, float, str)):
        mend = ": for four processes write executor=4; for threads threads=4 is enough"
    raise TypeError("executor must be a concurrent.futures.Executor, a pool, a dask client or a "
                    f"number of processes, not {shown(given)}{mend}")


def is_closed(executor: Any) -> bool:
    """Whether a pool of the standard library has been shut down; workers that died are replaced."""
    if getattr(executor, "_broken", False):  # it looks as if it had been shut down as well
        return False
    ended = any(getattr(executor, name, None) is True for name in ("_shutdown", "_shutdown_thread"))
    return ended or getattr(executor, "_state", None) in ("CLOSE", "TERMINATE")


def joblib_map(parallel: Any) -> Callable[..., Any]:
    """The map of a joblib.Parallel."""
    from joblib import delayed

    return lambda function, tasks: parallel(delayed(function)(task) for task in tasks)


def scattered(executor: Any, payload: bytes) -> Any:
    """Scatter bytes to dask's workers; in a task they would pass through its scheduler."""
    client: Any = getattr(executor, "_client", None)
    if len(payload) < SCATTERED_BYTES or not callable(getattr(client, "scatter", None)):
        return None
    return client.scatter(payload, broadcast=True, hash=False)


def number_of_workers(executor: Any) -> int | None:
    """Number of workers of an executor, if it is known."""
    client: Any = getattr(executor, "_client", None)  # of dask
    if callable(getattr(client, "nthreads", None)):
        return max(1, len(client.nthreads()))
    number = getattr(executor, "_max_workers", None)
    return int(number) or None if isinstance(number, Integral) else None
