"""A limit of one BLAS thread while this package works."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import ThreadpoolController

from fastkam.run.interrupts import Shield

listed: list[tuple[int, ThreadpoolController]] = []  # with the number of modules at that time


class Exempt(threading.local):
    """Whether the calls of this thread leave BLAS alone."""

    now = False


exempt = Exempt()


def controller() -> ThreadpoolController:
    """The libraries with threads; they are listed again, in 0.7 ms, if modules have been loaded."""
    if not listed or listed[0][0] != len(sys.modules):
        found = ThreadpoolController()
        listed[:] = [(len(sys.modules), found)]
    return listed[0][1]


class BlasLimit:
    """A limit of one BLAS thread while calls or tasks run, in any threads of the process.

    The limit belongs to the process (with OpenMP, to each thread), and the thread that sets it has
    to reset it. So that overlapping calls do not reset each other's limit, a separate thread sets
    it when the first one begins, and ends with the last. The main thread sets the limit itself, so
    that the process has no other thread if it forks; calls that begin meanwhile leave it alone,
    since they would take it for the number to be restored.

    Attributes
    ----------
    tasks : int
        Number of calls and tasks that run now.
    of_main : bool
        Whether the main thread has set the limit itself.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tasks = 0
        self.of_main = False
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    @contextmanager
    def __call__(self, main: bool = False) -> Iterator[None]:
        """A context of a call or a task; `main` says whether it is in the main thread."""
        with self.lock:
            before = self.of_main
            self.of_main = before or (main and not self.tasks)
            joins = not self.of_main
            if joins:
                if not self.tasks:
                    self.begin()
                self.tasks += 1
        if before and not main:
            yield
            return
        try:
            # with OpenMP, or if a limit that this thread has set excludes the separate thread
            with controller().limit(limits=1, user_api="blas"):
                yield
        finally:
            if joins:
                with self.lock:
                    self.tasks -= 1
                    if not self.tasks:
                        self.end()
            else:
                self.of_main = before

    def begin(self) -> None:
        """Start the thread, and wait until the limit is set."""
        self.over, ready = threading.Event(), threading.Event()
        over = self.over

        def hold() -> None:
            try:
                with controller().limit(limits=1, user_api="blas"):
                    ready.set()
                    over.wait()
            finally:
                ready.set()

        self.thread = threading.Thread(target=hold, name="fastkam-blas", daemon=True)
        self.thread.start()
        ready.wait()

    def end(self) -> None:
        """End the thread, and wait until the limit is as before."""
        self.over.set()
        if self.thread is not None:
            self.thread.join()


shared = BlasLimit()


def renew_limit() -> None:
    """Forget the calls of a process that was forked, whose threads do not run here."""
    global shared
    shared = BlasLimit()


os.register_at_fork(after_in_child=renew_limit)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS has one thread, unless this thread is exempt.

    More threads are slower at these sizes, each keeps a processor busy for a tenth of a second
    after a product, and the last bits of a product may depend on their number. A BLAS that is
    loaded within the context has all its threads. A call of the main thread removes its limit also
    from calls of other threads that have begun meanwhile.
    """
    if exempt.now:
        yield
        return
    main = threading.current_thread() is threading.main_thread()
    with ExitStack() as limits:
        try:
            with Shield():
                limits.enter_context(shared(main))
            yield
        finally:
            with Shield():
                limits.close()
