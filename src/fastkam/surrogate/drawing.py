"""Weighted draws of a learned surrogate, which is learnt again while they are worse than expected.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from fastkam.diagnostics.weights import TOO_LOW, systematic
from fastkam.search.watch import Spent
from fastkam.surrogate.importance import (
    Weighting,
    drawn,
    no_draws,
    surrogate_run,
    with_weights,
)
from fastkam.surrogate.learning import Chains, Learnt, Rounds, efficiency
from fastkam.surrogate.stopping import FIRST, FURTHER, WeightedRun, reason

if TYPE_CHECKING:
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.options import RunOptions
    from fastkam.run.shapes import Layout
    from fastkam.run.state import RunState
    from fastkam.run.trace import Trace
    from fastkam.surrogate.run import Attempt

Array = NDArray[np.float64]

FIRST_LOOK = 80  # draws after which, and after each twice as many, their weights decide whether
# the surrogate stays
AGAIN = 6  # rounds in which it is learnt again
LEFT = 450  # calls that must be left for that
DISAPPOINTING = 0.5  # share of the efficiency expected of them
TRIALS = 4
CHECKED, MOST_CHECKED, LEAST_CHECKED = 0.05, 100, 20  # calls that check the draws: a share of the
# budget, at most and at least
ABOVE = 0.01  # share of the sum of the weights that is above the level looked at
FALSE_ALARM = 1e-3


class Drawing:
    """Draws of the surrogates of a run, the last of which counts.

    Attributes
    ----------
    learnt : Learnt or None
        The frozen surrogate.
    weighting : Weighting or None
        Its draws, as far as the density has been called at them.
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
        self.learnt: Learnt | None = None
        self.weighting: Weighting | None = None
        self.run: RunState | None = None
        self.state: RunState | None = None
        self.log_s: Array = np.zeros((chains, 0))
        self.asked = 0  # rows after which the stop rule has last been asked
        self.stopped_by = ""
        self.reserved = 0  # calls for the check of the draws

    @property
    def rows(self) -> int:
        """Draws a chain at which the density has been called."""
        return 0 if self.weighting is None else int(self.weighting.logp.shape[1])

    @property
    def log_weights(self) -> Array:
        """Of these draws, (chains, rows)."""
        assert self.weighting is not None
        return np.asarray(self.weighting.logp - self.log_s[:, : self.rows])

    @property
    def efficiency(self) -> float:
        """The share of these draws that count."""
        return efficiency(self.log_weights.ravel())

    def carry_out(self, rounds: Rounds, budget: float) -> None:
        """Draw, learn again while that is called for, and draw until there is enough."""
        self.reserved = int(min(CHECKED * budget, MOST_CHECKED))
        self.calls.budget -= self.reserved
        for k in range(TRIALS):
            self.begin(rounds.final())
            most = min(self.calls.n + AGAIN * rounds.batch, budget - LEFT)
            if self.tried() or k == TRIALS - 1 or self.calls.n > most:
                break
            rounds.begin_again()
            with suppress(Spent):
                rounds.until_good(most)
            self.done.lines.append(f"surrogate learnt again, after {self.calls.n} evaluations")
        assert self.weighting is not None
        assert self.learnt is not None
        with suppress(Spent):
            self.until(self.weighting.x.shape[1])
        if self.rows:
            with suppress(Spent):
                self.check()
            if self.efficiency < DISAPPOINTING * self.learnt.efficiency:
                self.done.lines.append(
                    f"{TOO_LOW} in places: {100 * self.efficiency:.0f} % of weighted draws count, "
                    f"and {100 * self.learnt.efficiency:.0f} % did while it was learnt")
            self.state = self.weighted("stopped" if self.stopped_by else "complete")

    def check(self) -> None:
        """Take a step of chains on the density from weighted draws, and look where they come to.

        Draws resampled by their weights, and moved by steps that leave the density invariant, are
        still draws of it, and the share of them with a log weight above a level is that of the
        weighted draws. A region where s is far too small, which few draws show, is entered so from
        the side.
        """
        assert self.weighting is not None
        assert self.learnt is not None
        lw = self.log_weights
        reserved, self.calls.budget = self.calls.budget, self.calls.budget + self.reserved
        try:
            if not np.isfinite(lw.max()) or self.reserved < LEAST_CHECKED:
                return
            X = self.weighting.x[:, : self.rows].reshape(-1, self.weighting.x.shape[2])
            rows = systematic(lw.ravel(), self.reserved, self.rng)
            chains = Chains(X[rows].copy(), self.weighting.logp.ravel()[rows],
                            float(np.log(2.38 / np.sqrt(X.shape[1]))))
            y = chains.propose(self.learnt.mixture, self.rng)
            chains.decide(y, self.calls(y), self.rng)
        finally:
            self.calls.budget = reserved
        found = chains.logp - self.learnt.density.logp(chains.x)
        n = above_expected(lw, found)
        if n:
            self.done.lines.append(f"{TOO_LOW} at {n} of {len(found)} points to which chains on "
                                   f"the density came from its draws, after {self.calls.n} "
                                   "evaluations")

    def begin(self, learnt: Learnt) -> None:
        """Make the draws of a surrogate, at which the density is to be called."""
        run = surrogate_run(
            learnt, self.chains, self.seed, self.bit_generator, self.layout, self.rng)
        run = replace(run, coordinates=self.coordinates)
        rows = int(min(self.draws, max(1, self.calls.left // self.chains)))
        self.run, self.learnt = drawn(run, learnt, rows), learnt
        x = self.run.trace.x[:, :rows]
        log_s = learnt.density.logp(x.reshape(-1, x.shape[2]))
        self.log_s = log_s.reshape(self.chains, rows)
        self.weighting, self.asked = Weighting(x, self.calls), 0

    def tried(self) -> bool:
        """Whether the draws have about the weights that were expected of them.

        Looked at after more and more draws: where s is too small in a tail, few draws show it.
        """
        assert self.weighting is not None
        assert self.learnt is not None
        look = -(-FIRST_LOOK // self.chains)
        while look < self.weighting.x.shape[1] and not self.stopped_by:
            try:
                self.until(look)
            except Spent:
                return True
            if self.efficiency < DISAPPOINTING * self.learnt.efficiency:
                return False
            look *= 2
        return True

    def until(self, rows: int) -> None:
        """Call the density at draws up to this row; fewer where a stop rule says so."""
        assert self.weighting is not None
        while self.rows < rows and not self.stopped_by:
            following = max(FIRST, int(FURTHER * self.asked) + 1)
            self.weighting.until(rows if self.options.stop is None else min(rows, following))
            if self.rows >= following:
                self.ask()

    def ask(self) -> None:
        """Ask the stop rule."""
        self.asked = self.rows
        run = WeightedRun(self.weighted("running"), self.log_weights, self.calls.n,
                          time.perf_counter() - self.options.begun)
        rule = reason(self.options.stop, run)
        self.stopped_by = "" if rule is None else repr(rule)

    def weighted(self, status: str) -> RunState:
        """The weighted draws so far."""
        assert self.run is not None
        assert self.weighting is not None
        state = with_weights(
            self.run, self.log_s[:, : self.rows], self.weighting.logp, self.weighting.made)
        if status != "running":
            self.weighting.record(cast("Trace", state.trace))
        return replace(state, status=status, stopped_by=self.stopped_by)

    def interrupted(self, points: Array) -> RunState:
        """The draws until Ctrl-C; none where the surrogate was being learnt."""
        if self.rows:
            return self.weighted("interrupted")
        self.done.lines.append(f"interrupted after {self.calls.n} evaluations, before any draw of "
                               "a surrogate")
        return replace(no_draws(points, self.chains, self.seed, self.bit_generator, self.layout),
                       coordinates=self.coordinates, status="interrupted")


def above_expected(log_weights: Array, found: Array) -> int:
    """How many of the log weights `found` (n,) are too high for draws of the density; else 0.

    The level is that above which 1 % of the sum of the weights of `log_weights` (chains, rows) is,
    with the error of that share. It is 0 as well where the number has a probability of 0.001 or
    more.
    """
    lw = np.sort(log_weights.ravel())[::-1]
    w = np.exp(lw - lw[0])
    share = np.cumsum(w) / w.sum()
    at = int(np.searchsorted(share, ABOVE))
    expected = share[at] + 2 * np.sqrt(share[at] * (w @ w)) / w.sum()
    n = int((found > lw[at]).sum())
    return n if binom.sf(n - 1, len(found), min(expected, 1.0)) < FALSE_ALARM else 0
