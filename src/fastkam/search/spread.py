"""Points of a search, evaluated by the workers of an executor."""

from __future__ import annotations

import logging
import os
import queue
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.fault import Fault
from fastkam.arguments import told
from fastkam.run import blas, worker
from fastkam.run.same_target import other_in_workers
from fastkam.run.tasks import numbers, value_of
from fastkam.search.evaluator import Evaluator
from fastkam.search.watch import Spent

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.run.workers import CallExecutor

WATCH_SECONDS = 0.05
log = logging.getLogger("fastkam")
Array = NDArray[np.float64]
Returned = tuple[Array, int, list[Fault], int]  # values, evaluations, first failures, failures


class Spread:
    """Evaluates points in the workers of an executor; the first tasks carry the target.

    Parameters
    ----------
    workers : CallExecutor
    target : Target
    """

    def __init__(self, workers: CallExecutor, target: Target) -> None:
        self.workers, self.target, self.sending = workers, target, workers.sending(target)
        self.number = workers.number or os.cpu_count() or 1

    def __call__(
        self, X: Array, noise: Array | None, meanwhile: Callable[[], None]
    ) -> Returned | None:
        """The values at points and the failures; None if workers died.

        `meanwhile` is called while it waits for workers, and may raise Spent.
        """
        parts = np.array_split(X, min(len(X), self.number))
        try:
            returned = self.ask(parts, noise, meanwhile, again=not self.sending.arrived)
            missing = [i for i, one in enumerate(returned) if one is None]
            again = self.ask([parts[i] for i in missing], noise, meanwhile, again=True)
            if any(one is None for one in again):
                raise RuntimeError("workers return no value, although the tasks bring the target")
        except Spent:
            raise
        except Exception as error:  # each kind of executor has its own error for a lost worker
            log.info("points of the search are evaluated here, as workers were lost: %s",
                     told(error))
            return None
        for i, one in zip(missing, again, strict=True):
            returned[i] = one
        for one in returned:
            if isinstance(one, BaseException):  # an error of the density
                raise one
        self.sending.arrived = True
        for part, one in zip(parts, returned, strict=True):
            pairs = zip(part, one[0], strict=True)
            if one[4] and self.sending.to_compare():
                other = other_in_workers(cast(Any, self.target), pairs)
                if other is not None:
                    raise other
        return (np.concatenate([one[0] for one in returned]), sum(one[1] for one in returned),
                [fault for one in returned for fault in one[2]], sum(one[3] for one in returned))

    def ask(
        self, parts: list[Array], noise: Array | None, meanwhile: Callable[[], None], *,
        again: bool,
    ) -> list[Any]:
        """Results of the workers, one per part; None from one that does not have the target."""
        sent = [next(numbers) for _ in parts]
        tasks = [self.workers.submit(
                     evaluate_sent, number, self.workers.run, self.sending.digest,
                     self.sending.for_task(again=again), self.sending.function, part, noise)
                 for number, part in zip(sent, parts, strict=True)]
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for task in tasks:
            task.add_done_callback(done.put)
        left = len(tasks)
        try:
            while left:
                try:
                    done.get(timeout=WATCH_SECONDS)
                    left -= 1
                except queue.Empty:
                    meanwhile()
            return [value_of(task, number, self.workers.executor)
                    for task, number in zip(tasks, sent, strict=True)]
        finally:
            for task in tasks:
                task.cancel()


def evaluate_sent(
    number: int, run: str, digest: str, payload: bytes | None, function: str, X: Array,
    noise: Array | None,
) -> tuple[int, tuple[Array, int, list[Fault], int, bool] | BaseException | None]:
    """Evaluate points in a worker; return (number, None) if it does not have the target.

    What it returns, and the names, are as in `Spread` and in `fastkam.run.worker.run_sent`.
    """
    target, _, another = worker.known_target(run, digest, payload, function)
    if target is None:
        return number, None
    evaluate = Evaluator(target, np.random.default_rng(0))
    evaluate.noise, evaluate.found = noise, True
    try:
        with blas.shared():
            values = evaluate(X)
    except Fault as fault:
        fault.cause = worker.portable_error(fault.cause)
        return number, fault
    for failure in evaluate.failures:
        failure.cause = worker.portable_error(failure.cause)
    return number, (values, evaluate.n, evaluate.failures, evaluate.n_failed, another)
