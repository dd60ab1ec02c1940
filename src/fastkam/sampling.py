"""The function `sample`, the main entry point."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fastkam.arguments import MOST_CHAINS, MOST_COUNT, check_flag, check_integer, checked_names
from fastkam.beginning import Call
from fastkam.diagnostics.table import Summary
from fastkam.ending import conclude
from fastkam.errors import SamplingError, SamplingWarning
from fastkam.points.desk import Desk
from fastkam.problem.given import as_problem, names_of, start_by_name
from fastkam.progress import Progress
from fastkam.result import Result
from fastkam.run.blas import one_blas_thread
from fastkam.run.drawn_starts import check_order, drawn_starts, labels_of, stored_calls
from fastkam.run.drive import DRAWS, carry_out_to_its_end, check_budget
from fastkam.run.hints import within_memory
from fastkam.run.loop import Outcome
from fastkam.run.options import RunOptions
from fastkam.run.rules import StopRule, as_stop
from fastkam.run.starts import seed_sequence
from fastkam.run.state import check_bit_generator
from fastkam.run.workers import as_workers
from fastkam.run.writer import writing
from fastkam.samplers import Sampler
from fastkam.samplers.delayed import check_steps
from fastkam.schedules import Schedule, as_schedule
from fastkam.stores.store import Store, as_store
from fastkam.surrogate.asked import check_learning, is_learned, uncounted, within_budget

if TYPE_CHECKING:
    from fastkam.surrogate.run import Attempt


@checked_names
def sample(
    target: Any,
    x0: (ArrayLike | Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]]
         | Callable[..., Any] | Result | Summary | None) = None,
    *,
    sampler: str | Sampler = "auto",
    draws: int | None = None,
    tune: int | None = None,
    chains: int = 4,
    seed: Any = None,
    prior: Mapping[str, Any] | None = None,
    bounds: Any = None,
    transforms: Any = None,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    derived: Callable[..., Mapping[str, Any]] | None = None,
    schedule: str | Schedule = "finite",
    share: bool = False,
    vectorized: bool = False,
    thin: int | None = None,
    search: bool = True,
    threads: int | None = None,
    names: Sequence[str] | None = None,
    shapes: Mapping[str, int | tuple[int, ...]] | None = None,
    dims: Mapping[str, str | Sequence[str]] | None = None,
    coords: Mapping[str, ArrayLike] | None = None,
    progress: bool | Callable[[Progress], object] | logging.Logger | None = None,
    keep_warmup: bool = True,
    keep_stats: bool = True,
    stop: StopRule | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = 60.0,
    store: Store | str | os.PathLike[str] | None = None,
    executor: Any = None,
    spread: str | None = None,
    evaluations: str | os.PathLike[str] | None = None,
    on_error: str = "stop",
    check_gradient: bool = True,
    surrogate: Any = None,
    surrogate_steps: int | None = None,
    budget: int | None = None,
    bit_generator: str = "PCG64",
    diagnose: bool = True,
) -> Result:
    """Draw from a density.

    Parameters
    ----------
    target : callable, pointer, Target, TargetRecipe, Problem or model
        The log density, up to a constant, in any form that `as_target` accepts; with `prior`, the
        log likelihood. -inf or NaN marks an impossible point, which is rejected and counted. A
        Python function may also return a dict of extras, which are recorded with each draw.
        `Target.from_estimator` is for densities that can only be estimated. The arguments `prior`,
        `bounds`, `transforms`, `args`, `kwargs` and `derived` make a `Problem`, which can be given
        instead, as can a model with parameter names and starting points: a PyMC model, the result
        of `from_pymc` or `from_bridgestan`, or a distribution of scipy.stats.
    x0 : array (d,) or (chains, d), dict, list of dicts, Series, callable, Result or other, optional
        Where the search begins: one point, or one for each chain; or the parameters by name, in a
        dict or a list of dicts, one for each chain. If the density is not finite there, nearby
        points are tried. Without `x0` the search begins at draws from `prior`, at points within
        `bounds`, or at points of the model. Starts are drawn from a function of a numpy Generator
        that returns one, from a frozen distribution of scipy.stats, or from an earlier run: its
        `Result` or summary, whose parameters are found by name, or draws (chains, n, d). The result
        of a scipy optimizer gives its x. `Evaluations` give their best points, and with
        ``surrogate="learn"`` the surrogate is fitted to all of their calls.
    sampler : str or Sampler
        A short name (see `fastkam.samplers.SAMPLERS`), a sampler with its parameters, or "auto":
        the search chooses a sampler that suits the density (see `choose_sampler`) and logs it.
    draws : int, optional
        Number of recorded draws of each chain. By default 1000, with enough steps between them:
        the number of steps is doubled, and every second draw is kept, until the diagnostics find
        nothing that further steps may correct (see `fastkam.stop.Done`) and the standard errors of
        standard deviations are at most 4 % of them, or nearly as small as from independent draws,
        or the next doubling would exceed `budget`. With "auto" some more evaluations then look for
        modes that no chain has visited (see `Result.verdict`). The result warns if its draws do not
        suffice. With `stop` and without `draws`, the run continues until the rule is met, and every
        `thin`-th step is kept; without `store`, every second of these draws is kept as often as
        they would fill more than 256 MB of memory.
    tune : int, optional
        Number of warm-up steps. By default 1000, of "nuts" and "hmc" 400, with "auto" as many as
        the chosen sampler needs. Without `tune`, `draws` and `stop` a named sampler warms up for
        longer if its adaptation has not settled, or if its chains have learned a shape and do not
        agree; `result.search` says so.
    chains : int
        Number of chains.
    seed : int, SeedSequence, Generator or BitGenerator, optional
        The source of all randomness. The same seed gives the same draws, bit for bit, for any
        number of threads and in whichever form the density is given. A generator is advanced: its
        state determines the draws.
    prior : dict, optional
        Distributions of scipy.stats by parameter name: see `Problem`.
    bounds : optional
        Bounds of parameters without a prior: see `Problem`.
    transforms : dict or False, optional
        How each parameter is made unconstrained for the sampler: see `Problem`. The draws are of
        the parameters themselves.
    args, kwargs : tuple and dict, optional
        Further arguments of the function.
    derived : callable, optional
        A Python function of the parameters that returns a dict, evaluated at each draw: see
        `Problem`.
    schedule : str or Schedule
        When the sampler adapts: "finite" (until the end of warm-up), "diminishing", "rare",
        "perpetual", or an object of `fastkam.schedules`.
    share : bool
        Whether the chains share their adaptation: the states of all chains determine the proposals
        of each (inter-chain adaptation). They then step together in one thread; other threads help
        to evaluate a slow compiled density. Not for "ckam", "dm", "pt" and "scout".
    vectorized : bool
        Whether the Python function takes points (k, d) and returns (k,): one call for all chains.
    thin : int, optional
        Record every thin-th step. If it is given, `draws` is 1000 by default and the run is not
        extended. Otherwise every step is recorded if both `sampler` and `draws` are given; else
        `thin` is chosen after some hundred steps, at most 50, so that about one in four draws is
        effective.
    search : bool
        Whether to search first for starting points and scales. The scale of a coordinate is the
        step along it that changes the log density by 1; the lengths of a sampler are in these units
        unless one of them is given, such as `proposal_cov` or `step_size`. (Means, and the
        covariances of `ModeJumping` and of a reference, are always in units of x.) Chains that
        share one starting point are dispersed, and move to the mass first if it is far away.
        ``result.search`` describes what was done. Without a search chains start at `x0`, and
        lengths are in units of x.
    threads : int, optional
        Number of threads that run chains. By default the number of processors for compiled
        targets, and one for Python functions (more on a free-threaded Python). Threads beyond the
        number of chains help to evaluate the replicas of "pt" and similar samplers, if a compiled
        density is slow.
    names : list of str, optional
        Names of the parameters, in their order in x.
    shapes : dict of str to int or tuple of int, optional
        Shape of each named parameter; by default that of its dimensions in `coords`, or ().
    dims : dict of str to list of str, optional
        Names of the dimensions of parameters, as in ArviZ: {"theta": ["school"]}; where the
        parameters have names, also of those of extras and derived quantities.
    coords : dict of str to array (n,), optional
        Values along dimensions, as in ArviZ: {"school": ["A", "B", "C"]}.
    progress : bool, callable or logger, optional
        Show the progress of the run: in a few lines of a terminal, in the output of a notebook, or
        elsewhere as a line every 30 seconds on standard error (with True, also at the end). A
        logger receives such lines. A function receives each `fastkam.progress.Progress`, whose
        ``last_draws()`` returns the last draws and whose ``stop()`` ends the run. False: nothing.
    keep_warmup : bool
        Whether the states of warm-up are kept (in ``result.warmup``).
    keep_stats : bool
        Whether statistics are kept with each draw (in ``result.stats``): 17 bytes for each draw,
        and 8 for each statistic of the sampler.
    stop : StopRule, optional
        When to stop: see `fastkam.stop`. If `draws` is given, the run ends after these at the
        latest.
    checkpoint : path, optional
        A file with the state of the run, written every `checkpoint_interval` seconds and at the
        end; `resume` continues from it. If it is a file with draws of another run, that is first
        moved to a file of the same name with ".bak" at its end, and a warning says so. A file that
        another run is writing is refused.
    checkpoint_interval : float
        Seconds.
    store : path or Store, optional
        A new folder to which draws are written during the run, instead of being kept in memory: of
        .npy files, or a zarr group if the path ends with .zarr (which needs zarr); see
        `fastkam.stores`. It also contains the state of the run, written every
        `checkpoint_interval` seconds: `load` and `resume` accept the folder.
    executor : int, Executor, pool or dask client, optional
        Its workers run chains or evaluate points; see `spread`. A number of processes, which are
        started for this call; a ``concurrent.futures.Executor``, such as those of loky and
        mpi4py.futures; a pool with `apply_async` or `map`, as in multiprocessing and schwimmbad; a
        dask client; or a ``joblib.Parallel``. The target must be picklable, by cloudpickle if that
        is installed, or a `TargetRecipe`.
    spread : str, optional
        The tasks of `executor`. "chains": each chain, or all chains together if the target is
        vectorized or they share their adaptation. "points": the single evaluations for which chains
        wait, several in a task if they are short. "prefetch": also evaluations that chains will
        probably need next, by idle workers, which costs more calls and takes less time. By default
        "points" if there are more workers than chains and an evaluation takes 20 ms or more at the
        start. The draws are the same.
    evaluations : path, optional
        A file to which every call of the function is appended (of the likelihood, if there is a
        prior), to be read with `fastkam.Evaluations`. Calls that are in the file are not repeated.
        `Result.log_evidence` and `Result.verdict` use it too, while it exists. The function must be
        the same: if its digest differs from that in the file, five calls or more, if they are fast,
        are repeated and compared, with their gradients and extras.
    on_error : str
        What to do with a point at which the function has raised an exception, or the worker has
        died, twice, or at which the log density is +inf: "stop" ends the run with that error;
        "reject" takes the log density to be NaN, so that the point is rejected, and continues (see
        ``result.workers.failures``). With "reject", as with `evaluations`, points are evaluated one
        by one, which takes some 0.2 ms for each of them, and 0.3 ms with a file: for a faster
        function, return -inf where it would fail.
    check_gradient : bool
        Whether the gradient, if the sampler uses it, is first compared with finite differences near
        the first starting point; a wrong one is warned of (see `fastkam.check_gradient`).
    surrogate : callable, pointer, Target or TargetRecipe, optional
        A cheap approximation of the log density, up to a constant, in any form that `as_target`
        accepts. Proposals that it accepts are then accepted or rejected by `target`, which corrects
        for the approximation (delayed acceptance): the draws are of `target`. It must be finite
        wherever the density is positive: no draw is made where it is -inf or NaN. For samplers
        without a gradient and with one evaluation in each step. Or "learn": a surrogate is learned
        from calls of a costly density of up to some ten dimensions; the draws are of the surrogate
        and have weights (``result.weights``).
    surrogate_steps : int, optional
        Number of steps of the sampler on the surrogate for each proposal to `target`; 1 by default,
        and at most 10^6. With "learn" the draws then have no weights.
    budget : int, optional
        The largest number of calls of the function in a run without `draws`, except that a step
        with several evaluations, once begun, is completed. By default 1 000 000, unless `stop`
        is given: then the run begins no doubling that would go beyond that number. With "learn"
        the default is 2000, and there is no limit if the surrogate is not useful and the run
        continues without it.
    bit_generator : str
        A bit generator of numpy.random: PCG64, PCG64DXSM, Philox, SFC64 or MT19937.
    diagnose : bool
        Whether to run the diagnostics at the end, and to issue one `SamplingWarning` with all
        findings. ``result.warnings`` lists them in any case.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        For a bad argument, before any work.
    SamplingError
        If the run cannot continue; the error contains the draws made so far.

    Examples
    --------
    >>> import fastkam as fk
    >>> res = fk.sample(lambda x: -0.5 * x @ x, [0.0, 0.0], draws=500, seed=1)
    >>> res.draws.shape
    (4, 500, 2)
    """
    chains = check_integer("chains", chains, least=1, most=MOST_CHAINS)
    draws = None if draws is None else check_integer("draws", draws, least=1)
    tune = None if tune is None else check_integer("tune", tune, least=0)
    thin = None if thin is None else check_integer("thin", thin, least=1)
    budget = None if budget is None else check_integer("budget", budget, least=1)
    rows = DRAWS if draws is None else draws
    if rows * (thin or 1) > MOST_COUNT:
        raise ValueError(f"draws * thin must be at most {MOST_COUNT}, not {rows} * {thin}")
    share, search = check_flag("share", share), check_flag("search", search)
    keep_warmup, keep_stats = (check_flag("keep_warmup", keep_warmup),
                               check_flag("keep_stats", keep_stats))
    executor = as_workers(executor)
    desk = Desk(executor, spread, evaluations, on_error)
    learning = is_learned(surrogate)
    if learning:
        check_learning(budget, sampler=sampler, share=share, keep_stats=keep_stats, thin=thin,
                       store=store, checkpoint=checkpoint)
    else:
        check_budget(budget, draws, thin)
    check_flag("vectorized", vectorized)
    kept = 0 if learning else uncounted(chains, vectorized=vectorized, share=share)
    options = RunOptions(
        stop=within_budget(as_stop(stop), budget, kept),
        threads=threads, progress=progress, checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval, store=as_store(store), executor=executor,
        diagnose=diagnose, until_stop=stop is not None, desk=desk)
    check_flag("check_gradient", check_gradient)
    bit_generator, seed = check_bit_generator(bit_generator), seed_sequence(seed)
    common = {"names": names, "shapes": shapes, "dims": dims, "coords": coords}
    check_order(target, x0)
    named = None
    if isinstance(x0, Result) and prior is None and not any(
            value is not None for value in common.values()):
        named = names_of(target, x0.state.layout, bounds, args or (), kwargs or {})
        common = named or common
    labels, stored, independent = labels_of(x0), stored_calls(x0), isinstance(x0, Summary)
    x0 = start_by_name(drawn_starts(x0, chains, seed))
    problem = as_problem(
        target, x0, vectorized=vectorized, named=named is not None,
        own={"prior": prior, "bounds": bounds, "transforms": transforms, "args": args,
             "kwargs": kwargs, "derived": derived}, common=common)
    call = Call(
        target=target, x0=x0, labels=labels, stored=stored, independent=independent,
        problem=problem, options=options, stop=stop, sampler=sampler, rows=rows,
        enough=draws is None and thin is None, tune=tune, chains=chains, seed=seed,
        schedule=as_schedule(schedule), share=share, vectorized=vectorized, thin=thin,
        search=search, common=common, keep_warmup=keep_warmup,
        keep_stats=keep_stats, check_gradient=check_gradient,
        surrogate=None if learning else surrogate, learning=learning, budget=budget,
        surrogate_steps=surrogate_steps, steps=check_steps(surrogate_steps, surrogate),
        bit_generator=bit_generator)
    if learning:  # loads a BLAS of scipy before its threads are limited
        import_module("fastkam.surrogate.run")
    # workers are closed also if there is no run
    with desk, options.closing, options.outputs(), one_blas_thread():
        call.begin()
        memory = partial(within_memory, chains, call.points.shape[1])
        try:
            if learning and call.learn():
                return concluded(call.weighted(), call)
            with memory():
                state, options = call.prepare(), call.options
        except (SamplingError, SamplingWarning, KeyboardInterrupt) as error:
            if call.learned is None or getattr(error, "result", None) is not None:
                raise
            return of_learning(call, call.learned, error)
        with options.shield, options.report, options.closing, writing(state), memory():
            return concluded(carry_out_to_its_end(state, call.target, call.rows, options), call)


def concluded(outcome: Outcome, call: Call) -> Result:
    """The result of a run, with its warnings."""
    result = Result(outcome.state, call.own, call.options.desk)
    result.found = outcome.found
    return conclude(result, outcome, call.options)


def of_learning(
    call: Call, learned: Attempt, error: SamplingError | SamplingWarning | KeyboardInterrupt
) -> Result:
    """The result of a run that ends before its first step, with the calls of a learned surrogate.

    An error, or a warning that is one, is raised with this result in it.
    """
    learned.end("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
    outcome = call.weighted()
    if isinstance(error, KeyboardInterrupt):
        return concluded(outcome, call)
    error.result = Result(outcome.state, call.own, call.options.desk)
    error.add_note(f"{outcome.state.evaluations} evaluations are kept in .result.state.calls")
    raise error
