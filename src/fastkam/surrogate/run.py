"""``surrogate="learn"``: weighted draws of a costly density, or the decision against them."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.fault import Fault
from fastkam.diagnostics.weights import DOES_NOT_PAY, NO_SURROGATE
from fastkam.errors import SamplingError, SamplingWarning, warn
from fastkam.run.state import RunState
from fastkam.samplers.metropolis import RandomWalk, optimal_scale
from fastkam.search.choice import spread_over
from fastkam.search.found import Known
from fastkam.search.repeated import REPEATED, differences
from fastkam.search.watch import Spent, Watch
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.climbs import starting_points, to_mass, to_maxima
from fastkam.surrogate.design import design
from fastkam.surrogate.drawing import Drawing
from fastkam.surrogate.given import given_calls, spread_of
from fastkam.surrogate.importance import no_draws
from fastkam.surrogate.learning import LEAST, Learned, Rounds

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.points.evaluations import Evaluations
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.options import RunOptions
    from fastkam.run.shapes import Layout

Array = NDArray[np.float64]
log = logging.getLogger("fastkam")

SHARE = 0.6  # of the budget that learning may take
SHARE_OF_FEW = 0.85  # the same, if there is no surrogate before
LEARNING_TIME = 0.5  # share of the time of a stop rule, unless a later run goes on with its calls
LEARNING, LEARNING_EACH = 400, 100  # most calls of learning, and further ones per dimension
MANY_LEFT_OUT = 2  # points with a high density outside its draws that rule out a surrogate
SETTLING = 20  # steps of warm-up of a chain whose proposals are several steps on the surrogate


@dataclass
class Attempt:
    """The outcome of learning.

    Attributes
    ----------
    calls : Calls
    empty : RunState
        The run without a draw.
    state : RunState or None
        The weighted draws; None if the surrogate does not pay.
    learned : Learned or None
        The frozen surrogate.
    lines : list of str
        The log of what was done.
    failure : Exception or None
        The error that ended learning: a Fault if it is an error of the density.
    """

    calls: Calls
    empty: RunState
    state: RunState | None = None
    learned: Learned | None = None
    lines: list[str] = field(default_factory=list)
    failure: Exception | None = None

    def end(self, status: str) -> None:
        """Let the run end with this status, without draws if none have been made."""
        self.state = self.state or replace(self.empty, status=status)

    def finished(self, options: RunOptions) -> RunState:
        """Return the weighted draws as a finished run."""
        assert self.state is not None
        within = sum(int(one["n_evaluations"]) for one in self.state.states)
        return replace(
            self.state, calls=self.record, search=self.lines, searched=self.calls.n - within,
            seconds=time.perf_counter() - options.begun)

    def warn(self) -> None:
        """Warn that the run continues without a surrogate."""
        log.info("surrogate: %s", self.lines[-1])
        warn(SamplingWarning(
            f"{self.lines[-1]}: the run continues without one. All calls are in "
            "result.state.calls"))

    @property
    def record(self) -> Array:
        """Points and log densities of all calls of this run, (n, d + 1)."""
        X, y = self.calls.all()
        return np.column_stack([X, y])[self.calls.given :]


def attempt(
    target: Target, points: Array, chains: int, draws: int, rng: np.random.Generator,
    known: Known | None, budget: float, options: RunOptions, seed: np.random.SeedSequence,
    bit_generator: str, layout: Layout, coordinates: Coordinates | None,
    stored: Evaluations | None, *, weigh: bool, go_on: bool,
) -> Attempt:
    """Learn a surrogate and, with `weigh`, make weighted draws of it.

    The surrogate is fitted to the stored calls of an earlier run, too. With `go_on`, the run can
    continue without the surrogate, so that draws with bad weights are discarded. After Ctrl-C the
    result has the draws so far, possibly none.
    """
    watch = Watch(options, chains, share=1.0)
    limit = watch.most_evaluations if watch.most_evaluations < budget else 0.0
    budget = min(budget, watch.most_evaluations)
    pool = options.desk.pool if options.on_points else None
    calls = Calls(target, rng, budget, watch, pool)
    calls.evaluator.spread = spread_over(options.for_chains, target)
    empty = no_draws(points, chains, seed, bit_generator, layout)
    done = Attempt(calls, replace(empty, coordinates=coordinates))
    drawing = Drawing(done, options, chains, draws, rng, seed, bit_generator, layout, coordinates)
    drawing.limit = limit
    known = known or Known()
    given = None if stored is None else given_calls(stored, layout.labels, coordinates, known, rng)
    try:
        with watch, np.errstate(all="ignore"):
            if given is not None:
                calls.take(given)
            rounds = learn(calls, points, known, rng, budget, done)
            if rounds is None:
                return done
            if not weigh:
                done.learned = rounds.final()
                return done
            drawing.carry_out(rounds, budget)
    except KeyboardInterrupt:
        done.state = drawing.ended("interrupted")
        return done
    except Exception as error:
        cause = error.cause if isinstance(error, Fault) else None
        if isinstance(cause, KeyboardInterrupt):
            done.state = drawing.ended("interrupted")
            return done
        if calls.n <= min(1, calls.given) or not (cause is None or isinstance(cause, Exception)):
            raise
        done.state, done.failure = drawing.ended("failed"), error
        if isinstance(error, SamplingError) and isinstance(error.__cause__, Exception):
            done.failure = error.__cause__  # of the progress function
        return done
    if go_on and drawing.left_out >= MANY_LEFT_OUT:
        done.lines.append(f"{DOES_NOT_PAY}: it leaves out a part of the distribution, after "
                          f"{calls.n} evaluations")
        return done
    if go_on and drawing.rows and drawing.efficiency < LEAST:
        done.lines.append(f"{DOES_NOT_PAY}: {100 * drawing.efficiency:.0f} % of weighted "
                          f"draws count, after {calls.n} evaluations")
        return done
    if drawing.rows:
        done.learned, done.state = drawing.learned, drawing.state
    else:
        done.lines.append(f"stop left nothing for draws of the surrogate, after {calls.n} "
                          "evaluations")
    return done


def learn(
    calls: Calls, points: Array, known: Known, rng: np.random.Generator, budget: float,
    done: Attempt,
) -> Rounds | None:
    """Return the rounds after the first points; None if no surrogate pays.

    At most 60 % of the budget are used, or 85 % if there is no surrogate before; more than 400 +
    100 d calls after the climbs only if some ends of the density are still unknown. The way from a
    start that is far from the mass does not count. There are no climbs if enough calls are given.
    """
    watch = calls.evaluator.watch
    calls.budget, whole = SHARE_OF_FEW * budget, calls.budget
    end = watch.until
    if not watch.keeps_calls:
        watch.until = watch.begun + LEARNING_TIME * (end - watch.begun)
    rounds: Rounds | None = None
    more = " (more calls may give one)"
    try:
        factor = spread_of(*calls.all())
        way, left = calls.n, budget - calls.n
        if factor is None:
            starts = starting_points(calls, points, known.prior, rng)
            scales = to_mass(calls, starts).scales
            way, left = calls.n, budget - calls.n
            factor = to_maxima(calls, starts, scales)
        most = calls.n + LEARNING + LEARNING_EACH * points.shape[1]
        longest = way + SHARE * left
        at_last = max(longest, min(most, way + SHARE_OF_FEW * left))
        calls.budget = at_last
        center, factor = design(calls, factor, rng)
        done.lines += [f"design of the surrogate, after {calls.n} evaluations"]
        X, y = calls.finite()
        if calls.room >= REPEATED:
            best = np.argsort(y)[-1:]
            with watch.repeating():
                done.lines += differences(calls, X[best], y[best])
        rounds = Rounds(calls, rng, center, factor)
        calls.budget = longest
        with suppress(Spent):
            rounds.until_good(min(most, longest))
        if rounds.learned is None or rounds.learned.efficiency < LEAST:
            calls.budget = at_last
            rounds.until_good(min(most, at_last))
        elif rounds.ends.unknown:
            rounds.until_good(longest)
    except Spent:
        pass
    except (np.linalg.LinAlgError, ValueError) as error:  # of a fit to values without curvature
        log.info("surrogate: %s", error)
        rounds, more = None, ""
    finally:
        calls.budget, watch.until = whole, end
    if watch.options is not None and watch.options.report.asked:
        more = " (Progress.stop() was called)"
    if rounds is None or rounds.learned is None:
        done.lines.append(f"{NO_SURROGATE}, after {calls.n} evaluations{more}")
        return None
    E = rounds.learned.efficiency
    if E < LEAST:
        done.lines.append(f"{DOES_NOT_PAY}: {100 * E:.0f} % of weighted draws would count, "
                          f"after {calls.n} evaluations")
        return None
    done.lines.append(f"surrogate learned in {rounds.rounds} rounds, {100 * E:.0f} % of "
                      f"weighted draws count, after {calls.n} evaluations")
    return rounds


class FrozenWalk(NamedTuple):
    """A random walk for chains on the surrogate, their starting points, and steps of their warm-up.
    """

    sampler: RandomWalk
    points: Array
    tune: int


def frozen_walk(done: Attempt, chains: int) -> FrozenWalk:
    """Return a random walk with the covariance of the surrogate, which does not adapt further."""
    assert done.learned is not None
    window = done.learned.window
    states = window.x[window.second_half].reshape(-1, window.x.shape[2])
    d = states.shape[1]
    cov = np.cov(states.T).reshape(d, d)
    last = window.x[-1]
    return FrozenWalk(RandomWalk(proposal_cov=optimal_scale(d) * cov),
                      last[np.arange(chains) % len(last)], SETTLING)
