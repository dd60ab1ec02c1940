"""A climb from a start so far from the mass that its scales are useless there.

With h_k the scale of coordinate k at x, a step that changes log pi by 1, a slope is long if

    log pi(x + 100 h_k e) - log pi(x) > 50,     e = e_k or -e_k, a unit vector

On it scales are tiny: at D standard deviations s from the mode of a normal density h is s / D, and
D^2 such steps lead to the mode. Walkers whose steps grow from such scales would not arrive. So each
coordinate is moved along its own line, to the highest point among steps that grow by factors, which
takes of the order of log D evaluations; Newton's method (see newton.py) follows; then scales are
found again, until no slope is long. A coordinate is held if its slope has no end, or if a step
along it lowers the mass,

    pi(x) h_1 ... h_d,

since this leads into the neck of a funnel, where the density may grow without end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.numerics.elementary import log
from fastkam.search.newton import Derivatives, climbed
from fastkam.search.quadratic import second_differences
from fastkam.search.scales import find_scales

Array = NDArray[np.float64]

FAR, MUCH = 100.0, 50.0  # a slope is long if the log density rises by that in steps that long
GROWTH, LONGEST = 4.0, 1e20  # factor of steps, and the longest, in units of the scales
ROUNDS = 30
MOST_DIMENSIONS = 60  # for Newton's method
LEAST_GAIN = 10.0  # of the log density, beside d / 2, by a step of it: it shall not go to the mode


class Place(NamedTuple):
    """A point (d,), its log density, the scales there, and the coordinates that do not matter."""

    x: Array
    logp: float
    scales: Array
    flat: NDArray[np.bool_]


def found_at(evaluate: Callable[[Array], Array], x: Array, logp: float) -> Place:
    """The Place of a point."""
    return Place(x, logp, *find_scales(evaluate, x, logp))


def ascended(
    evaluate: Callable[[Array], Array], place: Place, derivatives: Derivatives | None = None
) -> Place:
    """Climb the long slopes at a place; return where there are none, or the place itself.

    A slope without an end is not climbed, nor one with less mass at its top.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d).
    place : Place
    derivatives : callable, optional
        First and second derivatives, as those of `climbed`; by default second differences.
    """
    if derivatives is None:
        derivatives = partial(second_differences, evaluate)
    shut = place.flat.copy()
    for _ in range(ROUNDS):
        slopes = long_slopes(evaluate, place, shut)
        above = moved(evaluate, place, slopes, shut)
        if log(above.scales).sum() < log(place.scales).sum():  # one of them may lead into a neck
            above = place
            for slope in slopes:
                one = moved(evaluate, above, [slope], shut)
                shut[slope[0]] |= mass(one) < mass(above)
                above = above if shut[slope[0]] else one
        if above is place:
            break
        place = by_newton(evaluate, above, derivatives, shut)
    return place


def by_newton(
    evaluate: Callable[[Array], Array],
    place: Place,
    derivatives: Derivatives,
    shut: NDArray[np.bool_],
) -> Place:
    """The place to which Newton's method leads with steps that gain much; or the place itself.

    Coordinates that are shut are held.
    """
    d = len(place.x)
    if d > MOST_DIMENSIONS:
        return place

    def of_others(x: Array, logp: float, scales: Array) -> tuple[Array, Array]:
        slopes, precision = derivatives(x, logp, scales)
        precision[shut], precision[:, shut] = 0.0, 0.0
        return np.where(shut, 0.0, slopes), precision

    top = climbed(evaluate, of_others, *place[:3], LEAST_GAIN + d / 2)
    return place if top.logp == place.logp else found_at(evaluate, top.x, top.logp)


def mass(place: Place) -> float:
    """log(pi(x) h_1 ... h_d)."""
    return float(place.logp + log(place.scales).sum())


def moved(
    evaluate: Callable[[Array], Array],
    place: Place,
    slopes: list[tuple[int, float]],
    shut: NDArray[np.bool_],
) -> Place:
    """The place after a step along each of the slopes; slopes without an end are shut instead."""
    x, logp = place.x.copy(), place.logp
    for k, step in slopes:
        t, value = along(evaluate, x, k, step, logp)
        shut[k] |= t == np.inf
        if t and not shut[k]:
            x[k] += t
            logp = value
    return place if logp == place.logp else found_at(evaluate, x, logp)


def long_slopes(
    evaluate: Callable[[Array], Array], place: Place, shut: NDArray[np.bool_]
) -> list[tuple[int, float]]:
    """(k, step) for each coordinate k with a long slope: FAR scales, upward; the steepest first."""
    which = np.tile(np.flatnonzero(~shut), 2)
    steps = FAR * place.scales[which]
    steps[len(which) // 2 :] *= -1
    X = np.tile(place.x, (len(which), 1))
    X[np.arange(len(which)), which] += steps
    rises = evaluate(X) - place.logp
    found = np.flatnonzero(rises > MUCH)
    return [(int(which[i]), float(steps[i])) for i in found[np.argsort(-rises[found])]]


def along(
    evaluate: Callable[[Array], Array], x: Array, k: int, step: float, logp: float
) -> tuple[float, float]:
    """(t, log density) of the best step t found along coordinate k; t is inf if there is no end."""
    def at(t: float) -> float:
        y = x.copy()
        y[k] += t
        return float(evaluate(y[None])[0])

    best, t = (0.0, logp), step
    while (value := at(t)) > best[1]:
        best = t, value
        t *= GROWTH
        if abs(t) > LONGEST / FAR * abs(step):
            return np.inf, value
    for factor in (2.0, 0.5):
        if best[0] and (value := at(factor * best[0])) > best[1]:
            best = factor * best[0], value
    return best
