"""Points of a density that no chain has visited, looked for with further evaluations.

Four methods share a number of evaluations:

- Points y from a wide density g, a Cauchy distribution around the draws, give an estimate of the
  probability of the region beyond all draws, mean(p(y) / (g(y) Z) 1{y is beyond}). By Markov's
  inequality, it exceeds 20 times the true probability with probability 1/20 at most. Z is the
  median of p / q at the draws, with q a mixture fitted to them; "beyond" is the region where q is
  below its smallest value at a draw. If the estimate is large, further points decide, half of them
  from around the point of the largest weight: it may be one far out in the tails.
- If a density falls off on all sides, a step towards the draws raises it. Where such a step lowers
  it, a search uphill begins; if it ends far from q, at a density comparable with that at the draws,
  there is another mode, unless its mass is next to none, or the draws have it.
- Such searches also begin at draws that are far from the others, which a chain left where it had
  been for a moment, and at points whose coordinates come from different draws, or are uniform
  between two bounds.
- Gradients at the draws imply moments (see `slopes.py`), if the number of
  evaluations allows for enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.numerics.elementary import exp, log
from fastkam.diagnostics.faults import tails
from fastkam.diagnostics.look import Finding, Look
from fastkam.diagnostics.normal_modes import Gradient, approximation, log_mass
from fastkam.diagnostics.slopes import Slopes, by_gradients
from fastkam.evidence.density import Density, Window, recorded, target_for
from fastkam.evidence.proposals import draws_in, fit
from fastkam.numerics.descent import minimized
from fastkam.numerics.median import median
from fastkam.run.hints import NUMERICAL
from fastkam.run.same_target import check_own_density
from fastkam.run.state import NOWHERE
from fastkam.run.streams import Stream, generator_of
from fastkam.search.choice import has_gradient
from fastkam.search.mixture import Mixture
from fastkam.search.scales import find_scales
from fastkam.search.tails import logarithmic_tails, tail_indices
from fastkam.search.unexplained import farthest

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.problem.coordinates import Coordinates
    from fastkam.result import Result
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

WIDE = 3.0              # scale of g, in standard deviations of the draws
# of the evaluations: draws of g; jumps along coordinates; points across; steps towards the draws
SHARE_WIDE, SHARE_ALONG, SHARE_ACROSS, SHARE_STEPS = 0.25, 0.1, 0.1, 0.15
MOST_MASS = 0.05
TOWARDS, LEAST_DROP = 0.1, 1.0
UNEXPLAINED = 5.0       # log p above that of q
LEAST_WEIGHT = 0.05     # of a component that explains draws
LEAST_MASS, LOW = 1e-3, 0.05    # of a mode that counts; quantile of p / q in place of the median
LEAST_SEEN = 0.2        # draws in a mode that has been visited, per draw that should be there
# draws whose neighbors are looked at; the neighbor that is compared; a quantile of its distance
SOME, NEAREST, MOST_OF_THEM = 100, 10, 0.95
MOST_APART = 3          # draws from which searches begin
MOST_DROP = 5.0         # of the log density at a mode below its median at the draws
MOST_CLIMBS, DIFFERENCE = 80, 1e-5  # steps of a search uphill; of differences, for its slopes
MOST_FOR_TAILS = 0.15   # of the evaluations
MOST_FITTED = 4000      # to which q is fitted


class Spent(Exception):
    """Raised when all evaluations have been made."""


class Budget:
    """A density that may be evaluated a number of times."""

    def __init__(self, density: Callable[[Array], Array], most: int) -> None:
        self.density, self.left = density, most

    def take(self, n: int) -> None:
        """Count n evaluations; raise Spent if fewer are left."""
        if n > self.left:
            raise Spent
        self.left -= n

    def __call__(self, z: Array) -> Array:
        """Return the log densities (n,) at the rows of z (n, d)."""
        self.take(len(z))
        return self.density(z)


def scout(
    result: Result, evaluations: int, target: Any, vectorized: bool, rng: np.random.Generator
) -> tuple[list[Finding], Array, int]:
    """Look beyond the draws of a result: see `fastkam.Result.verdict`.

    Returns findings against the draws, `RunState.unvisited`, and the number of evaluations made.
    """
    density = target_for(result, target, vectorized)
    if density is None:
        raise ValueError("target must be given: a result from a file, or of an AskTell, does not "
                         "hold the density")
    state, place = result.state, NOWHERE
    if target is None:
        check_own_density(state, density)
    found: list[Finding] = []
    with recorded(result, density, given=target is not None) as density:
        scouting = Scouting.of(state, density, evaluations, rng)
        if scouting is None:
            return found, place, 0
        slopes = Slopes(density, scouting.gradient, scouting.budget, rng)
        with np.errstate(all="ignore"), suppress(Spent):
            found += by_tails(state, scouting.budget, evaluations)
            found += by_gradients(state, slopes, evaluations)
            place = scouting.place(scouting.budget.left)
    return found, place, evaluations - scouting.budget.left


def place_beyond(
    state: RunState, density: Target, evaluations: int, rng: np.random.Generator
) -> tuple[Array, int]:
    """Return (`RunState.unvisited`, evaluations made)."""
    place, scouting = NOWHERE, Scouting.of(state, density, evaluations, rng)
    if scouting is None:
        return place, 0
    with np.errstate(all="ignore"), suppress(Spent):
        place = scouting.place(evaluations)
    return place, evaluations - scouting.budget.left


def without_visited(before: RunState, state: RunState, density: Target) -> RunState:
    """Return the state of a run that has gone on, without a place that its draws have reached.

    `before` is the state from which it has gone on. If its draws, by the same fit, did not leave
    the place out, those of `state` say nothing, and the place is kept.
    """
    if not len(state.unvisited):
        return state
    with np.errstate(all="ignore"):
        then, now = (Scouting.of(one, density, 0, generator_of(state.seed, Stream.BEYOND))
                     for one in (before, state))
    if then is None or now is None or now.leaves_out(state.unvisited) or not then.leaves_out(
            state.unvisited):
        return state
    return replace(state, unvisited=NOWHERE)


def gradient_of(density: Target, points: Array) -> Gradient | None:
    """Return the function for log density and gradient, or None."""
    if density.is_estimate or density.surrogate is not None or not has_gradient(density, points):
        return None
    bound = density.bind()

    def gradient(z: Array) -> tuple[float, Array]:
        try:
            return bound.logp_grad(z)
        except NUMERICAL:
            return -np.inf, np.zeros(len(z))

    return gradient


def by_tails(state: RunState, budget: Budget, evaluations: int) -> list[Finding]:
    """Return a finding for coordinates whose density falls off as a power far out."""
    d = state.d
    if len(state.tails) or 6 * d + 2 * d * (d - 1) > MOST_FOR_TAILS * evaluations:
        return []
    z = state.trace.x[:, : state.trace.rows].reshape(-1, d)
    center, sd = z.mean(axis=0), z.std(axis=0)
    indices, _ = tail_indices(budget, center, sd)
    if state.coordinates is not None:
        of_logarithms = logarithmic_tails(budget, center, sd, state.coordinates.sides)
        indices = state.coordinates.tails(indices, of_logarithms)
    return list(tails(Look(replace(state, tails=indices))))


class Scouting:
    """Searches beyond draws z (chains, n, d), with their log densities log_p (chains, n) and q."""

    def __init__(
        self, z: Array, log_p: Array, q: Mixture, budget: Budget, rng: np.random.Generator,
        gradient: Gradient | None = None, coordinates: Coordinates | None = None,
    ) -> None:
        self.q, self.budget, self.rng, self.gradient = q, budget, rng, gradient
        least = min(LEAST_WEIGHT * q.weights[1:].sum(), q.weights[1:].max())
        large = np.r_[True, q.weights[1:] >= least]
        self.main = Mixture(q.weights[large], q.means[large], q.factors[large])
        self.flat = np.ascontiguousarray(z.reshape(-1, z.shape[2]))
        self.places, first = np.unique(self.flat, axis=0, return_index=True)
        self.log_p = log_p.reshape(-1)[first]
        self.d = z.shape[2]
        self.within = between_bounds(coordinates, self.d)
        self.level = float(median(log_p))
        log_q = q.log_density(self.flat)
        log_w = np.sort(log_p.reshape(-1) - log_q)
        self.log_z = float(median(log_w))
        self.least_log_z = float(log_w[int(LOW * len(log_w))])  # for a poor q
        self.edge = float(log_q.min())
        self.center, self.sd = self.flat.mean(axis=0), self.flat.std(axis=0)
        cov = np.atleast_2d(np.cov(self.flat.T))
        self.L = np.linalg.cholesky(cov + np.diag(1e-12 * self.sd**2))
        self.ignored: list[Array] = []  # modes that do not count
        self.window = Window(None, z)

    @classmethod
    def of(
        cls, state: RunState, density: Target, evaluations: int, rng: np.random.Generator
    ) -> Scouting | None:
        """Return the searches for the draws of a run; None if no mixture fits these."""
        window = Window(state.coordinates, state.trace.x[:, : state.trace.rows])
        budget = Budget(Density(density, window, rng), evaluations)
        z, log_p = draws_in(window, state)
        step = max(1, -(-log_p.size // MOST_FITTED))
        z, log_p = z[:, ::step], log_p[:, ::step]
        with np.errstate(all="ignore"):
            q = fit(z, rng)
        if q is None:
            return None
        slope = None
        if evaluations and window.periods is None:
            budget.take(1)  # to see what the density returns
            slope = gradient_of(density, z[0][:1])
        made = cls(z, log_p, q, budget, rng, slope, state.coordinates)
        made.window = window
        return made

    def place(self, evaluations: int) -> Array:
        """Return a row (1, d + 2) of `RunState.unvisited` if there is such a place, or none."""
        n = max(4, int(SHARE_WIDE * evaluations))
        wide, log_g = self.wide(n)
        values = self.budget(wide)
        weights = self.beyond(wide, values, log_g)
        if weights.mean() > MOST_MASS:
            best = int(weights.argmax())
            mass = self.mass_beyond(n, wide[best])
            if mass > MOST_MASS:
                return np.r_[wide[best], values[best], mass][None]
        for start in self.apart():
            end, value = self.uphill(start)
            if self.is_new(end, value):
                return np.r_[end, value, np.nan][None]
        others = np.concatenate([self.along(max(4, int(SHARE_ALONG * evaluations))),
                                 self.across(max(4, int(SHARE_ACROSS * evaluations)))])
        more = self.budget(others)
        points, values = np.concatenate([wide, others]), np.concatenate([values, more])
        for start in self.starts(points, values, max(4, int(SHARE_STEPS * evaluations))):
            end, value = self.uphill(start)
            if self.is_new(end, value):
                return np.r_[end, value, np.nan][None]
        return NOWHERE

    def leaves_out(self, place: Array) -> bool:
        """Return whether the draws leave out a row (1, d + 2) of `RunState.unvisited`."""
        z = np.ascontiguousarray(self.window.points(place[:, :-2]))
        if np.isnan(place[0, -1]):  # a mode
            return bool(self.main.nearest(z)[0][0] > farthest(self.d))
        return bool(self.q.log_density(z)[0] < self.edge)

    def wide(
        self, n: int, center: Array | None = None, scale: float = WIDE
    ) -> tuple[Array, Array]:
        """Return n draws of g and log g there: a Cauchy distribution with the draws' shape.

        Its center is the mean of the draws by default, and its scale is in their standard
        deviations.
        """
        center = self.center if center is None else center
        normals = self.rng.standard_normal((n, self.d))
        u = normals / np.abs(self.rng.standard_normal((n, 1)))
        x = center + scale * u @ self.L.T
        return x, self.log_g(x, center, scale)

    def log_g(self, x: Array, center: Array, scale: float = WIDE) -> Array:
        """Return the log density (n,) of such a Cauchy distribution at points x (n, d)."""
        u = self.from_(x, center) / scale
        half = 0.5 * (self.d + 1)
        return (math.lgamma(half) - math.lgamma(0.5) - 0.5 * self.d * log(np.pi)
                - log(np.diag(scale * self.L)).sum() - half * np.log1p((u * u).sum(axis=1)))

    def from_(self, x: Array, center: Array) -> Array:
        """Return x (n, d) minus a center (d,), in units in which the draws' covariance is I."""
        return np.asarray(np.linalg.solve(self.L, (x - center).T).T)

    def beyond(self, x: Array, values: Array, log_g: Array) -> Array:
        """Return weights p / (g Z) (n,) of points x (n, d) of g beyond all draws, 0 for others."""
        return np.where(self.q.log_density(x) < self.edge,
                        exp(values - log_g - self.log_z), 0.0)

    def mass_beyond(self, n: int, place: Array) -> float:
        """Return an estimate, from n further points, of the probability beyond all draws.

        Half of the points are drawn from g, the others from around a place (d,), as far from it as
        half of its distance from the draws.
        """
        away = np.sqrt((self.from_(place[None], self.center) ** 2).sum() / self.d) / 2
        x = np.concatenate([self.wide(n // 2)[0], self.wide(n // 2, place, away)[0]])
        log_g = np.logaddexp(self.log_g(x, self.center), self.log_g(x, place, away)) - log(2.0)
        return float(self.beyond(x, self.budget(x), log_g).mean())

    def along(self, n: int) -> Array:
        """Return points (n, d) that differ from a draw in one coordinate, by a Cauchy variable."""
        z = self.flat[self.rng.integers(len(self.flat), size=n)].copy()
        axis = np.arange(n) % self.d
        z[np.arange(n), axis] += 2 * WIDE * self.sd[axis] * self.rng.standard_cauchy(n)
        return z

    def across(self, n: int) -> Array:
        """Return points (n, d) with each coordinate from another draw.

        This reaches modes in a lattice from draws in some of them. In half of the points the
        coordinates that have two bounds are uniform between them.
        """
        rows = self.rng.integers(len(self.flat), size=(n, self.d))
        z = np.take_along_axis(self.flat, rows, axis=0)
        share = self.rng.random((n // 2, int(self.within.sum())))
        z[: n // 2, self.within] = log(share) - log(1 - share)
        return z

    def apart(self) -> Array:
        """Return draws (n, d) far from all components that explain many draws, the farthest first.

        A chain that has once been in a narrow mode has left them there.
        """
        squares, _ = self.main.nearest(self.places)
        rows = squares.argsort()[::-1][:MOST_APART]
        return self.places[rows[squares[rows] > farthest(self.d)]]

    def starts(self, points: Array, values: Array, n: int) -> Array:
        """Return starting points of searches uphill, from points (m, d) far out.

        The first are those from which a step towards the draws lowers the density, for which n
        evaluations are made; points whose density is high for their distance follow. `values` (m,)
        are the log densities of the points.
        """
        squares, nearest = self.q.nearest(points)
        far = np.flatnonzero((squares > farthest(self.d)) & np.isfinite(values))
        far = far[np.argsort((self.level - values[far]) / squares[far], kind="stable")][:n]
        steps = TOWARDS * (self.q.means[nearest[far]] - points[far])
        lower = self.budget(points[far] + steps) < values[far] - LEAST_DROP
        return np.concatenate([points[far[lower]], points[far[~lower]]])

    def uphill(self, start: Array) -> tuple[Array, float]:
        """Return the point where a search uphill from `start` (d,) ends, and its log density.

        The log density is -inf if the search has not converged: the slope of a ridge has no mode.
        """
        known: dict[bytes, Array] = {}  # slopes that came with a value

        def value(u: Array) -> float:
            z = start + u * self.sd
            if self.gradient is None:
                found = float(self.budget(z[None])[0])
            else:
                self.budget.take(1)
                found, slope = self.gradient(z)
                known[u.tobytes()] = -slope * self.sd
            return -found if np.isfinite(found) else np.inf

        def slopes(u: Array, at: float) -> Array:
            if self.gradient is not None:
                return known[u.tobytes()]
            values = self.budget(start + (u + DIFFERENCE * np.eye(self.d)) * self.sd)
            return (-values - at) / DIFFERENCE

        u, found, arrived = minimized(value, slopes, np.zeros(self.d), most=MOST_CLIMBS, least=1e-6)
        return start + u * self.sd, -found if arrived else -np.inf

    def is_new(self, z: Array, value: float) -> bool:
        """Return whether a point (d,) of this log density is in a mode that all chains missed."""
        row = np.ascontiguousarray(z[None])
        return bool(
            value > self.level - MOST_DROP
            and value - self.main.log_density(row)[0] > self.log_z + UNEXPLAINED
            and self.main.nearest(row)[0][0] > farthest(self.d)
            and self.counts(z, value))

    def counts(self, z: Array, value: float) -> bool:
        """Return whether a mode (d,) has probability of which the draws have too little.

        Its mass is that of a normal approximation, or on a plateau of a box. The draws have it if
        enough of them are in the middle of that, an ellipsoid with about half of its mass; or if
        some are, and no more are to be expected than chance may leave out; or if the mode is among
        draws and no higher than these, as at the end of a ridge beside a jump. If a coordinate
        changes nothing, the mass is unknown, and the mode counts. It also does if the evaluations
        do not suffice, unless it is among the draws.
        """
        try:
            if any(self.joined(z, value, mode) for mode in self.ignored):
                return False
            scales, flat = find_scales(self.budget, z, value)
            factor = approximation(self.budget, self.gradient, z, value, scales)
        except Spent:
            return not self.among(z)
        if factor is None:  # of the box, as little as the part in a corner may have mass
            mass = value + float(log(2 * scales).sum())
            inside = (np.abs(self.flat - z) < scales).all(axis=1)
            due = exp(mass - self.log_z - (self.d - 1) * log(2.0)) * len(self.flat)
        else:
            mass = log_mass(value, factor)
            inside = (((self.flat - z) @ factor) ** 2).sum(axis=1) < self.d
            due = exp(mass - self.log_z) * len(self.flat)
        seen = int(inside.sum())
        repeats = len(self.flat) / len(self.places)     # a draw that is repeated is one
        by_chance = seen > due / 2 - 2 * math.sqrt(repeats * due / 2)
        if flat.any() or (mass > self.least_log_z + log(LEAST_MASS)
                          and seen < LEAST_SEEN * due and not (seen and by_chance)
                          and not self.among(z, value)):
            return True
        self.ignored.append(z)
        return False

    def among(self, z: Array, value: float = -np.inf) -> bool:
        """Return whether a point (d,) is as near to draws as most of these are to each other.

        One of these must have about its log density `value`, if that is given, or more.
        """
        points = self.places / self.sd
        some = points[:: max(1, len(points) // SOME)]

        def nearest(point: Array, n: int) -> tuple[NDArray[np.intp], float]:
            squares = ((points - point) ** 2).sum(axis=1)
            rows = np.argpartition(squares, n - 1)[:n]
            return rows, float(squares[rows].max())

        if len(points) <= NEAREST:
            return False
        usual = np.quantile([nearest(one, NEAREST + 1)[1] for one in some], MOST_OF_THEM)
        near, square = nearest(z / self.sd, NEAREST)
        return bool(square <= usual and value <= self.log_p[near].max() + LEAST_DROP)

    def joined(self, z: Array, value: float, mode: Array) -> bool:
        """Return whether the density does not fall off from z (d,) to another mode (d,)."""
        points = z + np.array([[0.25], [0.5], [0.75]]) * (mode - z)
        return bool((self.budget(points) > value - LEAST_DROP).all())


def between_bounds(coordinates: Coordinates | None, d: int) -> NDArray[np.bool_]:
    """Return the mask (d,) of the coordinates z whose logistic function is that of two bounds."""
    if coordinates is None:
        return np.zeros(d, bool)
    return np.repeat([row[0] == "interval" for row in coordinates.rows],
                     [row[3] for row in coordinates.rows])
