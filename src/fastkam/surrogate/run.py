"""``surrogate="learn"``: from a costly density to weighted draws, or to word that it does not pay.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fastkam.errors import SamplingWarning, warn
from fastkam.run.state import RunState
from fastkam.samplers.metropolis import RandomWalk, optimal_scale
from fastkam.search.choice import spread_over
from fastkam.search.found import Known
from fastkam.search.search import Searcher
from fastkam.search.watch import Spent, Watch
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.design import design
from fastkam.surrogate.importance import Weighting, drawn, surrogate_run, with_weights
from fastkam.surrogate.learning import LEAST, Learnt, Rounds, efficiency

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.options import RunOptions
    from fastkam.run.shapes import Layout

Array = NDArray[np.float64]
log = logging.getLogger("fastkam")

SHARE = 0.6  # of the budget that learning may take
LEARNING_TIME = 0.5  # share of the time of a stop rule
LEARNING, LEARNING_EACH = 300, 90  # calls of learning, and a dimension, at most
LOOKS = (80, 200, 500, 1000)  # draws after which their weights decide whether the surrogate stays
AGAIN = 6  # rounds in which it is learnt again
LEFT = 450  # calls that must be left for that
DISAPPOINTING = 0.5  # share of the efficiency expected of them
TRIALS = 3
SETTLING = 20  # steps of warm-up of a chain whose proposals are several steps on the surrogate


@dataclass
class Attempt:
    """What learning has come to.

    Attributes
    ----------
    calls : Calls
    state : RunState or None
        The weighted draws; None where the surrogate does not pay.
    learnt : Learnt or None
        The frozen surrogate.
    lines : list of str
        What was done.
    """

    calls: Calls
    state: RunState | None
    learnt: Learnt | None
    lines: list[str]

    def finished(self, coordinates: Coordinates | None, options: RunOptions) -> RunState:
        """The weighted draws as a run that is complete."""
        assert self.state is not None
        within = sum(int(one["n_evaluations"]) for one in self.state.states)
        return replace(
            self.state, coordinates=coordinates, calls=self.record, search=self.lines,
            searched=self.calls.n - within, seconds=time.perf_counter() - options.begun,
            status="complete")

    def warn(self) -> None:
        """Say that the run goes on without a surrogate."""
        log.info("surrogate: %s", self.lines[-1])
        warn(SamplingWarning(
            f"{self.lines[-1]}: the run goes on without one. All calls are in result.state.calls"))

    @property
    def record(self) -> Array:
        """Points and log densities of all calls, (n, d + 1)."""
        X, y = self.calls.all()
        return np.column_stack([X, y])


def attempt(
    target: Target, points: Array, chains: int, draws: int, rng: np.random.Generator,
    known: Known | None, budget: float, options: RunOptions, seed: np.random.SeedSequence,
    bit_generator: str, layout: Layout, *, weigh: bool, go_on: bool,
) -> Attempt:
    """Learn a surrogate; with `weigh`, make weighted draws of it too.

    With `go_on` the run may go on without it, and draws whose weights are bad are given up.
    """
    known = known or Known()
    watch = Watch(options, chains, share=1.0)
    budget = min(budget, watch.most_evaluations)
    calls = Calls(target, rng, budget, watch)
    calls.evaluator.spread = spread_over(options.for_chains, target)
    done = Attempt(calls, None, None, [])
    most = min(SHARE * budget, LEARNING + LEARNING_EACH * points.shape[1])
    with watch, threadpool_limits(1), np.errstate(all="ignore"):
        rounds = learn(calls, points, known, rng, most, done)
        if rounds is None:
            return done
        if not weigh:
            done.learnt = rounds.final()
            return done
        for k in range(TRIALS):
            learnt = rounds.final()
            state = surrogate_run(learnt, chains, seed, bit_generator, layout, rng)
            rows = int(min(draws, max(1, calls.left // chains)))
            state = drawn(state, learnt, rows)
            x = state.trace.x[:, :rows]
            log_s = learnt.density.logp(x.reshape(-1, x.shape[2])).reshape(chains, rows)
            weighting = Weighting(x, calls)
            most = min(calls.n + AGAIN * rounds.batch, budget - LEFT)
            if tried(weighting, log_s, learnt) or k == TRIALS - 1 or calls.n > most:
                break
            rounds.begin_again()
            with suppress(Spent):
                rounds.until_good(most)
            done.lines.append(f"surrogate learnt again, after {calls.n} evaluations")
        with suppress(Spent):
            weighting.until(rows)
        E = efficiency(trial_weights(weighting, log_s))
        if go_on and weighting.logp.shape[1] > 0 and E < LEAST:
            done.lines.append(f"surrogate does not pay: {100 * E:.0f} % of weighted draws count, "
                              f"after {calls.n} evaluations")
            return done
    n = weighting.logp.shape[1]
    if n == 0:
        done.lines.append(f"stop left nothing for draws of the surrogate, after {calls.n} "
                          "evaluations")
        return done
    if calls.evaluator.target.returns_extras:
        done.lines.append("extras of the density are not recorded with weighted draws")
    done.learnt = learnt
    done.state = with_weights(state, log_s[:, :n], weighting.logp, weighting.made)
    return done


def learn(
    calls: Calls, points: Array, known: Known, rng: np.random.Generator, most: float, done: Attempt
) -> Rounds | None:
    """Design and rounds; None where they do not come to a surrogate that pays."""
    searcher = Searcher(calls.evaluator.target, points, rng, known, None, calls.evaluator.watch)
    searcher.evaluate = calls  # type: ignore[assignment]
    watch = calls.evaluator.watch
    calls.budget, whole = most, calls.budget
    watch.until, end = watch.begun + LEARNING_TIME * (watch.until - watch.begun), watch.until
    rounds: Rounds | None = None
    try:
        centre, factor = design(calls, searcher, points, known, rng)
        done.lines += [f"design of the surrogate, after {calls.n} evaluations"]
        rounds = Rounds(calls, rng, centre, factor)
        rounds.until_good(most)
    except Spent:
        pass
    except (np.linalg.LinAlgError, ValueError) as error:  # of a fit to values of no curve
        log.info("surrogate: %s", error)
        rounds = None
    finally:
        calls.budget, watch.until = whole, end
    if rounds is None or rounds.learnt is None:
        done.lines.append(f"no surrogate was found, after {calls.n} evaluations")
        return None
    E = rounds.learnt.efficiency
    if E < LEAST:
        done.lines.append(f"surrogate does not pay: {100 * E:.0f} % of weighted draws would count, "
                          f"after {calls.n} evaluations")
        return None
    done.lines.append(f"surrogate learnt in {len(rounds.forecasts)} rounds, {100 * E:.0f} % of "
                      f"weighted draws count, after {calls.n} evaluations")
    return rounds


def trial_weights(weighting: Weighting, log_s: Array) -> Array:
    """Logs of the weights of the draws until now."""
    return (weighting.logp - log_s[:, : weighting.logp.shape[1]]).ravel()


def tried(weighting: Weighting, log_s: Array, learnt: Learnt) -> bool:
    """Whether the first draws have about the weights that were expected of them.

    Looked at after more and more draws: where s is too small in a tail, few draws show it.
    """
    chains, rows, _ = weighting.x.shape
    for n in LOOKS:
        try:
            weighting.until(min(rows, -(-n // chains)))
        except Spent:
            return True
        if efficiency(trial_weights(weighting, log_s)) < DISAPPOINTING * learnt.efficiency:
            return False
    return True


class FrozenWalk(NamedTuple):
    """A random walk for the surrogate's chains, where they start, and steps until they forget it.
    """

    sampler: RandomWalk
    points: Array
    tune: int


def frozen_walk(done: Attempt, chains: int) -> FrozenWalk:
    """The walk that proposes by the covariance of the surrogate, and learns nothing more."""
    assert done.learnt is not None
    window = done.learnt.window
    states = window.x[window.second_half].reshape(-1, window.x.shape[2])
    d = states.shape[1]
    cov = np.cov(states.T).reshape(d, d)
    last = window.x[-1]
    return FrozenWalk(RandomWalk(proposal_cov=optimal_scale(d) * cov),
                      last[np.arange(chains) % len(last)], SETTLING)
