"""Result: the draws of a run; reading them from a file, and resuming the run."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastkam.arguments import (
    check_flag,
    check_generator,
    check_integer,
    checked_names,
    counted,
    no_attribute,
    shown,
)
from fastkam.density.forms import target_of, with_surrogate
from fastkam.ending import conclude
from fastkam.errors import SamplingWarning, warn
from fastkam.outputs import Outputs
from fastkam.points.desk import Desk
from fastkam.progress import Progress
from fastkam.run.blas import one_blas_thread
from fastkam.run.checkpoint import check_room, read, write
from fastkam.run.drive import go_on
from fastkam.run.files import check_path
from fastkam.run.hints import within_memory
from fastkam.run.options import RunOptions
from fastkam.run.resampled import evenly, spread
from fastkam.run.rules import StopRule
from fastkam.run.same_target import (
    check_density_of,
    check_draws_of,
    check_noise_of,
    check_unchanged,
    target_in,
    with_values_of,
)
from fastkam.run.state import RunState
from fastkam.run.stored import StoredTrace
from fastkam.run.streams import Stream, generator_of
from fastkam.run.workers import as_workers
from fastkam.run.writer import moved_into, writing
from fastkam.samplers import Sampler, as_sampler
from fastkam.samplers.delayed import check_stages
from fastkam.samplers.importance import ImportanceWeighted
from fastkam.schedules import Schedule, as_schedule
from fastkam.stores.store import Store, as_store, check_outside

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.points.workers import Workers

FLAT = "to_numpy(flat=True), or draws (chains, draws, d)"
LOG_DENSITY, TREE = "stats['lp']", "to_datatree(), or to_arviz()"
COLUMNS = "summary(), whose columns are r_hat, ess_bulk, ess_tail and others"
QUANTILES, FIGURES = "summary(quantiles=)", "report(), or a function of fastkam.plots"
# names of results of other packages -> ours
ELSEWHERE = {
    **dict.fromkeys(["get_chain", "chain", "flatchain", "flat", "get_samples", "samples",
                     "samples_equal", "values"], FLAT),
    **dict.fromkeys(["get_log_prob", "log_prob", "lnprobability", "logp", "lp", "log_p",
                     "log_density", "log_posterior"], LOG_DENSITY),
    **dict.fromkeys(["log_likelihood", "loglike", "logl"], "problem.log_likelihood(x) of a draw x"),
    **dict.fromkeys(["posterior", "to_xarray", "to_dataset", "to_inference_data",
                     "to_inferencedata", "idata"], TREE),
    **dict.fromkeys(["ess", "r_hat", "rhat", "ess_bulk", "ess_tail", "mcse", "n_eff"], COLUMNS),
    **dict.fromkeys(["mean", "std", "sd", "var"], "summary()"),
    **dict.fromkeys(["quantile", "hdi", "median", "percentile"], QUANTILES),
    **dict.fromkeys(["plot", "corner", "hist", "plot_trace", "plot_pair"], FIGURES),
    **dict.fromkeys(["logz", "logzerr", "evidence", "log_z"], "log_evidence()"),
    **dict.fromkeys(["df", "to_dataframe", "to_csv"], "to_pandas()"),
    **dict.fromkeys(["acceptance_fraction", "acceptance_rate", "accept_rate"], "acceptance"),
    **dict.fromkeys(["time", "runtime", "elapsed"], "seconds"),
    "get_blobs": "extras", "blobs": "extras", "sample_stats": "stats", "shape": "draws.shape",
    "items": "dict(result)", "to_dict": "dict(result)", "cov": "np.cov(to_numpy(flat=True).T)",
    "get_autocorr_time": "summary(), whose ess_bulk is the effective number of draws",
}
# what the parts of this package use of one another, and completion does not show
INTERNAL = {"equally_weighted", "found", "further", "kept", "known_beside", "labels_of", "mapped",
            "places", "remember", "selected", "table", "weighted_table", "with_target_of"}


class Result(Outputs):
    """The draws of a run; made by `fastkam.sample`, `resume` or `load`.

    ``result["theta"]`` is the array of the parameter of that name, (chains, draws, *shape).

    Attributes
    ----------
    draws : ndarray, shape (chains, draws, d)
        The draws of every chain, cut to the length of the shortest chain. Draws, extras and stats
        are read-only; ``np.array(draws)`` is a copy that can be changed. Those of a run with
        ``store=`` are read from the store when they are indexed; ``np.asarray(draws)`` reads all.
        With ``surrogate="learn"`` the draws are those of the surrogate and have unequal
        ``weights``: `summary` uses the weights, and `resample` returns draws with equal ones.
    extras : dict of ndarray, shape (chains, draws, ...)
        Quantities that the density returned with its value, and derived quantities.
    stats : dict of ndarray, shape (chains, draws)
        "lp" (log density), "acceptance_rate" (acceptance probability of the step that led to the
        draw), "accepted", and the statistics of the sampler.
    trace, warmup : Trace
        The draws and the states of warm-up, each with ``.draws`` and ``.stats``. For a `Problem`
        they are in the sampler's unconstrained coordinates; ``result.warmup_draws`` are the states
        of warm-up in the user's.
    sampler : Sampler
    schedule : Schedule
        ``schedule.guarantee`` says in which sense the draws have the right distribution.
    tune, thin, requested : int
        Number of warm-up steps, of steps for each draw, and of requested draws in each chain.
    share : bool
        Whether the chains shared their adaptation.
    search : list of str
        The log of the search before the run, one line per finding.
    scales : ndarray, shape (d,)
        The units of the coordinates within the sampler: 1 where the sampler was given a length.
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
        The stop rule that ended the run, such as "ESS(size=400, of='bulk')", or "budget=1000" or
        "Progress.stop()"; "" if no rule ended it.
    seconds : float
        Wall-clock time, summed over the run and its continuations.
    state : RunState
        Everything needed to resume the run, except the density.
    workers : Workers or None
        If points were evaluated one by one (``spread="points"``, ``evaluations=``): the load of the
        workers since the run was begun or resumed, the slowest points, and failures.
    """

    def __init__(
        self, state: RunState, target: Target | None = None, desk: Desk | None = None
    ) -> None:
        super().__init__(state)
        self.target = target
        self.workers: Workers | None = None if desk is None else desk.report()
        self.kept = None if desk is None else desk.kept

    # ---- resample, resume and save ----

    def resample(self, draws: int | None = None, *, seed: Any = None) -> Result:
        """Resample draws by their weights, so that those of the new result have equal weights.

        Of draws without weights, evenly spaced ones are kept.

        Parameters
        ----------
        draws : int, optional
            Number of draws in each chain; by default, and at most, that of this result.
        seed : int, SeedSequence or Generator, optional
            By default it follows from the seed of the run.

        Returns
        -------
        Result
            A result without weights. Draws keep their order, and those with large weights are
            repeated (systematic resampling); some draws at the end of one chain may come from the
            next. The errors in its summary are somewhat larger than those of this result.
        """
        log_weights, rows = self.log_weights, self.trace.rows
        if draws is not None:
            rows = check_integer("draws", draws, least=1, most=rows)
        rng = (generator_of(self.state.seed, Stream.AFTER) if seed is None
               else check_generator("seed", seed))
        if log_weights is None:
            return self if rows == self.trace.rows else Result(spread(self.state, rows))
        even = Result(evenly(self.state, log_weights, rows, rng))
        even.found = [one for one in self.warnings if one.kind != "ess"]
        return even

    def __repr__(self) -> str:
        kind = "draw" if self.log_weights is None else "weighted draw"
        return (
            f"<Result of {type(self.sampler).__name__}: {counted(self.chains, 'chain')}, "
            f"{counted(self.trace.rows, kind)}, {counted(self.d, 'dimension')}, {self.status}>"
        )

    def resume(self, draws: int | None = None, **options: Any) -> Result:
        """Continue the run: see `fastkam.resume`, which takes the same arguments."""
        return resume(self, draws, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything except the density to the file `path` (a .npz without pickle).

        The file of a run with ``store=`` has the draws too, so that it does not need the store.
        """
        if path is None:
            raise TypeError("path must be the path of a file, not None")
        check_path("path", path, result=True)
        check_outside("path", path)
        write(path, self.state, whole=True)

    def __getattr__(self, name: str) -> Any:
        """Refuse a name of other packages with ours, and that of a parameter."""
        if "state" in self.__dict__ and name in self.names:
            raise AttributeError(f"a Result has no {name!r}: use result[{name!r}]")
        return no_attribute(self, name, ELSEWHERE)

    def __dir__(self) -> list[str]:
        """The names that completion shows."""
        return [name for name in super().__dir__() if name not in INTERNAL]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the target, which may not be picklable."""
        return self.__dict__ | {"target": None, "mapped": None}

    def __copy__(self) -> Result:
        """A result with the same draws and the same target."""
        return self.with_target_of(self.__getstate__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Result:
        """A result with copies of the draws, and the same target."""
        return self.with_target_of(copy.deepcopy(self.__getstate__(), memo))

    def with_target_of(self, state: dict[str, Any]) -> Result:
        """A result from the values of its attributes, with the target of this one."""
        new = object.__new__(type(self))
        new.__dict__.update(state, target=self.target)
        return new


def load(
    path: str | os.PathLike[str],
    *,
    sampler: Sampler | str | None = None,
    schedule: Schedule | str | None = None,
) -> Result:
    """Read the Result from a file of `Result.save` or of a checkpoint, or from a store.

    If the run has not ended, this is the last state that it has written.

    Parameters
    ----------
    path : path
        A file, or the folder of ``store=``.
    sampler, schedule : optional
        The sampler and schedule of the run, in place of the file's. They are needed if their class
        is not one of fastkam's and either the module that defines it has not been imported, or it
        is defined in a function or a script.

    Raises
    ------
    ValueError
        If the file is not one of fastkam's, or names a class that this process has not defined.
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
    """Continue a run, bit for bit as if it had never stopped.

    Parameters
    ----------
    result : Result or path
        A result, a file that `Result.save` or a checkpoint has written, or the folder of a store.
    draws : int, optional
        Number of further draws in each chain; by default those missing from the requested number,
        or, of a run without `draws` whose draws do not suffice, or with `stop`, as many as it takes
        until they do, or the rule is met. Every such call of a run that had ended may make as many
        evaluations as the `budget` of the run (1 000 000 by default), and one that continues an
        interrupted call those that it has left; `stop` replaces the default in the same way as in
        `sample`. If chains have different numbers of draws, after an interrupt, it is that of
        the longest, and the others make as many draws as it has.
    target : optional
        The density, as in `sample`; needed if the result comes from a file. If the run had a
        prior or transforms, the `Problem` with them.
    surrogate : optional
        As in `sample`; needed if the result comes from a file and the run had a surrogate.
    sampler, schedule : optional
        As in `load`, if the result comes from a file.
    vectorized, threads, progress, stop, checkpoint, checkpoint_interval, diagnose
        As in `sample`; but an old file at `checkpoint` is replaced, and not moved.
    executor, spread, evaluations, on_error
        As in `sample`.
    store : path or Store, optional
        As in `sample`, for a run without a store: its draws so far are first copied into the new
        store. A run with a store continues in it, and copies nothing.
    check_target : bool
        Whether to check `target` by an evaluation at the point of each chain: it must return the
        log density that the run has recorded there, with a relative error of at most 1e-8
        (absolute, for values below 1). Without `target` the density of the result is evaluated at
        the point of the first chain alone, and a relative error of 1e-4 is allowed, since its data
        may have changed. An estimate is evaluated with the noise of the run. With False a
        different density is accepted: the chains continue from their points with its values, and a
        warning says how much these differ.

    Returns
    -------
    Result
        With the old and the new draws.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, or a density that differs from that of the run, before any work.
    SamplingError
        If the run cannot continue; the error has the draws made so far.
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
    with options.outputs():  # before a file is read that another run may replace
        path = None
        if isinstance(result, (str, os.PathLike)):
            path, result = result, load(result, sampler=sampler, schedule=schedule)
        elif not isinstance(result, Result):
            raise TypeError(f"result must be a Result or the path of one, not {shown(result)}")
        elif sampler is not None or schedule is not None:
            raise ValueError("sampler and schedule must be given with a file alone: a Result has "
                             "them")
        state = result.state
        if stop is not None:
            stop.check(state.layout, state.chains)
        if isinstance(state.sampler, ImportanceWeighted):
            raise ValueError('result must not be that of a run with surrogate="learn", which '
                             "cannot be resumed: call sample again with a larger budget")
        if options.store is not None and isinstance(state.trace, StoredTrace):
            raise ValueError(f"store must not be given: the run continues in its own, "
                             f"{str(state.trace.store.path)!r}, not in {str(options.store.path)!r}")
        if draws is not None:
            draws = check_integer("draws", draws, least=0)
        given = target is not None
        if target is None:
            target = result.target
        if target is None:
            raise ValueError("target must be given: a result from a file, or of an AskTell, does "
                             "not hold the density")
        if surrogate is None and result.target is not None:
            surrogate = result.target.surrogate
        with desk, one_blas_thread():
            return go_on_with(
                result, target, surrogate, options, draws=draws, path=path, given=given,
                vectorized=vectorized, check_target=check_target)


def go_on_with(
    result: Result, target: Any, surrogate: Any, options: RunOptions, *, draws: int | None,
    path: Any, given: bool, vectorized: bool, check_target: bool,
) -> Result:
    """Continue the run of a result; the arguments are those of `resume`, checked."""
    state, desk = result.state, options.desk
    target, surrogate = target_in(state, target, surrogate, vectorized)
    own = target_of(state.sampler, target, state.d, vectorized)
    own = own.owner if own.surrogate is not None else own
    target = desk.through(own, state.x0[0], state.layout, len(state.x0))
    if surrogate is not None:
        own, target = with_surrogate(own, surrogate), with_surrogate(target, surrogate)
    check_stages(state.sampler, target)
    check_noise_of(state, target)
    if check_target:
        try:
            if given:
                check_density_of(state, target)
                check_draws_of(state, target)
            else:
                check_unchanged(state, target)
        except ValueError as error:
            file = "" if path is None else f"{path}: "
            raise ValueError(f"{file}{error}; check_target=False goes on with its values now"
                             ) from None
    else:
        state, more = with_values_of(state, target)
        if more.any():
            warn(SamplingWarning(
                f"target is another density than that of the draws so far: its logarithm is "
                f"larger by {more.min():.6g} to {more.max():.6g} at the points of the chains, "
                "which continue from there with the new values", result=result))
    if path is not None:
        check_room(path, state, 0 if draws is not None else state.requested)
    if options.store is not None:
        state = moved_into(options.store, state)
    memory = within_memory(state.chains, state.d)
    with options.shield, options.report, options.closing, writing(state), memory:
        outcome = go_on(state, target, draws, options)
        new = Result(outcome.state, own, desk)
        new.found = outcome.found
        return conclude(new, outcome, options)
