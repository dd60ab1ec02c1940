"""A check after a run whose draws are doubtful: whether parameters of components can be exchanged.

The density of a mixture of K components is the same for each of K! orders, and so are its modes.
Chains must then visit all of them, and the mean of a parameter is that of all components.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics import checks
from fastkam.diagnostics.faults import LEAST_DRAWS
from fastkam.diagnostics.look import EXCHANGED, Finding, listed
from fastkam.run.faults import after_run
from fastkam.run.rules import Limits
from fastkam.search.images import permutations_of_labels

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions
    from fastkam.run.state import RunState

Array = NDArray[np.float64]
Order = NDArray[np.intp]

MOST = 60  # evaluations
SAME = 1e-9  # difference of log densities, relative
LOWER = 3.0  # log density halfway, below that of the draw: there are two modes
NUMBERED = re.compile(r"(.*?)_?(\d+)")


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
    for order in exchanges(state.layout.shapes):
        if made + 4 > MOST:
            break
        images = draws[:, order]
        made += 2
        if not same(values, evaluated(state, target, images)) or (images == draws).all():
            continue
        made += 1
        halfway = evaluated(state, target, (draws[:1] + images[:1]) / 2)
        if not halfway[0] > values[0] - LOWER:
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


def same(one: Array, other: Array) -> bool:
    """Return whether log densities are the same up to rounding."""
    return bool((np.abs(one - other) <= SAME * np.maximum(1, np.abs(one))).all())


def exchanges(shapes: dict[str, tuple[int, ...]]) -> Iterator[Order]:
    """Yield orders (n_x,) of the elements of x that exchange two components.

    These are the first two of each number K of components that parameters have as their first
    axis; parameters with numbers in their names; or elements of one vector.
    """
    labels = {name: np.arange(int(np.prod(shape))).reshape(shape)
              for name, shape in shapes.items()}
    start = 0
    for name in labels:
        labels[name] += start
        start += labels[name].size
    if len(shapes) == 1 and labels[next(iter(shapes))].ndim == 1:
        yield from permutations_of_labels(start)
    for K in sorted({shape[0] for shape in shapes.values() if shape and shape[0] > 1}):
        order = np.arange(start)
        for own in labels.values():
            if own.ndim and len(own) == K:
                new = own.copy()
                for axis in [axis for axis in range(own.ndim) if own.shape[axis] == K]:
                    new = np.take(new, [1, 0, *range(2, K)], axis=axis)
                order[own.ravel()] = new.ravel()
        yield order
    numbers: dict[str, list[str]] = {}
    for name in shapes:
        if found := NUMBERED.fullmatch(name):
            numbers.setdefault(found[1], []).append(name)
    order = np.arange(start)
    for names in numbers.values():
        if len(names) > 1 and shapes[names[0]] == shapes[names[1]]:
            one, two = labels[names[0]].ravel(), labels[names[1]].ravel()
            order[one], order[two] = two, one
    yield order


def line_of(labels: list[str], order: Order) -> str:
    """Return the line for an exchange: of which elements, with which."""
    first = [i for i, j in enumerate(order) if i < j]
    names = [[labels[i] for i in some] for some in (first, order[first])]
    shown = [listed(some[:4], len(some)) for some in names]
    return f"{EXCHANGED} {shown[0]} with {shown[1]}"
