"""RunState: the configuration of a run, the states of its chains, and what they have recorded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import near, shown
from fastkam.run.lazy import mapped

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel
    from fastkam.diagnostics.controls import Controls
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.shapes import Layout
    from fastkam.run.stored import StoredTrace
    from fastkam.run.trace import Trace
    from fastkam.samplers import Sampler
    from fastkam.schedules import Schedule

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
STATUSES = ("new", "running", "complete", "stopped", "interrupted", "failed")
MOST_SNAPSHOTS = 50
HISTORY_BYTES = 2**23  # for a chain's snapshots of learned fields, if there are more than two
LEAST_SNAPSHOTS, LARGE_BYTES = 2, 2**26  # if two take more than that, there are none
NOWHERE = np.zeros((0, 0))  # `RunState.unvisited` without a place


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RunState:
    """Everything needed to continue a run, except the density.

    Attributes
    ----------
    sampler : Sampler
    schedule : Schedule
    x0 : ndarray, shape (chains, d)
        Starting points of the chains.
    tune, thin : int
        Number of warm-up steps, and of steps for each recorded draw.
    keep_warmup, share : bool
    requested : int
        Number of requested draws in each chain.
    undecided : int
        If `thin` has not been chosen yet, the number of draws after which it is; otherwise 0.
    budget : int
        The number of evaluations within which the run continues until its draws suffice; 0 if the
        number of draws was given.
    budget_from : int
        The number of evaluations before the budget began: that of calls that had ended.
    reserved : int
        Of a budget that the user gave, the evaluations for calls that the run does not count; 0
        for the default, which does not limit a run with a stop rule.
    by_gradients : bool
        Whether the run ends by computing the moments that gradients at its draws imply.
    may_tune : bool
        Whether warm-up may be made longer if the adaptation has not settled.
    seed : SeedSequence
        Chain k uses its k-th child.
    bit_generator : str
    layout : Layout
        The named parameters of x.
    coordinates : Coordinates or None
        The map from the sampler's points to the user's; None if they are the same.
    trace, warmup : Trace
        Draws, and states of warm-up.
    snapshot_steps : ndarray of int, shape (n,)
        The steps of warm-up after which learned fields are stored.
    scales : ndarray, shape (d,)
        The units of the coordinates within the sampler.
    search : list of str
        The protocol of the search for starting points, scales and a sampler.
    searched : int
        Number of evaluations of the search, and of those for `implied` and `unvisited`.
    tails : ndarray, shape (n, 2)
        k and a for each coordinate k whose tails fall off as a power: P(|x_k| > R) ~ R^-a.
    is_density : bool
        Whether the likelihood looked, in the search, like a density and not like its logarithm.
    implied : ndarray, shape (n, 4)
        For each coordinate of the user, the mean, its error, the standard deviation and its error
        that gradients at draws imply (`fastkam.diagnostics.identities`); n = 0 if these were not
        computed.
    proper : ndarray of int, shape (n,)
        The coordinates of the user whose draws reach the ends of the range of numbers, where
        priors prove that the integral is finite (`fastkam.diagnostics.ends`).
    unvisited : ndarray, shape (1, d + 2) or (0, 0)
        A place that no chain has visited, if evaluations after the run have found one: the point z,
        its log density, and its estimated mass in parts of that of the draws, or NaN for a mode.
    calls : ndarray, shape (n, d + 1), or None
        For a run with a learned surrogate, the points at which the density was evaluated, with the
        log densities, in order; otherwise None.
    controls : Controls or None
        For weighted draws with calibrated weights, the controls that calibrate them
        (`fastkam.diagnostics.controls`); otherwise None.
    states : list of dict
        The state of each chain, {name: array}, in units of the scales; empty before the first step.
    generators : list of dict
        The state of each chain's bit generator; empty before the first step.
    seconds : float
        Wall-clock time so far.
    status : str
        "new", "running", "complete", "stopped", "interrupted" or "failed".
    stopped_by : str
        The repr of the rule that ended the run; "" if no rule did.
    wrong_gradient : str
        How the gradient disagreed with the density before the run; "" if it agreed or was not
        checked.
    """

    sampler: Sampler
    schedule: Schedule
    x0: NDArray[np.float64]
    tune: int
    thin: int
    keep_warmup: bool
    share: bool
    requested: int
    seed: np.random.SeedSequence
    bit_generator: str
    layout: Layout
    trace: Trace | StoredTrace
    warmup: Trace | StoredTrace
    snapshot_steps: NDArray[np.int64]
    scales: NDArray[np.float64]
    search: list[str] = field(default_factory=list)
    searched: int = 0
    tails: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    is_density: bool = False
    implied: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 4)))
    proper: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    unvisited: NDArray[np.float64] = field(default_factory=lambda: NOWHERE)
    calls: NDArray[np.float64] | None = None
    controls: Controls | None = None
    states: list[dict[str, NDArray[Any]]] = field(default_factory=list)
    generators: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    status: str = "new"
    stopped_by: str = ""
    wrong_gradient: str = ""
    undecided: int = 0
    budget: int = 0
    budget_from: int = 0
    reserved: int = 0
    by_gradients: bool = False
    may_tune: bool = False
    coordinates: Coordinates | None = None

    @property
    def scaled(self) -> bool:
        """Whether any scale is not 1."""
        return bool((self.scales != 1).any())

    @property
    def own_sampler(self) -> Sampler:
        """The sampler with which kernels are built, in units of the scales."""
        return self.sampler.in_units(self.scales)

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.x0)

    @property
    def d(self) -> int:
        """Dimension of the point."""
        return int(self.x0.shape[1])

    @property
    def evaluated(self) -> int:
        """Number of evaluations that the chains have made."""
        return sum(int(one["n_evaluations"]) for one in self.states)

    @property
    def evaluations(self) -> int:
        """Number of all evaluations, those of the search and of implied moments included."""
        return self.searched + self.evaluated

    @property
    def budget_end(self) -> int:
        """Number of all evaluations at which the budget is used up."""
        return self.budget_from + self.budget

    def constrain(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The user's points (..., d) of the sampler's points z."""
        return z if self.coordinates is None else self.coordinates.constrain(z)

    def constrained(self, draws: Any) -> Any:
        """The user's points of draws (chains, draws, d), computed when read if in a store."""
        return draws if self.coordinates is None else mapped(draws, self.coordinates.constrain)

    def in_one_period(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points z (..., d) with their periodic coordinates in one period."""
        if self.coordinates is None or not self.coordinates.repeats:
            return z
        return self.coordinates.wrapped(z)

    def lp(self, step: int = 1) -> NDArray[np.float64]:
        """The log density at every `step`-th draw, (chains, n), without the weights of periods."""
        trace = self.trace
        values = trace.logp[:, : trace.rows : step]
        if self.coordinates is None or not self.coordinates.repeats:
            return values
        return np.asarray(values - self.coordinates.log_weight(trace.x[:, : trace.rows : step]))

    def offending(self, kind: int) -> NDArray[np.float64]:
        """The first points that were rejected for the `kind`-th reason, (n, d)."""
        points = np.concatenate([one["offending"][kind] for one in self.states]) * self.scales
        return np.asarray(points[~np.isnan(points).all(axis=1)])

    def generator(self, k: int) -> Any:
        """The bit generator of chain `k`, in its present state."""
        bits = getattr(np.random, self.bit_generator)(child(self.seed, k))
        if self.generators:
            bits.state = self.generators[k]
        return bits

    def select(self, chains: list[int], *, draws_from: int = 0, warmup_from: int = 0) -> RunState:
        """The run of some chains, a list of indices, which continues as the whole run would.

        Their draws begin with the row `draws_from`, those of warm-up with `warmup_from`. If chains
        share their adaptation, all must be in the list.
        """
        return replace(
            self,
            x0=self.x0[chains],
            trace=self.trace.select(chains, draws_from),
            warmup=self.warmup.select(chains, warmup_from),
            controls=None,
            states=[self.states[k] for k in chains] if self.states else [],
            generators=[self.generator(k).state for k in chains],
        )


def snapshot_steps(kernel: Kernel, tune: int) -> NDArray[np.int64]:
    """The steps of warm-up at which learned fields are stored, at most 50, (n,)."""
    size = max(1, 8 * sum(value.size for value in kernel.learned().values()))
    least = LEAST_SNAPSHOTS if LEAST_SNAPSHOTS * size <= LARGE_BYTES else 0
    n = min(MOST_SNAPSHOTS, tune, max(least, HISTORY_BYTES // size))
    return np.array([-(-i * tune // n) for i in range(1, n + 1)], np.int64)  # the last is tune


def check_bit_generator(name: Any) -> str:
    """Return `name` if it is a bit generator of numpy.random."""
    if not isinstance(name, str) or name not in BIT_GENERATORS:
        raise ValueError(f"bit_generator must be one of {list(BIT_GENERATORS)}, not {shown(name)}"
                         f"{near(name, BIT_GENERATORS)}")
    return str(name)


def child(seed: np.random.SeedSequence, k: int) -> np.random.SeedSequence:
    """The k-th of the next children of ``seed.spawn``, without changing `seed`."""
    return np.random.SeedSequence(
        seed.entropy,
        spawn_key=(*seed.spawn_key, seed.n_children_spawned + k),
        pool_size=seed.pool_size,
    )
