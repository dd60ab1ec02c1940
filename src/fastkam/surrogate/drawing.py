"""Weighted draws of a learned surrogate, which is refitted if they are worse than expected.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.controls import DRAWS_EACH
from fastkam.diagnostics.weights import FIRST_CHECK, NORMALIZED, NOT_FALLEN, TOO_LOW
from fastkam.run.loop import ASKED
from fastkam.samplers.importance import LOG_WEIGHT
from fastkam.search.tails import logarithmic_tails, tail_indices
from fastkam.search.watch import Spent
from fastkam.surrogate.checking import Check, outside
from fastkam.surrogate.controls import ControlFunctions
from fastkam.surrogate.importance import Weighting, drawn, surrogate_run, with_weights
from fastkam.surrogate.integral import MOST_ERROR, log_integral
from fastkam.surrogate.learning import Learned, Rounds, efficiency
from fastkam.surrogate.stopping import FIRST, FURTHER, WeightedRun, reason

if TYPE_CHECKING:
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.options import RunOptions
    from fastkam.run.shapes import Layout
    from fastkam.run.state import RunState
    from fastkam.run.trace import Trace
    from fastkam.surrogate.run import Attempt

Array = NDArray[np.float64]

FIRST_LOOK = 80  # draws after which, and after each doubling, their weights decide whether the
# surrogate is kept
AGAIN = 6  # rounds in which it is refitted
LEFT = 450  # calls that must be left for that
DISAPPOINTING = 0.5  # share of the efficiency expected of them
TRIALS = 4  # surrogates that are drawn from, one after another, at most
CHECKED, MOST_CHECKED, LEAST_CHECKED = 0.05, 100, 20  # calls that check the draws: a share of the
# budget, at most and at least
OF_TAILS = 0.05  # share of the budget for tails, at most
TAIL_DISTANCES = 10.0, 30.0, 100.0  # standard deviations
MOST_LOG = 50.0  # of exp(z) over that of the mean z, whose kurtosis is computed
LONG = 4.5  # kurtosis of weighted draws above which tails are looked at; a normal density has 3


class Drawing:
    """Draws of the surrogates of a run; those of the last surrogate count.

    Attributes
    ----------
    learned : Learned or None
        The frozen surrogate.
    weighting : Weighting or None
        The draws at which the density has been called.
    state : RunState or None
        The weighted draws, once they are complete.
    """

    def __init__(
        self, done: Attempt, options: RunOptions, chains: int, draws: int,
        rng: np.random.Generator, seed: np.random.SeedSequence, bit_generator: str, layout: Layout,
        coordinates: Coordinates | None,
    ) -> None:
        self.done, self.options, self.calls = done, options, done.calls
        self.chains, self.draws, self.rng = chains, draws, rng
        self.seed, self.bit_generator, self.layout = seed, bit_generator, layout
        self.coordinates = coordinates
        self.learned: Learned | None = None
        self.weighting: Weighting | None = None
        self.run: RunState | None = None
        self.state: RunState | None = None
        self.controls: ControlFunctions | None = None
        self.log_s: Array = np.zeros((chains, 0))
        self.log_integral = 0.0  # of the surrogate, subtracted from log_s
        self.asked = 0  # rows at the last check of the stop rule
        self.stopped_by = ""
        self.limit = 0.0  # evaluations at which the stop rule ends the run, if below the budget
        self.reserved, self.of_tails = 0, 0  # calls for the checks of the draws and of the tails
        self.checked: Check | None = None
        self.left_out = 0  # points with a high density, far outside the range of the draws

    @property
    def rows(self) -> int:
        """Number of draws of each chain at which the density has been called."""
        return 0 if self.weighting is None else int(self.weighting.logp.shape[1])

    @property
    def log_weights(self) -> Array:
        """Log weights of these draws, (chains, rows), before they are calibrated."""
        assert self.weighting is not None
        return np.asarray(self.weighting.logp - self.log_s[:, : self.rows])

    @property
    def efficiency(self) -> float:
        """The efficiency of these draws."""
        return efficiency(self.log_weights.ravel())

    def carry_out(self, rounds: Rounds, budget: float) -> None:
        """Draw, learn again as long as needed, and draw until there are enough draws."""
        d = len(rounds.center)
        many = 6 * d + 2 * d * (d - 1)
        if many <= OF_TAILS * budget:
            self.of_tails = many
            budget -= many
            self.calls.budget -= self.of_tails
        for k in range(TRIALS):
            self.reserved = int(min(CHECKED * budget, MOST_CHECKED, max(0.0, self.calls.left)))
            self.calls.budget -= self.reserved
            self.begin(rounds.final())
            if self.tried() or k == TRIALS - 1 or self.calls.n + rounds.batch > budget - LEFT:
                break
            most = min(self.calls.n + AGAIN * rounds.batch, budget - LEFT)
            assert self.learned is not None
            rounds.begin_again(
                self.checked and self.checked.worst(self.learned.density, rounds.batch))
            self.calls.budget = budget
            self.calls.evaluator.watch.drawn, self.calls.evaluator.watch.requested = 0, 0
            with suppress(Spent):
                rounds.until_good(most)
            self.done.lines.append(f"surrogate learned again, after {self.calls.n} evaluations")
        assert self.weighting is not None
        assert self.learned is not None
        ends = rounds.ends
        if ends.unknown:
            self.done.lines.append(f"{NOT_FALLEN} at {ends.unknown} of {ends.n} ends of its "
                                   "coordinates, as far as it has been followed")
        self.complete()

    def complete(self) -> None:
        """Draw until there are enough draws."""
        assert self.weighting is not None
        assert self.learned is not None
        with suppress(Spent):
            self.until(self.weighting.x.shape[1])
        if self.rows:
            self.name_the_rule()
            if self.reserved:
                with suppress(Spent):
                    self.check()
            n = self.beyond()
            if n:
                self.done.lines.append(
                    f"{TOO_LOW} at {n} of the points that chains on the tempered density reached "
                    "from its draws")
            if self.efficiency < DISAPPOINTING * self.learned.efficiency:
                self.done.lines.append(
                    f"{TOO_LOW} in places: {100 * self.efficiency:.0f} % of weighted draws count, "
                    f"and {100 * self.learned.efficiency:.0f} % did while it was learned")
            x = self.weighting.x[:, : self.rows].reshape(-1, self.weighting.x.shape[2])
            self.left_out = outside(*self.calls.finite(), x, self.weighting.logp.ravel())
            if self.left_out:
                self.done.lines.append(f"{TOO_LOW} at {self.left_out} points with a high density, "
                                       "far outside the range of its draws")
            state = self.weighted("stopped" if self.stopped_by else "complete")
            self.state = replace(state, tails=self.tails(x))

    def tails(self, x: Array) -> Array:
        """Return tail indices, (n, 2), if the weighted draws x (m, d) have long tails."""
        self.calls.budget += self.of_tails
        log_w = self.log_weights.ravel()
        w = np.exp(log_w - log_w.max())
        mean, sd, kurtosis = weighted_moments(x, w)
        of_x = of_logarithms = np.zeros((0, 2))
        if not self.of_tails or self.stopped_by:
            return of_x
        with suppress(Spent), np.errstate(invalid="ignore"):
            if self.coordinates is not None:
                sides = self.coordinates.sides
                ends = np.exp(np.minimum(sides * (x - mean), MOST_LOG))
                sides[~(weighted_moments(ends, w)[2] > LONG)] = 0  # NaN for others than logarithms
                of_logarithms = logarithmic_tails(self.calls, mean, sd, sides)
            if (kurtosis > LONG).any():
                of_x = tail_indices(self.calls, mean, sd, TAIL_DISTANCES)[0]
        return of_x if self.coordinates is None else self.coordinates.tails(of_x, of_logarithms)

    def check(self) -> None:
        """Check the draws so far, with the calls reserved for that."""
        assert self.weighting is not None
        assert self.learned is not None
        n, self.reserved = self.reserved, 0
        self.calls.budget += n
        if n >= LEAST_CHECKED and np.isfinite(self.log_weights.max()):
            x = self.weighting.x[:, : self.rows].reshape(-1, self.weighting.x.shape[2])
            self.checked = Check.made(
                self.calls, self.learned.mixture, x, self.weighting.logp.ravel(),
                self.raw_log_weights, n, self.rng)

    def beyond(self) -> int:
        """Return the number of points where the check has found s far too small."""
        if self.checked is None:
            return 0
        assert self.weighting is not None
        assert self.learned is not None
        return self.checked.beyond(
            self.learned.density, self.weighting.logp.ravel(), self.raw_log_weights)

    @property
    def raw_log_weights(self) -> Array:
        """Log weights (n,) of the draws so far, for s before it was normalized."""
        return np.asarray((self.log_weights - self.log_integral).ravel())

    def begin(self, learned: Learned) -> None:
        """Make the draws of a surrogate, at which the density is to be called.

        It is normalized, so that the mean of the weights is the integral of the density.
        """
        run = surrogate_run(
            learned, self.chains, self.seed, self.bit_generator, self.layout, self.rng)
        run = replace(run, coordinates=self.coordinates)
        rows = int(min(self.draws, max(1, self.calls.left // self.chains)))
        run = drawn(run, learned, rows)
        x = run.trace.x[:, :rows]
        log_s = learned.density.logp(x.reshape(-1, x.shape[2])).reshape(self.chains, rows)
        value, error = log_integral(learned, x, log_s, self.rng)
        # what is said of the surrogate before does not hold for this one
        self.done.lines[:] = [one for one in self.done.lines if not one.startswith(NORMALIZED)]
        if error < MOST_ERROR:
            self.done.lines.append(f"{NORMALIZED} {error:.2g}")
        known = value if error < MOST_ERROR else 0.0
        controls = ControlFunctions.of(learned, run, self.chains * rows // DRAWS_EACH)
        # together, since Ctrl-C before this keeps the draws of the surrogate before
        self.run, self.learned, self.log_integral = run, learned, known
        self.log_s, self.weighting = log_s - known, Weighting(x, self.calls)
        self.controls = controls
        self.asked, self.checked = 0, None
        self.calls.evaluator.watch.drawn, self.calls.evaluator.watch.requested = 0, rows

    def tried(self) -> bool:
        """Whether the draws have about the weights that were expected of them, and pass the check.

        This is checked repeatedly as draws are added: if s is too small in a tail, few draws show
        it.
        """
        assert self.weighting is not None
        assert self.learned is not None
        look = -(-FIRST_LOOK // self.chains)
        while look < self.weighting.x.shape[1] and not self.stopped_by:
            try:
                self.until(look)
                if self.efficiency < DISAPPOINTING * self.learned.efficiency:
                    return False
                if self.reserved and look * self.chains >= FIRST_CHECK:
                    self.check()
            except Spent:
                return True
            if self.beyond():
                return False
            look *= 2
        return True

    def until(self, rows: int) -> None:
        """Call the density at draws up to this row, or until a stop rule ends the run."""
        assert self.weighting is not None
        while self.rows < rows and not self.stopped_by:
            following = max(FIRST, int(FURTHER * self.asked) + 1)
            self.weighting.until(rows if self.options.stop is None else min(rows, following))
            if self.rows >= following:
                self.ask(self.calls.n)

    def ask(self, evaluations: float) -> None:
        """Apply the stop rule as if this number of evaluations had been made."""
        self.asked = self.rows
        past = self.weighted("running")
        run = WeightedRun(past, np.asarray(past.trace.stats[LOG_WEIGHT]), evaluations,
                          time.perf_counter() - self.options.begun)
        rule = reason(self.options.stop, run)
        self.stopped_by = "" if rule is None else repr(rule)

    def name_the_rule(self) -> None:
        """Note what has ended the draws, if they are fewer than requested."""
        if self.rows >= self.draws or self.stopped_by:
            return
        if self.options.report.asked:
            self.stopped_by = ASKED
        else:
            self.ask(self.limit)

    def weighted(self, status: str) -> RunState:
        """Return the weighted draws so far."""
        assert self.run is not None
        assert self.weighting is not None
        x = self.weighting.x[:, : self.rows]
        state = with_weights(self.run, self.log_s[:, : self.rows], self.weighting,
                             None if self.controls is None else self.controls.at(x))
        if status != "running":
            self.weighting.record(cast("Trace", state.trace))
        return replace(state, status=status, stopped_by=self.stopped_by)

    def ended(self, status: str) -> RunState:
        """Return the draws until Ctrl-C or an error; none if no surrogate has been drawn from."""
        if self.rows:
            try:
                return self.weighted(status)
            except Exception:  # of extras or derived quantities, perhaps the one that ended it
                return replace(self.weighted("running"), status=status)
        self.done.lines.append(f"{status} after {self.calls.n} evaluations, before any draw of "
                               "a surrogate")
        return replace(self.done.empty, status=status)


def weighted_moments(x: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the means, standard deviations and kurtoses of rows x (m, d) with weights w (m,)."""
    mean = np.average(x, axis=0, weights=w)
    sd = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w))
    return mean, sd, np.average((x - mean) ** 4, axis=0, weights=w) / sd**4
