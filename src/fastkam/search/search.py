"""The search as a whole: from what a user gives to starting points, scales, shape and mixture."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.numerics.median import median
from fastkam.search import newton
from fastkam.search.ascent import Place, ascended, found_at
from fastkam.search.covering import covering, flatter_power
from fastkam.search.cut import CUT
from fastkam.search.evaluator import Evaluator
from fastkam.search.fold import take_fold, unfolded
from fastkam.search.found import Known, Prior, Search
from fastkam.search.images import try_images
from fastkam.search.implausible import Implausible
from fastkam.search.mixture import Mixture
from fastkam.search.normal import approximated
from fastkam.search.one_period import take_window
from fastkam.search.peaks import peaks
from fastkam.search.population import (
    FIRST_WINDOW,
    FITTED_STATES,
    GROWTH,
    MOST_BY_DIFFERENCES,
    Population,
    Window,
)
from fastkam.search.raw import returns_density
from fastkam.search.repeated import checked_again
from fastkam.search.scales import find_scales, first_with_density
from fastkam.search.sharpened import sharpened
from fastkam.search.tails import rising, tail_indices
from fastkam.search.unexplained import around, farthest, modes_beyond
from fastkam.search.walks import followed
from fastkam.search.watch import Spent, Watch

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.density.target import Target as AnyTarget

Array = NDArray[np.float64]

LEAST_WALKERS = 32
PRIOR_DRAWS, MOST_PRIOR_DRAWS = 1500, 6000  # number evaluated per dimension, and at most
LEAST_LOWER, LOWER = 12, 4  # draws around a peak of them: at least, and per dimension
CANDIDATES = 4  # points of which the best is where a walker starts
TRIES = 12  # rounds of candidates, each nearer than the last
SPREAD, SPREAD_STEPS = 0.25, 60  # the power of the density on which walkers spread at first
FAR_AWAY, RISING = 1e4, -1.0  # scales from the origin; the tail index where there is no tail
NEARLY_NORMAL = 0.3  # acceptance of independent proposals above which one component suffices
BENT = 3  # number of components of a bent density, at least
ROUGH = 0.6  # acceptance below which a density is less nearly normal
NORMAL_WINDOWS = 3  # in which walkers must agree on it
LEFT = 0.05  # weight of modes that walkers have left
MOST_LOOKS, FOR_LOOKS = 4, 0.75  # looks for modes, each after one that has found some; share
BRIEF_STAGES, FULL_STAGES = 10, 40  # of the approach, at most


class Searcher:
    """One search, in stages.

    Parameters
    ----------
    target : Target
    points : array (m, d)
        Points at which it begins: scales are found at the first whose density is not 0.
    rng : Generator
    known : Known, optional
        Hints about the density.
    spread : callable, optional
        Evaluates points in other processes, if the density is slow.
    watch : Watch, optional
        Reports the progress of the search, and ends it when it has used its share.
    """

    def __init__(
        self,
        target: Target,
        points: Array,
        rng: np.random.Generator,
        known: Known | None = None,
        spread: Callable[[Array, Array | None, Callable[[], None]], Any] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.evaluate = Evaluator(target, rng, watch)
        self.evaluate.spread = spread
        self.points, self.rng, self.known = points, rng, known or Known()
        self.evaluate.periods = self.known.periods
        if self.known.prior is not None and self.known.log_prior is not None:
            self.evaluate.implausible = Implausible(self.known.prior, self.known.log_prior)
        self.d = points.shape[1]
        self.lines: list[str] = []
        self.seen: list[tuple[Array, Array]] = []  # points and log densities
        self.settled, self.normal = True, False  # whether walkers agree, and on one component
        self.origin, self.level = points[0], -np.inf
        self.scales, self.flat = np.ones(self.d), np.zeros(self.d, bool)
        self.start, self.extent = self.origin, self.scales  # of the walkers, see far_away
        self.derivatives: newton.Derivatives | None = None  # by gradients, if there are any
        self.population: Population | None = None
        self.beyond: list[Mixture] = []  # fitted where walkers had been moved into other modes
        self.spent = False  # whether it has ended early
        self.looking = False  # for modes
        self.limited = False  # by the run
        self.cold: Mixture | None = None  # fitted to the last window
        self.alone = True  # whether a mode that is nearly normal is the only one

    def say(self, line: str) -> None:
        self.lines.append(f"{line}, after {self.evaluate.n} evaluations")

    def begin(self) -> None:
        """Find a point whose density is not 0, and the scales there."""
        self.origin, self.level = first_with_density(self.evaluate, self.points, self.rng)
        self.scales, self.flat = find_scales(self.evaluate, self.origin, self.level)
        self.start, self.extent = self.origin, self.scales
        self.say(f"scales {self.scales.min():.2g} to {self.scales.max():.2g}")
        if self.flat.any():
            self.say(f"the log density does not change along {np.flatnonzero(self.flat).tolist()}")

    def ascend(self) -> None:
        """Climb from points so far from the mass that the scales there are useless."""
        here = Place(self.origin, self.level, self.scales, self.flat)
        above = ascended(self.evaluate, here, self.derivatives)
        if above is here:
            return
        self.say(f"log density up by {above.logp - self.level:.3g} in a climb from far away")
        self.origin, self.level, self.scales, self.flat = above
        self.start, self.extent = self.origin, self.scales
        values = self.evaluate(self.points)
        self.points = np.array([
            ascended(self.evaluate, found_at(self.evaluate, x, value), self.derivatives).x
            if np.isfinite(value) and (x != here.x).any() else above.x
            for x, value in zip(self.points, values.tolist(), strict=True)])

    @property
    def stages(self) -> int:
        """Most stages of the approach in a full search."""
        return min(10 + 2 * self.d, FULL_STAGES)

    # ---- stages ----

    def gather(self, K: int, levels: tuple[float, ...], prior: Prior | None = None) -> Population:
        """K walkers around the points, at each of the levels in turn (in units of the scales).

        With a prior, every second walker starts at a draw from it.
        """
        lengths = np.array(levels)[np.arange(K) % len(levels)]
        centers = self.points[np.arange(K) % len(self.points)]
        x, logp = np.tile(self.origin, (K, 1)), np.full(K, -np.inf)
        width = lengths.copy()
        if prior is not None:
            x[::2], logp[::2] = self.from_prior(prior, len(x[::2]))
        for _ in range(TRIES):
            todo = np.flatnonzero(~np.isfinite(logp))
            if not len(todo):
                break
            normals = self.rng.standard_normal((len(todo), CANDIDATES, self.d))
            tried = centers[todo, None] + width[todo, None, None] * self.scales * normals
            values = self.evaluate(tried.reshape(-1, self.d)).reshape(len(todo), CANDIDATES)
            best = values.argmax(axis=1)
            x[todo] = tried[np.arange(len(todo)), best]
            logp[todo] = values[np.arange(len(todo)), best]
            width[todo] /= 4
        still = ~np.isfinite(logp)
        x[still], logp[still] = self.origin, self.level
        wrap = None if self.evaluate.periods is None else self.evaluate.periods.points
        self.population = Population(self.evaluate, x, logp, self.scales, 0.5 * lengths, self.rng,
                                     wrap, approximates=len(levels) > 1)
        return self.population

    def from_prior(self, prior: Prior, n: int) -> tuple[Array, Array]:
        """Select n of many draws from the prior, and their log densities.

        First the peaks among them, in each of which there may be another mode, for at most three
        in four; then the highest until these are half of all; the others at random.
        """
        x, logp = self.many_from_prior(prior)
        some = np.flatnonzero(np.isfinite(logp))
        best = peaks(x, logp, max(LEAST_LOWER, LOWER * self.d))[: n - n // 4]
        highest = some[np.argsort(-logp[some], kind="stable")]
        best = np.r_[best, highest[~np.isin(highest, best)][: max(0, n // 2 - len(best))]]
        others = self.rng.permutation(np.setdiff1d(some, best))[: n - len(best)]
        chosen = np.resize(np.r_[best, others], n) if len(some) else np.zeros(n, int)
        return x[chosen], logp[chosen]

    def many_from_prior(self, prior: Prior) -> tuple[Array, Array]:
        """Draws from the prior, and their log densities."""
        x = self.evaluate.wrapped(prior(min(MOST_PRIOR_DRAWS, PRIOR_DRAWS * self.d), self.rng))
        self.seen.append((x, self.evaluate(x)))
        return self.seen[-1]

    def settle(self, population: Population, most_evaluations: int) -> Window:
        """Run windows, in which walkers learn from each other, until the walkers agree.

        Unless the density is nearly normal, half of them first move on a flatter power of it, so
        that walkers in separate regions meet. The other half stay, since a narrow mode is lost on
        the flatter power.
        """
        if population.take_normal():
            window = self.agree(population, most_evaluations, normal=True)
            self.normal = self.settled and window.acceptance > NEARLY_NORMAL
        else:
            population.learn(population.window(FIRST_WINDOW))
            window = self.agree_soon(population)
        if self.normal:
            if self.known.prior is not None:  # the walkers have seen little beyond the mode
                self.many_from_prior(self.known.prior)
        else:
            population.learn(window)
            self.seen.append((population.x.copy(), population.logp.copy()))
            population.spread(SPREAD_STEPS, SPREAD)
            window = self.agree(population, most_evaluations)
        for _ in range(MOST_LOOKS):
            if not self.look_beyond(population, window):
                break
            self.normal, population.approximation = False, None
            population.forget()
            population.learn(window)
            population.learn(population.window(FIRST_WINDOW))
            if population.mixture is not None:
                self.beyond.append(population.mixture)
            window = self.agree(population, most_evaluations)
            if self.limited or self.evaluate.n > FOR_LOOKS * most_evaluations:
                break
        return window

    def mixture(self, window: Window) -> Mixture | None:
        """The mixture of a window's states, and of modes that have few walkers or have lost them.
        """
        assert self.population is not None
        q = self.population.fit(window)
        if q is None:
            return None
        for beyond in reversed(self.beyond):
            left = q.nearest(beyond.means[1:])[0] > farthest(self.d)
            weights, means, factors = (part[1:][left] for part in (
                beyond.weights, beyond.means, beyond.factors))
            if left.any():
                q = q.extended(weights / weights.sum(), means, factors, LEFT)
        return sharpened(self.evaluate, q, window, self.rng)

    def agree_soon(self, population: Population) -> Window:
        """Run a few windows, while one normal component suffices for them."""
        for left in reversed(range(NORMAL_WINDOWS)):
            window = population.window(FIRST_WINDOW)
            self.settled = window.settled()
            normal = window.acceptance > NEARLY_NORMAL and population.fitted_by_one(window)
            if self.settled or not normal or not left:
                break
            population.learn(window)
        self.normal = self.settled and normal
        if self.normal:
            self.say(f"{population.K} walkers soon agree (R-hat {window.r_hat():.2f})")
        return window

    def agree(
        self, population: Population, most_evaluations: int, *, normal: bool = False
    ) -> Window:
        """Run windows until the walkers agree, or all evaluations are spent.

        If the density has a normal approximation they need not agree closely; the windows then also
        end if the approximation turns out to be wrong.
        """
        steps = float(FIRST_WINDOW)
        while True:
            window = population.window(int(steps))
            self.settled = window.settled(normal=normal)
            if normal and window.acceptance < NEARLY_NORMAL:
                return window
            spent = self.evaluate.n + GROWTH * steps * population.K > most_evaluations
            if self.settled or spent or self.far_away(population):
                agree = "do not agree" if not self.settled else "soon agree" if normal else "agree"
                self.say(f"{population.K} walkers {agree} (R-hat {window.r_hat():.2f})")
                return window
            population.learn(window)
            steps *= GROWTH

    def far(self, population: Population) -> tuple[Array, Array]:
        """Evaluated points near the mass and far from it, (n, d), and their log densities."""
        x, logp = zip(*self.seen, *population.scouted, strict=True)
        return np.concatenate(x), np.concatenate(logp)

    def likelihood_is_density(self, population: Population) -> bool:
        """Whether the function looks like a density, near the mass and far from it."""
        x, logp = self.far(population)
        x, logp = np.vstack([x, self.origin]), np.append(logp, self.level)
        some = np.isfinite(logp)
        x, logp, known = x[some], logp[some], self.known.log_prior
        prior = np.zeros(len(x)) if known is None else np.array(known(x))
        if self.evaluate.periods is not None and self.evaluate.windowed:
            prior[:-1] -= self.evaluate.periods.log_weight(x[:-1])
        found, n = returns_density(cast("AnyTarget", self.evaluate.target), x, logp, prior)
        self.evaluate.n += n
        return found

    def look_beyond(self, population: Population, window: Window) -> bool:
        """Move walkers into modes that no walker has visited, if such modes are found."""
        q = population.fit(window)
        if q is None:
            return False
        self.seen.append(around(population, window.states()))
        x, logp = modes_beyond(population, window, q, self.far(population), self.stages)
        if not len(x):
            return False
        self.say(f"{len(x)} walkers from far away have found more")
        K = population.K
        rows, of = self.rng.permutation(K)[: K // 4], np.arange(K // 4) % len(x)
        population.x[rows], population.logp[rows] = x[of], logp[of]
        return True

    def evaluate_again(self, x: Array, logp: Array) -> None:
        """Say so if the density at points (n, d) is not what it was, or is rough, if there is time.
        """
        with suppress(Spent):
            self.lines += checked_again(self.evaluate, x, logp, self.extent)

    def chosen(self, population: Population, chains: int) -> Array:
        """Starting points of the chains: states of different walkers, if there are enough."""
        K = population.K
        return population.x[self.rng.choice(K, chains, replace=chains > K)]

    # ---- whole searches ----

    def brief(self, chains: int, *, disperse: bool) -> Search:
        """Find scales and, to disperse the chains, walkers that climb from around the points."""
        try:
            with np.errstate(all="ignore"):  # walkers on an improper density go anywhere
                return self.brief_to_its_end(chains, disperse)
        except Spent:
            return self.ended_early(chains)

    def by_gradients(self, chains: int, differentiable: Target) -> Search | None:
        """Approximate the density by a normal one: the outcome if it is nearly normal.

        Parameters
        ----------
        chains : int
        differentiable : Target
            The density in a form with gradients.
        """
        if self.known.periods is not None or self.d > MOST_BY_DIFFERENCES:
            return None
        gradients = partial(self.evaluate.gradients, target=differentiable.bind())
        self.derivatives = partial(newton.by_gradients, gradients)
        try:
            with np.errstate(all="ignore"):
                self.begin()
                population = self.gather(max(4, chains + chains % 2), levels(self.d))
                normal = approximated(population, gradients, self.origin, self.level, self.scales,
                                      chains, self.known.prior, self.stages)
        except Spent:
            normal = None
        if normal is None:
            self.lines.clear()  # the search that follows begins at the same points
            return None
        self.alone = normal.alone
        self.say(f"a normal density fits {'it' if normal.alone else 'one of several modes'}")
        self.evaluate_again(population.x, population.logp)
        return Search(normal.points, self.scales, np.flatnonzero(self.flat), self.evaluate.n,
                      steps=self.lines + self.evaluate.passed_over(), mixture=normal.mixture,
                      components=1, independent_acceptance=normal.acceptance)

    def full(self, chains: int, most_evaluations: int) -> Search:
        """Find scales, let many walkers climb, and run windows until they agree."""
        most = int(min(most_evaluations, self.evaluate.watch.most_evaluations))
        self.limited = most < most_evaluations
        try:
            with np.errstate(all="ignore"):
                return self.full_to_its_end(chains, most)
        except Spent:
            return self.ended_early(chains)

    def say_ended(self) -> None:
        self.say(f"{CUT if self.looking else 'ended early'}, since the limit of the run leaves no "
                 "more for it")

    def ended_early(self, chains: int) -> Search:
        """The outcome where the search has used up its share of the run's budget.

        The mixture is fitted to the longest window that the walkers have made, if there is one.
        """
        self.spent = True
        self.say_ended()
        points, q = self.points, self.cold
        if self.population is not None:
            points, window = self.chosen(self.population, chains), self.population.longest
            if q is None and len(window.x) >= FIRST_WINDOW // 2:
                self.population.approximation = None  # more evaluations would compare it
                q = self.population.fit(window)
        points, q = unfolded(self.evaluate, points, q, self.rng)
        return Search(points, self.scales, np.flatnonzero(self.flat), self.evaluate.n, False,
                      self.lines + self.evaluate.passed_over(), q, 0 if q is None else q.n,
                      periods=self.evaluate.periods)

    def brief_to_its_end(self, chains: int, disperse: bool) -> Search:
        self.begin()
        points = self.points
        if disperse:
            self.ascend()
            population = self.gather(max(4, chains + chains % 2), (1.0,), self.known.prior)
            population.approach(BRIEF_STAGES)
            middle = int(np.argsort(population.logp, kind="stable")[population.K // 2])
            climbed = population.logp[middle] - self.level
            if climbed > self.d / 2 + 10:
                self.origin, self.level = population.x[middle], float(population.logp[middle])
                self.scales, self.flat = find_scales(self.evaluate, self.origin, self.level)
                self.say(f"log density up by {climbed:.3g}, scales found again")
            points = self.chosen(population, chains)
        self.evaluate_again(self.origin[None], np.array([self.level]))
        return Search(points, self.scales, np.flatnonzero(self.flat), self.evaluate.n,
                      steps=self.lines + self.evaluate.passed_over())

    def full_to_its_end(self, chains: int, most_evaluations: int) -> Search:
        self.looking = True
        self.begin()
        self.ascend()
        K = max(LEAST_WALKERS, 2 * (self.d + 1))
        population = self.gather(K, levels(self.d), self.known.prior)
        # a mode may be lost when all walkers in it leave it: it can be found again from these
        self.seen.append(population.approach(self.stages))
        if len(found := self.rising(population)):
            return self.without_end(population, found)
        self.start, self.extent = population.x.mean(axis=0), np.maximum(
            population.x.std(axis=0), self.scales)
        try_images(population)
        take_window(self.evaluate, population, self.seen)
        if self.flat.all() and (population.logp == self.level).all():
            return Search(self.points, self.scales, np.flatnonzero(self.flat), self.evaluate.n,
                          False, self.lines + self.evaluate.passed_over(), is_constant=True)
        self.say("walkers have reached the mass")
        self.lines += take_fold(self.evaluate, population, self.seen, self.known)
        window = self.settle(population, most_evaluations)
        self.looking = self.limited and not self.settled
        if len(found := self.rising(population)):
            return self.without_end(population, found)
        points, cold = self.chosen(population, chains), self.mixture(window)
        self.cold = cold
        self.evaluate_again(population.x, population.logp)
        n, states = 0 if cold is None else cold.n, window.states()
        with self.evaluate.everywhere():
            tails, powers = tail_indices(self.evaluate, states.mean(axis=0), states.std(axis=0))
        if len(tails):
            self.say(f"tails that fall off as a power, x^-{powers.min():.3g}")
        power = flatter_power(tails[:, 1], powers)
        if power is not None and cold is not None:
            cold = covering(
                population, self.evaluate, cold, power, most_evaluations,
                brief=n == 1 and window.acceptance > NEARLY_NORMAL,
                bent=n >= BENT and not self.normal)
            self.say("mixture widened to cover the tails")
            some = states[:: max(1, -(-len(states) // FITTED_STATES))]
            cold, ends = followed(
                self.evaluate, some, cold, self.rng, bent=n > 1 and not self.normal,
                rough=window.acceptance < ROUGH)
            if ends:
                self.say(f"followed {'; '.join(ends)}")
        is_density = self.likelihood_is_density(population)
        points, cold = unfolded(self.evaluate, points, cold, self.rng)
        if self.looking:
            self.say_ended()
        return Search(points, self.scales, np.flatnonzero(self.flat), self.evaluate.n,
                      self.settled, self.lines + self.evaluate.passed_over(), cold, n,
                      window.acceptance, tails, periods=self.evaluate.periods,
                      is_density=is_density)

    def far_away(self, population: Population) -> bool:
        """Whether half of the walkers are so far away that the density must be improper."""
        away = np.abs(population.x - self.start) / self.extent
        return bool(median(away.max(axis=1)) > FAR_AWAY)

    def rising(self, population: Population) -> NDArray[np.intp]:
        """The coordinates along which the log density still rises where the walkers are."""
        if not self.far_away(population):
            return np.zeros(0, np.intp)
        best = population.x[population.logp.argmax()]
        return rising(self.evaluate, best, np.maximum(np.abs(best - self.origin), self.scales))

    def without_end(self, population: Population, found: NDArray[np.intp]) -> Search:
        """The outcome for a density that keeps rising."""
        self.say(f"the log density keeps rising along {found.tolist()}")
        is_density = self.likelihood_is_density(population)
        return Search(self.points, self.scales, np.flatnonzero(self.flat), self.evaluate.n,
                      False, self.lines + self.evaluate.passed_over(),
                      tails=np.column_stack([found, np.full(len(found), RISING)]),
                      is_density=is_density)


def levels(d: int) -> tuple[float, ...]:
    """Distances from the origin at which walkers start; they take d steps to halve."""
    return (1.0, 10.0, 100.0) if d <= 10 else (1.0, 10.0) if d <= 30 else (1.0, 3.0)
