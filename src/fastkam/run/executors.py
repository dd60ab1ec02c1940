"""Runs whose chains are tasks of an executor: processes, clusters, or a user's threads."""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress

from fastkam._core.engine.fault import Fault
from fastkam.arguments import told
from fastkam.run.faults import TaskLost
from fastkam.run.loop import WATCH_SECONDS, Run
from fastkam.run.records import fill
from fastkam.run.tasks import LocalTasks, RemoteTasks, error_of

TASK_SECONDS = 2.0  # duration of a task, which limits the work lost if a worker dies
LEAST_SECONDS = 0.1
WINDOWS = 4  # most rows of a task for a store, in windows of its trace
BYTES_PER_SECOND = 1e7  # for a chain's state: tasks with large states take longer
MOST_LOSSES = 3  # a task lost more often at the same state is given up
log = logging.getLogger("fastkam")


def ended(pending):
    """The tasks that have ended after a moment; `wait` does not report those that others cancel."""
    done, going = wait(pending, timeout=WATCH_SECONDS, return_when=FIRST_COMPLETED)
    return [*done, *(future for future in going if future.cancelled())]


def run_through(options, past, target, rows):
    """Continue a run to `rows` draws: each chain, or each group, is a task of ``options.executor``.

    A task has a chain's state, and returns its new draws after two seconds, or earlier if a
    checkpoint is due; then the next task is submitted. The first tasks include the target, later
    ones only its name. Tasks end at the milestones of stop rules, where chains wait for each other.
    """
    seconds = TASK_SECONDS
    if options.checkpoint is not None:
        seconds = max(LEAST_SECONDS, min(seconds, options.checkpoint_interval))
    run = Dispatch(options.executor, past, target, rows, seconds)
    try:
        return run.go(options)
    finally:
        run.tasks.close()


