"""The front door: sample()."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastkam.arguments import MOST_CHAINS, MOST_COUNT, check_flag, check_integer, checked_names
from fastkam.density.forms import as_target, check_surrogate, target_of, with_surrogate
from fastkam.density.gradient import check_start
from fastkam.ending import conclude
from fastkam.interop.differentiable import drawn
from fastkam.interop.doors import opened
from fastkam.points.desk import Desk
from fastkam.problem.given import as_problem
from fastkam.progress import Progress
from fastkam.result import Result
from fastkam.run.drive import carry_out, carry_out_longer, carry_out_thinned
from fastkam.run.loop import Outcome
from fastkam.run.options import RunOptions
from fastkam.run.records import check_derived
from fastkam.run.shapes import check_layout
from fastkam.run.starts import search_generator, seed_sequence, starting_points
from fastkam.run.state import RunState, check_bit_generator, snapshot_steps
from fastkam.run.stored import DRAWS, UNDECIDED, WARMUP, new_trace
from fastkam.run.workers import as_workers
from fastkam.run.writer import CheckpointWriter, writing
from fastkam.samplers import DelayedAcceptance, Sampler, as_sampler
from fastkam.samplers.delayed import check_stages, check_steps
from fastkam.schedules import Schedule, as_schedule
from fastkam.search.choice import PLAIN_TUNE, before_the_run, choose, find, known_of, log
from fastkam.search.implied import disagrees, with_implied
from fastkam.search.watch import Watch
from fastkam.stop import StopRule
from fastkam.stores.store import Store, as_store
from fastkam.surrogate.asked import (
    BUDGET,
    check_learnable,
    check_learning,
    is_learnt,
    within_budget,
)


@checked_names
def sample(
    target: Any,
    x0: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    sampler: str | Sampler = "auto",
    draws: int = 1000,
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
        begins at draws from `prior`, or at points of the model.
    sampler : str or Sampler
        A short name (see `fastkam.samplers.SAMPLERS`), or a sampler with its parameters; or "auto":
        what suits the density as the search has found it (see `choose_sampler`; what was chosen is
        logged).
    draws : int
        Draws kept a chain.
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
        Keep every thin-th step. By default each; with "auto" what makes four draws of a chain worth
        about one that is independent, 50 at most, as the first steps after warm-up show.
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
        Stop before `draws` where this is met: see `fastkam.stop`.
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
        wait, several a task where they are short. By default "points" where there are more workers
        than chains and an evaluation at the start takes 20 ms or more. The draws are the same.
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
        With "learn": the number of evaluations at which the run ends. By default 2000, and without
        an end where the surrogate does not pay and the run goes on without it.
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
    draws = check_integer("draws", draws, least=1)
    tune = None if tune is None else check_integer("tune", tune, least=0)
    thin = None if thin is None else check_integer("thin", thin, least=1)
    if draws * (thin or 1) > MOST_COUNT:
        raise ValueError(f"draws * thin must be at most {MOST_COUNT}, not {draws} * {thin}")
    share, search = check_flag("share", share), check_flag("search", search)
    keep_warmup, keep_stats = (check_flag("keep_warmup", keep_warmup),
                               check_flag("keep_stats", keep_stats))
    executor = as_workers(executor)
    desk = Desk(executor, spread, evaluations, on_error)
    learning = is_learnt(surrogate)
    if learning:
        check_learning(budget, sampler=sampler, share=share, keep_stats=keep_stats, thin=thin,
                       store=store, checkpoint=checkpoint)
        stop = within_budget(stop, budget)
    elif budget is not None:
        raise ValueError(f"budget must not be given without surrogate=\"learn\", not {budget!r}: "
                         "stop=fk.stop.Evaluations(n) ends any run")
    steps = check_steps(surrogate_steps, surrogate)
    options = RunOptions(
        threads=threads, progress=progress, stop=stop, checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval, store=as_store(store), executor=executor,
        diagnose=diagnose, desk=desk)
    check_flag("vectorized", vectorized)
    check_flag("check_gradient", check_gradient)
    bit_generator, seed = check_bit_generator(bit_generator), seed_sequence(seed)
    problem = as_problem(
        target, x0, vectorized=vectorized,
        own={"prior": prior, "bounds": bounds, "transforms": transforms, "args": args,
             "kwargs": kwargs, "derived": derived},
        common={"names": names, "shapes": shapes, "dims": dims, "coords": coords})
    with desk:
        return search_and_run(
            target, x0, problem, options, sampler=sampler, draws=draws, tune=tune, chains=chains,
            seed=seed, schedule=schedule, share=share, vectorized=vectorized, thin=thin,
            search=search, names=names, shapes=shapes, dims=dims, coords=coords,
            keep_warmup=keep_warmup, keep_stats=keep_stats, check_gradient=check_gradient,
            surrogate=surrogate, learning=learning, budget=budget, steps=steps,
            weigh=surrogate_steps is None, bit_generator=bit_generator)


def search_and_run(
    target: Any, x0: Any, problem: Any, options: RunOptions, *, sampler: Any, draws: int,
    tune: int | None, chains: int, seed: np.random.SeedSequence, schedule: Any, share: bool,
    vectorized: bool, thin: int | None, search: bool, names: Any, shapes: Any, dims: Any,
    coords: Any, keep_warmup: bool, keep_stats: bool, check_gradient: bool, surrogate: Any,
    learning: bool, budget: int | None, steps: int, weigh: bool, bit_generator: str,
) -> Result:
    """The run of `sample`, whose arguments have been checked; `problem` is None where none is made.
    """
    desk, threads = options.desk, options.threads
    if problem is None:
        target = opened(target)
        points = starting_points(drawn(target, chains, seed) if x0 is None else x0, chains)
    else:
        target, points = problem.target(), problem.start(x0, chains, seed)
        check_derived(target, points[:1], problem.layout.shapes)
    d = points.shape[1]
    layout = check_layout(names, shapes, dims, coords, d) if problem is None else problem.layout
    if options.stop is not None:
        options.stop.check(layout)
    schedule = as_schedule(schedule)
    rng, watch, choice = search_generator(seed), Watch(options, chains), None
    done = None
    if learning:
        # with scipy's optimizers, which other runs need not load
        from fastkam.surrogate.run import attempt, frozen_walk

        surrogate, plain = None, as_target(target, d, vectorized=vectorized)
        check_learnable(plain, known_of(problem))
        with before_the_run(plain, problem):
            desk.take_batches(plain)
            plain = desk.through(plain, points[0], layout, chains)
            done = attempt(plain, points, chains, draws, rng, known_of(problem), budget or BUDGET,
                           options, seed, bit_generator, layout,
                           None if problem is None else problem.coordinates,
                           weigh=weigh, go_on=budget is None)
        if done.state is not None:
            state = done.finished(options)
            result = Result(state, plain)
            result.workers = desk.report()
            return conclude(result, Outcome(state, None, CheckpointWriter()),
                            state.requested, options)
        if done.learnt is None:
            done.warn()
        else:
            surrogate, search, frozen = done.learnt.density, False, frozen_walk(done, chains)
            sampler, points, tune = frozen.sampler, frozen.points, tune or frozen.tune
            draws = max(1, min(draws, int(done.calls.left) // chains - tune))
    if isinstance(sampler, str) and sampler == "auto":
        plain = as_target(target, d, vectorized=vectorized)
        with before_the_run(plain, problem):
            plain = desk.through(plain, points[0], layout, chains)
        with watch, before_the_run(plain, problem):
            choice = choose(plain, points, chains, rng, search=search,
                            surrogate=surrogate is not None, threads=threads or 1,
                            known=known_of(problem), executor=options.for_chains, watch=watch)
        log.info("auto: %s", choice)
        sampler, found = choice.sampler, choice.search
    method = as_sampler(sampler)
    if problem is not None:
        target = problem.target(gradient=method.needs_gradient)
    own = target_of(method, target, d, vectorized)
    with before_the_run(own, problem):
        target = desk.through(own, points[0], layout, chains)
    if surrogate is not None:
        if problem is not None and done is None:
            surrogate = problem.beside(surrogate)
        method = DelayedAcceptance(sampler=method, steps=steps)
        own, target = with_surrogate(own, surrogate), with_surrogate(target, surrogate)
        check_surrogate(target.surrogate, points)
    check_stages(method, target)
    if tune is None:
        tune = PLAIN_TUNE
        if choice is not None:
            tune = int(min(choice.tune, watch.most_tune(found.evaluations)))
    method.check_run(schedule, tune)
    if share:
        method.check_share()
    schedule.compiled(method, d, tune)
    kernel = method.build(points[0])  # refuses parameters that do not fit the dimension
    if check_gradient and method.needs_gradient:
        check_start(target, points[0])
    if choice is None:
        with watch, before_the_run(target, problem):
            found = find(target, points, chains, rng, search=search,
                         executor=options.for_chains, watch=watch)
    stat_names = method.stat_names if keep_stats else None
    undecided = choice is not None and thin is None
    if options.store is not None:
        options.store.create()
    state = RunState(
        sampler=method,
        schedule=schedule,
        x0=found.points,
        tune=tune,
        thin=thin or 1,
        keep_warmup=keep_warmup,
        share=share,
        requested=draws,
        seed=seed,
        bit_generator=bit_generator,
        layout=layout,
        coordinates=None if problem is None else problem.coordinates,
        trace=new_trace(options.store, UNDECIDED if undecided else DRAWS, chains, d, stat_names),
        warmup=new_trace(options.store, WARMUP, chains, d, stat_names),
        snapshot_steps=snapshot_steps(kernel, tune),
        scales=found.scales if method.relative else np.ones(d),
        searched=found.evaluations + (0 if done is None else done.calls.n),
        calls=None if done is None else done.record,
        seconds=time.perf_counter() - options.begun,
        tails=found.tails,
        is_density=found.is_density,
        search=[*([] if done is None else done.lines), *found.steps,
                *([] if choice is None else [str(choice)])],
    )
    run = carry_out_thinned if undecided else carry_out
    with options.shield, options.report, options.closing, writing(state):
        outcome = run(state, target, draws, options)
        if choice is not None and search and options.diagnose:
            outcome = with_implied(outcome, plain, rng, options)
            if thin is None and disagrees(outcome.state) and not options.shield.waiting:
                outcome = carry_out_longer(outcome.state, target, draws, options)
        result = Result(outcome.state, own)
        result.workers = desk.report()
        return conclude(result, outcome, draws, options)
