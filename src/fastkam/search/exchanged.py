"""A check after a run whose draws are doubtful: whether parameters of components can be exchanged.

The density of a mixture of K components is the same for each of K! orders, and so are its modes.
Chains must then visit all of them, and the mean of a parameter is that of all components.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics import checks
from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.diagnostics.look import EXCHANGED, Finding
from fastkam.run.faults import after_run
from fastkam.run.rules import Limits
from fastkam.search.components import MOST_COMPARED, components_of, leading_away, line_of

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

MOST = 60  # evaluations


def with_exchanged(outcome: Outcome, target: Target, options: RunOptions) -> Outcome:
    """Note in the search of a run which parameters can be exchanged, if its draws are doubtful.

    A run without a search makes no evaluations but those of its chains.
    """
    state = outcome.state
    limits = Limits() if options.stop is None else options.stop.limits()
    if (not options.diagnose or not state.search or state.status != "complete" or target.is_estimate
            or limits.evaluations - state.evaluations < MOST or options.executor is not None
            or options.on_points or target.surrogate is not None
            or state.trace.rows < LEAST_DRAWS or state.trace.stat_names is None
            or any(line.startswith(EXCHANGED) for line in state.search)):
        return outcome
    seen = after_run(lambda: looked(state, target, outcome.found), options.shield)
    if seen is None:
        return outcome
    found, text, made = seen
    state = replace(state, searched=state.searched + made)
    if text:
        found, state = None, replace(state, search=[*state.search, text])
    return replace(outcome, state=state, found=found)


def looked(
    state: RunState, target: Target, known: list[Finding] | None
) -> tuple[list[Finding] | None, str, int]:
    """Return (findings, a line on parameters that can be exchanged or "", number of evaluations).

    `known` are the findings if they have been made.
    """
    found = checks.findings(state) if known is None else known
    kinds = {one.kind for one in found if one.status != "ok"}
    if not kinds or kinds & checks.ABOUT_DENSITY:
        return found, "", 0
    return found, *exchanged(state, target)


def exchanged(state: RunState, target: Target) -> tuple[str, int]:
    """Return (a line on parameters that can be exchanged or "", number of evaluations)."""
    rows = state.trace.rows
    logp = np.asarray(state.trace.logp[:, :rows]).reshape(-1)
    z = np.asarray(state.trace.x[:, :rows]).reshape(-1, state.d)
    some = [int(logp.argmax()), int(np.abs(logp - np.median(logp)).argmin())]
    draws = state.constrain(z[some])
    values = of_x(state, z[some], logp[some])
    made = 0

    def evaluate(x: Array) -> Array:
        nonlocal made
        made += len(x)
        return evaluated(state, target, x)

    for components in components_of(state.layout.shapes):
        if made + 3 * min(components.K, MOST_COMPARED) > MOST:
            break
        order = leading_away(components, draws, values, evaluate)
        if order is not None:
            return line_of(state.layout.labels, order), made
    return "", made


def evaluated(state: RunState, target: Target, x: Array) -> Array:
    """Return the log densities (n,) of x at points (n, n_x); NaN where no z has such a point."""
    if state.coordinates is None:
        return np.asarray(target.logp(x))
    try:
        z = state.coordinates.unconstrain(x)
    except ValueError:
        return np.full(len(x), np.nan)
    return of_x(state, z, np.array([target.logp(one) for one in z]))


def of_x(state: RunState, z: Array, logp: Array) -> Array:
    """Return log densities of x, from those of z (n, d)."""
    if state.coordinates is None:
        return logp
    return np.asarray(logp - state.coordinates.log_jacobian(z))
