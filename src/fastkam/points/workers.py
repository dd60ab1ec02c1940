"""The report on the workers of a run: how busy they were, slow points, failures."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import counted, told
from fastkam.points.reply import Reply

Array = NDArray[np.float64]
MOST_SLOW, MOST_FAILURES = 10, 100  # points that are kept in a report
LONG = 2.0  # duration of an evaluation that is shown as not ended, in units of the slowest


@dataclass(frozen=True)
class Workers:
    """Work done by the workers of a run since it was begun or resumed.

    Attributes
    ----------
    points : int
        Number of finished evaluations.
    workers : int
        Number of workers of the executor or, if that is unknown, of those that returned a value.
    busy : float
        Total seconds that the workers spent in the density.
    seconds : float
        Seconds from the first submission to the last reply.
    by_worker : dict of str to tuple (int, float)
        For each worker, "host:process", its number of evaluations and their seconds.
    slowest : list of tuple (float, ndarray, str)
        The ten slowest evaluations: seconds, the point (d,), and the worker.
    failures : list of tuple (ndarray, str, str)
        The first hundred failed calls: the point (d,), the error, and the worker.
    n_failures : int
        Number of all failed calls: two for a point that has failed, since it is called again.
    unfinished : list of tuple (float, ndarray)
        Ten evaluations that had not ended when the run did: seconds since the point (d,) was sent,
        and the point, first the one that was sent first.
    """

    points: int
    workers: int
    busy: float
    seconds: float
    by_worker: dict[str, tuple[int, float]]
    slowest: list[tuple[float, Array, str]]
    failures: list[tuple[Array, str, str]]
    n_failures: int
    unfinished: list[tuple[float, Array]]

    @property
    def utilization(self) -> float:
        """The share of the workers' time that was spent in the density; NaN if there was none."""
        whole = self.seconds * self.workers
        return self.busy / whole if whole > 0 else np.nan

    def __str__(self) -> str:
        lines = [f"{counted(self.points, 'evaluation')} by {counted(self.workers, 'worker')} in "
                 f"{self.seconds:.1f} s, "
                 f"which spent {100 * self.utilization:.0f} % of that time in the density"]
        if self.slowest:
            seconds, x, who = self.slowest[0]
            lines.append(f"slowest: {seconds:.3g} s at x = {np.array2string(x, threshold=8)} "
                         f"({who})")
        if self.n_failures:
            x, error, who = self.failures[0]
            lines.append(f"{counted(self.n_failures, 'failure')}, the first at x = "
                         f"{np.array2string(x, threshold=8)}: {error} ({who})")
        if self.unfinished and self.unfinished[0][0] > LONG * self.slowest_seconds:
            seconds, x = self.unfinished[0]
            lines.append(f"not ended after {seconds:.3g} s: the evaluation at x = "
                         f"{np.array2string(x, threshold=8)}")
        return "\n".join(lines)

    @property
    def slowest_seconds(self) -> float:
        """Duration of the slowest evaluation that has ended; 0 if none has."""
        return self.slowest[0][0] if self.slowest else 0.0


@dataclass
class Record:
    """The counts from which a report is made."""

    begun: float | None = None
    ended: float = 0.0
    points: int = 0
    busy: float = 0.0
    n_failures: int = 0
    by_worker: dict[str, tuple[int, float]] = field(default_factory=dict)
    slow: list[tuple[float, int, Array, str]] = field(default_factory=list)
    failures: list[tuple[Array, str, str]] = field(default_factory=list)
    unfinished: list[tuple[float, Array]] = field(default_factory=list)

    def sent(self) -> None:
        """Record that points are sent."""
        if self.begun is None:
            self.begun = time.perf_counter()

    def took(self, x: Array, reply: Reply) -> None:
        """Record a finished evaluation."""
        self.ended = time.perf_counter()
        self.points += 1
        self.busy += reply.seconds
        n, seconds = self.by_worker.get(reply.worker, (0, 0.0))
        self.by_worker[reply.worker] = n + 1, seconds + reply.seconds
        item = reply.seconds, -self.points, x, reply.worker  # the second element breaks ties
        if len(self.slow) < MOST_SLOW:
            heapq.heappush(self.slow, item)
        elif reply.seconds > self.slow[0][0]:
            heapq.heapreplace(self.slow, item)
        if reply.error is not None:
            self.n_failures += 1
            if len(self.failures) < MOST_FAILURES:
                self.failures.append((x, told(reply.error), reply.worker))

    def cancelled(self, sent: list[tuple[float, Array]]) -> None:
        """Record points that are given up: when they were sent, and where they are."""
        now = time.perf_counter()
        oldest = heapq.nsmallest(MOST_SLOW, sent, key=itemgetter(0))
        self.unfinished = [(now - begun, x) for begun, x in oldest]

    def report(self, workers: int | None) -> Workers:
        """The report made from the counts so far."""
        slowest = [(seconds, x, who) for seconds, _, x, who in sorted(self.slow, reverse=True)]
        seconds = 0.0 if self.begun is None else max(0.0, self.ended - self.begun)
        number = workers or max(1, len(self.by_worker))
        return Workers(self.points, number, self.busy, seconds, dict(self.by_worker), slowest,
                       list(self.failures), self.n_failures, list(self.unfinished))
