"""A check of whether a function returns a density, and not the logarithm of one.

A density is never negative, and it is nearly always close to 0. Added to a log prior it is lost to
rounding; so the function is evaluated alone where the sum is no other than the log prior.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.problem_target import ProblemTarget
from fastkam.numerics.median import median
from fastkam.run.faults import after_run
from fastkam.run.rules import Limits

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions

Array = NDArray[np.float64]

NEARLY_0 = 1e-3  # bound of the median of a density
ROUNDING = 1e-12  # of the sum with a log prior, in units of it
LEAST, MOST = 100, 100  # points needed; points at which the function alone is evaluated


def is_density(values: Array) -> bool:
    """Whether values of a function (n,) look like those of a density."""
    return bool((values >= 0).all() and median(values) < NEARLY_0 and (values > 0).any())


def returns_density(target: Target, z: Array, logp: Array, log_prior: Array) -> tuple[bool, int]:
    """Whether the function of a target looks like a density.

    Parameters
    ----------
    target : Target
    z : array (n, d)
        Points of a search or a run.
    logp, log_prior : array (n,)
        The log densities there, finite, and the parts that are not the user's function.

    Returns
    -------
    found : bool
        False if there are too few points.
    evaluations : int
        Number of evaluations of the function alone that were made.
    """
    likelihood, rounding = logp - log_prior, ROUNDING * (1 + np.abs(log_prior))
    if (len(z) < LEAST or not (likelihood >= -rounding).all()
            or median(likelihood) > NEARLY_0 + median(rounding)):
        return False, 0
    if not isinstance(target, ProblemTarget):
        return is_density(likelihood), 0
    x, _ = target.constrain(z[np.linspace(0, len(z) - 1, MOST).astype(int)])
    with np.errstate(all="ignore"), suppress(Exception):  # if it recurs, the run reports it
        return is_density(target.inner.logp(x)), len(x)
    return False, len(x)


def with_density_seen(outcome: Outcome, target: Target, options: RunOptions) -> Outcome:
    """Note in the outcome of a run with a prior if its function returns a density.

    That of a run without a prior shows in its draws (`fastkam.diagnostics.faults`). It makes no
    evaluations beyond a limit of the run.
    """
    state = outcome.state
    limits = Limits() if options.stop is None else options.stop.limits()
    if (limits.evaluations - state.evaluations < MOST or state.status != "complete"
            or state.is_density or target.is_estimate or not isinstance(target, ProblemTarget)
            or state.trace.stat_names is None):
        return outcome
    rows = np.linspace(0, state.trace.rows - 1, LEAST).astype(int)
    z = np.asarray(state.trace.x[:, rows]).reshape(-1, state.d)
    logp = np.asarray(state.trace.logp[:, rows]).reshape(-1)
    found = after_run(lambda: returns_density(target, z, logp, target.log_prior_z(z)),
                      options.shield)
    if found is None or not found[1]:
        return outcome
    return replace(outcome, state=replace(
        state, is_density=found[0], searched=state.searched + found[1]))
