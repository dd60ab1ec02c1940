"""Properties of an executor: its number of workers, and whether it takes points itself."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.points.reply import Reply

Array = NDArray[np.float64]
Points = list[tuple[bytes, Array]]
Returned = list[tuple[bytes, Reply | None]]


class TakesPoints(Executor):
    """An executor that is a carrier of points itself (see `Carrier`), and takes no tasks.

    Attributes
    ----------
    desk : Desk
        Set by the run that it serves.
    """

    desk: Any = None
    workers: int | None = None

    def room(self) -> int:
        """Number of points that it takes now."""
        raise NotImplementedError

    def send(self, points: Points, priorities: list[float]) -> None:
        """Take points."""
        raise NotImplementedError

    def collect(self, timeout: float | None) -> Returned:
        """The replies that have arrived."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Forget the points that have not begun."""
        raise NotImplementedError

    def close(self) -> None:
        """End."""
        raise NotImplementedError

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Refuse a task."""
        raise TypeError(f"{type(self).__name__} evaluates points, and runs no tasks")


def tasks_at_once(executor: Any) -> int | None:
    """Number of tasks that an executor runs at once, if it is known."""
    for name in ("_max_workers", "num_workers", "max_workers"):  # for processes, MPI, others
        number = getattr(executor, name, None)
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return number
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)  # for dask
    if callable(threads):
        return sum(threads().values()) or None
    return None
