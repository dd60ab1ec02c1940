"""Result: the draws of a run, what is known of them, and how to go on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import (
    check_flag,
    check_generator,
    check_integer,
    checked_names,
    shown,
)
from fastkam.density.forms import target_of, with_surrogate
from fastkam.diagnostics import checks, summary
from fastkam.diagnostics.look import Finding
from fastkam.diagnostics.scouting import own_generator, scout
from fastkam.diagnostics.table import Summary
from fastkam.diagnostics.verdict import Verdict
from fastkam.diagnostics.weights import normalized, weight_findings, weighted_summary
from fastkam.ending import conclude
from fastkam.errors import SamplingWarning, warn
from fastkam.outputs import Outputs
from fastkam.points.desk import Desk
from fastkam.progress import Progress
from fastkam.run.checkpoint import check_room, read, write
from fastkam.run.drive import go_on
from fastkam.run.files import check_path
from fastkam.run.lazy import distance
from fastkam.run.options import RunOptions
from fastkam.run.resampled import after_generator, evenly
from fastkam.run.same_target import check_density_of, check_noise_of, target_in, with_values_of
from fastkam.run.state import RunState
from fastkam.run.stored import StoredTrace
from fastkam.run.workers import as_workers
from fastkam.run.writer import moved_into, writing
from fastkam.samplers import Sampler, as_sampler
from fastkam.samplers.delayed import check_stages
from fastkam.samplers.importance import LOG_WEIGHT, ImportanceWeighted
from fastkam.schedules import Schedule, as_schedule
from fastkam.stop import StopRule
from fastkam.stores.store import Store, as_store

if TYPE_CHECKING:

    from fastkam.density.target import Target
    from fastkam.points.workers import Workers


MOST_SCOUTED = 10_000_000  # evaluations of a verdict


class Result(Outputs):
    """The draws of a run; made by `fastkam.sample`, `resume` or `load`.

    ``result["theta"]`` is the parameter of that name, of shape (chains, draws, *its own).

    Attributes
    ----------
    draws : ndarray, shape (chains, draws, d)
        Every chain's draws, as many as the shortest chain has. Those, the extras and the stats of a
        run with ``store=`` are read from there when they are indexed; ``np.asarray(draws)`` reads
        all. Where ``weights`` is not None the draws are those of a surrogate, and count by their
        weights: in `summary`, which knows them, or after `resample`.
    extras : dict of ndarray, shape (chains, draws, ...)
        Of each draw, what the density returned besides its value, and derived quantities.
    stats : dict of ndarray, shape (chains, draws)
        "lp" (log density), "acceptance_rate" (acceptance probability of the step that led there),
        "accepted", and what the sampler declares.
    trace, warmup : Trace
        The draws and the states of warm-up, with ``.draws`` and ``.stats`` of their own: of a
        `Problem`, in the sampler's unconstrained coordinates; ``result.warmup_draws`` are states
        of warm-up in the user's.
    sampler : Sampler
    schedule : Schedule
        ``schedule.guarantee`` says how far the draws may be trusted.
    tune, thin, requested : int
        Steps of warm-up, steps for each draw, and the draws a chain that were asked for.
    share : bool
        Whether the chains have learnt as one.
    search : list of str
        What the search before the run did, a line each.
    scales : ndarray, shape (d,)
        The units in which the sampler saw the coordinates: 1 where a length was given to it.
    names : list of str
    shapes : dict of str to tuple of int
        Shape of each named parameter.
    dims : dict of str to list of str
        Names of the dimensions of parameters.
    coords : dict of str to ndarray
        Values along dimensions.
    states : list of dict
        The state of each chain, {name: array}: position, counters, and each field of the sampler
        under "kernel."; in units of the scales.
    status : str
        "complete", "stopped" (by a stop rule), "interrupted", or "failed".
    stopped_by : str
        The stop rule that has ended the run, "ESS(size=400, of='bulk')", or "Progress.stop()"; ""
        where none has.
    seconds : float
        Wall-clock time of all runs.
    state : RunState
        All that it takes to go on, besides the density.
    workers : Workers or None
        Where points were evaluated one by one (``spread="points"``, ``evaluations=``): how busy the
        workers were since the run was begun, or went on, the slowest points, and failures.
    """

    def __init__(self, state: RunState, target: Target | None = None) -> None:
        self.workers: Workers | None = None
        super().__init__(state)
        self.target = target
        self.found: list[Finding] | None = None

    # ---- what is known of them ----

    @property
    def log_weights(self) -> NDArray[np.float64] | None:
        """Logs of the importance weights, (chains, draws), up to a constant; None for equal ones.

        The draws of a run with ``surrogate="learn"`` are those of the surrogate: the mean of h is
        ``(w * h).sum() / w.sum()`` with ``w = result.weights``.
        """
        if not isinstance(self.sampler, ImportanceWeighted):
            return None
        return np.asarray(self.stats[LOG_WEIGHT])

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Importance weights of the draws, (chains, draws), with the mean 1; None for equal ones.
        """
        log_weights = self.log_weights
        return None if log_weights is None else normalized(log_weights)

    def resample(self, draws: int | None = None, *, seed: Any = None) -> Result:
        """A result whose draws have equal weights: of weighted ones, each as often as it counts.

        Parameters
        ----------
        draws : int, optional
            Draws a chain; by default, and at most, as many as there are.
        seed : int, SeedSequence or Generator, optional
            By default it follows from the seed of the run.

        Returns
        -------
        Result
            Without weights. Draws stand in the order that they had, those with large weights
            several times (systematic resampling), and some at the end of one chain may have come
            from the next. Errors by its summary are somewhat larger than those of this result.
        """
        log_weights = self.log_weights
        if log_weights is None:
            raise ValueError("the draws of this result have equal weights already: there is "
                             "nothing to resample")
        rows = self.trace.rows
        if draws is not None:
            rows = check_integer("draws", draws, least=1, most=rows)
        rng = self.own_generator() if seed is None else check_generator("seed", seed)
        even = Result(evenly(self.state, log_weights, rows, rng))
        even.found = [one for one in self.warnings if one.kind != "ess"]
        return even

    def own_generator(self) -> np.random.Generator:
        """The generator of what is drawn after the run."""
        return after_generator(self.state.seed)

    def summary(self) -> Summary:
        """Mean, sd, quantiles, Monte Carlo error, effective sample sizes and R-hat.

        Returns
        -------
        Summary
            Prints as a table, with the verdict and what `warnings` says below it;
            ``summary["r_hat"]`` is a column as an array. Of a long run with ``store=``, some two
            million draws at equal distances are read, which a note says.
        """
        log_weights = self.log_weights
        if log_weights is not None:
            table = weighted_summary(
                np.asarray(self.draws), log_weights, self.state.layout.labels)
            table.notes = [one.text for one in self.warnings]
            return table
        step = distance(self.draws)
        table = summary(self.draws[:, ::step], self.state.layout.labels)
        judged = checks.verdict_of(self.state, self.warnings, table)
        table.verdict = judged.heading
        table.notes = checks.notes(list(judged.reasons), table)
        if step > 1:
            table.notes.append(f"Of every {step}th draw of each chain: effective sample sizes are "
                               "no larger than those of all draws, and errors no smaller.")
        return table

    @property
    def warnings(self) -> list[Finding]:
        """What should be known of the run, the gravest first; empty where all is well.

        Each has a ``kind``, a ``text`` that says what to do, and the ``coordinates`` and ``chains``
        concerned: see `fastkam.diagnostics.Finding`. They are those of the warning at the end of
        the run.
        """
        if self.found is None:
            log_weights = self.log_weights
            self.found = (checks.findings(self.state) if log_weights is None else
                          weight_findings(self.state, log_weights))
        return list(self.found)

    @checked_names
    def verdict(
        self, evaluations: int = 0, *, target: Any = None, vectorized: bool = False,
        seed: Any = None,
    ) -> Verdict:
        """Whether the draws may be trusted: ok, doubtful or wrong, with the reasons.

        Parameters
        ----------
        evaluations : int
            How often the density may be evaluated besides, to look for points of comparable density
            that no chain has visited: wide jumps from the draws, searches uphill from where these
            lead, and gradients at draws where they suffice for these. 1000 find most modes within
            some 20 standard deviations, of few dimensions. With 0 the verdict is that of
            `warnings`.
        target : optional
            The density, where the result comes from a file: as in `fastkam.resume`.
        vectorized : bool
            As in `fastkam.sample`, of that `target`.
        seed : int, SeedSequence or Generator, optional
            Of the jumps. By default it follows from the seed of the run.

        Returns
        -------
        Verdict
            Prints as a paragraph; its ``status`` is "ok", "doubtful" or "wrong". Of a run of fewer
            than 100 draws a chain it is "doubtful".

        Raises
        ------
        TypeError, ValueError
            For a bad argument; where the density is needed and is not there, or another one.
        SamplingError
            If the density raises an error, other than one of numbers.
        """
        evaluations = check_integer("evaluations", evaluations, least=0, most=MOST_SCOUTED)
        check_flag("vectorized", vectorized)
        if seed is not None:
            check_generator("seed", seed)
        found, made = self.warnings, 0
        if evaluations and self.trace.rows >= checks.LEAST_DRAWS:
            more, made = scout(self, evaluations, target, vectorized,
                               own_generator(self.state) if seed is None
                               else check_generator("seed", seed))
            kinds = {one.kind for one in found}
            found = [one for one in more if one.kind not in kinds] + found
        return checks.verdict_of(self.state, found, None, made)

    def __repr__(self) -> str:
        return (
            f"<Result of {type(self.sampler).__name__}: {self.chains} chains, "
            f"{self.trace.rows} draws, {self.d} dimensions, {self.status}>"
        )

    # ---- going on ----

    def resume(self, draws: int | None = None, **options: Any) -> Result:
        """Go on with the run: see `fastkam.resume`, which takes the same arguments."""
        return resume(self, draws, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the density to the file `path` (a .npz without pickle).

        Of a run with ``store=`` the draws too, so that the file needs no store.
        """
        if path is None:
            raise TypeError("path must be the path of a file, not None")
        check_path("path", path)
        write(path, self.state, whole=True)

    def __getstate__(self) -> dict[str, Any]:
        """A result travels without its target, which may not be able to."""
        return self.__dict__ | {"target": None, "mapped": None}


def load(
    path: str | os.PathLike[str],
    *,
    sampler: Sampler | str | None = None,
    schedule: Schedule | str | None = None,
) -> Result:
    """The Result in a file that `Result.save` or a checkpoint has written, or in a store.

    Of a run that is going on, the last state that it has written.

    Parameters
    ----------
    path : path
        A file, or the folder of ``store=``.
    sampler, schedule : optional
        Those with which the run began, in place of the file's: needed where their class is not one
        of fastkam's and the module that defines it has not been imported, or it is defined in a
        function or a script.

    Raises
    ------
    ValueError
        If the file is no such file, or names a class that this process has not defined.
    """
    return Result(read(path, sampler, schedule))


@checked_names
def resume(
    result: Result | str | os.PathLike[str],
    draws: int | None = None,
    *,
    target: Any = None,
    surrogate: Any = None,
    sampler: Sampler | str | None = None,
    schedule: Schedule | str | None = None,
    vectorized: bool = False,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | logging.Logger | None = None,
    stop: StopRule | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = 60.0,
    store: Store | str | os.PathLike[str] | None = None,
    executor: Any = None,
    spread: str | None = None,
    evaluations: str | os.PathLike[str] | None = None,
    on_error: str = "stop",
    diagnose: bool = True,
    check_target: bool = True,
) -> Result:
    """Go on with a run: as if it had never stopped, bit for bit.

    Parameters
    ----------
    result : Result or path
        A result, a file that `Result.save` or a checkpoint has written, or the folder of a store.
    draws : int, optional
        How many draws a chain more. Absent: those that are missing from what was asked for.
    target : optional
        The density, as in `sample`; needed where the result comes from a file. Where the run had a
        prior, bounds or the like, the `Problem` with them.
    surrogate : optional
        As in `sample`; needed where the result comes from a file and had one.
    sampler, schedule : optional
        As in `load`, where the result comes from a file.
    vectorized, threads, progress, stop, checkpoint, checkpoint_interval, diagnose
        As in `sample`.
    executor, spread, evaluations, on_error
        As in `sample`.
    store : path or Store, optional
        As in `sample`, for a run that has none: its draws until now are written there first. A run
        with a store goes on in it, without copying anything.
    check_target : bool
        Whether `target`, where it is given, is evaluated at the point of each chain first: it must
        return the log density that the run has found there, to 1e-8 of it (or of 1, if it is
        smaller). An estimate is made with the noise of the run. With False another density is
        taken: the chains go on from their points with its values there, and a warning says by how
        much these differ.

    Returns
    -------
    Result
        With the old draws and the new.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, and for a density that is not that of the run, before any work.
    SamplingError
        If the run cannot go on; it carries the draws made until then.
    """
    executor = as_workers(executor)
    desk = Desk(executor, spread, evaluations, on_error)
    options = RunOptions(
        threads=threads, progress=progress, stop=stop, checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval, store=as_store(store), executor=executor,
        diagnose=diagnose, until_stop=stop is not None, desk=desk)
    check_flag("check_target", check_target)
    check_flag("vectorized", vectorized)
    if sampler is not None:
        sampler = as_sampler(sampler)
    if schedule is not None:
        schedule = as_schedule(schedule)
    path = None
    if isinstance(result, (str, os.PathLike)):
        path, result = result, load(result, sampler=sampler, schedule=schedule)
    elif not isinstance(result, Result):
        raise TypeError(f"result must be a Result or the path of one, not {shown(result)}")
    elif sampler is not None or schedule is not None:
        raise ValueError("sampler and schedule must be given with a file alone: a Result has them")
    state = result.state
    if stop is not None:
        stop.check(state.layout)
    if isinstance(state.sampler, ImportanceWeighted):
        raise ValueError('a run with surrogate="learn" cannot be resumed: call sample again with a '
                         "larger budget")
    if options.store is not None and isinstance(state.trace, StoredTrace):
        raise ValueError(f"store must not be given: the run goes on in its own, "
                         f"{str(state.trace.store.path)!r}, not in {str(options.store.path)!r}")
    if draws is not None:
        draws = check_integer("draws", draws, least=0)
    given = target is not None
    if target is None:
        target = result.target
    if target is None:
        raise ValueError("target must be given: a result from a file does not hold the density")
    if surrogate is None and result.target is not None:
        surrogate = result.target.surrogate
    with desk:
        return go_on_with(result, target, surrogate, options, draws=draws, path=path, given=given,
                          vectorized=vectorized, check_target=check_target)


def go_on_with(
    result: Result, target: Any, surrogate: Any, options: RunOptions, *, draws: int | None,
    path: Any, given: bool, vectorized: bool, check_target: bool,
) -> Result:
    """Go on with a result, by arguments of `resume` that have been checked."""
    state, desk = result.state, options.desk
    target, surrogate = target_in(state, target, surrogate)
    own = target_of(state.sampler, target, state.d, vectorized)
    own = own.owner if own.surrogate is not None else own
    target = desk.through(own, state.x0[0], state.layout, len(state.x0))
    if surrogate is not None:
        own, target = with_surrogate(own, surrogate), with_surrogate(target, surrogate)
    check_stages(state.sampler, target)
    check_noise_of(state, target)
    if given and check_target:
        check_density_of(state, target)
    elif given:
        state, more = with_values_of(state, target)
        if more.any():
            warn(SamplingWarning(
                f"target is another density than that of the draws until now: its logarithm is "
                f"larger by {more.min():.6g} to {more.max():.6g} at the points of the chains, "
                "which go on from there with the new values", result=result))
    if path is not None:
        check_room(path, state, 0 if draws is not None else state.requested)
    if options.store is not None:
        state = moved_into(options.store, state)
    with options.shield, options.report, options.closing, writing(state):
        outcome = go_on(state, target, draws, options)
        new = Result(outcome.state, own)
        new.workers = desk.report()
        return conclude(new, outcome, options)