class Dispatch(Run):
    """A run whose chains are advanced by the workers of an executor."""

    def __init__(self, workers, past, target, rows, seconds):
        super().__init__(past, target, rows)
        start = super().state("new")
        self.states, self.generators = list(start.states), list(start.generators)
        for group in self.groups:
            group.record()  # missing records, since workers do not see earlier draws
            group.flush()
        self.groups = []  # the workers have them
        # one thread at a time may call a serial target; a process has a target of its own
        local = workers.local
        one_task = target.batched or past.share or (local and target.serial)
        chains = range(past.chains)
        self.parts = [list(chains)] if one_task else [[k] for k in chains]
        # for each part, returns from a worker without the target, and losses
        self.bounced, self.losses = Counter(), Counter()
        self.given_up = {}  # parts that were lost too often -> the executor's last error
        if not local:
            seconds += sum(value.nbytes for value in self.states[0].values()) / BYTES_PER_SECOND
        self.tasks = (LocalTasks if local else RemoteTasks)(workers, target, seconds)

    def milestones(self, stop):
        """The milestones of the run; if a chain is lost, the others continue to their last draw."""
        for rows in super().milestones(stop):
            yield self.rows if self.given_up else rows
            if self.given_up and rows < self.rows:
                yield self.rows
                return

    def may_end(self, stop):
        return not self.given_up and super().may_end(stop)

    def advance(self, rows, threads, between):
        """Bring every chain to `rows` draws; True if `between` asked to stop.

        If a chain is lost, the run ends when all others have their draws.
        """
        failure, pending = None, {}
        todo = [i for i in range(len(self.parts)) if not self.reached(i, rows)]
        try:
            while todo or pending:
                while todo:
                    i = todo.pop(0)
                    pending[self.submit(i, rows)] = i
                for future in ended(pending):
                    i = pending.pop(future)
                    problem = self.take(future, i)
                    failure = failure or problem
                    if problem is None and not self.reached(i, rows):
                        todo.append(i)
                self.tasks.tend()
                if failure is not None:
                    todo.clear()
                    self.tasks.halt(pending)  # tasks that have begun are waited for
                    self.shield_open()
                elif between():
                    return True
        except KeyboardInterrupt:
            if failure is None:
                raise
        finally:
            if pending:  # not after a stage that ended well: halting is permanent
                self.tasks.halt(pending)
            self.take_last(pending)
        if failure is None and self.given_up and rows >= self.rows:
            lost = sorted(self.given_up)
            failure = TaskLost([k for i in lost for k in self.parts[i]], self.given_up[lost[0]])
        if failure is not None:
            raise failure
        return False

    def shield_open(self):
        """Let a pending interrupt be raised."""
        with self.shield.opened:
            pass

    def take_last(self, pending):
        """Merge the results of tasks that were running when the run ended."""
        most, waited = self.tasks.patience, 0.0
        while pending and (most is None or waited < most):
            for future in wait(pending, timeout=WATCH_SECONDS).done:
                self.take(future, pending.pop(future))
            self.tasks.tend()
            waited += WATCH_SECONDS

    def reached(self, i, rows):
        """Whether the i-th part needs no further task to reach these rows."""
        if i in self.given_up:
            return True
        return all(self.has_ended(some, rows) for some in self.members(i))

    def has_ended(self, chains, rows):
        """Whether chains that step together have these rows, or have made their share."""
        states = [self.states[k] for k in chains]
        tuned = all(state["t"] >= self.past.tune for state in states)
        return self.is_spent(state["n_evaluations"] for state in states) or (
            tuned and all(self.trace.counts[chains] >= rows))

    def members(self, i):
        """The chains of the i-th part, in lists of those that step together."""
        part = list(self.parts[i])
        return [part] if self.together() else [[k] for k in part]

    def submit(self, i, rows):
        """Submit the chains of the i-th part."""
        part = self.parts[i]
        start = int(self.trace.counts[part].min())
        piece = self.snapshot("running").select(
            part, draws_from=start, warmup_from=int(self.warmup.counts[part].min()))
        most = rows - start
        if self.store is not None:  # the rows of a task stay in memory until they are written
            most = min(most, WINDOWS * self.trace.window_rows)
        return self.tasks.submit(self.bounced[i], piece, most, self.most_evaluations)

    def take(self, future, i):
        """Merge the result of a task; return its failure, or None.

        A task that is lost is sent again from the last state of its chains, up to three times for
        each state.
        """
        part, error = self.parts[i], error_of(future)
        try:
            value = self.tasks.value(future)
        except TypeError as garbage:  # the other tasks are still collected
            return garbage
        if error is not None:
            self.lose(i, error)
            return None
        if value is None:
            self.bounced[i] += 1
            return None
        piece, failure = value
        before = [int(self.states[k]["n_evaluations"]) for k in part]
        self.bounced[i] = 0
        self.merge(part, piece)
        for j, k in enumerate(part):
            self.states[k], self.generators[k] = piece.states[j], piece.generators[j]
        if before != [int(self.states[k]["n_evaluations"]) for k in part]:
            self.losses[i] = 0
        if isinstance(failure, Fault):
            failure.chain = part[failure.chain]
        return KeyboardInterrupt() if piece.status == "interrupted" else failure

    def lose(self, i, error):
        """Count the loss of a task of the i-th part, which is given up after too many losses."""
        self.losses[i] += 1
        self.bounced[i] = 2  # a new worker does not have the target
        chains = self.parts[i]
        if self.losses[i] > MOST_LOSSES:
            self.given_up[i] = error
            log.warning("chains %s are lost: %s; the others continue", chains, told(error))
        else:
            log.info("a task of chains %s is lost and sent again: %s", chains, told(error))

    def merge(self, part, piece):
        """Add the rows of a piece: all, or none if the store cannot be written."""
        if piece.trace.records.n_extras and self.trace.records.fields is None:
            fill(self.trace, self.target.bind())
        traces = (self.trace, piece.trace), (self.warmup, piece.warmup)
        marks = [trace.mark() for trace, _ in traces]
        try:
            for trace, rows in traces:
                trace.put(part, int(trace.counts[part].min()), rows)
        except OSError:
            for (trace, _), mark in zip(traces, marks, strict=True):
                trace.back(mark)
            raise

    def evaluations_of_groups(self):
        return [[self.states[k]["n_evaluations"] for k in some]
                for i in range(len(self.parts)) for some in self.members(i)]

    def counted(self):
        t = [int(state["t"]) for state in self.states]
        accepted, evaluations = (sum(int(state[name]) for state in self.states)
                                 for name in ("n_accepted", "n_evaluations"))
        return sum(t), accepted, self.past.searched + evaluations, min(t) < self.past.tune

    def state(self, status):
        everyone = list(range(self.past.chains))
        with suppress(OSError):  # rows that cannot be written stay in memory
            self.warmup.flush(everyone, False)
            self.trace.flush(everyone, bool(self.trace.records.fields))
        return self.snapshot(status)

    def snapshot(self, status):
        """The present state; some of its rows may not be in the store yet."""
        return self.moved_on(self.trace.held(), self.warmup.held(), list(self.states),
                             list(self.generators), status)
