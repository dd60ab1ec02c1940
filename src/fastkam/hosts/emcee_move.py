"""emcee: `AdaptiveMove`, a move that makes steps of a fastkam sampler."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_flag, import_extra, shown
from fastkam.hosts.steps import RESTARTS, Chains, named_sampler, schedule_of
from fastkam.samplers import Sampler
from fastkam.schedules import Schedule

import_extra("emcee", "pip install fastkam[emcee]")

import emcee

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

LOST = 1e-3  # largest rounding error of float64, in units of the walkers' spread


class AdaptiveMove(emcee.moves.Move):
    """A move of emcee that makes a step of a fastkam sampler with every walker.

    The gain of the adaptation begins again after 100, 200, 400 and 800 steps: what was learned on
    the way from the walkers' first points is forgotten.

    Parameters
    ----------
    sampler : str or Sampler
        A sampler without gradients, as emcee has none: see `fastkam.samplers`.
    schedule : str or Schedule, optional
        When it adapts. emcee does not say which steps are warm-up: "diminishing", "rare" or
        "perpetual". By default "diminishing", or "perpetual" for a sampler whose gain does not
        diminish (`kam`, `kpca`, `ckam`).
    share : bool
        Whether the walkers learn as one. Must be False for `ckam`, `pt` and `scout`.

    Raises
    ------
    TypeError, ValueError
        If it is not a sampler, or one with gradients, or one that cannot share, or cannot have this
        schedule.
    """

    def __init__(
        self, sampler: str | Sampler = "am", *, schedule: str | Schedule | None = None,
        share: bool = True,
    ) -> None:
        self.sampler, self.share = named_sampler(sampler), check_flag("share", share)
        if self.sampler.needs_gradient:
            raise ValueError("sampler must be one without gradients, which emcee does not have, "
                             f"not {shown(sampler)}")
        self.schedule = schedule_of(self.sampler, schedule, "emcee has no warm-up of known length")
        if self.share:
            self.sampler.check_share()
        self.chains: Chains | None = None
        self.model: Any = None  # the model of emcee, for this step
        self.rows: dict[bytes, int] = {}  # rows of the blobs at points of this step
        self.blobs: list[Any] = []
        self.learned: tuple[Any, Any] | None = None  # scales and state of a move that was pickled

    def propose(self, model: Any, state: emcee.State) -> tuple[emcee.State, Flags]:
        """Make a step with every walker from `state`, which is changed; emcee calls this."""
        x = np.array(state.coords, dtype=float)
        if (np.abs(state.coords - x) > LOST * x.std(axis=0)).any():
            raise TypeError("the walkers must be distinct in double precision: fastkam does not "
                            f"compute in {state.coords.dtype}")
        self.model, self.rows, self.blobs = model, {}, []
        if self.chains is None or self.chains.x.shape != x.shape:
            self.chains = self.begun(model, x)
        if not (np.array_equal(x, self.chains.x)
                and np.array_equal(state.log_prob, self.chains.logp)):
            known = np.where(np.isfinite(state.log_prob), state.log_prob, np.nan)
            self.chains.place(x, known)  # where it is -inf the chain looks for a start
        self.chains.step()
        moved = self.chains.moved
        found = emcee.State(self.chains.x[moved], log_prob=self.chains.logp[moved])
        if state.blobs is not None:
            # a swap of replicas moves a walker to a point of an earlier step
            lost = [one for one in found.coords if one.tobytes() not in self.rows]
            if lost:
                self.evaluate(np.array(lost))
            found.blobs = np.concatenate(self.blobs)[
                [self.rows[one.tobytes()] for one in found.coords]]
        return self.update(state, found, moved, moved), self.chains.accepted

    def begun(self, model: Any, x: Array) -> Chains:
        """Chains at x (walkers, d), in units of the walkers' spread, or as they were pickled."""
        spread = x.std(axis=0)
        scales, state = self.learned or (np.where(spread > 0, spread, 1.0), None)
        seed = np.random.SeedSequence(model.random.randint(2**32, size=4, dtype=np.uint64))
        chains = Chains(self.evaluate, x, sampler=self.sampler, schedule=self.schedule,
                        share=self.share and len(x) > 1, scales=scales, restarts=RESTARTS,
                        seed=seed)
        if state is not None and state["x"].shape == x.shape:
            chains.restore(state)
        self.learned = None
        return chains

    def evaluate(self, X: Array) -> Array:
        """The log densities (k,) at X (k, d); the rows of blobs are kept until the step is made."""
        values, blobs = self.model.compute_log_prob_fn(X.copy())
        if blobs is not None:
            first = sum(len(some) for some in self.blobs)
            self.blobs.append(blobs)
            self.rows |= {one.tobytes(): first + i for i, one in enumerate(X)}
        return np.asarray(values, dtype=float)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, and what has been learned."""
        learned = self.learned if self.chains is None else (self.chains.scales, self.chains.state())
        return {"sampler": self.sampler, "schedule": self.schedule, "share": self.share,
                "learned": learned, "chains": None}
