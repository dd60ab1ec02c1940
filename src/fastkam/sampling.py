"""The front door: sample()."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastkam.arguments import check_array, check_flag, check_integer, real_array
from fastkam.density.forms import check_surrogate, target_of, with_surrogate
from fastkam.density.gradient import check_start
from fastkam.problem.given import as_problem
from fastkam.progress import Progress
from fastkam.result import Result, finish
from fastkam.run.loop import RunOptions
from fastkam.run.shapes import check_layout
from fastkam.run.state import RunState, check_bit_generator, snapshot_steps
from fastkam.run.trace import Trace
from fastkam.samplers import DelayedAcceptance, Sampler, as_sampler
from fastkam.samplers.choice import choose_sampler, log
from fastkam.samplers.delayed import check_stages
from fastkam.schedules import Schedule, as_schedule
from fastkam.stop import StopRule


def sample(
    target: Any,
    x0: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    prior: Mapping[str, Any] | None = None,
    bounds: Any = None,
    transforms: Any = None,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    derived: Callable[..., Mapping[str, Any]] | None = None,
    sampler: str | Sampler = "ram",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    seed: Any = None,
    schedule: str | Schedule = "finite",
    share: bool = False,
    vectorized: bool = False,
    thin: int = 1,
    threads: int | None = None,
    names: Sequence[str] | None = None,
    shapes: Mapping[str, int | tuple[int, ...]] | None = None,
    dims: Mapping[str, str | Sequence[str]] | None = None,
    coords: Mapping[str, ArrayLike] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    keep_warmup: bool = True,
    keep_stats: bool = True,
    stop: StopRule | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = 60.0,
    executor: Executor | None = None,
    check_gradient: bool = True,
    surrogate: Any = None,
    bit_generator: str = "PCG64",
) -> Result:
    """Draw from a density.

    Parameters
    ----------
    target : callable, pointer, Target, TargetRecipe or Problem
        The log density, up to a constant, in any form that `as_target` takes; with `prior`, the log
        likelihood. -inf or NaN means that the point is impossible: it is rejected and counted.
        `Target.from_estimator` makes one of a density that can only be estimated. A Python function
        may return extras in a dict, which are recorded with each draw: see `Problem`, which is
        what `prior`, `bounds`, `transforms`, `args`, `kwargs` and `derived` make, and which can be
        given instead.
    x0 : array (d,) or (chains, d), or dict, optional
        Where the chains start: all at one point, or each at its own. Where the density is not
        finite there, points around it are tried. Or parameters by name. Without it each chain
        starts at a draw from `prior`.
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
    sampler : str or Sampler
        A short name (see `fastkam.samplers.SAMPLERS`), or a sampler with its parameters; or "auto":
        tempered mode jumping to 20 dimensions; above, NUTS where there is a gradient, and mode
        jumping where there is none (see `choose_sampler`; what it chose is logged).
    draws, tune : int
        Draws kept a chain, and steps of warm-up before them.
    chains : int
        How many chains.
    seed : int, SeedSequence, Generator or BitGenerator, optional
        The source of all randomness. The same seed gives the same draws, bit for bit, whatever the
        number of threads and whichever way the same density is given.
    schedule : str or Schedule
        When the sampler adapts: "finite" (until the end of warm-up), "diminishing", "rare",
        "perpetual", or an object of `fastkam.schedules`.
    share : bool
        The chains learn as one: what each has seen shapes the proposals of all (inter-chain
        adaptation). They step together, in one thread, which others help to evaluate a slow
        compiled density. Not for "ckam", "dm", "pt" and "scout".
    vectorized : bool
        The Python function takes points (k, d) and returns (k,): one call for all chains.
    thin : int
        Keep every thin-th step.
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
    progress : bool or callable, optional
        A bar (True), nothing (False), or a function of `fastkam.progress.Progress`; by default a
        bar where standard error is a terminal or in a notebook.
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
    executor : concurrent.futures.Executor, optional
        Run each chain (all of them together, for a vectorized target or where they share) as a
        task of this executor. The target must be picklable, or a `TargetRecipe`.
    check_gradient : bool
        For samplers that use the gradient: compare it first with finite differences near the first
        starting point, and warn where it is wrong (see `fastkam.check_gradient`).
    surrogate : callable, pointer, Target or TargetRecipe, optional
        A cheap log density near the other, up to a constant, in any form that `as_target` takes.
        Proposals must pass it before `target` is asked, which corrects for it (delayed acceptance):
        the draws are of `target`. For samplers without gradient and of one evaluation a step.
    bit_generator : str
        A bit generator of numpy.random: PCG64, PCG64DXSM, Philox, SFC64 or MT19937.

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
    chains = check_integer("chains", chains, least=1)
    draws = check_integer("draws", draws, least=1)
    tune = check_integer("tune", tune, least=0)
    thin = check_integer("thin", thin, least=1)
    seed = seed_sequence(seed)
    options = RunOptions(
        threads=threads, progress=progress, stop=stop, checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval, executor=executor)
    problem = as_problem(
        target, x0, vectorized=vectorized,
        own={"prior": prior, "bounds": bounds, "transforms": transforms, "args": args,
             "kwargs": kwargs, "derived": derived},
        common={"names": names, "shapes": shapes, "dims": dims, "coords": coords})
    if problem is None:
        points = starting_points(x0, chains)
    else:
        target, points = problem.target(), problem.start(x0, chains, seed)
    d = points.shape[1]
    if isinstance(sampler, str) and sampler == "auto":
        choice = choose_sampler(target, points, vectorized=vectorized,
                                surrogate=surrogate is not None, share=share)
        log.info("auto: %s", choice)
        sampler = choice.sampler
    method, schedule = as_sampler(sampler), as_schedule(schedule)
    if problem is not None:
        target = problem.target(gradient=method.needs_gradient)
    target = target_of(method, target, d, vectorized)
    if surrogate is not None:
        surrogate = surrogate if problem is None else problem.beside(surrogate)
        method = DelayedAcceptance(sampler=method)
        target = with_surrogate(target, surrogate)
        check_surrogate(target.surrogate, points)
    check_stages(method, target)
    method.check_run(schedule, tune)
    if check_flag("share", share):
        method.check_share()
    schedule.compiled(method, d, tune)
    kernel = method.build(points[0])  # refuses parameters that do not fit the dimension
    if check_gradient and method.needs_gradient:
        check_start(target, points[0])
    stat_names = method.stat_names if check_flag("keep_stats", keep_stats) else None
    state = RunState(
        sampler=method,
        schedule=schedule,
        x0=points,
        tune=tune,
        thin=thin,
        keep_warmup=bool(keep_warmup),
        share=bool(share),
        requested=draws,
        seed=seed,
        bit_generator=check_bit_generator(bit_generator),
        layout=check_layout(names, shapes, dims, coords, d) if problem is None else problem.layout,
        coordinates=None if problem is None else problem.coordinates,
        trace=Trace(chains, 0, d, stat_names),
        warmup=Trace(chains, 0, d, stat_names),
        snapshot_steps=snapshot_steps(kernel, tune),
    )
    return finish(state, target, draws, options)


# ---- arguments ----


def starting_points(x0, chains):
    """x0 as (chains, d)."""
    if x0 is None:
        raise ValueError("x0 must be given, and not None, where there is no prior to draw it from")
    x0 = real_array("x0", x0)
    if x0.ndim not in (1, 2) or x0.size == 0:
        raise ValueError(f"x0 must have shape (d,) or (chains, d), not {x0.shape}")
    if x0.ndim == 2 and len(x0) != chains:
        raise ValueError(f"x0 has {len(x0)} rows, but there are {chains} chains")
    return check_array("x0", np.broadcast_to(x0, (chains, x0.shape[-1])),
                       shape=(chains, x0.shape[-1]))


def seed_sequence(seed):
    """A SeedSequence from anything numpy takes as a seed."""
    if isinstance(seed, np.random.SeedSequence):
        return copy.deepcopy(seed)  # its owner may go on spawning
    if isinstance(seed, np.random.Generator):
        seed = seed.bit_generator
    if isinstance(seed, np.random.BitGenerator):
        # the next child: each run from one generator gets its own stream
        return seed.seed_seq.spawn(1)[0]
    try:
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError):
        raise TypeError(
            f"seed must be an integer, None, or a numpy seed or generator, not {seed!r}"
        ) from None
