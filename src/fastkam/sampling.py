"""The front door: sample(), as_target(), resume()."""

from __future__ import annotations

import copy
import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastkam._core.estimator import SurrogateTarget
from fastkam._core.target import Target
from fastkam.choice import choose_sampler, log
from fastkam.errors import check_array, check_flag, check_integer, check_number, real_array
from fastkam.gradient import check_start, needs_gradient
from fastkam.progress import Progress
from fastkam.recipe import TargetRecipe
from fastkam.result import Result, check_bit_generator, load
from fastkam.run import Run
from fastkam.samplers import DelayedAcceptance, Sampler, as_sampler
from fastkam.schedules import Schedule, as_schedule
from fastkam.stop import StopRule, as_stop
from fastkam.trace import Trace


def as_target(
    target: Any, dim: int, *, vectorized: bool = False, gradient: bool = False
) -> Target:
    """A Target from whatever form a density comes in.

    Parameters
    ----------
    target : Target, callable, pointer or TargetRecipe
        A Target; a numba njit function; a SciPy LowLevelCallable, ctypes or cffi pointer or numba
        cfunc (see `Target.from_c`); an object with ``__fk_target__``; a `TargetRecipe` of one of
        these; or any Python function ``f(x) -> float`` or ``f(x) -> (float, gradient)``.
    dim : int
        Dimension of the point.
    vectorized : bool
        The Python function takes points (k, dim) and returns (k,).
    gradient : bool
        The gradient of a Python function will be asked for: it must return the pair.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or of another dimension.
    """
    if isinstance(target, TargetRecipe):
        made = as_target(target(), dim, vectorized=vectorized, gradient=gradient)
        made.recipe = partial(as_target, target, dim, vectorized=vectorized, gradient=gradient)
    elif isinstance(target, Target):
        made = target
    elif hasattr(target, "__fk_target__"):
        made = Target.from_capsule(target)
    elif is_numba_dispatcher(target) and not vectorized:
        made = Target.from_numba(target, dim)
    elif is_pointer(target):
        made = Target.from_c(target, dim)
    elif callable(target):
        made = Target.from_python(target, dim, vectorized=vectorized, gradient=gradient)
    else:
        raise TypeError(f"target must be a function, a pointer or a Target, not {target!r}")
    if made.dim != dim:
        raise ValueError(f"target has dimension {made.dim}, but x0 has {dim} coordinates")
    return made


def is_numba_dispatcher(target):
    return hasattr(target, "py_func") and hasattr(target, "nopython_signatures")


def is_pointer(target):
    """A LowLevelCallable, a ctypes function, a cffi function pointer, or a numba cfunc."""
    kind = type(target)
    if type(getattr(target, "__self__", None)).__name__ == "Lib":  # of a cffi module, API mode
        raise TypeError(f"target must be ffi.addressof(lib, {target.__name__!r}), not {target!r}")
    return (
        isinstance(target, ctypes._CFuncPtr)
        or kind.__module__ == "_cffi_backend"
        or (hasattr(target, "native_name") and hasattr(target, "ctypes"))
        or (kind.__name__ == "LowLevelCallable" and kind.__module__.startswith("scipy"))
    )


