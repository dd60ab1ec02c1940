"""The front door: sample()."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from fastkam.arguments import MOST_CHAINS, MOST_COUNT, check_flag, check_integer, checked_names
from fastkam.beginning import Call
from fastkam.ending import conclude
from fastkam.points.desk import Desk
from fastkam.problem.given import as_problem, start_by_name
from fastkam.progress import Progress
from fastkam.result import Result
from fastkam.run.drive import DRAWS, carry_out_to_its_end, check_budget
from fastkam.run.loop import Outcome
from fastkam.run.options import RunOptions
from fastkam.run.starts import seed_sequence
from fastkam.run.state import check_bit_generator
from fastkam.run.workers import as_workers
from fastkam.run.writer import writing
from fastkam.samplers import Sampler
from fastkam.samplers.delayed import check_steps
from fastkam.schedules import Schedule, as_schedule
from fastkam.stop import StopRule
from fastkam.stores.store import Store, as_store
from fastkam.surrogate.asked import check_learning, is_learnt, within_budget


@checked_names
def sample(
    target: Any,
    x0: ArrayLike | Mapping[str, ArrayLike] | None = None,
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
        The log density, up to a constant, in any form that `as_target` takes; with `prior`, the log
        likelihood. -inf or NaN means that the point is impossible: it is rejected and counted.
        `Target.from_estimator` makes one of a density that can only be estimated. A Python function
        may return extras in a dict, which are recorded with each draw: see `Problem`, which is
        what `prior`, `bounds`, `transforms`, `args`, `kwargs` and `derived` make, and which can be
        given instead. Or a model with names and starts of its own: a PyMC model, what `from_pymc`
        or `from_bridgestan` returns, or a distribution of scipy.stats.
    x0 : array (d,) or (chains, d), or dict, optional
        Where the search begins: at one point, or at one for each chain. Where the density is not
        finite there, points around it are tried. Or parameters by name. Without it the search
        begins at draws from `prior`, or at points of the model. A pandas Series with names as its
        index is such a dict.
    sampler : str or Sampler
        A short name (see `fastkam.samplers.SAMPLERS`), or a sampler with its parameters; or "auto":
        what suits the density as the search has found it (see `choose_sampler`; what was chosen is
        logged).
    draws : int, optional
        Draws kept a chain. By default 1000, which are taken so far apart that they suffice: the
        chains make as many steps again, and every second draw is kept, until a look at the draws
        finds nothing that further steps may mend (see `fastkam.stop.Done`), or the next doubling
        would go beyond `budget`. Where they do not suffice then, the result says so. With `stop`
        all draws are kept, as many as it takes until it is met.
    tune : int, optional
        Steps of warm-up before them. By default 1000; with "auto" as many as the choice needs.
    chains : int
        How many chains.
    seed : int, SeedSequence, Generator or BitGenerator, optional
        The source of all randomness. The same seed gives the same draws, bit for bit, whatever the
        number of threads and whichever way the same density is given.
    prior : dict, optional
        Distributions of scipy.stats by the names of parameters: see `Problem`.
    bounds : optional
        Bounds of what has no prior: see `Problem`.
    transforms : dict or False, optional
        How each parameter is made unconstrained for the sampler: see `Problem`. Draws are of the
        parameters themselves.
    args, kwargs : tuple and dict, optional
        Further arguments of the function.
    derived : callable, optional
        Python function of the parameters that returns a dict, evaluated at each draw: see
        `Problem`.
    schedule : str or Schedule
        When the sampler adapts: "finite" (until the end of warm-up), "diminishing", "rare",
        "perpetual", or an object of `fastkam.schedules`.
    share : bool
        The chains learn as one: what each has seen shapes the proposals of all (inter-chain
        adaptation). They step together, in one thread, which others help to evaluate a slow
        compiled density. Not for "ckam", "dm", "pt" and "scout".
    vectorized : bool
        The Python function takes points (k, d) and returns (k,): one call for all chains.
    thin : int, optional
        Keep every thin-th step: with it `draws` are 1000 by default, and no more. Without it each
        is kept where `draws` is given; with "auto", or where it is not, what makes four draws of a
        chain worth about one that is independent, 50 at most at first, as the first steps after
        warm-up show.
    search : bool
        Look first for where the chains are to start and in which units: the length of each
        coordinate in which the log density changes by 1 is the unit of those lengths among the
        sampler's parameters that are not given; chains that are given one point in common are
        dispersed, and walk home from a point far away. The result says what was done
        (``result.search``). Without it chains start at `x0`, and the units are those of x.
    threads : int, optional
        Threads to run chains in; by default one a processor for compiled targets, one for Python
        functions (more on a free-threaded Python). Those beyond the number of chains help to
        evaluate the replicas of "pt" and the like, where a compiled density is slow.
    names : list of str, optional
        Names of the parameters, in the order in which they stand in x.
    shapes : dict of str to int or tuple of int, optional
        Shape of each named parameter; where absent, that of its dimensions in `coords`, or ().
    dims : dict of str to list of str, optional
        Names of the dimensions of parameters, as ArviZ has them: {"theta": ["school"]}.
    coords : dict of str to array (n,), optional
        Values along dimensions, as ArviZ has them: {"school": ["A", "B", "C"]}.
    progress : bool, callable or logger, optional
        Show how far the run is: in some lines of a terminal, in an output of a notebook, else in a
        line every 30 seconds on standard error (True: and one at the end). A logger receives such
        lines; a function each `fastkam.progress.Progress`, whose ``last_draws()`` it may look at
        and whose ``stop()`` ends the run. False: nothing.
    keep_warmup : bool
        Whether the warm-up's states are kept (in ``result.warmup``).
    keep_stats : bool
        Whether statistics are kept with each draw (in ``result.stats``): 17 bytes a draw, and 8 for
        each of the sampler's own.
    stop : StopRule, optional
        When to stop: see `fastkam.stop`. Where `draws` are given, with these at the latest.
    checkpoint : path, optional
        A file that holds the run so far, written every `checkpoint_interval` seconds and at the
        end; `resume` goes on from it.
    checkpoint_interval : float
        Seconds.
    store : path or Store, optional
        A folder that is made for the draws, which are written there while the run goes on and are
        not kept in memory: of .npy files, or a zarr group where the path ends with .zarr (which
        needs zarr); see `fastkam.stores`. It has the state of the run too, written every
        `checkpoint_interval` seconds: `load` and `resume` take the folder.
    executor : int, Executor, pool or dask client, optional
        Whose workers run chains, or evaluate points; see `spread`. A number of processes, which are
        started for this call and end with it; a ``concurrent.futures.Executor``, such as those of
        loky and mpi4py.futures; a pool with `apply_async` or `map`, as multiprocessing and
        schwimmbad have; a dask client; or a ``joblib.Parallel``. The target must be picklable, by
        cloudpickle where that is installed, or a `TargetRecipe`.
    spread : str, optional
        What the tasks of `executor` are: "chains", each chain (all of them together, for a
        vectorized target or where they share); or "points", the single evaluations for which chains
        wait, several a task where they are short; or "prefetch", those too to which chains will
        come next, as far as workers are idle: more calls in less time. By default "points" where
        there are more workers than chains and an evaluation at the start takes 20 ms or more. The
        draws are the same.
    evaluations : path, optional
        A file to which every call of the function is appended (the likelihood, where there is a
        prior), to be read with `fastkam.Evaluations`. Calls that it has already are not made again.
        The function must be the same: where its digest differs from that in the file, one call is
        made twice and compared.
    on_error : str
        What becomes of a point at which the function has raised an exception, or the worker has
        died, twice: "stop" ends the run with that error, "reject" takes -inf for the log density,
        and goes on (see ``result.workers.failures``). With "reject" points are evaluated one by
        one, as with `evaluations`.
    check_gradient : bool
        For samplers that use the gradient: compare it first with finite differences near the first
        starting point, and warn where it is wrong (see `fastkam.check_gradient`).
    surrogate : callable, pointer, Target or TargetRecipe, optional
        A cheap log density near the other, up to a constant, in any form that `as_target` takes.
        Proposals must pass it before `target` is asked, which corrects for it (delayed acceptance):
        the draws are of `target`. For samplers without gradient and of one evaluation a step. Or
        "learn": a surrogate is learnt from the calls of the density, for costly ones of up to some
        ten dimensions; the draws are its own and have weights (``result.weights``).
    surrogate_steps : int, optional
        Steps of the sampler on the surrogate for each proposal to `target`: 1 by default. With
        "learn" it makes draws without weights.
    budget : int, optional
        The number of evaluations at which a run without `draws` ends. By default it begins no
        doubling that would go beyond 1 000 000, unless `stop` limits its time or evaluations. With
        "learn" by default 2000, and no limit if the surrogate is not useful and the run continues
        without it.
    bit_generator : str
        A bit generator of numpy.random: PCG64, PCG64DXSM, Philox, SFC64 or MT19937.
    diagnose : bool
        Whether the run ends with a look at its draws, and a warning where something is wrong with
        them: one `SamplingWarning` with all that was found. ``result.warnings`` lists it.

    Returns
    -------
    Result

    Raises
    ------
    TypeError, ValueError
        For a bad argument, before any work.
    SamplingError
        If the run cannot go on; it carries the draws made until then.

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
    rows = DRAWS if draws is None else draws
    if rows * (thin or 1) > MOST_COUNT:
        raise ValueError(f"draws * thin must be at most {MOST_COUNT}, not {rows} * {thin}")
    share, search = check_flag("share", share), check_flag("search", search)
    keep_warmup, keep_stats = (check_flag("keep_warmup", keep_warmup),
                               check_flag("keep_stats", keep_stats))
    executor = as_workers(executor)
    desk = Desk(executor, spread, evaluations, on_error)
    learning = is_learnt(surrogate)
    if learning:
        check_learning(budget, sampler=sampler, share=share, keep_stats=keep_stats, thin=thin,
                       store=store, checkpoint=checkpoint)
    else:
        check_budget(budget, draws, thin)
    options = RunOptions(
        threads=threads, progress=progress, stop=within_budget(stop, budget),
        checkpoint=checkpoint, checkpoint_interval=checkpoint_interval, store=as_store(store),
        executor=executor, diagnose=diagnose, until_stop=stop is not None, desk=desk)
    check_flag("vectorized", vectorized)
    check_flag("check_gradient", check_gradient)
    bit_generator, seed = check_bit_generator(bit_generator), seed_sequence(seed)
    common = {"names": names, "shapes": shapes, "dims": dims, "coords": coords}
    x0 = start_by_name(x0)
    problem = as_problem(
        target, x0, vectorized=vectorized,
        own={"prior": prior, "bounds": bounds, "transforms": transforms, "args": args,
             "kwargs": kwargs, "derived": derived}, common=common)
    call = Call(
        target=target, x0=x0, problem=problem, options=options, sampler=sampler, rows=rows,
        enough=draws is None and thin is None, tune=tune, chains=chains, seed=seed,
        schedule=as_schedule(schedule), share=share, vectorized=vectorized, thin=thin,
        search=search, common=common, keep_warmup=keep_warmup, keep_stats=keep_stats,
        check_gradient=check_gradient, surrogate=None if learning else surrogate,
        learning=learning, budget=budget, surrogate_steps=surrogate_steps,
        steps=check_steps(surrogate_steps, surrogate), bit_generator=bit_generator)
    with desk:
        call.begin()
        if learning and call.learn():
            return concluded(call.weighted(), call)
        state = call.prepare()
        with options.shield, options.report, options.closing, writing(state):
            return concluded(carry_out_to_its_end(state, call.target, call.rows, options), call)


def concluded(outcome: Outcome, call: Call) -> Result:
    """The result of a run, with its warnings."""
    result = Result(outcome.state, call.own)
    result.workers = call.options.desk.report()
    return conclude(result, outcome, call.options)
