"""Findings on draws at the edges of the support: at bounds, or around the ends of a period."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import REJECTED
from fastkam.diagnostics.look import NAMED, Finding, Look, chain_names, listed
from fastkam.numerics.median import median

if TYPE_CHECKING:
    from fastkam.run.state import RunState

WITHIN, MOST_WITHIN = 0.25, 0.12    # standard deviations of a bound; the share of draws there
FALLING = 0.4               # of draws below a median, the share below half of it; flat: 0.5
MOST_AT_BOUNDS = 4000       # draws that are compared with bounds
MOST_ACROSS = 1.2           # standard deviation of an angle, in units of that with the best ends
BOUNDED = ("identity", "log", "upper", "interval", "reflect")   # transforms of one coordinate
NO_DIGITS = 1e-13           # of the distance of two bounds: what is left of one to the nearer


def boundaries(look: Look) -> Iterator[Finding]:
    """Yield a finding for coordinates whose draws are crowded at an edge of the support.

    5 % of all draws are within a hundredth of the distance from the outermost draw to the median,
    where a flat density has 0.5 %, their density does not rise from there on, as in a narrow mode,
    and points beyond that draw were outside the support. Estimates can be 0 anywhere, so that no
    edge is seen in them.
    """
    outside = REJECTED.index("outside")
    if look.is_estimate or look.rejected[:, outside].sum() < 0.01 * look.evaluations.sum():
        return
    points = look.state.constrain(look.state.offending(outside))
    d = look.x.shape[2]
    crowded, middle = np.zeros(d, bool), median(look.x.reshape(-1, d), axis=0)
    for sign in (1.0, -1.0):  # the low edge, the high edge
        x = sign * look.x
        edge = x.min(axis=(0, 1))
        near = x <= edge + (sign * middle - edge) / 100
        beyond = (sign * points < edge).any(axis=0)
        for i in np.flatnonzero((near.mean(axis=(0, 1)) > 0.05) & beyond & (sign * middle > edge)):
            crowded[i] |= highest_at_0(x[..., i][near[..., i]] - edge[i])
    where = np.flatnonzero(crowded)
    if len(where):
        yield Finding(
            "boundary", f"{look.few(where)}: draws crowd at an edge of the support, where the "
            "density is highest and many proposals fall outside. Transform the parameter (its "
            "logarithm, say) so that there is no edge.", look.named(where))


def highest_at_0(x: NDArray[np.float64]) -> bool:
    """Whether the density of x >= 0 (n,) does not rise from 0 to its median.

    Then half or more of those below the median are below half of it; 40 % are enough, since draws
    are correlated.
    """
    middle = median(x)
    return bool((x <= middle / 2).sum() > FALLING * (x <= middle).sum())


def cut_off(look: Look) -> Iterator[Finding]:
    """Yield a finding for coordinates whose density is highest at a bound, or nearly so.

    12 % of the draws or more are within a quarter of their standard deviation of it. Of a flat
    density these are 7 %, of half a normal density 12 % and of an exponential one 22 %. Their
    density does not rise from the bound on, as in one of several modes. The draws are right, with a
    transform or without, and the status is "ok". If the only bound is 0, it is that of a scale or a
    rate, and there is no finding.
    """
    step = max(1, look.x.shape[0] * look.x.shape[1] // MOST_AT_BOUNDS)
    x, found, where = look.x[:, ::step], [], []
    for i, low, high in bounds_of(look.state):
        values = x[:, :, i]
        near = WITHIN * spread(values)
        for bound, away in ((low, values - low), (high, high - values)):
            close = away[away < near]
            share = close.size / away.size
            if share > MOST_WITHIN and highest_at_0(close):
                found.append(f"{100 * share:.0f} % of {look.labels[i]} near {bound:g}")
                where.append(i)
    if found:
        yield Finding(
            "bound", f"Draws crowd at a bound: {listed(found[:NAMED], len(found))}, within a "
            "quarter of their standard deviation; of a flat density there would be 7 %. The bound "
            "cuts off the density where it is high, and determines the estimates as much as the "
            "data do: widen it (bounds=, prior=), unless it is meant, as 0 is for a positive "
            "number, and 0 and 1 are for a probability.", look.named(where), status="ok")


def spread(x: NDArray[np.float64]) -> float:
    """Return the standard deviation of x, or half of the distance between its 16 % and 84 % points.

    Of both the smaller one: a standard deviation that a few draws far out determine is no distance
    from a bound.
    """
    low, high = np.quantile(x, [0.16, 0.84])
    return min(float(x.std()), float(high - low) / 2)


def across_ends(look: Look) -> Iterator[Finding]:
    """Yield a finding for angles whose draws are around the ends of the period.

    Their standard deviation is then larger than that about the mean direction. Angles that are
    nearly everywhere have no better ends.
    """
    where, found = [], []
    for i, low, high in look.circles:
        turns = (look.x[:, :, i] - low) / (high - low)
        center = np.exp(2j * np.pi * turns).mean()
        opposite = np.angle(-center) / (2 * np.pi)
        about = np.mod(turns - opposite, 1.0)
        if turns.std() > MOST_ACROSS * about.std():
            where.append(i)
            start = low + np.mod(opposite, 1.0) * (high - low)
            found.append(f"{look.labels[i]} (begin near {start:.3g} in place of {low:.3g})")
    if where:
        yield Finding(
            "ends", f"There are draws on both sides of the ends of a period: of "
            f"{listed(found[:NAMED], len(found))}. They are right, but their mean, standard "
            "deviation and quantiles take the ends for the points that are farthest apart: begin "
            "the period where there are few draws (bounds=, prior=), or take means of sines and "
            "cosines.", look.named(where), status="ok")


def bounds_of(state: RunState) -> list[tuple[int, float, float]]:
    """Return (coordinate, lower bound, upper bound) of the user's coordinates that have bounds.

    Those whose only bound is 0, and periodic ones, are left out.
    """
    found: list[tuple[int, float, float]] = []
    start = 0
    for kind, _, _, _, n, low, high, *_ in state.coordinates.rows if state.coordinates else ():
        only_zero = {low, high} in ({0.0, np.inf}, {0.0, -np.inf})
        if kind in BOUNDED and not only_zero and np.isfinite([low, high]).any():
            found += [(i, low, high) for i in range(start, start + n)]
        start += n
    return found


def between_bounds(look: Look) -> set[str]:
    """Return the labels of the coordinates that have two finite bounds."""
    return {look.labels[i] for i, *both in bounds_of(look.state) if np.isfinite(both).all()}


def without_digits(look: Look) -> Iterator[Finding]:
    """Yield a finding for chains that are next to one of two bounds, where functions lose digits.

    It explains why chains do not agree, or do not move: a density that is far too high there, since
    a difference of large numbers has no digits left. Draws that agree may be there.
    """
    near = np.zeros((len(look.x), look.x.shape[2]), bool)
    start = 0
    for kind, _, _, _, n, low, high, *_ in look.state.coordinates.rows if (
            look.state.coordinates) else ():
        if kind == "simplex":
            low, high = 0.0, 1.0
        if kind in ("interval", "simplex"):
            x = look.x[:, :, start : start + n]
            near[:, start : start + n] = median(
                np.minimum(x - low, high - x), axis=1) < NO_DIGITS * (high - low)
        start += n
    chains, where = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    if len(where):
        one = len(chains) == 1
        yield Finding(
            "digits", f"{chain_names(chains)} {'is' if one else 'are'} next to a bound of "
            f"{look.few(where)}, nearer than 1e-13 of the distance of the bounds. Does the "
            "function lose its digits there, by a difference of large numbers or a division by a "
            "number near 0, so that it is far too high? Look at its values there: return -inf "
            "where they are wrong, or give bounds that leave them out (bounds=, prior=).",
            look.named(where), tuple(chains.tolist()), status="wrong")
