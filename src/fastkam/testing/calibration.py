"""Simulation-based calibration: a test of posteriors on data simulated from the model.

If parameters are drawn from the prior and data from the model with them, then the parameters and
the draws of the posterior given the data have the same distribution. So the rank of the former
among L independent draws is uniform on 0 ... L, for each coordinate and for each function of the
parameters and the data.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext
from typing import Any

from fastkam.arguments import check_flag, check_integer, check_number, checked_names, near, shown
from fastkam.errors import SamplingError, SamplingWarning, warn
from fastkam.progress.reporter import interactive
from fastkam.run.sending import or_cloudpickle, portable_target
from fastkam.run.starts import seed_sequence
from fastkam.run.workers import CallExecutor, as_workers
from fastkam.sampling import sample
from fastkam.testing.fits import Fit, Fits, fit_sent
from fastkam.testing.report import Calibration

# arguments of `sample` that each fit sets itself: the reason, or what to do instead
OWN = {
    "target": "it is loglike", "args": "give further arguments of loglike in kwargs",
    "derived": "give quantities", "names": "the prior has them", "shapes": "the prior has them",
    "surrogate": "it would need the data", "stop": "fits must be complete",
    "checkpoint": "fits are short", "checkpoint_interval": "fits are short",
    "diagnose": "every fit is diagnosed", "keep_stats": "they are needed",
}
TRIED = 3  # data sets that are tried first: if all fail, no fit is started


@checked_names
def calibration(
    prior: Mapping[str, Any],
    simulate: Callable[..., Any],
    loglike: Any,
    *,
    n: int = 200,
    draws: int = 100,
    quantities: Callable[..., Mapping[str, Any]] | None = None,
    false_alarm_rate: float = 0.01,
    seed: Any = None,
    executor: Any = None,
    progress: bool | None = None,
    **options: Any,
) -> Calibration:
    """Test a likelihood, its prior and a sampler together, on data simulated from the model.

    Each of n fits draws parameters from the prior, simulates data with them, samples the posterior
    given the data, and computes the rank of each quantity at the parameters among its values at the
    draws. If simulation, likelihood, prior and sampler agree, the ranks are uniform.

    Each fit runs until its effective sample size (the smallest of those of means, variances and the
    log density) is three times `draws`, and is thinned evenly to `draws`; the report counts the
    fits that do not reach this within 64 times their initial number of draws. If draws have the
    same value as the parameters, the rank is drawn uniformly among the possible ones.

    Parameters
    ----------
    prior : dict
        Distributions by the names of parameters, as in `fastkam.Problem`; draws from each must be
        possible.
    simulate : callable
        ``simulate(x, rng)``, or with the parameters by name ``simulate(mu, sigma, rng)``: data, an
        object of any kind. All random numbers must come from `rng`, a numpy Generator.
    loglike : callable
        ``loglike(x, data)``, or with the parameters by name ``loglike(mu, sigma, data)``: the log
        likelihood, with a gradient or extras if needed, as in `fastkam.Problem`.
    n : int
        Number of data sets, at least 20.
    draws : int
        Number of nearly independent draws among which ranks are taken, L; at least 10.
    quantities : callable, optional
        ``quantities(x, data)``, or with the parameters by name: a dict of numbers and arrays that
        are ranked, too. The coordinates and the log likelihood are always ranked; the latter can
        detect a posterior that uses the data wrongly when the coordinates do not (Modrák et al.).
    false_alarm_rate : float
        The largest probability with which a right model and sampler are reported as not calibrated,
        over all quantities together. It is exact up to the remaining correlation of the draws.
    seed : int, SeedSequence, Generator or BitGenerator, optional
        The same seed gives the same ranks, whatever the executor; fit i is the same for every n.
    executor : int, Executor, pool or dask client, optional
        Runs the fits, as in `fastkam.sample`. For processes all functions must be picklable, or
        cloudpickle installed.
    progress : bool, optional
        Whether to show a bar; by default if standard error is a terminal, or in a notebook.
    **options
        Further arguments of `fastkam.sample` for every fit, such as ``sampler="nuts", chains=2``,
        or `transforms`, `kwargs` and `vectorized`, which apply to `loglike`.

    Returns
    -------
    Calibration
        Prints as a table; ``.ok``, ``.p_value``, ``.ranks``, ``.plot()``.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, before any work. Also the user's own exception, if each of the first
        three data sets raises one in a run of one draw.
    SamplingError
        If every fit has failed.

    Warns
    -----
    SamplingWarning
        If it was interrupted, or a worker of the executor was lost: the report has the fits made
        before.

    References
    ----------
    Talts, S., Betancourt, M., Simpson, D., Vehtari, A. and Gelman, A. (2018). Validating Bayesian
    inference algorithms with simulation-based calibration. arXiv:1804.06788, Algorithm 2. Modrák,
    M., Moon, A. H., Kim, S., Bürkner, P., Huurre, N., Faltejsková, K., Gelman, A. and Vehtari, A.
    (2023). Simulation-based calibration checking for Bayesian computation: the choice of test
    quantities shapes sensitivity. Bayesian Analysis. For the test of the ranks see
    `fastkam.testing.uniformity`.

    Examples
    --------
    >>> from scipy import stats
    >>> import fastkam as fk
    >>> found = fk.testing.calibration(
    ...     {"mu": stats.norm(0, 2)},
    ...     lambda mu, rng: rng.normal(mu, 1.0, 5),
    ...     lambda mu, data: stats.norm(mu, 1.0).logpdf(data).sum(),
    ...     n=20, draws=10, seed=1, sampler="ram", search=False, chains=1)
    >>> found.ok, sorted(found.ranks)
    (True, ['log_likelihood', 'mu'])
    """
    n, draws = check_integer("n", n, least=20), check_integer("draws", draws, least=10)
    rate = check_number("false_alarm_rate", false_alarm_rate, above=0, below=1)
    for name, f in (("simulate", simulate), ("loglike", loglike), ("quantities", quantities)):
        if not callable(f) and not (name == "quantities" and f is None):
            raise TypeError(f"{name} must be a function, not {f!r}")
    workers = as_workers(executor)
    show = interactive() if progress is None else check_flag("progress", progress)
    fits = Fits(prior, simulate, loglike, quantities, draws, seed_sequence(seed),
                check_options(options))
    check_functions(fits)
    with workers or nullcontext():
        made, ended = carried_out(fits, n, workers, show)
    if made and all(fit.failure for fit in made):
        raise SamplingError(f"every fit has failed, the first with {made[0].failure}")
    found = Calibration.of(made, draws, rate)
    if ended:
        warn(SamplingWarning(ended, result=found))
    return found


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Check arguments of `sample`; refuse those that differ between fits."""
    known = {*inspect.signature(sample).parameters} - {*OWN}
    for name in options:
        if name in OWN:
            raise TypeError(f"calibration() does not take {name!r}: {OWN[name]}")
        if name not in known:
            both = {*known, *inspect.signature(calibration).parameters} - {"options"}
            raise TypeError(f"neither calibration() nor fastkam.sample has an argument {name!r}"
                            f"{near(name, both)}")
    if "chains" in options:
        check_integer("chains", options["chains"], least=1)
    return options


