"""Desk: whether, and how, the points of a run are evaluated one by one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import near, shown
from fastkam.points.executor import TakesPoints, tasks_at_once
from fastkam.run.files import check_path, in_place

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.points.ahead import Ahead
    from fastkam.points.pool import PointPool
    from fastkam.points.reply import Reply
    from fastkam.points.target import Lookup
    from fastkam.points.workers import Workers
    from fastkam.run.loop import Run
    from fastkam.run.shapes import Layout
    from fastkam.run.state import RunState

SPREADS = ("chains", "points", "prefetch")
ON_ERROR = ("stop", "reject")
SLOW_SECONDS = 0.02  # seconds per evaluation from which points are sent as tasks


class Kept(NamedTuple):
    """The file of a run's calls, `on_error` of the run, and the file's bytes up to its first call.

    These have the time of that call, so that another file at the same path differs in them; they
    are b"" if they are not known, and the file is then not taken for that of the run.
    """

    path: str
    on_error: str
    start: bytes

    def keeping(self, target: Target, names: list[str]) -> AbstractContextManager[Target]:
        """The target; its calls are taken from the file and added to it, if it is still there.

        The target must be that of the run, with which the file is not compared.
        """
        from fastkam.points.opening import keeping

        return keeping(target, names, self.path, self.on_error, self.start)


class Desk:
    """The evaluation of a run's points, if the chains do not evaluate them themselves.

    Parameters
    ----------
    executor : fastkam.run.workers.CallExecutor or None
    spread : "chains", "points", "prefetch" or None
        As in `fastkam.sample`.
    evaluations : path or None
        The file of calls.
    on_error : str
        As in `fastkam.sample`.

    Attributes
    ----------
    pool : PointPool or None
        None if chains evaluate their points themselves, and before that is known.
    ahead : Ahead or None
        Submits further points to idle workers, with spread="prefetch".
    run : Run or None
        The present run.
    past : RunState or None
        The state in which the last run ended.
    layout : Layout or None
        The named parameters of a point, once they are known.
    """

    def __init__(
        self, executor: Any, spread: str | None = None, evaluations: Any = None,
        on_error: str = "stop",
    ) -> None:
        if spread is not None and (not isinstance(spread, str) or spread not in SPREADS):
            raise ValueError(f"spread must be one of {list(SPREADS)}, not {shown(spread)}"
                             f"{near(spread, SPREADS)}")
        if not isinstance(on_error, str) or on_error not in ON_ERROR:
            raise ValueError(f"on_error must be one of {list(ON_ERROR)}, not {shown(on_error)}"
                             f"{near(on_error, ON_ERROR)}")
        check_path("evaluations", evaluations)
        on_points = spread in ("points", "prefetch")
        if on_points and executor is None:
            raise ValueError(f"spread={spread!r} needs executor, whose workers evaluate the points")
        if evaluations is not None and spread == "chains":
            raise ValueError("evaluations must not be given with spread='chains', where this "
                             "process does not see the calls")
        if on_error != "stop" and spread == "chains":
            raise ValueError(f"on_error={on_error!r} must not be given with spread='chains': an "
                             "exception of the function ends such a run")
        self.executor = executor
        given = None if executor is None else executor.executor
        self.carrier = given if isinstance(given, TakesPoints) else None
        if spread == "prefetch" and not (self.carrier is None and tasks_at_once(given)):
            raise ValueError("spread='prefetch' needs an executor that says how many workers it "
                             f"has, as {shown(given)} does not: take spread='points'")
        self.prefetch = spread == "prefetch"
        self.ahead: Ahead | None = None
        # the function may change the current folder
        self.evaluations = None if evaluations is None else in_place(evaluations)
        self.on_error = on_error
        keeps = evaluations is not None or self.carrier is not None or on_error != "stop"
        self.wanted: bool | None = True if keeps or on_points else None
        if self.wanted is None and (executor is None or spread == "chains"):
            self.wanted = False
        self.pool: PointPool | None = None
        self.lookup: Lookup | None = None
        self.run: Run | None = None
        self.past: RunState | None = None
        self.layout: Layout | None = None
        if self.carrier is not None:
            self.carrier.desk = self  # AskTell.tell looks at the open points here

    def through(
        self, target: Target, z: NDArray[np.float64], layout: Layout, chains: int
    ) -> Target:
        """The target for the run: itself, or one whose values come from the pool.

        Parameters
        ----------
        target : Target
        z : array (d,)
            A point at which an evaluation is timed, if that decides.
        layout : Layout
            The named parameters of a point.
        chains : int
            Number of chains.
        """
        if self.wanted is None and (tasks_at_once(self.executor.executor) or 0) <= chains:
            self.wanted = False
        if self.wanted is False:
            return target
        if target.is_estimate:
            if self.wanted:
                raise ValueError("evaluations, on_error, spread='points' and 'prefetch' are for "
                                 f"densities that are known, and target {shown(target)} is an "
                                 "estimate")
            self.wanted = False
            return target
        # most runs need no pool, and none of these modules
        from fastkam.points.ahead import Ahead, Guess
        from fastkam.points.target import of_function, returns_gradient, through

        if self.pool is None:
            self.layout = layout
            self.open(target, layout.numbered)
        assert self.lookup is not None
        made = through(target, self.lookup)
        if self.prefetch:
            assert self.pool is not None
            guess = Guess(self.pool, returns_gradient(of_function(target)))
            self.ahead = Ahead(self.pool, through(target, guess), guess)
        if self.wanted is None:
            self.wanted = self.is_slow(target, z)
            if not self.wanted:
                self.close()
                return target
        return made

    def take_batches(self, target: Target) -> None:
        """Let workers evaluate points, several per task, for work that comes in batches.

        This has no effect with spread="chains", or if the function takes many points itself.
        """
        if self.wanted is None and not target.batched:
            self.wanted = True

    def open(self, target: Target, names: list[str]) -> None:
        """Make the pool."""
        # nor the modules for processes
        from fastkam.points.opening import make_pool
        from fastkam.points.target import Lookup, of_function

        self.pool = make_pool(target, names, self.executor, self.evaluations, self.on_error)
        self.lookup = Lookup(self.pool, getattr(of_function(target), "function", None))

    def evaluated(self, target: Target, Z: NDArray[np.float64]) -> list[Reply | None]:
        """Evaluate the function at points Z (k, dim) at once; the replies, with all errors."""
        assert self.pool is not None
        assert self.lookup is not None
        X = np.ascontiguousarray(target.points_of(Z))
        self.pool.evaluate(X, self.lookup.meanwhile)
        return [self.pool.calls.get(x.tobytes()) for x in X]

    def is_slow(self, target: Target, z: NDArray[np.float64]) -> bool:
        """Whether an evaluation at z takes long."""
        assert self.pool is not None
        x = np.ascontiguousarray(target.points_of(z[None]))
        if not np.isfinite(x).all():
            return False
        reply = self.pool.evaluate(x)[0]
        return reply.error is None and reply.seconds >= SLOW_SECONDS

    @property
    def on_points(self) -> bool:
        """Whether points are evaluated one by one."""
        return self.pool is not None

    def state(self) -> RunState | None:
        """The state of the present run, or that in which the last ended; None before."""
        return self.past if self.run is None else self.run.state("running")

    @property
    def kept(self) -> Kept | None:
        """The file of calls, if there is one."""
        if self.evaluations is None or self.pool is None:
            return None
        return Kept(self.evaluations, self.on_error, self.pool.calls.start())

    def report(self) -> Workers | None:
        """The report on the workers."""
        return None if self.pool is None else self.pool.report()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the pool, if there is one."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.close()
