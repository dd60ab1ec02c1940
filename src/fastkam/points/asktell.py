"""AskTell: a run whose density the user evaluates, at points that the run proposes."""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.extras import fields_of
from fastkam._core.density.python_target import PythonTarget
from fastkam.arguments import check_integer, checked_names, counted, shown
from fastkam.points.asked import Asked
from fastkam.points.evaluate import parts_of
from fastkam.points.records import Fields
from fastkam.points.reply import Reply
from fastkam.points.session import Points, Session
from fastkam.problem.problem import Problem
from fastkam.progress import Progress
from fastkam.result import Result, load, resume
from fastkam.run.shapes import Layout
from fastkam.run.starts import seed_sequence
from fastkam.samplers import Sampler
from fastkam.sampling import sample
from fastkam.schedules import Schedule
from fastkam.stop import StopRule
from fastkam.stores.store import Store

Array = NDArray[np.float64]


class AskTell:
    """A run that proposes points and receives the density there, instead of calling a function.

    The user evaluates the points anywhere and in any order, and passes the values to `tell`. The
    draws are those of `fastkam.sample` with the same arguments, bit for bit, whatever the order.
    The object can be pickled at any time; a copy continues from there.

    Each chain waits for one point at a time, so that at most as many points are open as there are
    chains; more if a sampler has replicas (``"pt"``), and in the search before the run.

    Parameters
    ----------
    x0 : array (d,) or (chains, d), or dict, optional
        Starting points, as in `fastkam.sample`.
    problem : Problem, optional
        A Problem whose prior, transforms and parameters are used. The values of `tell` are those of
        its log likelihood, and its function is not called.
    prior, bounds, transforms, derived
        As in `fastkam.sample`; with `prior` the values of `tell` are log likelihoods.
    sampler, draws, tune, chains, seed, schedule, share, thin, search, names, shapes, dims, coords
        As in `fastkam.sample`.
    progress, keep_warmup, keep_stats, stop, checkpoint, checkpoint_interval, store, bit_generator
        As in `fastkam.sample`.
    evaluations, on_error, diagnose
        As in `fastkam.sample`. Points whose values are in the file of evaluations are not proposed.

    Raises
    ------
    TypeError, ValueError
        For a bad argument.

    Examples
    --------
    >>> import fastkam as fk
    >>> loop = fk.AskTell([0.0, 0.0], sampler="ram", draws=100, tune=100, chains=4, seed=1,
    ...                   search=False, diagnose=False)
    >>> while not loop.done:
    ...     points = loop.ask(most=64)
    ...     loop.tell(points, [-0.5 * x @ x for index, x in points])
    >>> loop.result.draws.shape
    (4, 100, 2)
    """

    @checked_names
    def __init__(
        self,
        x0: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        problem: Problem | None = None,
        sampler: str | Sampler = "auto",
        draws: int = 1000,
        tune: int | None = None,
        chains: int = 4,
        seed: Any = None,
        prior: Mapping[str, Any] | None = None,
        bounds: Any = None,
        transforms: Any = None,
        derived: Callable[..., Mapping[str, Any]] | None = None,
        schedule: str | Schedule = "finite",
        share: bool = False,
        thin: int | None = None,
        search: bool = True,
        names: Sequence[str] | None = None,
        shapes: Mapping[str, int | tuple[int, ...]] | None = None,
        dims: Mapping[str, str | Sequence[str]] | None = None,
        coords: Mapping[str, ArrayLike] | None = None,
        progress: bool | Callable[[Progress], object] | None = False,
        keep_warmup: bool = True,
        keep_stats: bool = True,
        stop: StopRule | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_interval: float = 60.0,
        store: Store | str | os.PathLike[str] | None = None,
        evaluations: str | os.PathLike[str] | None = None,
        on_error: str = "stop",
        bit_generator: str = "PCG64",
        diagnose: bool = True,
    ) -> None:
        target = told if problem is None else check_problem(problem)
        self.begin(partial(
            sample, target, x0, sampler=sampler, draws=draws, tune=tune, chains=chains,
            seed=seed_sequence(seed), prior=prior, bounds=bounds, transforms=transforms,
            derived=derived, schedule=schedule, share=share, thin=thin, search=search,
            names=names, shapes=shapes, dims=dims, coords=coords, progress=progress,
            keep_warmup=keep_warmup, keep_stats=keep_stats, stop=stop, checkpoint=checkpoint,
            checkpoint_interval=checkpoint_interval, store=store, evaluations=evaluations,
            on_error=on_error, bit_generator=bit_generator, diagnose=diagnose), Asked())
        self.first_error()

    @classmethod
    def resume(
        cls,
        result: Result | str | os.PathLike[str],
        draws: int | None = None,
        *,
        problem: Problem | None = None,
        **options: Any,
    ) -> AskTell:
        """Continue a run, from a Result, a file or a store, as `fastkam.resume` does.

        Parameters
        ----------
        result : Result or path
            ``loop.result``, a file of ``loop.result.save(path)``, or any other run.
        draws : int, optional
            Number of further draws in each chain; by default those missing from the requested
            number.
        problem : Problem, optional
            The Problem with the prior and transforms of the run; needed if it had any.
        **options
            Options of `fastkam.resume`: progress, stop, checkpoint, checkpoint_interval, store,
            evaluations, on_error, diagnose; and sampler and schedule, with a file.
        """
        own = {name: options[name] for name in ("sampler", "schedule") if name in options}
        if isinstance(result, Result):
            if own:
                raise ValueError("sampler and schedule must be given with a file alone: a Result "
                                 "has them")
        elif isinstance(result, (str, os.PathLike)):
            result = load(result, **own)
        else:
            raise TypeError(f"result must be a Result or the path of one, not {shown(result)}")
        state = result.state
        if (state.coordinates is None) != (problem is None):
            have = "has" if problem is None else "does not have"
            raise ValueError("problem must be the fastkam.Problem of the run, which "
                             f"{have} a prior, bounds or transforms, not {shown(problem)}")
        target: Any = PythonTarget(told, state.d, vectorized=False, gradient=False)
        if problem is not None:
            target = check_problem(problem).target()
        options = {name: value for name, value in options.items() if name not in own}
        options.setdefault("progress", False)
        loop = cls.__new__(cls)
        loop.begin(partial(resume, Result(state, target), draws, **options), Asked())
        loop.first_error()
        return loop

    def begin(self, call: partial[Result], asked: Asked) -> None:
        """Start the thread of the run, which ends with this object."""
        self.call, self.asked = call, asked
        self.fields: Fields | None = None
        self.session = Session(call, asked)
        weakref.finalize(self, asked.stop)

    def first_error(self) -> None:
        """Raise the error of a bad argument, if there is one."""
        with self.asked.condition:
            self.asked.wait_still()
        error = self.session.error
        if error is not None:
            raise error

    # ---- ask and tell ----

    def ask(self, most: int = 64) -> Points:
        """Return at most `most` points that were not returned before.

        There are none if values must be passed to `tell` first, or if the run has ended. After a
        restart from a pickled copy, those that had no value come last, unless `asked_for` has
        returned them.

        Raises
        ------
        SamplingError
            If the run could not continue with the values that it received.
        """
        most = check_integer("most", most, least=1)
        with self.asked.condition:
            self.wait()
            return self.points(self.asked.ask(most))

    def asked_for(self) -> Points:
        """The points that `ask` has returned and that have no value yet, as after a restart."""
        with self.asked.condition:
            self.wait()
            self.asked.left.clear()
            return self.points([] if self.asked.ended else list(self.asked.given))

    def points(self, numbers: list[int]) -> Points:
        """The open points of these numbers."""
        layout: Layout = self.asked.desk.layout
        d = sum(int(np.prod(shape)) for shape in layout.shapes.values())
        x = np.array([self.asked.open[number][1] for number in numbers]).reshape(-1, d)
        return Points(np.array(numbers, np.int64), x, layout)

    def tell(self, points: Points | Sequence[int] | int, values: Any) -> None:
        """Pass the density at points from `ask`.

        Parameters
        ----------
        points : Points or sequence of int
            Open points, or their indices, in any order.
        values : sequence (k,) or dict
            For each point, in their order or by its index, the log density (-inf or NaN if the
            density is 0 or undefined), or any value that a function may return, such as (log
            density, extras). An exception marks a point that has failed.

        Raises
        ------
        TypeError, ValueError
            For an index that is not open, or is repeated, points of another AskTell, and values of
            another number or type. None of the values is stored then.
        """
        x = points.x if isinstance(points, Points) else None
        points = points.indices.tolist() if isinstance(points, Points) else points
        alone = isinstance(points, (int, np.integer))
        numbers = [points] if alone else elements("points", points)
        values = [values] if alone else in_order(numbers, values)
        if len(values) != len(numbers):
            raise ValueError(f"values must have one for each of {len(numbers)} points, not "
                             f"{len(values)}")
        fields = self.fields
        replies: list[tuple[int, Reply]] = []
        with self.asked.condition:  # the run need not have stopped for that
            if self.asked.restarts:
                self.wait()
            if self.session.error is not None:
                raise self.session.error
            before: set[int] = set()
            for i, (number, value) in enumerate(zip(numbers, values, strict=True)):
                self.check_open(number, before)
                before.add(int(number))
                own = self.asked.open[int(number)][1]
                if x is not None and x[i].tobytes() != own.tobytes():
                    raise ValueError(f"points has the index {number} of another AskTell: there it "
                                     f"is {shown(x[i])}, and here {shown(own)}")
                reply = reply_of(value, len(own))
                if reply.extras is not None:
                    fields = fields or fields_of(reply.extras)
                    if fields_of(reply.extras) != fields:
                        raise TypeError(f"extras must be alike at every point: {list(fields)}, and "
                                        f"now {list(reply.extras)}, of the same shapes and types")
                replies.append((int(number), reply))
            self.fields = fields
            self.asked.tell(replies)

    def check_open(self, number: Any, before: set[int]) -> None:
        """Refuse the number of a point that is not open."""
        check_integer("points", number, least=0)
        if number in before:
            raise ValueError(f"points has the index {number} twice")
        if number not in self.asked.open:
            why = "no point has it yet" if number >= self.asked.n else "its value is known"
            raise ValueError(f"points has the index {number}, which is not open: {why}")

    def wait(self) -> None:
        """Wait until the run has stopped for values; raise its error. The condition is held."""
        self.asked.wait_still()
        if self.session.error is not None:
            raise self.session.error

    # ---- the result ----

    @property
    def done(self) -> bool:
        """Whether the run has ended: with all its draws, or by a rule."""
        with self.asked.condition:
            self.wait()
            return self.asked.ended

    @property
    def result(self) -> Result:
        """The run so far, or at its end.

        Raises
        ------
        RuntimeError
            During the search before the run, and until the starting points have values, when there
            are no chains yet.
        SamplingError
            If the run could not continue; the draws so far are in its ``.result``.
        """
        with self.asked.condition:
            self.wait()
            if self.session.result is not None:
                return self.session.result
            state = self.asked.desk.state()
            if state is None:
                begun = self.call.keywords.get("search") is False
                more = "" if begun else ", or begin with search=False"
                raise RuntimeError("there is no result during the search before the run, nor until "
                                   f"the starting points have values: tell more values{more}")
            return Result(state)

    def __repr__(self) -> str:
        with self.asked.condition:
            n, m = len(self.asked.open), len(self.asked.given)
        return f"<AskTell: {counted(n, 'point')} open, {m} of them asked for>"

    # ---- to another process ----

    def __copy__(self) -> AskTell:
        """A copy with a run of its own: two objects cannot share a thread."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        if self.call.keywords.get("store") is not None:
            raise TypeError("a run with store= cannot be pickled: AskTell.resume takes its folder")
        return {"call": self.call, "asked": self.asked, "fields": self.fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.begin(state["call"], state["asked"])
        self.fields = state["fields"]


def told(x: Array) -> NoReturn:
    """Placeholder of the density, which is never called."""
    raise RuntimeError("the density of an AskTell is not a function")


def check_problem(problem: Any) -> Problem:
    """Return `problem` if it is a Problem."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a fastkam.Problem, not {shown(problem)}")
    return problem