def check_functions(fits: Fits) -> None:
    """Raise the user's exception if each of the first data sets raises one."""
    first = None
    for i in range(TRIED):
        try:
            return fits.check(i)
        except Exception as error:
            first = first or error
    assert first is not None
    first.add_note(f"raised with the first data set; the {TRIED - 1} next raised something too")
    raise first


def carried_out(
    fits: Fits, n: int, executor: CallExecutor | None, show: bool
) -> tuple[list[Fit], str]:
    """The fits in order, all or those made before an interrupt, and what has ended them."""
    from tqdm.auto import tqdm

    made: list[Fit] = []
    ended = ""
    coming = fitted(fits, n, executor)
    try:
        for fit in tqdm(coming, total=n, unit=" fits", disable=not show):
            if fit.interrupted:
                raise KeyboardInterrupt
            made.append(comparable(fit, made))
    except (KeyboardInterrupt, BrokenExecutor) as error:
        if not any(fit.ranks for fit in made):
            raise
        what = f"executor is broken ({error})" if isinstance(error, Exception) else "interrupted"
        ended = f"{what} after {len(made)} of {n} fits"
    finally:
        coming.close()
    return made, ended


def comparable(fit: Fit, made: list[Fit]) -> Fit:
    """The fit; a failure if it has other quantities than the first of those made before."""
    known = next((one.ranks for one in made if one.ranks), fit.ranks)
    if not fit.ranks or known.keys() == fit.ranks.keys():
        return fit
    return Fit(fit.parameters, failure="ValueError: quantities must return the same names and "
               "shapes for all data, and differ from those of the first fit in "
               f"{shown(sorted(known.keys() ^ fit.ranks.keys()))}")


def fitted(fits: Fits, n: int, executor: CallExecutor | None) -> Generator[Fit, None, None]:
    """The fits, one after the other, or as tasks of an executor."""
    if executor is None:
        yield from map(fits.fit, range(n))
        return
    if executor.local:
        futures = [executor.submit(fits.fit, i) for i in range(n)]
    else:
        payload = portable(fits)
        futures = [executor.submit(fit_sent, payload, i) for i in range(n)]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def portable(fits: Fits) -> bytes:
    """The fits as bytes for other processes."""
    try:
        payload: bytes = portable_target(fits)
    except TypeError as error:
        raise TypeError("simulate, loglike, quantities and options must be such that pickle takes "
                        f"them for the workers of executor, and it says: {error.__cause__}; define "
                        f"the functions in a module{or_cloudpickle()}") from error
    return payload
