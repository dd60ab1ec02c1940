"""pyPESTO: `FastkamSampler`, for ``pypesto.sample.sample``.

    pypesto.sample.sample(problem, n_samples=4000, sampler=FastkamSampler())

Schaelte, Y. et al. (2023). pyPESTO: a modular and scalable tool for parameter estimation for
dynamic models. Bioinformatics 39, btad711.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastkam as fk
from fastkam.arguments import check_integer, import_extra
from fastkam.samplers import as_sampler

import_extra("pypesto", "pip install fastkam[pypesto]")

from pypesto import Problem
from pypesto.result import McmcPtResult
from pypesto.sample.sampler import Sampler

Array = NDArray[np.float64]

RECORDED = "objective of pyPESTO"


class FastkamSampler(Sampler):
    """A sampler of pyPESTO that calls `fastkam.sample` with the problem's bounds.

    Parameters
    ----------
    chains : int
        Number of chains; the requested samples are divided among them, and follow one after the
        other in pyPESTO's result.
    **options
        Further arguments of `fastkam.sample`, such as `sampler`, `tune` and `seed`.

    Attributes
    ----------
    result : fastkam.Result or None
        The run, with separate chains.
    """

    def __init__(self, *, chains: int = 4, **options: Any) -> None:
        super().__init__()
        self.chains = check_integer("chains", chains, least=1)
        taken = {"draws", "x0", "bounds", "names", "target", "prior"} & set(options)
        if taken:
            raise ValueError(f"options must not have {sorted(taken)}, which pyPESTO gives")
        self.run_options = options
        self.result: fk.Result | None = None

    def initialize(self, problem: Problem, x0: Array | list[Array]) -> None:
        """Take the problem, and where the search begins; pyPESTO calls this."""
        self.problem, self.result = problem, None
        self.x0 = None if x0 is None else np.array(x0, dtype=float)  # one point, or one for each

    def density(self, x: Array) -> tuple[float, dict[str, float]]:
        """Minus the objective of pyPESTO, which is recorded with each draw."""
        value = float(self.problem.objective(x))
        return -value, {RECORDED: value}

    def density_and_gradient(self, x: Array) -> tuple[float, Array, dict[str, float]]:
        """The same with its gradient (d,)."""
        value, gradient = self.problem.objective(x, sensi_orders=(0, 1))
        return -float(value), -np.asarray(gradient, dtype=float), {RECORDED: float(value)}

    def sample(self, n_samples: int, beta: float = 1.0) -> None:
        """Draw `n_samples`, rounded up to a multiple of `chains`; pyPESTO calls this."""
        if beta != 1:
            raise ValueError(f"beta must be 1, not {beta}: a sampler of fastkam with replicas, "
                             'such as "pt", tempers by itself')
        draws = -(-n_samples // self.chains)
        if self.result is not None:
            self.result = self.result.resume(draws)
            return
        lb, ub = (np.asarray(end, dtype=float) for end in (self.problem.lb, self.problem.ub))
        method = self.run_options.get("sampler", "auto")
        wanted = method == "auto" or as_sampler(method).needs_gradient
        gradient = wanted and self.problem.objective.has_grad
        names = [self.problem.x_names[k] for k in self.problem.x_free_indices]
        bounds = {name: (low, high) for name, low, high in zip(names, lb, ub, strict=True)}
        self.result = fk.sample(
            self.density_and_gradient if gradient else self.density, self.x0, names=names,
            bounds=bounds, chains=self.chains, draws=draws, **self.run_options)

    def get_samples(self) -> McmcPtResult:
        """All chains, one after the other, as pyPESTO's result of one temperature."""
        if self.result is None:
            raise ValueError("there are no samples before sample() has been called")
        x = np.array(self.result.to_numpy(flat=True))
        value = np.array(self.result.extras[RECORDED]).reshape(-1)
        return McmcPtResult(trace_x=x[None], trace_neglogpost=value[None],
                            trace_neglogprior=np.full((1, len(x)), np.nan), betas=np.ones(1))
