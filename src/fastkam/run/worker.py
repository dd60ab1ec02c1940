"""The work of a worker: continue some chains for a while and return them."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing import parent_process
from typing import Any

from fastkam._core.engine.fault import Fault
from fastkam.arguments import told
from fastkam.points.digest import digest_of
from fastkam.progress.reporter import Reporter
from fastkam.run import blas
from fastkam.run.loop import Run
from fastkam.run.same_target import check_density_of
from fastkam.run.serial import serially
from fastkam.run.writer import CheckpointWriter
from fastkam.stop import StopRule, Time

GRACE_SECONDS = 4.0  # after an interrupt, for the results of workers
N_KEPT = 4  # targets kept in a worker


def run_part(target, piece, rows, most_evaluations, stop):
    """Continue `piece`, the run of some chains, until `stop`; return its state and the failure."""
    run = Run(piece, target, rows)
    run.most_evaluations = most_evaluations
    # the time to build large kernels does not count for `stop`
    run.begun = run.called = time.perf_counter()
    status, failure = run.drive(1, Reporter(False), stop, CheckpointWriter())
    return run.state(status), failure


class Asked(StopRule):
    """A stop rule that holds once an event is set."""

    def __init__(self, event):
        self.event = event

    def met(self, run):
        return self.event.is_set()

    due = met


# ---- in another process ------------------------------------------------------------------------

known_targets: dict[str, tuple[str, Any]] = {}  # by digest, with the name of their run
one_at_a_time = threading.RLock()


def renew_lock():
    """Make a new lock: a process forked while a thread held the old one would never get it."""
    global one_at_a_time
    one_at_a_time = threading.RLock()


os.register_at_fork(after_in_child=renew_lock)


def run_sent(number, run, digest, payload, seconds, piece, rows, most_evaluations, function):
    """Do `run_part` for about some seconds.

    Return (number, (the state, the failure or None, whether its function is another one)), or
    (number, None) if the worker does not have the target. `run` is the name of the run, `digest`
    that of the target, and `function` the digest of its function.

    A target that another run has left is made again from the same bytes, since files that a recipe
    reads may have changed; its density must agree with the states of the chains. `number`
    distinguishes tasks, for executors that merge equal calls, such as dask's, and to detect the
    value of another task.
    """
    interrupts.begin()
    another = False
    try:
        target, made, another = known_target(run, digest, payload, function)
        if target is None:
            return number, None
        with serially(target), blas.shared():  # there may be several threads
            if made:
                check_density_of(piece, target)
            stop = Time(seconds) | Asked(interrupts.asked)
            state, failure = run_part(target, piece, rows, most_evaluations, stop)
    except Exception as error:  # a recipe has failed, or the density is another one
        state, failure = piece, error
    finally:
        interrupts.end()
    if isinstance(failure, Fault):
        failure.cause = portable_error(failure.cause)
    elif failure is not None:
        failure = portable_error(failure)
    return number, (state, failure, another)


def known_target(run, digest, payload, function):
    """The target of a run, made from `payload` if it is given and was not made before.

    Return (the target or None if it is unknown, whether it was made now, whether its function is
    another one). It is another one if its digest is not `function`: its module was imported here,
    and has been changed after its import where the target was sent from.
    """
    with one_at_a_time:
        made = payload is not None and known_targets.get(digest, (None,))[0] != run
        if made:
            known_targets.pop(digest, None)
            while len(known_targets) >= N_KEPT:
                known_targets.pop(next(iter(known_targets)))
            known_targets[digest] = run, pickle.loads(payload)
        whose, target = known_targets.get(digest, ("", None))
        if whose != run or target is None:
            return None, False, False
        return target, made, made and function not in ("", digest_of(target))


class Interrupts:
    """SIGINT in a worker, which Ctrl-C sends to all processes of a terminal.

    It must not interrupt a task, nor end the worker while it returns a result: the pool would be
    broken, and the tasks of all other workers be lost. Instead it makes the task return early,
    which the submitting process need not know. If no task has run for long, the previous handler is
    called.
    """

    def __init__(self):
        self.asked = threading.Event()
        self.tasks, self.ended = 0, 0.0
        self.alone = False  # whether the process only runs tasks
        self.previous: Callable[..., Any] = signal.default_int_handler

    def begin(self):
        """Record that a task begins."""
        self.asked.clear()
        self.tasks += 1
        handler = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        if main and parent_process() is not None and callable(handler) and handler != self.receive:
            self.previous = handler
            signal.signal(signal.SIGINT, self.receive)

    def take_over(self):
        """Handle SIGINT in a process that only runs tasks."""
        self.alone = True
        signal.signal(signal.SIGINT, self.receive)

    def end(self):
        """Record that a task has ended, and is about to be returned."""
        self.tasks -= 1
        self.ended = time.monotonic()

    def receive(self, number, frame):
        """Handle SIGINT."""
        self.asked.set()
        if not (self.tasks or self.alone) and time.monotonic() - self.ended > GRACE_SECONDS:
            self.previous(number, frame)


interrupts = Interrupts()


def portable_error(error):
    """A picklable form of an exception: its traceback becomes a note; its type may be replaced."""
    if error is None:
        return None
    text = "".join(traceback.format_exception(error))
    try:
        error = pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(told(error))
    error.add_note(f"in a worker:\n{text}")
    return error
