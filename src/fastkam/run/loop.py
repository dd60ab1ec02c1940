"""The loop of a run: chains advance in chunks, in one or several threads, until they end."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections import deque
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fastkam._core.engine.fault import Fault
from fastkam.diagnostics.checks import findings
from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.progress import Progress
from fastkam.run.groups import ChainGroup
from fastkam.run.interrupts import Shield
from fastkam.run.records import check_complete
from fastkam.run.same_target import OWN_TOLERANCE
from fastkam.run.state import RunState
from fastkam.run.trial import check_alone, some_draws
from fastkam.run.writer import CheckpointWriter

if TYPE_CHECKING:
    from fastkam.diagnostics import Finding

NO_LIMIT = 2**62  # evaluations of a chain
ASKED = "Progress.stop()"  # `stopped_by` of a run that its view has stopped
WATCH_SECONDS = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    state : RunState
        ``state.status`` is "complete", "stopped", "interrupted" or "failed".
    failure : Exception or None
        A Fault of the target, or the error of the sampler, a stop rule or the progress function.
    checkpoint : CheckpointWriter
        Its ``error`` is that of the last checkpoint, or None.
    found : list of Finding or None
        The findings on the run, if they have been computed.
    """

    state: RunState
    failure: BaseException | None
    checkpoint: CheckpointWriter
    found: list[Finding] | None = None


