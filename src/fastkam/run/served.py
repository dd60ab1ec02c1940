"""A worker process of `executor=4`: it runs the tasks that come through a connection."""

from __future__ import annotations

import os
import pickle
import threading
import time
from multiprocessing.connection import Connection

from fastkam.run.sending import portable
from fastkam.run.worker import interrupts, portable_error

WATCH_SECONDS = 0.5


def serve(descriptor: int) -> None:
    """Run tasks until the connection is closed, or the process at its other end has ended."""
    interrupts.take_over()
    connection: Connection = Connection(descriptor)
    parent = os.getppid()
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    while os.getppid() == parent:
        try:
            connection.send_bytes(served(connection.recv_bytes()))
        except (EOFError, OSError):
            return


def end_with(parent: int) -> None:
    """End this process soon after its parent, even within a task that takes long."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def served(data: bytes) -> bytes:
    """Run a task: (value, error), as bytes."""
    try:
        function, args, kwargs = pickle.loads(data)
        return portable((function(*args, **kwargs), None), anywhere=False)
    except Exception as error:
        return portable((None, portable_error(error)), anywhere=False)
