"""Limits of the time of a process, fair on a machine that is busy with others, and of files."""

import os
import resource
import threading
import time
from contextlib import contextmanager

PATIENCE = 30       # seconds by the clock for each second of the processor
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def largest_file(size):
    """A context in which no file of this process can grow beyond `size` bytes: a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def processor_seconds(pid):
    """Return the seconds that a process has had of the processor."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Limit:
    """Kill a process after a number of seconds of processor time, or 30 times as many by the clock.

    A process that waits forever takes no processor time: hence the clock as well.

    Attributes
    ----------
    passed : bool
        Whether it has been killed.
    """

    def __init__(self, process, seconds):
        self.process, self.seconds, self.passed = process, seconds, False
        self.begun, self.used = time.monotonic(), processor_seconds(process.pid)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        left = self.seconds
        while not self.ended.wait(left):
            try:
                used = processor_seconds(self.process.pid) - self.used
            except OSError:
                return
            late = time.monotonic() - self.begun > PATIENCE * self.seconds
            if late or used >= self.seconds:
                self.passed = True
                self.process.kill()
                return
            left = max(self.seconds - used, 0.01)

    def end(self):
        """Stop watching; whether the limit had been passed."""
        self.ended.set()
        self.thread.join()
        return self.passed
