"""The front door: sample(), as_target(), resume()."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fastkam._core.target import Target
from fastkam.errors import check_array, check_integer, check_number
from fastkam.result import Result, load
from fastkam.run import Run
from fastkam.samplers import as_sampler
from fastkam.schedules import as_schedule
from fastkam.stop import as_stop
from fastkam.trace import Trace

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def as_target(target, dim, *, vectorized=False):
    """A Target from whatever form a density comes in.

    Parameters
    ----------
    target : Target, callable, or pointer
        A Target; a numba njit function; a SciPy LowLevelCallable, ctypes or cffi pointer or numba
        cfunc (see `Target.from_c`); an object with ``__fk_target__``; or any Python function
        ``f(x) -> float``, ``f(x) -> (float, gradient)``.
    dim : int
        Dimension of the point.
    vectorized : bool
        The Python function takes points (k, dim) and returns (k,).

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or of another dimension.
    """
    if isinstance(target, Target):
        made = target
    elif hasattr(target, "__fk_target__"):
        made = Target.from_capsule(target)
    elif vectorized:
        made = Target.from_python(target, dim, vectorized=True)
    elif is_numba_dispatcher(target):
        made = Target.from_numba(target, dim)
    elif is_pointer(target):
        made = Target.from_c(target, dim)
    elif callable(target):
        made = Target.from_python(target, dim)
    else:
        raise TypeError(f"target must be a function, a pointer or a Target, not {target!r}")
    if made.dim != dim:
        raise ValueError(f"the target has dimension {made.dim}, but x0 has {dim} coordinates")
    return made


def is_numba_dispatcher(target):
    return hasattr(target, "py_func") and hasattr(target, "nopython_signatures")


def is_pointer(target):
    """A LowLevelCallable, a ctypes function, a cffi function pointer, or a numba cfunc."""
    kinds = {cls.__module__.partition(".")[0] for cls in type(target).__mro__}
    names = {cls.__name__ for cls in type(target).__mro__}
    return bool(
        names & {"LowLevelCallable", "CFuncPtr", "_CFuncPtr", "CFunc"} or "_cffi_backend" in kinds
    )


def sample(
    target,
    x0,
    *,
    sampler="ram",
    draws=1000,
    tune=1000,
    chains=4,
    seed=None,
    schedule="finite",
    vectorized=False,
    thin=1,
    threads=None,
    names=None,
    dims=None,
    progress=None,
    keep_warmup=True,
    stop=None,
    checkpoint=None,
    checkpoint_interval=60.0,
    executor=None,
    bit_generator="PCG64",
):
    """Draw from a density.

    Parameters
    ----------
    target : callable, pointer or Target
        The log density, up to a constant, in any form that `as_target` takes. -inf or NaN means
        that the point is impossible: it is rejected and counted.
    x0 : array (d,) or (chains, d)
        Where the chains start: all at one point, or each at its own. Where the density is not
        finite there, points around it are tried.
    sampler : str or Sampler
        A short name (see `fastkam.samplers.SAMPLERS`), or a sampler with its parameters.
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
    vectorized : bool
        The Python function takes points (k, d) and returns (k,): one call for all chains.
    thin : int
        Keep one step in so many.
    threads : int, optional
        Threads to run chains in; by default one a processor for compiled targets, one for Python
        functions (more on a free-threaded Python).
    names : list of str, optional
        Names of the parameters, in the order in which they stand in x.
    dims : dict of str to tuple of int, optional
        Shape of each named parameter; () where absent.
    progress : bool or callable, optional
        A bar (True), nothing (False), or a function of `fastkam.progress.Progress`; by default a
        bar where standard error is a terminal or in a notebook.
    keep_warmup : bool
        Whether the warm-up's states are kept (in ``result.warmup``).
    stop : StopRule, optional
        Stop before `draws` where this is met: see `fastkam.stop`.
    checkpoint : path, optional
        A file that holds the run so far, written every `checkpoint_interval` seconds and at the
        end; `resume` goes on from it.
    checkpoint_interval : float
        Seconds.
    executor : concurrent.futures.Executor, optional
        Run each chain (each group, for a vectorized target) as a task of this executor; target and
        parameters must be picklable.
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
    check_number("checkpoint_interval", checkpoint_interval, least=0)
    x0 = starting_points(x0, chains)
    d = x0.shape[1]
    target = as_target(target, d, vectorized=vectorized)
    sampler, schedule, stop = as_sampler(sampler), as_schedule(schedule), as_stop(stop)
    sampler.check_run(schedule, tune)
    schedule.compiled(sampler, d, tune)
    sampler.build(x0[0])  # refuses parameters that do not fit the dimension
    threads = number_of_threads(threads, target)
    stat_names = tuple(sampler.kernel_class().STATS)
    empty = Result(
        sampler=sampler,
        schedule=schedule,
        x0=x0,
        tune=tune,
        thin=thin,
        keep_warmup=bool(keep_warmup),
        requested=draws,
        seed=seed_sequence(seed),
        bit_generator=check_bit_generator(bit_generator),
        trace=Trace(chains, 0, d, stat_names),
        warmup=Trace(chains, 0, d, stat_names),
        names=names,
        dims=dims,
        target=target,
    )
    check_path(checkpoint)
    return finish(empty, target, draws, threads, progress, stop, checkpoint, checkpoint_interval,
                  executor)


