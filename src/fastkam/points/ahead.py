"""Prefetching: idle workers evaluate points that a waiting chain may reach next.

A chain waits for log pi(y). Given its state and its generator, its next proposal depends only on
whether y is accepted; a copy of the chain therefore continues with each of the two decisions to
the next point that is not known, and so forth. The points form a tree with probabilities

    P(node) = P(parent) * a        if the parent's point is accepted,
              P(parent) * (1 - a)  if it is rejected,

with the acceptance rate a of the chain, and idle workers evaluate the most probable ones. The
chain itself finds their values when it reaches them: its draws are the same, bit for bit.

Brockwell, A. E. (2006). Parallel Markov chain Monte Carlo simulation by pre-fetching. Journal of
Computational and Graphical Statistics 15, 246-261.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.scaled import ScaledTarget
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.group import Group
from fastkam.points.pool import PointPool
from fastkam.points.reply import Reply
from fastkam.points.target import Unevaluated, joined, missing_of

if TYPE_CHECKING:
    from fastkam.run.groups import ChainGroup
    from fastkam.run.loop import Run

Array = NDArray[np.float64]

LEAST_RATE = 0.05  # assumed acceptance rates are at least this, and at most 1 minus it
FIRST_STEPS, FIRST_RATE = 20, 0.3  # earlier steps that are assumed, and their rate
MOST_STEPS = 100  # limit for a copy of a chain between two unknown points
MOST_NODES = 16  # per chain; its next decision makes other points more probable
LAST = 1e300  # the priority of a point that may not be needed
SURE = 1e6  # assumed increase of log pi at a point that is to be accepted


class Node(NamedTuple):
    """A point that a chain reaches by certain decisions.

    Attributes
    ----------
    chance : float
        The probability of these decisions.
    state, generator : dict
        Those of the chain, which waits for the density at the point.
    point : array (d,)
        The point, in the coordinates of the user's function.
    """

    chance: float
    state: dict[str, Any]
    generator: dict[str, Any]
    point: Array


class Guess:
    """A function of one point, (1, d): its value in a pool, or an assumed value."""

    def __init__(self, pool: PointPool, gradient: bool) -> None:
        self.pool, self.gradient = pool, gradient
        self.assumed: dict[bytes, float] = {}

    def __call__(self, x: Array) -> Any:
        """Return the function's value at x, without extras; raise Unevaluated if it is unknown."""
        key = x[0].tobytes()
        value = self.assumed.get(key)
        if value is not None:
            none = np.zeros(x.shape[1]) if self.gradient else None
            return joined([Reply(value, none)])
        reply = self.pool.known(key)
        if reply is None or len(x) > 1:
            raise Unevaluated(x.copy(), self)
        return joined([reply._replace(extras=None)])


class Tree:
    """The points ahead of a waiting chain that were not examined yet, by probability.

    Attributes
    ----------
    at : int
        Number of evaluations that the chain had made.
    left : int
        Number of points that may still be examined.
    """

    def __init__(self, at: int) -> None:
        self.at, self.left = at, MOST_NODES
        self.heap: list[tuple[float, int, Node]] = []
        self.order = itertools.count()  # nodes of the same probability are not compared

    def push(self, nodes: list[Node]) -> None:
        """Add points."""
        for node in nodes:
            heapq.heappush(self.heap, (-node.chance, next(self.order), node))

    def pop(self) -> Node:
        """Remove and return the most probable point."""
        return heapq.heappop(self.heap)[2]

    @property
    def best(self) -> float:
        """The probability of that point; 0 if there is none, or if enough were examined."""
        return -self.heap[0][0] if self.heap and self.left else 0.0


