"""PyMC: `AdaptiveStep`, a step method with a sampler of fastkam, also beside discrete variables."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import import_extra, shown
from fastkam.hosts.steps import RESTARTS, Chains, named_sampler
from fastkam.samplers import Sampler
from fastkam.search.scales import find_scales

import_extra("pymc", "pip install fastkam[pymc]")

import pymc
from pymc.pytensorf import compile, join_nonshared_inputs, make_shared_replacements
from pymc.step_methods.arraystep import ArrayStepShared
from pymc.step_methods.compound import StepMethodState
from pymc.util import get_value_vars_from_user_vars


class AdaptiveStep(ArrayStepShared):
    """A step method of PyMC that moves continuous variables by an adaptive sampler of fastkam.

    For ``pm.sample(step=...)``, beside the step methods of other variables, discrete ones among
    them. It adapts while PyMC tunes.

    Parameters
    ----------
    vars : list, optional
        Variables of the model; all by default.
    sampler : str or Sampler
        A sampler without gradients: see `fastkam.samplers`.
    model, rng, initial_point, compile_kwargs, blocked
        As in other step methods.
    """

    name = "fastkam"
    default_blocked = True
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        "accepted": (np.float64, []), "evaluations": (np.int64, [])}
    _state_class = StepMethodState

    def __init__(
        self, vars: Any = None, *, sampler: str | Sampler = "ram", model: Any = None,
        rng: Any = None, initial_point: Any = None, compile_kwargs: Any = None,
        blocked: bool = True,
    ) -> None:
        model = pymc.modelcontext(model)
        vars = model.value_vars if vars is None else get_value_vars_from_user_vars(vars, model)
        discrete = [one.name for one in vars if not one.dtype.startswith("float")]
        if discrete:
            raise ValueError(f"vars must be continuous, and {discrete} are not")
        self.sampler = named_sampler(sampler)
        if self.sampler.needs_gradient:
            raise ValueError(f"sampler must be one without gradients, not {shown(sampler)}: for "
                             "those take fastkam.hosts.pymc.sample")
        point = model.initial_point() if initial_point is None else initial_point
        shared = make_shared_replacements(point, vars, model)
        [logp], q = join_nonshared_inputs(point, [model.logp()], vars, shared)
        self.logp = compile([q], logp, **(compile_kwargs or {}))
        self.tune = True
        self.chains: Chains | None = None
        super().__init__(vars, shared, blocked=blocked, rng=rng)

    def evaluate(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log densities (k,) at X (k, d), given all other variables."""
        return np.array([float(self.logp(x)) for x in X])

    def astep(self, q0: Any) -> Any:
        """A step from q0; PyMC calls this."""
        q = np.asarray(q0.data, dtype=float).reshape(1, -1)
        if self.chains is None:
            scales, _ = find_scales(self.evaluate, q[0], self.evaluate(q)[0])
            self.chains = Chains(
                self.evaluate, q, sampler=self.sampler, scales=scales, restarts=RESTARTS,
                seed=np.random.SeedSequence(self.rng.integers(2**62)))
            if not self.tune:  # PyMC has stopped tuning before the first step
                self.chains.freeze()
        elif self.shared or not np.array_equal(q, self.chains.x):
            self.chains.place(q, [np.nan])  # other variables have moved
        before = self.chains.evaluations
        self.chains.step()
        return self.chains.x[0], [{"accepted": float(self.chains.accepted[0]),
                                   "evaluations": self.chains.evaluations - before}]

    def stop_tuning(self) -> None:
        """End the adaptation; PyMC calls this."""
        super().stop_tuning()
        if self.chains is not None:
            self.chains.freeze()

    def reset_tuning(self) -> None:
        """Forget what has been learned; PyMC calls this before each chain."""
        self.tune, self.chains = True, None
