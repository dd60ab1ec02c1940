"""Supervision of a search: the progress of the call, and the rule that ends it."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from fastkam.arguments import told
from fastkam.errors import SamplingError
from fastkam.progress import Progress
from fastkam.run.rules import Limits

if TYPE_CHECKING:
    from fastkam.run.options import RunOptions

SHARE = 1 / 3  # of a run's time and evaluations that the search before it may take
REPORT_SECONDS = 0.05
ADVISED_SECONDS, SLOW_SECONDS = 10.0, 5e-3  # of a search, and of an evaluation, for advice


class Spent(Exception):
    """Raised when a search has used its share of the run's time or evaluations."""


class Watch:
    """Called between the evaluations of a search; it reports the progress, or raises Spent.

    It is also a context, in which it is asked as well while the search waits for workers. Its end
    erases the progress of the search from the screen and, if the search has failed, ends the
    processes that it used.

    Parameters
    ----------
    options : RunOptions, optional
        Options of the run that follows. Without them nothing is reported, and there is no limit.
    chains : int
        Number of chains of the run.
    share : float
        The share of the run's time and evaluations that the search may take.
    spent : int
        Number of evaluations made before.
    advice : str
        How to shorten the search if an evaluation takes long.
    """

    def __init__(
        self, options: RunOptions | None = None, chains: int = 0, share: float = SHARE,
        spent: int = 0, advice: str = "",
    ) -> None:
        self.options, self.chains, self.advice = options, chains, advice
        stop = None if options is None else options.stop
        self.limits = Limits() if stop is None else stop.limits()
        self.limits = self.limits._replace(evaluations=max(0, self.limits.evaluations - spent))
        self.reported = time.perf_counter()
        self.every = max(REPORT_SECONDS, 0.0 if options is None else options.report.every)
        self.begun = self.reported if options is None else options.begun
        self.until = self.begun + share * self.limits.seconds
        most = share * self.limits.evaluations
        self.most_evaluations = most if most == math.inf else math.floor(most)
        self.drawn, self.requested = 0, 0  # draws per chain, if weighted draws are made
        self.spent = Spent()  # raised while an evaluation goes on
        self.lookup: Any = None  # of the points of a pool

    def __call__(self, n: int) -> None:
        """Report the progress after n evaluations; raise Spent if the share is used up."""
        now = time.perf_counter()
        asked = self.options is not None and self.options.report.asked
        if n >= self.most_evaluations or now >= self.until or asked:
            raise Spent
        if self.options is not None and now >= self.reported + self.every:
            self.reported = now
            try:
                drawing, elapsed = self.requested > 0, max(now - self.begun, 1e-9)
                slow = elapsed > max(ADVISED_SECONDS, SLOW_SECONDS * n)
                self.options.report(Progress(
                    steps=self.drawn * self.chains, total=self.requested * self.chains,
                    draws=[self.drawn] * self.chains, requested=self.requested,
                    tuning=not drawing, acceptance=math.nan if drawing else 0.0,
                    seconds=now - self.options.begun, searched=n, evaluations=n,
                    rate=n / elapsed, advice=self.advice if slow else "",
                    _stop=self.options.report.stop))
            except Exception as error:
                what = ", ".join([told(error), *getattr(error, "__notes__", ())])
                raise SamplingError(f"the search was stopped by {what}; "
                                    "no draw had been made") from error
            if self.options.report.asked:
                raise Spent

    def within(self) -> None:
        """Raise `spent`, while an evaluation goes on, if the share of the time is used up."""
        if time.perf_counter() >= self.until:
            raise self.spent.with_traceback(None)

    def at_once(self, n: int, seconds: float, most: int) -> int:
        """Number of points to evaluate next, given that the last n took these seconds.

        If the time is limited it is a moment's worth, or all where workers are waited for.
        """
        left = self.most_evaluations - n
        if self.until < math.inf and self.lookup is None:
            left = min(left, REPORT_SECONDS * n / max(seconds, 1e-9))
        return int(max(1, min(most, left)))

    def most_tune(self, n: int) -> float:
        """Warm-up steps of a chain that take half of the budget left after n evaluations."""
        left = self.limits.evaluations - n
        elapsed = time.perf_counter() - self.begun
        if n:  # these show how long an evaluation takes
            left = min(left, n * (self.limits.seconds / max(elapsed, 1e-9) - 1))
        return max(0.0, left / (2 * self.chains))

    @property
    def pooled(self) -> Any:
        """The lookup of points in a pool; None without one."""
        desk = None if self.options is None else self.options.desk
        return None if desk is None else desk.lookup

    @property
    def keeps_calls(self) -> bool:
        """Whether all calls are kept in a file, with which a later run goes on."""
        desk = None if self.options is None else self.options.desk
        return desk is not None and desk.evaluations is not None

    def repeating(self) -> AbstractContextManager[None]:
        """A context in which calls that the run has made before are made again."""
        lookup = self.pooled
        return nullcontext() if lookup is None else lookup.repeating()

    def __enter__(self) -> Watch:
        self.lookup = None if self.until == math.inf else self.pooled
        if self.lookup is not None:
            self.lookup.meanwhile = self.within
        return self

    def __exit__(self, *error: object) -> None:
        if self.lookup is not None:
            self.lookup.meanwhile = None
        if self.options is None:
            return
        self.options.report.__exit__(*error)
        if error[0] is not None:  # there will be no run
            with self.options.closing:
                pass
