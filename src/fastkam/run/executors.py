"""Runs whose chains are tasks of an executor: processes, clusters, or threads of somebody's own."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress

from fastkam._core.engine.group import Fault
from fastkam.progress import Progress
from fastkam.run.faults import TaskLost
from fastkam.run.loop import WATCH_SECONDS, Run
from fastkam.run.tasks import LocalTasks, RemoteTasks

TASK_SECONDS = 2.0  # after which a task returns: more is not lost where a worker dies
LEAST_SECONDS = 0.1
WINDOWS = 4  # rows that a task may bring to a store, in windows of its trace
BYTES_PER_SECOND = 1e7  # of the state of a chain: tasks of large ones are longer


def run_through(options, past, target, rows):
    """Continue a run to `rows` draws: each chain, or each group, is a task of ``options.executor``.

    A task carries a chain's state and brings back its new draws, after two seconds or as often as
    checkpoints are due, and goes out again; the target travels with the first tasks, later ones
    name it. Tasks end at the milestones of stop rules, where all chains wait for each other.
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
    """A run that hands its chains out, in place of advancing them itself."""

    def __init__(self, executor, past, target, rows, seconds):
        super().__init__(past, target, rows)
        start = super().state("new")
        self.states, self.generators = list(start.states), list(start.generators)
        for group in self.groups:
            group.record()  # what is missing, as a worker sees no earlier draws
            group.flush()
        self.groups = []  # the workers have them
        # one thread at a time may call a serial target; a process has a target of its own
        local = type(executor) is ThreadPoolExecutor
        one_task = target.batched or past.share or (local and target.serial)
        chains = range(past.chains)
        self.parts = [list(chains)] if one_task else [[k] for k in chains]
        self.untold, self.lost = set(), set()  # parts whose worker had no target, or is lost
        if not local:
            seconds += sum(value.nbytes for value in self.states[0].values()) / BYTES_PER_SECOND
        self.tasks = (LocalTasks if local else RemoteTasks)(executor, target, seconds)

    def advance(self, rows, threads, between):
        """Bring every chain to `rows` draws; True where `between` asked to stop."""
        failure, pending = None, {}
        todo = [i for i in range(len(self.parts)) if not self.reached(i, rows)]
        try:
            while todo or pending:
                while todo:
                    i = todo.pop(0)
                    pending[self.submit(i, rows)] = i
                done, _ = wait(pending, timeout=WATCH_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    i = pending.pop(future)
                    problem = self.take(future, i)
                    failure = failure or problem
                    if problem is None and not self.reached(i, rows):
                        todo.append(i)
                self.tasks.tend()
                if failure is not None:
                    todo.clear()
                    self.tasks.halt(pending)  # those that have begun are waited for
                    self.shield_open()
                elif between():
                    return True
        except KeyboardInterrupt:
            if failure is None:
                raise
        finally:
            if pending:  # not for a stage that has ended well: what is halted stays so
                self.tasks.halt(pending)
            self.take_last(pending)
        if failure is not None:
            raise failure
        return False

    def shield_open(self):
        """Let an interrupt that waits be raised."""
        with self.shield.opened:
            pass

    def take_last(self, pending):
        """Merge what tasks bring that had begun when the run ended."""
        most, waited = self.tasks.patience, 0.0
        while pending and (most is None or waited < most):
            for future in wait(pending, timeout=WATCH_SECONDS).done:
                self.take(future, pending.pop(future))
            self.tasks.tend()
            waited += WATCH_SECONDS

    def reached(self, i, rows):
        part = self.parts[i]
        states = [self.states[k] for k in part]
        if all(state["n_evaluations"] >= self.most_evaluations for state in states):
            return True
        tuned = all(state["t"] >= self.past.tune for state in states)
        return tuned and all(self.trace.counts[part] >= rows)

    def submit(self, i, rows):
        """Send the chains of the i-th part out."""
        part = self.parts[i]
        start = int(self.trace.counts[part].min())
        piece = self.snapshot("running").select(
            part, draws_from=start, warmup_from=int(self.warmup.counts[part].min()))
        again = i in self.untold or i in self.lost
        most = rows - start
        if self.store is not None:  # what a task brings stays in memory until it is written
            most = min(most, WINDOWS * self.trace.window_rows)
        return self.tasks.submit(again, piece, most, self.most_evaluations)

    def take(self, future, i):
        """Merge what a task brings; its failure, or None.

        A task that is lost, with its worker or on its way, is sent once more, from the state that
        its chains had; and again only when they have come further.
        """
        part, error = self.parts[i], future.exception()
        if error is not None:
            if i in self.lost:
                return TaskLost(part, error)
            self.lost.add(i)
            return None
        if future.result() is None:
            self.untold.add(i)
            return None
        piece, failure = future.result()
        before = [int(self.states[k]["n_evaluations"]) for k in part]
        self.tasks.sent = True
        self.untold.discard(i)
        self.merge(part, piece)
        for j, k in enumerate(part):
            self.states[k], self.generators[k] = piece.states[j], piece.generators[j]
        if before != [int(self.states[k]["n_evaluations"]) for k in part]:
            self.lost.discard(i)
        if isinstance(failure, Fault):
            failure.chain = part[failure.chain]
        return KeyboardInterrupt() if piece.status == "interrupted" else failure

    def merge(self, part, piece):
        """Add the rows of a piece: all, or none where a store cannot be written."""
        traces = (self.trace, piece.trace), (self.warmup, piece.warmup)
        marks = [trace.mark() for trace, _ in traces]
        try:
            for trace, rows in traces:
                trace.put(part, int(trace.counts[part].min()), rows)
        except OSError:
            for (trace, _), mark in zip(traces, marks, strict=True):
                trace.back(mark)
            raise

    def progress(self):
        steps = self.steps
        accepted = sum(int(state["n_accepted"]) for state in self.states)
        return Progress(
            steps=steps,
            total=self.total_steps(),
            draws=self.trace.counts.tolist(),
            tuning=any(state["t"] < self.past.tune for state in self.states),
            acceptance=accepted / max(steps, 1),
            seconds=self.seconds,
            searched=self.past.searched,
        )

    @property
    def steps(self):
        return sum(int(state["t"]) for state in self.states)

    @property
    def evaluations(self):
        return self.past.searched + sum(int(state["n_evaluations"]) for state in self.states)

    def state(self, status):
        everyone = list(range(self.past.chains))
        with suppress(OSError):  # what cannot be written stays in memory
            self.warmup.flush(everyone, False)
            self.trace.flush(everyone, bool(self.trace.records.fields))
        return self.snapshot(status)

    def snapshot(self, status):
        """The state as it is, of which not all rows need be in a store."""
        return self.moved_on(self.trace.held(), self.warmup.held(), list(self.states),
                             list(self.generators), status)
