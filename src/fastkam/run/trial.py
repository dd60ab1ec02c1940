"""Threads for slow Python functions that release the GIL."""

from __future__ import annotations

import concurrent.futures
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.run.same_target import TARGET_TOLERANCE, density_at, differs

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.groups import ChainGroup
    from fastkam.run.stored import StoredTrace
    from fastkam.run.trace import Trace

SLOW_SECONDS = 2e-3  # seconds per evaluation above which threads are considered
TICK_SECONDS = 1e-3  # interval at which another thread requests the GIL
FREE = 0.35  # smallest share of the time with the GIL free; a Python loop leaves 1/6
FASTER = 1.3  # factor in evaluations per second that threads must gain
LOOKS = 6  # rounds of the chains that are measured; other programs may use the processors meanwhile
PLENTY = 10_000  # evaluations of a chain, with which threads may be tried more than once
MOST_THREADS = 64
CHECK_SECONDS = 1.0  # for the comparison of values at the end, after the first value
# draws; the number compared, of the highest of them and of others; those sorted to find these
MOST_LOOKED_AT, COMPARED, SORTED = 20_000, 12, 1000
log = logging.getLogger("fastkam")


class Trial:
    """Measures, while chains run one after another, whether threads would be faster.

    A thread that requests the GIL every millisecond measures whether the function releases it. Then
    the function is called at the points of all chains at once: it must return the same values as
    before, in less time. A function with internal state, such as an open file, fails this test. At
    the end the function is called in one thread, and the values are compared again.

    Attributes
    ----------
    threads : int
        Number of threads in which to run the chains: 1 until more are found to be faster.
    """

    def __init__(self) -> None:
        self.threads, self.looks, self.rounds = 1, LOOKS, 0
        self.slow = False

    def measured(self, groups: list[ChainGroup]) -> Measured | None:
        """The measurement of the next round of these groups, made for the first, 2nd, 4th, ..."""
        self.rounds += 1
        if len(groups) < 2 or not self.looks or self.rounds & (self.rounds - 1):
            return None
        return Measured(groups, ticking=self.slow)

    def look(self, groups: list[ChainGroup], measured: Measured) -> None:
        """Decide from the measurements of a round."""
        n, each = measured.evaluations(), measured.each()
        self.looks -= n > 0
        if n == 0 or not self.slow:
            self.slow = each > SLOW_SECONDS  # the next round is examined in detail
            return
        threads = min(len(groups), measured.threads(), MOST_THREADS)
        points = [group.point() for group in groups]
        different = len({x.tobytes() for x, _ in points}) > 1  # equal points would test nothing
        if measured.free() < FREE or threads < 2 or not different or numba_takes_one_caller():
            return
        if groups[0].run.most_evaluations < PLENTY:
            self.looks = 0  # a budget has room for the calls of one trial
        if self.together(groups, points, threads, each):
            self.threads, self.looks = threads, 0
            log.info("the chains run in %d threads: the density takes %.3g s, and releases the GIL "
                     "(threads=1 runs them one after another)", threads, each)

    def together(self, groups: list[ChainGroup], points: list[Any], threads: int,
                 each: float) -> bool:
        """Whether calls from several threads return the same values in less time."""
        begun = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(
                threads, thread_name_prefix="fastkam-try") as pool:
            futures = [pool.submit(density_at, group.target, x, None)
                       for group, (x, _) in zip(groups, points, strict=True)]
            problems = [future.exception() for future in futures]
        seconds = time.perf_counter() - begun
        same = not any(problems) and not any(
            differs(future.result(), kept)
            for future, (_, kept) in zip(futures, points, strict=True))
        if not same:
            self.looks = 0
            log.info("the chains run one after another: the density does not return the same "
                     "values when several threads call it at once")
        return same and seconds * FASTER < each * len(points)

    def check(self, groups: list[ChainGroup]) -> None:
        """Compare the density's values in one thread with those that it returned in several."""
        check_alone(groups[0].target, [group.point() for group in groups])


