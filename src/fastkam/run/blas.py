"""A limit of one BLAS thread while this package works."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

from fastkam.run.interrupts import Shield

listed: list[tuple[int, ThreadpoolController]] = []  # with the number of modules at that time


def controller() -> ThreadpoolController:
    """The libraries with threads; they are listed again, in 0.7 ms, if modules have been loaded."""
    if not listed or listed[0][0] != len(sys.modules):
        found = ThreadpoolController()
        listed[:] = [(len(sys.modules), found)]
    return listed[0][1]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS has one thread, if this can be undone reliably.

    More threads are slower at these sizes, and each keeps a processor busy for a tenth of a second
    after a product. Their number belongs to the process: calls in several threads could restore it
    in the wrong order, and only those of the main thread are certainly nested. A BLAS that is
    loaded within the context has all its threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    limits = None
    try:
        with Shield():
            limits = controller().limit(limits=1, user_api="blas")
        yield
    finally:
        if limits is not None:
            with Shield():
                limits.restore_original_limits()