def sample(
    target: Any,
    x0: ArrayLike,
    *,
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
    dims: Mapping[str, int | tuple[int, ...]] | None = None,
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
    target : callable, pointer, Target or TargetRecipe
        The log density, up to a constant, in any form that `as_target` takes. -inf or NaN means
        that the point is impossible: it is rejected and counted. `Target.from_estimator` makes one
        of a density that can only be estimated.
    x0 : array (d,) or (chains, d)
        Where the chains start: all at one point, or each at its own. Where the density is not
        finite there, points around it are tried.
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
        Keep one step in so many.
    threads : int, optional
        Threads to run chains in; by default one a processor for compiled targets, one for Python
        functions (more on a free-threaded Python). Those beyond the number of chains help to
        evaluate the replicas of "pt" and the like, where a compiled density is slow.
    names : list of str, optional
        Names of the parameters, in the order in which they stand in x.
    dims : dict of str to tuple of int, optional
        Shape of each named parameter; () where absent.
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
    check_options(checkpoint, checkpoint_interval, executor, progress)
    points = starting_points(x0, chains)
    d = points.shape[1]
    if isinstance(sampler, str) and sampler == "auto":
        choice = choose_sampler(target, points, vectorized=vectorized,
                                surrogate=surrogate is not None, share=share)
        log.info("auto: %s", choice)
        sampler = choice.sampler
    chosen, plan, stop = as_sampler(sampler), as_schedule(schedule), as_stop(stop)
    target = target_of(chosen, target, d, vectorized)
    if surrogate is not None:
        chosen = DelayedAcceptance(sampler=chosen)
        target = with_surrogate(target, surrogate)
        check_surrogate(target.surrogate, points)
    check_stages(chosen, target)
    chosen.check_run(plan, tune)
    if check_flag("share", share):
        chosen.check_share()
    plan.compiled(chosen, d, tune)
    chosen.build(points[0])  # refuses parameters that do not fit the dimension
    if check_gradient and chosen.needs_gradient:
        check_start(target, points[0])
    threads = number_of_threads(threads, target, chosen)
    stat_names = chosen.stat_names if check_flag("keep_stats", keep_stats) else None
    empty = Result(
        sampler=chosen,
        schedule=plan,
        x0=points,
        tune=tune,
        thin=thin,
        keep_warmup=bool(keep_warmup),
        share=bool(share),
        requested=draws,
        seed=seed_sequence(seed),
        bit_generator=check_bit_generator(bit_generator),
        trace=Trace(chains, 0, d, stat_names),
        warmup=Trace(chains, 0, d, stat_names),
        names=names,
        dims=dims,
        target=target,
    )
    return finish(empty, target, draws, threads, progress, stop, checkpoint, checkpoint_interval,
                  executor)


def finish(result, target, rows, threads, progress, stop, checkpoint, interval, executor):
    """Continue `result` to `rows` draws, here or through an executor."""
    if executor is not None:
        from fastkam.executors import run_through

        return run_through(executor, result, target, rows, progress=progress, stop=stop,
                           checkpoint=checkpoint, interval=interval)
    return Run(result, target, rows).go(
        threads=threads, progress=progress, stop=stop, checkpoint=checkpoint, interval=interval
    )


def resume(
    result: Result | str | os.PathLike[str],
    draws: int | None = None,
    *,
    target: Any = None,
    surrogate: Any = None,
    vectorized: bool = False,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    stop: StopRule | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = 60.0,
    executor: Executor | None = None,
) -> Result:
    """Go on with a run: as if it had never stopped, bit for bit.

    Parameters
    ----------
    result : Result or path
        A result, or a file that `Result.save` or a checkpoint has written.
    draws : int, optional
        How many draws a chain more. Absent: those that are missing from what was asked for.
    target : optional
        The density, as in `sample`; needed where the result comes from a file.
    surrogate : optional
        As in `sample`; needed where the result comes from a file and had one.
    vectorized, threads, progress, stop, checkpoint, checkpoint_interval, executor
        As in `sample`.

    Returns
    -------
    Result
        With the old draws and the new.
    """
    stop = as_stop(stop)
    check_options(checkpoint, checkpoint_interval, executor, progress)
    if isinstance(result, (str, os.PathLike)):
        result = load(result)
    if not isinstance(result, Result):
        raise TypeError(f"result must be a Result or the path of one, not {result!r}")
    if draws is None:
        rows = result.requested
    else:
        rows = int(result.trace.counts.max()) + check_integer("draws", draws, least=0)
    if target is None:
        target = result.target
    if target is None:
        raise ValueError("target must be given: a result from a file does not hold the density")
    if surrogate is None and result.target is not None:
        surrogate = result.target.surrogate
    target = target_of(result.sampler, target, result.d, vectorized)
    if surrogate is not None:
        target = with_surrogate(target, surrogate)
    check_stages(result.sampler, target)
    check_noise_of(result, target)
    return finish(result, target, rows, number_of_threads(threads, target, result.sampler),
                  progress, stop, checkpoint, checkpoint_interval, executor)


# ---- arguments ----


def target_of(sampler, target, d, vectorized):
    """The target as this sampler needs it."""
    gradient = sampler.needs_gradient
    made = as_target(target, d, vectorized=vectorized, gradient=gradient)
    if gradient:
        needs_gradient(made, type(sampler).__name__)
    return made


def with_surrogate(target, surrogate):
    """The target behind a surrogate, in place of the one that it may have had."""
    if target.surrogate is not None:
        target = target.owner
    try:
        cheap = as_target(surrogate, target.dim)
    except (TypeError, ValueError) as error:
        raise type(error)(f"surrogate: {error}") from None
    if cheap.is_estimate:
        raise ValueError(f"surrogate must be a known density, not the estimate {cheap!r}")
    return SurrogateTarget(target, cheap)


def check_surrogate(surrogate, points):
    """Refuse a surrogate by which a chain could not move."""
    for x in points:
        value = surrogate.logp(x)
        if not np.isfinite(value):
            raise ValueError(f"surrogate must be finite where a chain starts, not {value} at x = "
                             f"{np.array2string(x, threshold=8)}")


def check_stages(sampler, target):
    """Refuse two stages without a surrogate, and a surrogate without them."""
    delayed = isinstance(sampler, DelayedAcceptance)
    if delayed != (target.surrogate is not None):
        raise ValueError(f"surrogate must {'' if delayed else 'not '}be given for a run of "
                         f"{type(sampler).__name__}")


def check_noise_of(result, target):
    """Refuse a target with other noise than that of the run."""
    for state in result.states:
        k = state["u"].shape[1] if "u" in state else 0
        if k != target.n_aux:
            raise ValueError(f"target takes {target.n_aux} numbers of noise, but that of the run "
                             f"took {k}")


def starting_points(x0, chains):
    """x0 as (chains, d)."""
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


def number_of_threads(threads, target, sampler):
    if threads is not None:
        threads = check_integer("threads", threads, least=1)
    elif (target.needs_gil or sampler.needs_gil) and has_gil():
        threads = 1
    else:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (
            os.cpu_count() or 1)
    return 1 if target.serial else threads


def has_gil():
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def check_options(checkpoint, interval, executor, progress):
    """Refuse, before any work, what only shows later."""
    check_path(checkpoint)
    check_number("checkpoint_interval", interval, least=0)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, not {executor!r}")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False, None or a function, not {progress!r}")


def check_path(checkpoint):
    """Refuse, before any work, a checkpoint that could not be written."""
    if checkpoint is None:
        return
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"checkpoint must be a path, not {checkpoint!r}")
    from pathlib import Path

    path = Path(checkpoint).absolute()
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"checkpoint must be a file in a folder that exists, not {checkpoint!r}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"checkpoint={str(checkpoint)!r} is in a folder without permission")
