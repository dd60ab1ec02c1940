"""A population of walkers, which finds the location and the shape of the mass.

Each of K walkers is a Metropolis chain. At first each climbs alone, by a random walk whose step
size it learns, so that walkers that start near different modes arrive in different modes. After
this approach they learn from each other, in windows. A step of a walker is a difference of two
others, a walk, an independent draw from a mixture fitted to the last window, or a scout of any
length (_core/numerics/walkers.pyx); all of these leave the density invariant within a window. A
window ends the search when the walkers agree with each other: when R-hat over them is small, and
their log densities no longer drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastkam._core.numerics.elementary import exp, log
from fastkam._core.numerics.walkers import INDEPENDENT, SCOUT, WALK, Walkers
from fastkam.numerics.median import median
from fastkam.samplers import modes
from fastkam.samplers.metropolis import OPTIMAL
from fastkam.search.mixture import Mixture
from fastkam.search.quadratic import Quadratic, normal_approximation, normal_by_differences

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

CLIMB_STEPS = 25  # steps of a stage of the approach
PAUSES = 1  # stages in a row in which a walker far below the others may fail to climb
WALK_TARGET = 0.3  # acceptance probability of a walk of the approach
NARROW_TARGET = 0.4  # the same of a window, whose shorter steps lead into narrow necks
FIRST_WINDOW, GROWTH = 40, 1.5  # steps of the first window; factor from one window to the next
SCOUTS = 0.07  # share of scouts
LONGEST = log(1e8)  # logarithm of the largest step size in the approach, in units of the scales
WALKS = 0.45  # share of walks
MOST_INDEPENDENT = 0.55  # share of independent proposals
DEEPEST = 0.5  # points of a normal approximation, in units of the largest plausible drop
MOST_ROUNDS, MOST_DIMENSIONS = 6, 60  # of a normal approximation by a fit
MOST_TRIED = 150  # points at which walkers have been, whether they are apart from one
MOST_ROUNDS_BY_DIFFERENCES, MOST_BY_DIFFERENCES = 2, 250  # of one by differences
AGREED, AGREED_NORMAL = 1.2, 1.5  # R-hat over walkers at which they agree
FITTED_STATES = 4000  # largest number of states to which a mixture is fitted
MOST_COMPONENTS = 32
PENALTY = 1.5  # of the log likelihood, for each parameter, as in AIC3
WORTH = 2.0  # effective states for each parameter, above which a fit may be better


@dataclass(frozen=True, eq=False, repr=False)
class Window:
    """Steps of all walkers.

    Attributes
    ----------
    x : ndarray, shape (n, K, d)
    logp : ndarray, shape (n, K)
    acceptance : float
        Mean acceptance probability of the independent proposals; NaN where there were none.
    """

    x: Array
    logp: Array
    acceptance: float

    @property
    def second_half(self) -> slice:
        return slice(len(self.x) // 2, None)

    @property
    def level(self) -> Array:
        """The median log density of each walker, (K,), in the second half."""
        return median(self.logp[self.second_half], axis=0)

    @property
    def near(self) -> NDArray[np.bool_]:
        """The walkers whose log density is not far below that of the others, (K,)."""
        return plausible(self.level, self.x.shape[2])

    def states(self) -> Array:
        """States of the near walkers in the second half, (n, d), walker by walker."""
        d = self.x.shape[2]
        return self.x[self.second_half, self.near].transpose(1, 0, 2).reshape(-1, d)

    def r_hat(self) -> float:
        """The largest R-hat over near walkers, of coordinates and log density."""
        half, near = self.second_half, self.near
        columns = np.concatenate([self.x[half, near], self.logp[half, near, None]], axis=2)
        return float(r_hat(columns).max()) if near.sum() > 1 else np.inf

    def effective(self) -> float:
        """Effective number of independent states in the second half, at least one per walker."""
        half, near = self.second_half, self.near
        x = self.x[half, near]
        variance = x.reshape(-1, x.shape[2]).var(axis=0)
        of_means = x.mean(axis=0).var(axis=0, ddof=1) / near.sum()
        return max(float((variance / np.maximum(of_means, 1e-300)).min()), float(near.sum()))

    def drift(self) -> float:
        """Increase of the median log density between the halves, in units of its spread."""
        d, near = self.x.shape[2], self.near
        first = median(self.logp[: len(self.logp) // 2, near])
        second = median(self.logp[self.second_half, near])
        return float((second - first) / np.sqrt(d / 2))

    def settled(self, *, normal: bool = False) -> bool:
        """Whether all walkers agree; with a wider bound if the density is known to be normal."""
        agreed = AGREED_NORMAL if normal else AGREED
        return bool(self.near.all() and abs(self.drift()) < 0.25 and self.r_hat() < agreed)


def plausible(level: Array, d: int) -> NDArray[np.bool_]:
    """Mask of the log densities that are not far below the median of the others."""
    middle = min(median(level), level.max())  # the former overflows near the largest numbers
    return np.asarray(level >= middle - largest_drop(d))


def largest_drop(d: int) -> float:
    """Distance below the median at which a log density is no longer plausible in d dimensions."""
    return float(d / 2 + 3 * np.sqrt(d) + 10)


def r_hat(x: Array) -> Array:
    """R-hat of x (n, K, ...) over the second axis; 1 where nothing ever changes."""
    n = len(x)
    within = x.var(axis=0, ddof=1).mean(axis=0)
    between = x.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(all="ignore"):
        ratio = np.sqrt((n - 1) / n + between / within)
    return np.where(between > 0, ratio, 1.0)


class Population:
    """K walkers.

    Parameters
    ----------
    evaluate : callable
        Log densities (n,) at points (n, d); -inf where the density is 0.
    x : array (K, d)
        Starting points of the walkers. K is even, and at least 4.
    logp : array (K,)
        The log densities there, finite.
    scales : array (d,)
    lengths : array (K,)
        Initial step sizes of the walkers, in units of the scales.
    rng : Generator
    wrap : callable, optional
        Maps points (n, d) into one period of periodic coordinates.
    approximates : bool
        Look for a normal approximation of the density. Walkers that it explains need not climb on.
    """

    def __init__(
        self,
        evaluate: Callable[[Array], Array],
        x: Array,
        logp: Array,
        scales: Array,
        lengths: Array,
        rng: np.random.Generator,
        wrap: Callable[[Array], Array] | None = None,
        *,
        approximates: bool = False,
    ) -> None:
        self.evaluate, self.rng, self.wrap = evaluate, rng, wrap
        self.x, self.logp, self.scales = x.copy(), logp.copy(), scales
        self.K, self.d = x.shape
        self.proposals = Walkers(rng, scales, self.K, OPTIMAL, SCOUTS)
        self.log_length = log(lengths)
        self.approximates = approximates and wrap is None and self.d <= MOST_BY_DIFFERENCES
        self.normal: Quadratic | None = None
        self.by_differences = False  # whether these have been tried
        self.approximation: Mixture | None = None  # the one in use
        self.mixture: Mixture | None = None
        self.independent = 0.0  # share of independent proposals
        self.forget()
        self.scouted: list[tuple[Array, Array]] = []  # points of scouts, and the log densities
        self.climbed: list[tuple[Array, Array]] = []  # the same of walkers that climb

    def forget(self) -> None:
        """Forget the longest window on the density itself, the last if there are several."""
        self.longest = Window(self.x[None][:0], self.logp[None][:0], np.nan)

    # ---- the approach ----

    def approach(self, stages: int) -> tuple[Array, Array]:
        """Let the walkers climb, and restart those that are left far below the others.

        Returns the states to which they have climbed, and the log densities.
        """
        self.climb(stages, self.explained)
        climbed = self.x.copy(), self.logp.copy()
        self.restart(~plausible(self.logp, self.d))
        return climbed

    def climb(
        self,
        stages: int,
        arrived: Callable[[Indices], NDArray[np.bool_]],
        level: float = -np.inf,
        pauses: int = PAUSES,
    ) -> None:
        """Move each walker alone while it climbs, for at most that number of stages.

        A walker far below `level`, or below the highest walker, may pause for some stages in a row.
        A walker is also done when it has arrived: `arrived` maps indices of walkers to a mask.
        """
        rows, paused = np.arange(self.K), np.zeros(self.K, int)
        for _ in range(stages):
            before = self.logp[rows].copy()
            for _ in range(CLIMB_STEPS):
                self.step_alone(rows)
            climbs = self.logp[rows] - before > 1 + 2 * np.sqrt(self.d / 2)
            below = self.logp[rows] < max(level, self.logp.max()) - largest_drop(self.d)
            paused[rows] = np.where(climbs, 0, paused[rows] + 1)
            rows = rows[paused[rows] <= np.where(below, pauses, 0)]
            if len(rows):
                rows = rows[~arrived(rows)]
            if not len(rows):
                break

    def step_alone(self, rows: Indices) -> None:
        """Make a step of each of these walkers: a walk with its own step size, or a scout's."""
        lengths = exp(self.log_length[rows]) / math.sqrt(self.d)
        y, kind = self.proposals.alone(self.x[rows], lengths)
        scouts = (kind == SCOUT).nonzero()[0]
        alpha = self.decide(rows, y, np.zeros(len(rows)), scouts, record=self.climbed)
        alpha[scouts] = WALK_TARGET
        # bounded, since they grow without limit where the density does not fall off
        self.log_length[rows] = np.minimum(
            self.log_length[rows] + alpha - WALK_TARGET, LONGEST)

    def restart(self, lost: NDArray[np.bool_]) -> None:
        """Move the lost walkers to the positions of others, drawn at random."""
        if lost.any() and not lost.all():
            source = self.rng.choice(np.flatnonzero(~lost), int(lost.sum()))
            self.x[lost], self.logp[lost] = self.x[source], self.logp[source]

    def approximate(self, rounds: int) -> Quadratic | None:
        """The normal approximation of the density, once one has been found; see quadratic.py."""
        if self.normal is not None or not self.approximates:
            return self.normal
        if self.d <= MOST_DIMENSIONS:
            self.normal = normal_approximation(
                self.evaluate, self.climbed, DEEPEST * largest_drop(self.d), rounds, self.rng)
        elif rounds > 1 or not self.by_differences:
            self.by_differences, best = True, self.logp.argmax()
            self.normal = normal_by_differences(
                self.evaluate, self.x[best], float(self.logp[best]), self.scales,
                min(rounds, MOST_ROUNDS_BY_DIFFERENCES), self.rng)
        return self.normal

    def explained(self, rows: Indices) -> NDArray[np.bool_]:
        """Mask of the walkers that are in the mode of a normal approximation."""
        found = self.approximate(1)
        if found is None:
            return np.zeros(len(rows), bool)
        near = self.logp[rows] > found.height - largest_drop(self.d)
        near[near] = ~found.apart(self.evaluate, self.x[rows[near]], self.logp[rows[near]])
        return near

    def take_normal(self) -> bool:
        """Take the normal approximation of the density for q, unless points are apart from it.

        These are plausible points at which walkers are, or have been.
        """
        found = self.approximate(MOST_ROUNDS)
        if found is None:
            return False
        x, logp = (np.concatenate(part) for part in zip(
            (self.x, self.logp), *self.climbed, strict=True))
        near = logp > median(self.logp) - largest_drop(self.d)
        if found.apart(self.evaluate, x[near], logp[near], MOST_TRIED).any():
            return False
        self.mixture = self.approximation = Mixture(*modes.with_wide(
            np.ones(1), found.mean[None], found.factor[None]))
        self.log_length[:] = log(OPTIMAL)
        self.independent = MOST_INDEPENDENT
        return True

    # ---- learning from each other ----

    def window(self, steps: int, beta: float = 1.0) -> Window:
        """Make steps of all walkers on the density to the power beta, with fixed proposals."""
        x, logp = np.empty((steps, self.K, self.d)), np.empty((steps, self.K))
        tried = accepted = 0.0
        for t in range(steps):
            for first in (0, self.K // 2):
                half = slice(first, first + self.K // 2)
                y, log_ratio, kind = self.propose(half)
                alpha = self.decide(half, y, log_ratio, (kind == SCOUT).nonzero()[0], beta)
                walks, independent = kind == WALK, kind == INDEPENDENT
                self.log_length[half][walks] += alpha[walks] - NARROW_TARGET
                tried += independent.sum()
                accepted += alpha[independent].sum()
            x[t], logp[t] = self.x, self.logp
            made = Window(x[: t + 1], logp[: t + 1], accepted / tried if tried else np.nan)
            if beta == 1 and len(made.x) >= len(self.longest.x):
                self.longest = made
        return made

    def spread(self, steps: int, beta: float) -> None:
        """Move every second walker by steps on the density to the power beta."""
        x, logp = self.x[::2].copy(), self.logp[::2].copy()
        self.learn(self.window(steps, beta))
        self.x[::2], self.logp[::2] = x, logp

    def propose(self, half: slice) -> tuple[Array, Array, Indices]:
        """Propose for one half: points, log ratios of proposal densities, kinds of proposals.

        A walk has the shape of the nearest component, which leads along a bent ridge and out to its
        ends. (It is not exactly reversible if the step changes the nearest component: the walkers
        only explore.)
        """
        others = self.x[self.K // 2 :] if half.start == 0 else self.x[: self.K // 2]
        lengths = exp(self.log_length[half]) / math.sqrt(self.d)
        most = min(self.independent + WALKS, 1 - SCOUTS)
        return self.proposals.propose(self.x[half], others, lengths, self.independent, most,
                                      self.mixture)

    def decide(
        self,
        rows: slice | Indices,
        y: Array,
        log_ratio: Array,
        scouts: Indices,
        beta: float = 1.0,
        record: list[tuple[Array, Array]] | None = None,
    ) -> Array:
        """Evaluate the points y (n, d), accept or reject each; return acceptance probabilities.

        Points of scouts are recorded.
        """
        if self.wrap is not None:
            y = self.wrap(y)
        new = self.evaluate(y)
        self.scouted.append((y[scouts], new[scouts]))
        if record is not None:
            record.append((y, new))
        old = self.logp[rows]
        alpha = exp(np.minimum(0.0, beta * (new - old) + log_ratio))
        accepted = self.rng.random(len(y)) < alpha
        self.x[rows] = np.where(accepted[:, None], y, self.x[rows])
        self.logp[rows] = np.where(accepted, new, old)
        return np.asarray(alpha)

    def learn(self, window: Window) -> None:
        """Learn the proposals of the next window from this one."""
        climbing = window.level - median(window.logp[: len(window.logp) // 2], axis=0) > 1
        self.restart(~window.near & ~climbing)
        found = self.fit(window)
        if found is None:
            return
        self.log_length[:] = log(OPTIMAL) if self.mixture is None else self.log_length.mean()
        self.mixture = found
        a = window.acceptance
        self.independent = (0.05 if a < 0.02 else 0.15 if not a > 0.1 else 0.4 if a < 0.5
                            else MOST_INDEPENDENT)

    def fitted_by_one(self, window: Window) -> bool:
        """Whether one component suffices for a window's states."""
        found = self.fit(window)
        return found is not None and found.n == 1

    def fit(self, window: Window, most: int = MOST_COMPONENTS) -> Mixture | None:
        """The mixture of a window's states, or the normal approximation if it is about as good."""
        states = window.states()
        states = states[np.isfinite(states).all(axis=1)]
        states = states[:: max(1, -(-len(states) // FITTED_STATES))]
        effective = window.effective()
        found = Mixture.fitted(states, self.rng, most, effective)
        if found is None or self.approximation is None:
            return found
        gain = (found.log_density(states) - self.approximation.log_density(states)).mean()
        of_one = modes.parameters(self.d)
        better = effective > WORTH * of_one and effective * gain > PENALTY * found.n * of_one
        return found if better or self.is_beyond(window) else self.approximation

    def is_beyond(self, window: Window) -> bool:
        """Whether a walker has ended in another mode than that of the normal approximation."""
        x, logp = window.x[-1, window.near], window.logp[-1, window.near]
        return self.normal is not None and bool(self.normal.apart(self.evaluate, x, logp).any())