class Run:
    """Continues a run.

    Parameters
    ----------
    past : RunState
        The state to continue from; it is not changed, and `Run.state` returns a new one.
    target : Target
    rows : int
        Number of draws of each chain at the end.
    """

    def __init__(self, past, target, rows):
        self.past = past
        self.target = target
        self.rows = rows
        self.begun = self.called = time.perf_counter()
        self.halt = threading.Event()
        self.trial = None  # measures whether threads are useful for a Python function
        self.shield = Shield()  # not entered, and therefore without effect
        self.most_evaluations = NO_LIMIT
        self.hardest = 0  # the coordinate for which a stop rule was not met the last time
        self.expected = {}  # rows per chain that each stop rule expects to need, by its id
        self.found = (-1, None)  # rows per chain at the last findings, and these
        self.stopped_by = ""
        self.first = (sum(int(one["t"]) for one in past.states), self.begun_with(past))
        self.pace = 1  # steps per chunk of a group, increased until one takes CHUNK_SECONDS
        self.trace = past.trace.grown(rows)
        self.store = getattr(past.trace, "store", None)
        warmup_rows = past.tune // past.thin if past.keep_warmup else 0
        self.warmup = past.warmup.grown(max(warmup_rows, past.warmup.rows))
        self.plan = past.schedule.compiled(past.sampler, past.d, past.tune)
        chains = range(past.chains)
        members = [chains] if self.together() else [[k] for k in chains]
        self.groups = [ChainGroup(self, list(some)) for some in members]

    def together(self):
        """Whether all chains step together."""
        return self.target.batched or self.past.share

    @staticmethod
    def begun_with(past):
        """The number of evaluations made before."""
        return past.evaluations

    # ---- driving ----

    def go(self, options):
        """Run until every chain has its draws, or a stop rule holds; return an Outcome."""
        self.shield, self.called = options.shield, options.begun
        options.earlier.begin(self.past.status == "new")
        writer = CheckpointWriter(options.checkpoint, options.checkpoint_interval, self.store,
                                  options.earlier)
        if self.store is not None:  # before anything can be lost
            writer.begin(self.state("running"))
        threads = options.number_of_threads(self.target, self.past.sampler)
        if options.threads is None and threads == 1 and not (
                self.target.serial or self.target.is_estimate):
            self.trial = options.trial
        status, failure = self.drive(threads, options.report, options.stop, writer)
        state = self.state(status)
        self.groups.clear()  # break the reference cycle, so that memory is freed at once
        writer.write(state)
        rows, found = self.found
        # with fewer draws the final check reports more
        known = rows == state.trace.rows >= LEAST_DRAWS
        return Outcome(state, failure, writer, found if known else None)

    def drive(self, threads, report, stop, writer):
        """Run; return the final status, and the failure or None."""
        status, failure = "complete", None
        interval = report.interval(self.past.chains)
        if stop is not None:
            left = max(0.0, stop.limits().evaluations - self.past.searched)
            most = np.ceil(left / self.past.chains)
            self.most_evaluations = int(min(self.most_evaluations, most))

        def between():
            with self.shield.opened:  # even without a report, since an interrupt may be pending
                if report.wanted and interval.over():
                    report.monitor.look(self, stop)
                    report(self.progress(report))
                    interval.done()
            writer.due(lambda: self.state("running"))
            with self.shield.opened, of_rule():
                return report.asked or (stop is not None and stop.due(self))

        try:
            if report.wanted:
                report.monitor.begin(self)
            for rows in self.milestones(stop):
                if self.advance(rows, threads, between) or self.may_end(stop):
                    status = "stopped"
                    self.stopped_by = ASKED if report.asked else repr(stop.reason(self))
                    break
            else:
                if stop is not None and self.share_used:
                    with self.shield.opened:
                        status, self.stopped_by = "stopped", repr(stop.reason(self))
            for group in self.groups:  # extras that another chain has found since
                group.record()
            self.check_compiled(threads)
            check_complete(self.trace)
            with self.shield.opened:
                if report.at_end:
                    report.monitor.look(self, stop, last=True)
                    report(self.progress(report, self.stopped_by if status == "stopped" else ""))
        except KeyboardInterrupt:
            status = "interrupted"
        except Fault as fault:
            cause = fault.cause
            ends = cause is not None and not isinstance(cause, Exception)
            if isinstance(cause, KeyboardInterrupt):
                status = "interrupted"
            else:  # SystemExit etc. propagate once the state is kept
                status, failure = "failed", cause if ends else fault
        except BaseException as error:  # from the progress function, a stop rule or the sampler
            status, failure = "failed", error
        return status, failure

    def check_compiled(self, threads):
        """Compare log densities of a compiled function whose chains ran in several threads."""
        target = self.target
        if threads > 1 and len(self.groups) > 1 and not (
                target.needs_gil or target.is_estimate or target.surrogate):
            with self.shield.opened:
                check_alone(target, some_draws(self.trace, int(self.past.trace.counts.max())),
                            OWN_TOLERANCE)

    def may_end(self, stop):
        """Whether `stop` ends the run before all its draws are made."""
        if stop is None or self.trace.rows >= self.rows:
            return False
        with self.shield.opened, of_rule():
            return stop.met(self)

    @property
    def share_used(self):
        """Whether a group of chains has made its share of the evaluations before its draws."""
        return self.trace.rows < self.rows and any(map(self.is_spent, self.evaluations_of_groups()))

    def is_spent(self, numbers):
        """Whether these numbers of evaluations, of chains that step together, are their share."""
        numbers = list(numbers)
        return sum(numbers) >= len(numbers) * self.most_evaluations

    def evaluations_of_groups(self):
        """The number of evaluations of each chain of each group."""
        return [[chain.n_evaluations for chain in group.chains] for group in self.groups]

    def milestones(self, stop):
        """The numbers of draws at which stop rules are evaluated, and the last.

        The number of draws with which a run begins may be the first, since an interrupt may have
        come before a rule was evaluated there.
        """
        if stop is not None:
            yield from (rows for rows in milestones(self.rows) if rows >= self.trace.rows)
        yield self.rows

    def advance(self, rows, threads, between):
        """Bring every chain to `rows` draws; True if `between` asked to stop."""
        waiting = [group for group in self.groups if not group.reached(rows)]
        if threads == 1 or len(waiting) < 2:  # here, until threads prove useful
            return self.advance_here(waiting, rows, threads, between)
        return self.advance_threads(waiting, rows, threads, between)

    def advance_here(self, waiting, rows, threads, between):
        """Advance in this thread, group by group; other threads help with evaluations."""
        trial = self.trial
        while waiting:
            if trial is not None and trial.threads > 1 and len(waiting) > 1:
                return self.advance_on_trial(waiting, rows, between)
            measured = None if trial is None else trial.measured(waiting)
            for group in waiting:
                with measured or nullcontext():
                    group.chunk(rows, threads, self.shield.opened)
                if between():
                    return True
            if measured is not None:
                with self.shield.opened:
                    trial.look(waiting, measured)
            waiting = [group for group in waiting if not group.reached(rows)]
        return False

    def advance_on_trial(self, waiting, rows, between):
        """Advance in threads if a Python function is found to release the GIL."""
        stopped = self.advance_threads(waiting, rows, self.trial.threads, between)
        with self.shield.opened:
            self.trial.check(waiting)
        return stopped

    def advance_threads(self, waiting, rows, threads, between):
        """Advance in worker threads, while this thread watches.

        After each chunk a thread takes the group that has waited longest, so that all chains have
        draws wherever the run ends.
        """
        self.halt.clear()
        share = max(1, threads // len(waiting))
        left = deque(waiting)  # one task per thread, not per group: this thread polls all tasks

        def work():
            while not self.halt.is_set():
                try:
                    group = left.popleft()
                except IndexError:  # the other threads have the last groups
                    return
                group.chunk(rows, share, nullcontext())
                if not group.reached(rows):
                    left.append(group)

        with concurrent.futures.ThreadPoolExecutor(
                threads, thread_name_prefix="fastkam") as pool:
            try:
                todo = {pool.submit(work) for _ in range(min(threads, len(waiting)))}
                while todo:
                    done, todo = concurrent.futures.wait(todo, timeout=WATCH_SECONDS)
                    for future in done:
                        future.result()
                    if between():
                        return True
            finally:
                self.halt.set()
        return False

    # ---- the present state ----

    def total_steps(self):
        past = self.past
        rows = past.requested if past.undecided else self.rows
        return past.chains * (past.tune + rows * past.thin)

    def progress(self, report, stopped_by=""):
        """The progress of the run, with the statistics of the monitor of `report`."""
        steps, accepted, evaluations, tuning = self.counted()
        total = self.total_steps()
        return Progress(
            steps=steps,
            total=total,
            draws=self.trace.counts.tolist(),
            tuning=tuning,
            acceptance=accepted / max(steps, 1),
            seconds=self.seconds,
            searched=self.past.searched,
            requested=self.past.requested if self.past.undecided else self.rows,
            evaluations=evaluations,
            **report.monitor.shown(steps, total, evaluations),
            stopped_by=stopped_by,
            _rows=self.rows_of_user,
            _stop=report.stop,
        )

    def counted(self):
        """Steps, accepted proposals and evaluations of all chains; whether any is in warm-up."""
        steps = accepted = evaluations = 0
        least, tune = None, self.past.tune
        for group in self.groups:
            for chain in group.chains:
                t = chain.t
                steps += t
                accepted += chain.n_accepted
                evaluations += chain.n_evaluations
                least = t if least is None or t < least else least
        return steps, accepted, self.past.searched + evaluations, least < tune

    def rows_of_user(self, start, stop):
        """Draws (chains, stop - start, d) in the parameters of the user."""
        past = self.past
        draws = past.in_one_period(np.array(self.trace.draws[:, start:stop]))
        return np.array(past.constrain(draws))

    def findings(self):
        """Findings on the draws so far (`fastkam.diagnostics.Finding`)."""
        rows = self.trace.rows
        if self.found[0] != rows:
            self.found = (rows, findings(self.state("running")))
        return self.found[1]

    @property
    def steps(self):
        """The steps that all chains have made."""
        return self.counted()[0]

    @property
    def seconds_per_row(self):
        """Mean time per row of draws so far; None before the first step."""
        steps = self.steps - self.first[0]
        if steps <= 0:
            return None
        each = (time.perf_counter() - self.begun) / steps
        return each * self.past.chains * self.past.thin

    @property
    def seconds_per_evaluation(self):
        """Mean time per evaluation so far, including the steps; None before the first."""
        made = self.evaluations - self.first[1]
        return (time.perf_counter() - self.begun) / made if made > 0 else None

    @property
    def evaluations(self):
        """Number of evaluations so far, those of the search included."""
        return self.counted()[2]

    @property
    def seconds(self):
        """Wall-clock time since the call."""
        return time.perf_counter() - self.called

    def state(self, status):
        """The present RunState; the draws are shared, not copied."""
        states, generators = [], []
        held = [(trace, trace.held()) for trace in (self.trace, self.warmup)]
        for group in self.groups:
            with group.turnstile, group.lock:
                states += [chain.state() for chain in group.chains]
                generators += [chain.bit_generator.state for chain in group.chains]
                group.flush()
                # rows that other threads add from now on are excluded
                for trace, kept in held:
                    trace.hold(kept, group.indices)
        return self.moved_on(*(kept for _, kept in held), states, generators, status)

    def moved_on(self, trace, warmup, states, generators, status):
        """The RunState with these traces and states of chains."""
        return replace(
            self.past,
            trace=trace,
            warmup=warmup,
            states=states,
            generators=generators,
            requested=self.past.requested if self.past.undecided else self.rows,
            seconds=self.past.seconds + max(0.0, time.perf_counter() - self.begun),
            status=status,
            stopped_by=self.stopped_by,
        )


def milestones(rows):
    """100, 200, ..., then growing by a fifth each time, below `rows`."""
    some = 100
    while some < rows:
        yield some
        some += max(100, some // 5)


@contextmanager
def of_rule():
    """A context whose exceptions say that a stop rule has raised them."""
    try:
        yield
    except Exception as error:
        error.add_note("raised by the stop rule")
        raise
