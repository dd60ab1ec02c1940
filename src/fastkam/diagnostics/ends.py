"""Draws at the ends of the range of numbers, and the priors that explain them.

If a transform maps a half-line to a line, a density like 1 / x extends to both ends, up to the
limits of floating-point numbers. So do draws of some densities that have an integral: 0.1 % of
those of the gamma density with shape 0.01 are below 1e-290. Where every parameter has a prior, and
the likelihood is bounded by a constant c,

    integral of likelihood(x) prior(x) dx  <=  c  <  infinity

The likelihood is taken to be bounded if it is no larger at these draws than at all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.problem_target import ProblemTarget
from fastkam.diagnostics.look import Finding, Look, spacing

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.state import RunState

LARGEST = 1e290  # a draw above this, or below its inverse, is at the end of the range
MOST_EXTREME = 0.001  # of the draws
HIGHER = 0.01  # log likelihood at the ends, above that of all other draws


def extreme(look: Look) -> Finding | None:
    """Return a finding if draws are near the largest or the smallest floating-point numbers."""
    proper = set(look.state.proper.tolist())
    where = [k for k in at_ends(look.x) if k not in proper]
    if not len(where):
        return None
    size = np.abs(look.x[:, :, where])
    return Finding(
        "improper", f"{look.few(where)}: draws reach {size.max():.2g} and {size.min():.2g}, the "
        "ends of the range of numbers. The density has no finite integral there: a prior is "
        "missing, or a sign is wrong.", look.named(where), status="wrong")


def at_ends(x: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the coordinates of draws (..., d) that are often near the ends of the range."""
    if x.min() > -LARGEST and x.max() < LARGEST and not is_tiny(x).any():
        return np.zeros(0, np.intp)
    return np.flatnonzero(is_extreme(x).reshape(-1, x.shape[-1]).mean(axis=0) > MOST_EXTREME)


def is_extreme(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask of x near the largest or the smallest numbers."""
    return np.asarray((np.abs(x) > LARGEST) | is_tiny(x))


def is_tiny(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask of x so near to 0 that few numbers other than 0 are nearer."""
    return np.asarray((x < 1 / LARGEST) & (x > -1 / LARGEST) & (x != 0))


def with_proper(state: RunState, target: Target) -> RunState:
    """Note in a run which coordinates reach the ends of the range, as their priors let them.

    It makes no evaluations of the likelihood.
    """
    found = np.zeros(0, np.int64)
    if (isinstance(target, ProblemTarget) and not target.without_prior and not target.is_estimate
            and state.trace.rows and state.trace.stat_names is not None):
        with np.errstate(all="ignore"):
            found = bounded(state, target)
    return state if np.array_equal(found, state.proper) else replace(state, proper=found)


def bounded(state: RunState, target: ProblemTarget) -> NDArray[np.int64]:
    """Return the coordinates at the ends of the range where the likelihood is not the highest."""
    trace, rows = state.trace, slice(0, state.trace.rows, spacing(state))
    z = np.ascontiguousarray(trace.x[:, rows]).reshape(-1, state.d)
    outermost = np.concatenate([z.argmin(axis=0), z.argmax(axis=0)])
    if not is_extreme(state.constrain(z[outermost])).any():  # as in nearly all runs
        return np.zeros(0, np.int64)
    x = state.constrain(z)
    where = at_ends(x)
    likelihood = np.asarray(trace.logp[:, rows]).reshape(-1) - target.log_prior_z(z)
    ends = is_extreme(x[:, where])
    most = [(likelihood[one].max(), likelihood[~one].max(initial=-np.inf)) for one in ends.T]
    return np.array([k for k, (far, others) in zip(where, most, strict=True)
                     if far <= others + HIGHER], np.int64)
