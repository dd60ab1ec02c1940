"""Worker processes that a call starts: `executor=4`."""

from __future__ import annotations

import json
import pickle
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

from fastkam.run.sending import portable

# SIGINT is blocked until it is ignored, so that Ctrl-C does not end a process that begins; the path
# first, so that fastkam is found as it was here; a process imports no main program
BEGIN = "import json, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); " \
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]); " \
        "sys.path[:] = json.loads(sys.argv.pop(1)); descriptor = int(sys.argv.pop(1)); " \
        "from fastkam.run.served import serve; serve(descriptor)"


class Processes(Executor):
    """An Executor whose processes start when they are first needed.

    Each has a thread in this process that gives it one task after the other. If a process dies,
    only its task is lost, and the next task starts a new process. In contrast to the processes of
    `ProcessPoolExecutor` they do not import the main program: a script needs no
    ``if __name__ == "__main__"``, and a notebook works.

    Parameters
    ----------
    number : int
    """

    def __init__(self, number: int) -> None:
        self._max_workers = number
        self.threads = ThreadPoolExecutor(number, thread_name_prefix="fastkam-process")
        self.idle: queue.SimpleQueue[Process] = queue.SimpleQueue()
        self.started: set[Process] = set()
        self.lock = threading.Lock()
        self.closed = False
        weakref.finalize(self, end_all, self.started, self.lock)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.threads.submit(self.call, (function, args, kwargs))

    def call(self, task: Any) -> Any:
        """Run a task in a process, and wait for it."""
        data = portable(task, anywhere=False)
        process = self.process()
        try:
            reply = process.call(data)
        except (EOFError, OSError) as problem:
            code = process.end()
            with self.lock:
                self.started.discard(process)
            raise BrokenExecutor(f"a worker process has ended with code {code}") from problem
        self.idle.put(process)
        value, error = pickle.loads(reply)
        if error is not None:
            raise error
        return value

    def process(self) -> Process:
        """A process without a task."""
        with suppress(queue.Empty):
            return self.idle.get_nowait()
        with self.lock:
            if self.closed:
                raise BrokenExecutor("the run has ended")
            process = Process()
            self.started.add(process)
            return process

    def interrupt(self) -> None:
        """Ask the tasks that have begun to return early."""
        with self.lock:
            for process in self.started:
                process.signal(signal.SIGINT)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `wait` after their tasks have returned."""
        if wait:
            self.threads.shutdown(wait=True, cancel_futures=cancel_futures)
        self.closed = True
        end_all(self.started, self.lock)
        self.threads.shutdown(wait=False, cancel_futures=True)


def end_all(processes: set[Process], lock: threading.Lock) -> None:
    """End processes at once."""
    with lock:
        for process in processes:
            process.end()
        processes.clear()


class Process:
    """A worker process, and this process's end of the connection to it."""

    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        places = [one for one in sys.path if isinstance(one, str)]  # as import takes them
        command = [sys.executable, "-c", BEGIN, json.dumps(places), str(theirs.fileno()),
                   *sys.argv[1:]]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # it is inherited
        try:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                          pass_fds=[theirs.fileno()])
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()  # so that the end of the process is seen here

    def call(self, data: bytes) -> bytes:
        """Run a task in the process, and return its pickled value and error.

        EOFError or OSError if the process ends.
        """
        self.connection.send_bytes(data)
        return self.connection.recv_bytes()

    def signal(self, number: int) -> None:
        """Send a signal."""
        with suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def end(self) -> int:
        """End the process at once; return its exit code."""
        self.signal(signal.SIGKILL)
        return self.popen.wait()