def numba_takes_one_caller() -> bool:
    """Whether numba's threads allow one caller at a time: two would end the process."""
    numba = sys.modules.get("numba")
    try:
        return numba is not None and numba.threading_layer() == "workqueue"
    except ValueError:  # no function has started threads yet
        return False


def check_alone(
    target: Target, points: Iterable[tuple[NDArray[np.float64], float]],
    tolerance: float = TARGET_TOLERANCE,
) -> None:
    """Refuse the log densities of points that several threads have evaluated, if they are wrong.

    Each is compared with that of a call while no other thread calls the function. A function that
    returns another value each time says nothing about threads, and passes.
    """
    begun = time.perf_counter()
    for x, kept in points:
        found = density_at(target, x, None)
        if not abs(found - kept) <= tolerance * max(1.0, abs(kept)):
            if differs(density_at(target, x, None), found):
                return
            raise RuntimeError(
                "the log density is not the same when several threads call the function: "
                f"{kept!r} among others, {found!r} alone, at x = "
                f"{np.array2string(x, threshold=8)}; sample again with threads=1, or for a pointer "
                "give Target.from_c(..., thread_safe=False). (If its data have changed during the "
                "run, keep them as they are.)")
        if time.perf_counter() - begun > CHECK_SECONDS:
            return


def some_draws(
    trace: Trace | StoredTrace, first: int
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Draws from the row `first` on, and their log densities.

    They are the highest, where chains stay if their value is too high, and equally spaced ones.
    """
    if trace.stat_names is None or trace.rows <= first:
        return
    step = max(1, len(trace.counts) * (trace.rows - first) // MOST_LOOKED_AT)
    logp = np.asarray(trace.logp[:, first : trace.rows : step])
    flat = logp.reshape(-1)
    top = flat.argsort()[::-1] if flat.size <= SORTED else flat.argpartition(-SORTED)[-SORTED:]
    _, different = np.unique(flat[top], return_index=True)
    spaced = np.linspace(0, flat.size - 1, COMPARED).astype(int)
    for i in [*top[different[-COMPARED:]].tolist(), *spaced.tolist()]:
        k, row = divmod(i, logp.shape[1])
        yield np.array(trace.x[k, first + row * step]), float(flat[i])


class Measured:
    """A context, entered for each chunk of a round, that measures how long the GIL is free.

    Parameters
    ----------
    groups : list of ChainGroup
    ticking : bool
        Whether a thread requests the GIL; it exists only within the context.
    """

    def __init__(self, groups: list[ChainGroup], *, ticking: bool) -> None:
        self.groups, self.ticking = groups, ticking
        self.before = self.count()
        self.seconds, self.cpu, self.ticks = 0.0, 0.0, 0
        self.over, self.thread = threading.Event(), threading.Thread()

    def __enter__(self) -> None:
        if self.ticking:
            self.over.clear()
            self.thread = threading.Thread(target=self.tick, name="fastkam-tick", daemon=True)
            self.thread.start()
        self.seconds -= time.perf_counter()
        self.cpu -= busy()

    def __exit__(self, *error: object) -> None:
        self.cpu += busy()
        self.seconds += time.perf_counter()
        if self.ticking:
            self.over.set()
            self.thread.join()

    def evaluations(self) -> int:
        """Number of evaluations in the round."""
        return self.count() - self.before

    def each(self) -> float:
        """Mean seconds of an evaluation."""
        return self.seconds / max(self.evaluations(), 1)

    def free(self) -> float:
        """The fraction of the time in which another thread could run."""
        return self.ticks * TICK_SECONDS / max(self.seconds, 1e-9)

    def threads(self) -> int:
        """Number of threads that keep the processors busy."""
        share = self.cpu / max(self.seconds, 1e-9)  # of one processor
        return round(processors() / max(share, 1 / MOST_THREADS))

    def tick(self) -> None:
        while not self.over.wait(TICK_SECONDS):
            self.ticks += 1

    def count(self) -> int:
        """Number of evaluations of the groups' chains."""
        return sum(chain.n_evaluations for group in self.groups for chain in group.chains)


def busy() -> float:
    """Processor time of this thread and of processes that have ended, in seconds."""
    times = os.times()
    return time.thread_time() + times.children_user + times.children_system


def processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
