"""Runs whose chains are tasks of an executor: processes, clusters, or threads of somebody's own."""

from __future__ import annotations

import hashlib
import pickle
import threading
import traceback
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress

from fastkam._core.density.target import Target
from fastkam._core.engine.group import Fault
from fastkam.progress import Progress
from fastkam.run.checkpoint import CheckpointWriter
from fastkam.run.loop import WATCH_SECONDS, Run, milestones
from fastkam.stop import StopRule

GRACE_SECONDS = 2.0  # after an interrupt: for what workers bring that it has reached too
N_KEPT = 4  # targets kept in a worker


def run_through(options, past, target, rows):
    """Continue a run to `rows` draws: each chain, or each group, is a task of ``options.executor``.

    A task carries a chain's state and brings back its new draws; the target travels with the first
    tasks, later ones name it. Tasks end at the milestones of stop rules, and of checkpoints where
    there are any; without either, a chain is one task.
    """
    cut = options.stop is not None or options.checkpoint is not None
    return (CutDispatch if cut else Dispatch)(options.executor, past, target, rows).go(options)


class Dispatch(Run):
    """A run that hands its chains out, in place of advancing them itself."""

    def __init__(self, executor, past, target, rows):
        super().__init__(past, target, rows)
        start = super().state("new")
        self.states, self.generators = list(start.states), list(start.generators)
        for group in self.groups:
            group.record()  # what is missing, as a worker sees no earlier draws
        self.groups = []  # the workers have them
        # one thread at a time may call a serial target; a process has a target of its own
        local = type(executor) is ThreadPoolExecutor
        one_task = target.batched or past.share or (local and target.serial)
        chains = range(past.chains)
        self.parts = [list(chains)] if one_task else [[k] for k in chains]
        self.tasks = LocalTasks(executor, target) if local else RemoteTasks(executor, target)

    def advance(self, rows, threads, between):
        """Bring every chain to `rows` draws; True where `between` asked to stop."""
        failure = None
        pending = {self.submit(part, rows): part for part in self.parts
                   if not self.reached(part, rows)}
        try:
            while pending:
                done, _ = wait(pending, timeout=WATCH_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    part = pending.pop(future)
                    if self.is_unknown(future):
                        pending[self.submit(part, rows, again=True)] = part
                    else:
                        problem = self.take(future, part)
                        failure = failure or problem
                if failure is not None:
                    self.tasks.halt(pending)  # those that have begun are waited for
                elif between():
                    return True
        finally:
            if pending:  # not for a stage that has ended well: what is halted stays so
                self.tasks.halt(pending)
            for future in wait(pending, timeout=self.tasks.patience).done:
                if not self.is_unknown(future):
                    self.take(future, pending[future])
        if failure is not None:
            raise failure
        return False

    def reached(self, part, rows):
        states = [self.states[k] for k in part]
        if all(state["n_evaluations"] >= self.most_evaluations for state in states):
            return True
        tuned = all(state["t"] >= self.past.tune for state in states)
        return tuned and all(self.trace.counts[part] >= rows)

    def submit(self, part, rows, again=False):
        start = int(self.trace.counts[part].min())
        piece = self.state("running").select(
            part, draws_from=start, warmup_from=int(self.warmup.counts[part].min()))
        return self.tasks.submit(again, piece, rows - start, self.most_evaluations)

    def is_unknown(self, future):
        """Whether the task came back because its worker had not seen the target."""
        return future.exception() is None and future.result() is None

    def take(self, future, part):
        """Merge what a task brings; its failure, or None."""
        if future.exception() is not None:  # the worker died, or the task could not be sent
            return future.exception()
        piece, failure = future.result()
        self.tasks.sent = True
        self.trace.put(part, int(self.trace.counts[part].min()), piece.trace)
        self.warmup.put(part, int(self.warmup.counts[part].min()), piece.warmup)
        for i, k in enumerate(part):
            self.states[k], self.generators[k] = piece.states[i], piece.generators[i]
        if isinstance(failure, Fault):
            failure.chain = part[failure.chain]
        return KeyboardInterrupt() if piece.status == "interrupted" else failure

    def progress(self):
        steps = sum(int(state["t"]) for state in self.states)
        accepted = sum(int(state["n_accepted"]) for state in self.states)
        return Progress(
            steps=steps,
            total=self.total_steps(),
            draws=self.trace.counts.tolist(),
            tuning=any(state["t"] < self.past.tune for state in self.states),
            acceptance=accepted / max(steps, 1),
            seconds=self.seconds,
        )

    @property
    def evaluations(self):
        return sum(int(state["n_evaluations"]) for state in self.states)

    def state(self, status):
        return self.moved_on(self.trace.counts.copy(), self.warmup.counts.copy(),
                             list(self.states), list(self.generators), status)


class CutDispatch(Dispatch):
    """One whose tasks come back at every milestone."""

    def milestones(self, stop):
        yield from (rows for rows in milestones(self.rows) if rows > self.trace.rows)
        yield self.rows


# ---- tasks in this process ---------------------------------------------------------------------


class LocalTasks:
    """Tasks of a thread pool: they share the target, and can be asked to stop."""

    patience = None

    def __init__(self, executor, target):
        self.executor, self.target = executor, target
        self.halted = threading.Event()

    def submit(self, again, *task):
        return self.executor.submit(run_part, self.target, *task, Halted(self.halted))

    def halt(self, pending):
        self.halted.set()
        withdraw(pending)


class Halted(StopRule):
    """An event is set."""

    def __init__(self, event):
        self.event = event

    def met(self, run):
        return self.event.is_set()

    due = met


def withdraw(pending):
    """Take back the tasks that have not begun."""
    for future in list(pending):
        if future.cancel():
            del pending[future]


def run_part(target, piece, rows, most_evaluations, stop=None):
    """Continue `piece`, the run of some chains; its state then, and the failure or None."""
    run = Run(piece, target, rows)
    run.most_evaluations = most_evaluations
    status, failure = run.drive(1, False, stop, CheckpointWriter())
    return run.state(status), failure


# ---- tasks in other processes ------------------------------------------------------------------


class RemoteTasks:
    """Tasks of any other executor: the first carry the target, later ones its digest."""

    patience = GRACE_SECONDS

    def __init__(self, executor, target):
        self.executor = executor
        self.payload = portable_target(target)
        self.digest = hashlib.sha256(self.payload).hexdigest()
        self.sent = False

    def submit(self, again, *task):
        payload = self.payload if again or not self.sent else None
        return self.executor.submit(run_sent, self.digest, payload, *task)

    def halt(self, pending):
        withdraw(pending)


known_targets: dict[str, Target] = {}  # of this worker, by digest
one_at_a_time = threading.RLock()


def run_sent(digest, payload, piece, rows, most_evaluations):
    """As `run_part`, in a worker; None where it does not know the target of that digest."""
    target = known_target(digest, payload)
    if target is None:
        return None
    with one_at_a_time if target.serial else nullcontext():  # a worker may have several threads
        state, failure = run_part(target, piece, rows, most_evaluations)
    if isinstance(failure, Fault):
        failure.cause = portable_error(failure.cause)
    elif failure is not None:
        failure = portable_error(failure)
    return state, failure


def known_target(digest, payload):
    with one_at_a_time:
        if digest not in known_targets and payload is not None:
            while len(known_targets) >= N_KEPT:
                known_targets.pop(next(iter(known_targets)))
            known_targets[digest] = pickle.loads(payload)
        return known_targets.get(digest)


def portable_target(target):
    """The target as bytes: by pickle, or else by cloudpickle where it is installed."""
    writers = [pickle.dumps]
    with suppress(ImportError):
        import cloudpickle

        writers.append(cloudpickle.dumps)
    for dumps in writers:
        try:
            payload = dumps(target)
        except Exception as error:
            problem = error
        else:
            # pickle names what the main program defines; workers may have another main program
            if b"__main__" not in payload or dumps is writers[-1]:
                return payload
    what = getattr(target, "function", target)
    raise TypeError(
        f"target {what!r} cannot be sent to the workers of executor: {problem}; define the "
        "function in a module, install cloudpickle, or give a fastkam.TargetRecipe"
    ) from problem


def portable_error(error):
    """The exception as it can be sent: its traceback as a note, itself replaced if it must be."""
    if error is None:
        return None
    text = "".join(traceback.format_exception(error))
    try:
        error = pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"in a worker:\n{text}")
    return error