def finish(result, target, rows, threads, progress, stop, checkpoint, interval, executor):
    """Continue `result` to `rows` draws, here or through an executor."""
    if executor is not None:
        from fastkam.executors import run_through

        return run_through(executor, result, target, rows, stop, checkpoint)
    return Run(result, target, rows).go(
        threads=threads, progress=progress, stop=stop, checkpoint=checkpoint, interval=interval
    )


def resume(
    result,
    draws=None,
    *,
    target=None,
    vectorized=False,
    threads=None,
    progress=None,
    stop=None,
    checkpoint=None,
    checkpoint_interval=60.0,
    executor=None,
):
    """Go on with a run: as if it had never stopped, bit for bit.

    Parameters
    ----------
    result : Result or path
        A result, or a file that `Result.save` or a checkpoint has written.
    draws : int, optional
        How many draws a chain more. Absent: those that are missing from what was asked for.
    target : optional
        The density, as in `sample`; needed where the result comes from a file.
    vectorized, threads, progress, stop, checkpoint, checkpoint_interval, executor
        As in `sample`.

    Returns
    -------
    Result
        With the old draws and the new.
    """
    if isinstance(result, (str, os.PathLike)):
        result = load(result)
    if draws is None:
        rows = result.requested
    else:
        rows = int(result.trace.counts.max()) + check_integer("draws", draws, least=0)
    if target is None:
        target = result.target
    if target is None:
        raise ValueError("target must be given: a result from a file does not hold the density")
    target = as_target(target, result.d, vectorized=vectorized)
    check_path(checkpoint)
    return finish(result, target, rows, number_of_threads(threads, target), progress,
                  as_stop(stop), checkpoint, checkpoint_interval, executor)


# ---- arguments ----


def starting_points(x0, chains):
    """x0 as (chains, d)."""
    try:
        x0 = np.array(x0, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"x0 must be an array of numbers, not {x0!r}") from None
    if x0.ndim not in (1, 2) or x0.size == 0:
        raise ValueError(f"x0 must have shape (d,) or (chains, d), not {x0.shape}")
    if x0.ndim == 2 and len(x0) != chains:
        raise ValueError(f"x0 has {len(x0)} rows, but there are {chains} chains")
    return check_array("x0", np.broadcast_to(x0, (chains, x0.shape[-1])),
                       shape=(chains, x0.shape[-1]))


def seed_sequence(seed):
    """A SeedSequence from anything numpy takes as a seed."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
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


def check_bit_generator(name):
    if name not in BIT_GENERATORS:
        raise ValueError(f"bit_generator must be one of {list(BIT_GENERATORS)}, not {name!r}")
    return name


def number_of_threads(threads, target):
    if threads is not None:
        threads = check_integer("threads", threads, least=1)
    elif target.needs_gil and has_gil():
        threads = 1
    else:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (
            os.cpu_count() or 1)
    return 1 if target.serial else threads


def has_gil():
    import sys

    return getattr(sys, "_is_gil_enabled", lambda: True)()


def check_path(checkpoint):
    if checkpoint is not None and not Path(checkpoint).absolute().parent.is_dir():
        raise ValueError(f"checkpoint must be in a folder that exists, not {str(checkpoint)!r}")
