"""PINTS: samplers of fastkam as methods of its MCMCController.

    pints.MCMCController(log_pdf, 3, x0, method=fastkam.hosts.pints.method("ram"))

Clerx, M. et al. (2019). Probabilistic inference on noisy time series (PINTS). Journal of Open
Research Software 7, 23.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam.arguments import import_extra
from fastkam.hosts.asking import Asking
from fastkam.hosts.steps import RESTARTS, named_sampler, schedule_of
from fastkam.samplers import Sampler, as_sampler
from fastkam.schedules import Schedule, as_schedule

import_extra("pints", "pip install fastkam[pints]")

import pints


class AdaptiveMCMC(pints.SingleChainMCMC):
    """A chain of a fastkam sampler, which PINTS asks for points and gives their densities.

    Its adaptation diminishes during the run, as PINTS keeps all states. `method` makes classes with
    other samplers and schedules.

    Parameters
    ----------
    x0 : array (d,)
        Starting point of the chain.
    sigma0 : optional
        Not used: the units of the coordinates are found by evaluations around `x0`, before the
        first state.
    """

    sampler: ClassVar[Sampler] = as_sampler("ram")
    schedule: ClassVar[Schedule] = as_schedule("diminishing")

    def __init__(self, x0: ArrayLike, sigma0: ArrayLike | None = None) -> None:
        super().__init__(x0, sigma0)
        seed = np.random.randint(2**32, size=4, dtype=np.uint64)  # noqa: NPY002  as PINTS draws
        self.asking = Asking(np.array(self._x0), sampler=self.sampler, schedule=self.schedule,
                             restarts=RESTARTS, seed=np.random.SeedSequence(seed))
        self.first: Any = None  # the density at x0

    def name(self) -> str:
        """The name of the method, which PINTS prints."""
        return f"fastkam: {type(self.sampler).__name__}"

    def needs_sensitivities(self) -> bool:
        """Whether the sampler needs gradients."""
        return self.sampler.needs_gradient

    def ask(self) -> NDArray[np.float64]:
        """The point (d,) to evaluate next."""
        return self.asking.ask()

    def tell(self, fx: Any) -> tuple[NDArray[np.float64], Any, bool] | None:
        """Take the log density at that point, and its gradient if the sampler needs it.

        Returns
        -------
        tuple or None
            The position of the chain, the value of `fx` there, and whether the chain has moved;
            None if the step needs another evaluation.

        Raises
        ------
        ValueError
            If the log density is not finite at `x0`.
        """
        value, gradient = fx if self.needs_sensitivities() else (fx, None)
        chains = self.asking.chains
        if chains is None and self.first is None:
            if not np.isfinite(value):
                raise ValueError(f"x0 must have a finite log density, not {value}: {self._x0}")
            self.first = fx
        if not self.asking.tell(float(value), None if gradient is None else np.array(gradient)):
            return None
        if chains is None:
            return self._x0, self.first, True
        return chains.x[0], self.known(), bool(chains.moved[0])

    def known(self) -> Any:
        """The log density at the chain's position, with its gradient if the sampler needs it."""
        chains = self.asking.chains
        assert chains is not None
        if not self.needs_sensitivities():
            return float(chains.logp[0])
        return float(chains.logp[0]), chains.chains[0].gradient_at_x / chains.scales


def method(
    sampler: str | Sampler = "ram", *, schedule: str | Schedule | None = None
) -> type[AdaptiveMCMC]:
    """A method for PINTS' MCMCController, with a sampler of fastkam.

    Parameters
    ----------
    sampler : str or Sampler
        See `fastkam.samplers`; one with gradients is given PINTS' sensitivities.
    schedule : str or Schedule, optional
        When it adapts: "diminishing", "rare" or "perpetual", as PINTS has no warm-up. By default
        "diminishing", or "perpetual" for a sampler whose gain does not diminish (`kam`, `kpca`,
        `ckam`, `dm`, `gadrwm`, `gadmala`, `nuts`, `hmc`).

    Raises
    ------
    TypeError, ValueError
        If it is not a sampler, or the schedule ends with a warm-up or is not one for this sampler.
    """
    made = named_sampler(sampler)
    adapting = schedule_of(made, schedule, "PINTS keeps all states and has no warm-up")
    return type(type(made).__name__, (AdaptiveMCMC,), {"sampler": made, "schedule": adapting})