class Ahead:
    """The submission of points that chains may reach to idle workers.

    Chains that adapt are excluded, since what they learn depends on the density at each proposal.
    So are chains that wait for several points at a time, and those with a surrogate.

    Parameters
    ----------
    pool : PointPool
        The pool in which points are evaluated.
    target : Target
        A target whose function is `guess`.
    guess : Guess
    """

    def __init__(self, pool: PointPool, target: Any, guess: Guess) -> None:
        self.pool, self.target, self.guess = pool, target, guess
        self.trees: dict[ChainGroup, Tree] = {}

    def fill(self, run: Run, stopped: dict[ChainGroup, Array]) -> None:
        """Submit points of the chains that wait, the most probable first, to the idle workers.

        Parameters
        ----------
        run : Run
        stopped : dict of ChainGroup to array (n, d)
            The points at which groups of chains have been stopped, in the user's coordinates.
        """
        idle = (self.pool.carrier.workers or 0) - self.pool.waiting
        if idle <= 0 or run.target.surrogate is not None:
            return
        self.trees = {group: self.tree(run, group, points[0]) for group, points in stopped.items()
                      if len(points) == 1 and can_be_guessed(group)}
        while idle > 0:
            group = max(self.trees, key=lambda one: self.trees[one].best, default=None)
            if group is None or not self.trees[group].best:
                return
            tree = self.trees[group]
            node = tree.pop()
            tree.left -= 1
            if not self.pool.is_waiting(node.point):
                self.pool.submit(node.point[None], LAST)
                idle -= 1
            if tree.left:
                tree.push(self.after(run, group, node))

    def tree(self, run: Run, group: ChainGroup, point: Array) -> Tree:
        """The tree of a chain that waits at a point; the earlier tree if it still waits there."""
        chain = group.chains[0]
        known = self.trees.get(group)
        if known is not None and known.at == chain.n_evaluations:
            return known
        made = Tree(chain.n_evaluations)
        made.push(self.after(
            run, group, Node(1.0, chain.state(), dict(chain.bit_generator.state), point)))
        return made

    def after(self, run: Run, group: ChainGroup, node: Node) -> list[Node]:
        """The nodes that follow a rejection of the point of `node`, and its acceptance."""
        rate = rate_of(group)
        outcomes = [(-np.inf, 1 - rate)]
        if not run.past.sampler.needs_gradient:  # the gradient there is not known
            outcomes.append((float(node.state["logp_x"]) + SURE, rate))
        found = []
        for value, chance in outcomes:
            self.guess.assumed = {node.point.tobytes(): value}
            reached = self.reached(run, group.indices[0], node, node.chance * chance)
            if reached is not None:
                found.append(reached)
        return found

    def reached(self, run: Run, k: int, node: Node, chance: float) -> Node | None:
        """Return the next point at which a copy of chain k stops, under the assumptions of `node`.

        None if it does not stop, or fails: the chain itself meets the fault if it gets there.
        """
        past = run.past
        start = past.x0[k] / past.scales
        bits = getattr(np.random, past.bit_generator)()
        bits.state = node.generator
        chain = ChainState(past.own_sampler.build(start), bits, start)
        chain.keep_history(len(past.snapshot_steps))
        chain.restore(node.state)
        target = self.target.bind()
        if past.scaled:
            target = ScaledTarget(target, past.scales)
        engine = Group(target, [chain], run.plan, snapshot_steps=past.snapshot_steps)
        try:
            engine.start()
            engine.run(MOST_STEPS)
        except (Unevaluated, Fault) as error:
            points = missing_of(error, self.guess)
            if points is not None and len(points) == 1:
                return Node(chance, chain.state(), dict(chain.bit_generator.state), points[0])
        return None


def can_be_guessed(group: ChainGroup) -> bool:
    """Whether the next proposals of a group of chains depend only on its decisions."""
    chain = group.chains[0]
    return len(group.chains) == 1 and bool(chain.frozen) and bool(chain.pending)


def rate_of(group: ChainGroup) -> float:
    """An estimate of a chain's acceptance rate, which predicts its decisions."""
    chain = group.chains[0]
    rate = (chain.n_accepted + FIRST_STEPS * FIRST_RATE) / (chain.t + FIRST_STEPS)
    return float(np.clip(rate, LEAST_RATE, 1 - LEAST_RATE))