def in_order(numbers: list[Any], values: Any) -> list[Any]:
    """The values in the order of the points with these indices; a dict has the indices as keys."""
    if isinstance(values, Mapping):
        if len(values) != len(numbers) or any(key not in numbers for key in values):
            raise ValueError("values must have the indices of the points as keys if it is a dict, "
                             f"{shown(numbers)}, not {shown(list(values))}")
        return [values[number] for number in numbers]
    if isinstance(values, (set, frozenset)):
        raise TypeError("values must be in the order of the points, or a dict by their indices, "
                        f"not a set, {shown(values)}")
    return elements("values", values)


def elements(name: str, values: Any) -> list[Any]:
    """The elements of an argument; a TypeError that names it if it has none."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence, not {shown(values)}") from None


def reply_of(value: Any, d: int) -> Reply:
    """The reply for a point (d,), from the arguments of `tell`."""
    if isinstance(value, Exception):
        return Reply(error=value, worker="told")
    if type(value) is list and len(value) > 1:
        value = tuple(value)
    number, gradient, extras = parts_of(value)
    if gradient is not None and gradient.shape != (d,):
        raise ValueError(f"values must have gradients of shape ({d},), not {gradient.shape}: "
                         f"{shown(value)}")
    return Reply(number, gradient, extras, worker="told")
