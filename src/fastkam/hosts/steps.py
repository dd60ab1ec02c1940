"""Chains that make a step when another package asks for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.scaled import ScaledTarget
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.group import Group
from fastkam.arguments import shown
from fastkam.density.forms import target_of
from fastkam.run.state import child
from fastkam.samplers import Sampler, as_sampler
from fastkam.schedules import Finite, Plan, Schedule, as_schedule

Array = NDArray[np.float64]

RESTARTS = (100, 200, 400, 800)  # steps at which learning restarts, if no warm-up is known


def named_sampler(sampler: Sampler | str) -> Sampler:
    """A sampler from itself or from its short name; "auto" chooses one by a run of its own."""
    if isinstance(sampler, str) and sampler == "auto":
        raise ValueError("sampler must not be 'auto', which chooses a sampler for a run of "
                         "fastkam.sample: name one of fastkam.samplers, such as 'ram'")
    return as_sampler(sampler)


def refusal(sampler: Sampler, schedule: Schedule) -> str:
    """The reason why the sampler cannot adapt by the schedule without a warm-up, or ""."""
    try:
        sampler.check_run(schedule, 0)
        schedule.compiled(sampler, 1, 0)
    except ValueError as error:
        return str(error)
    return ""


def default_schedule(sampler: Sampler) -> str:
    """The schedule of a sampler without a warm-up: one without a guarantee only if it must be."""
    return "perpetual" if refusal(sampler, as_schedule("diminishing")) else "diminishing"


def schedule_of(sampler: Sampler, schedule: Schedule | str | None, why: str) -> Schedule:
    """A schedule for the sampler that does not end, and `why` it must not; the default if None."""
    default = default_schedule(sampler)
    given = as_schedule(default if schedule is None else schedule)
    if isinstance(given, Finite):
        raise ValueError(f"schedule must not be {shown(schedule)}: {why}; the default is "
                         f"{default!r}")
    if problem := refusal(sampler, given):
        raise ValueError(f"schedule must be one that {type(sampler).__name__} can have, such as "
                         f"{default!r}, not {shown(schedule)}: {problem}")
    return given


class Chains:
    """Chains that make their steps together.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(X) -> (k,)`` for points X (k, d), which is read-only; with the gradients (k, d)
        beside it, as a pair, if the sampler needs them.
    x : array (chains, d)
        Starting points.
    sampler, schedule, share
        As in `fastkam.sample`; by default the schedule is that of `default_schedule`.
    tune : int
        Steps after which the schedule "finite" stops adapting.
    scales : array (d,)
        Positive units of the coordinates, if no length is given to the sampler.
    restarts : tuple of int
        Steps after which the gain begins again, so that what a chain has learned on its way from a
        far start is forgotten; not used if adaptation is rare. They are finite in number, so that
        the adaptation still diminishes.
    seed : SeedSequence

    Attributes
    ----------
    x : array (chains, d)
        Positions of the chains.
    logp : array (chains,)
        The log density there.
    moved, accepted : array of bool (chains,)
        Whether the last step, and the search for a start before the first, has moved each; and
        whether its last proposal was accepted.
    """

    def __init__(
        self, evaluate: Callable[[Array], Any], x: ArrayLike, *, sampler: Sampler | str,
        schedule: Schedule | str | None = None, tune: int = 0, share: bool = False,
        scales: ArrayLike = 1.0, restarts: tuple[int, ...] = (), seed: np.random.SeedSequence,
    ) -> None:
        start = np.array(x, dtype=float)
        d = start.shape[1]
        method = as_sampler(sampler)
        target: Any = target_of(method, evaluate, d, True)
        adapting = as_schedule(default_schedule(method) if schedule is None else schedule)
        method.check_run(adapting, tune)
        if share:
            method.check_share()
        self.x: Array = start
        self.restarts, self.steps = restarts, 0
        self.share, self.plan = share, adapting.compiled(method, d, tune)
        self.scales = np.broadcast_to(np.asarray(scales if method.relative else 1.0, float), (d,))
        middle = start.mean(axis=0)  # chains that share their adaptation begin with equal kernels
        method.build(start[0])  # refuses bad parameters as they are given
        own = method.in_units(self.scales)
        self.chains = [
            ChainState(own.build((middle if share else one) / self.scales),
                       np.random.PCG64(child(seed, k)), one / self.scales)
            for k, one in enumerate(start)]
        self.target, self.needs_gradient = ScaledTarget(target, self.scales), method.needs_gradient
        self.group_up(self.plan)
        self.settle(start)

    def group_up(self, plan: Plan) -> None:
        """Let the chains step together, and adapt by `plan`."""
        self.group = Group(self.target, self.chains, plan, share=self.share)
        self.views = [[views[name] for name in ("x", "logp_x", "accepted")]  # share their memory
                      for views in (chain.views() for chain in self.chains)]
        self.started = False

    def freeze(self) -> None:
        """Stop adapting."""
        self.group_up(self.plan._replace(stop=self.chains[0].t))

    def step(self) -> None:
        """Make a step of every chain; before the first, evaluate where the density is unknown."""
        before = self.z
        try:
            if not self.started:
                self.group.start()
                self.started = True
            self.group.run(1)
        except Fault as fault:
            if fault.cause is None:
                raise ValueError("the log density is not finite at the start of a chain, "
                                 f"{fault.x * self.scales}, nor around it, or it is +inf") from None
            raise fault.cause from None
        self.read()
        self.steps += 1
        if self.steps in self.restarts and not self.plan.rarity:
            for chain in self.chains:
                chain.n_adapted = 0
        self.moved = (self.z != before).any(axis=1)
        self.x = np.where(self.moved[:, None], self.z * self.scales, self.x)

    @property
    def evaluations(self) -> int:
        """Number of evaluations so far, of all chains."""
        return sum(chain.n_evaluations for chain in self.chains)

    def read(self) -> None:
        """Set what is known of the chains: z is their position in units of the scales."""
        z, logp, accepted = zip(*self.views, strict=True)
        self.z, self.logp = np.array(z), np.array(logp)
        self.accepted = np.array(accepted, dtype=bool)

    def settle(self, x: Array) -> None:
        """Set the attributes of chains that have been put at x (chains, d)."""
        self.read()
        self.x = x
        self.moved = np.zeros(len(x), dtype=bool)

    def place(self, x: ArrayLike, logp: ArrayLike) -> None:
        """Move the chains to x (chains, d), where the log density is `logp`, NaN if unknown.

        What they have learned stays.
        """
        points, values = np.array(x, dtype=float), np.array(logp, dtype=float)
        for chain, one, value in zip(self.chains, points, values, strict=True):
            t = chain.t
            chain.place(one / self.scales, logp=np.nan if self.needs_gradient else value)
            chain.t = t
        self.started = False
        self.settle(points)

    def state(self) -> dict[str, Any]:
        """Everything needed to continue, as arrays and numbers; see `restore`."""
        return {"started": self.started, "steps": self.steps, "x": self.x,
                "chains": [chain.state() for chain in self.chains],
                "generators": [chain.bit_generator.state for chain in self.chains]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a value of `state` for chains of the same parameters."""
        self.started, self.steps = state["started"], state["steps"]
        for chain, one, bits in zip(self.chains, state["chains"], state["generators"],
                                    strict=True):
            chain.restore(one)
            chain.bit_generator.state = bits
        self.settle(state["x"])
