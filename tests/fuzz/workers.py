"""Processes that make calls, each with a limit of memory and of time, and others in their place."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

from limits import Limit

SECONDS = 20  # of the processor, that a call may take; see limits
ADDRESS_SPACE = 4 * 2**30  # bytes of a process
TESTS = Path(__file__).resolve().parents[1]
DIES, SLEEPS = "dies", "sleeps"  # entries that end or delay the process, to see that it is noticed


def work():
    """Make the calls that standard input names, and print what became of each."""
    import faulthandler
    import time

    from fuzz.calls import outcome

    warnings.simplefilter("ignore")
    if "FASTKAM_SANITIZER" not in os.environ:  # a sanitizer reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a call prints is no answer
    for line in sys.stdin:
        seed, number, only = json.loads(line)
        if only == DIES:
            os.abort()
        if only == SLEEPS:
            time.sleep(number)
        faulthandler.dump_traceback_later(0.8 * SECONDS)  # where it is, if it takes too long
        name, what = (only, "works") if only == SLEEPS else outcome(seed, number, only)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps([name, what]), file=answers, flush=True)


class Worker:
    """A process that makes calls in a folder of its own, and another where it has ended."""

    def __init__(self, seconds=SECONDS):
        self.process, self.seconds = None, seconds

    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        self.errors = open(Path(self.folder.name) / "errors", "w+")  # noqa: SIM115
        code = (f"import sys; sys.path.insert(0, {str(TESTS)!r}); "
                "from fuzz.workers import work; work()")
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", code], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=self.errors, cwd=self.folder.name,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"})

    def ask(self, seed, number, only=None):
        """(name of the entry, what became of the call)."""
        if self.process is None:
            self.start()
        process = self.process
        limit = Limit(process, self.seconds)
        process.stdin.write(json.dumps([seed, number, only]) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        late = limit.end()
        if answer:
            return json.loads(answer)
        process.communicate()
        self.errors.seek(0)
        said = self.errors.read()[:1500]
        self.close()
        return [only, f"took more than {self.seconds} s: {said}" if late
                else f"ended with {process.returncode}: {said}"]

    def close(self):
        """End the process, and remove its folder."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.errors.close()
            self.folder.cleanup()
            self.process = None


def tried(seed, numbers, workers=2, only=None):
    """Make the calls of these numbers, in some order: yields (number, entry, what became of it)."""
    lock, numbers, found = threading.Lock(), iter(numbers), []
    ready = threading.Condition()
    left = workers

    def run():
        nonlocal left
        worker = Worker()
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            answer = worker.ask(seed, number, only)
            with ready:
                found.append((number, *answer))
                ready.notify()
        worker.close()
        with ready:
            left -= 1
            ready.notify()

    for _ in range(workers):
        threading.Thread(target=run, daemon=True).start()
    while True:
        with ready:
            ready.wait_for(lambda: found or not left)
            some, found[:] = list(found), []
            if not some and not left:
                return
        yield from some
