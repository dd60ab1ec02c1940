"""bilby: the sampler "fastkam", which bilby finds by its entry point.

    bilby.run_sampler(likelihood, priors, sampler="fastkam", draws=2000)

The chains are in the standard normal coordinates z of the priors, theta = rescale(Phi(z)): prior
ranges, units and priors that depend on other parameters are bilby's.

Ashton, G. et al. (2019). BILBY: a user-friendly Bayesian inference library for gravitational-wave
astronomy. Astrophysical Journal Supplement 241, 27.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

import fastkam as fk
from fastkam.arguments import import_extra

import_extra("bilby", "pip install fastkam[bilby]")

from bilby.core.sampler.base_sampler import MCMCSampler
from bilby.core.utils import check_directory_exists_and_if_not_mkdir


class Fastkam(MCMCSampler):
    """A sampler of bilby that calls `fastkam.sample`.

    Keyword arguments of ``bilby.run_sampler`` are those of `fastkam.sample`, as far as
    `default_kwargs` lists them, and these:

    Parameters
    ----------
    method : str or Sampler
        The `sampler` of `fastkam.sample`, a name that bilby needs itself.
    npool : int
        Processes in which the chains run.
    resume : bool
        Whether an interrupted run of the same label is continued.
    evidence : bool
        Whether the evidence is estimated, by evaluations after the run.

    Notes
    -----
    The result has the draws of all chains, one after the other, as its samples and as
    ``result.walkers`` (chains, draws, parameters), with their log likelihoods and log priors. The
    `fastkam.Result` is the sampler's attribute ``run``, its warnings are in
    ``result.meta_data["fastkam"]``.
    """

    sampler_name = "fastkam"
    sampling_seed_key = "seed"
    default_kwargs: ClassVar[dict[str, Any]] = {
        "draws": 1000, "tune": None, "chains": 4, "method": "auto", "seed": None, "thin": None,
        "share": False, "stop": None, "progress": None, "diagnose": True, "resume": True,
        "evidence": True, "checkpoint_interval": 60.0,
    }

    def theta(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The parameters (d,) at z (d,)."""
        return np.array(self.prior_transform(special.ndtr(z)), dtype=float)

    def density(self, z: NDArray[np.float64]) -> tuple[float, dict[str, Any]]:
        """The log likelihood at z (d,), -inf where a constraint does not hold, and parameters."""
        theta = self.theta(z)
        named = dict(zip(self.search_parameter_keys, theta, strict=True))
        allowed = np.isfinite(theta).all() and self.priors.evaluate_constraints(named)
        value = float(self.log_likelihood(theta)) if allowed else -np.inf
        if value <= np.nan_to_num(-np.inf):  # what bilby uses in place of -inf
            value = -np.inf
        return value, {"theta": theta, "log_l": value}

    def run_sampler(self) -> Any:
        """Run, and fill the result; bilby calls this."""
        options = {"sampler" if name == "method" else name: value
                   for name, value in self.kwargs.items()}
        resumes, evidence = options.pop("resume"), options.pop("evidence")
        check_directory_exists_and_if_not_mkdir(self.outdir)
        path = os.path.join(self.outdir, f"{self.label}_fastkam.npz")
        problem = fk.Problem(self.density, prior={"z": (stats.norm(0, 1), self.ndim)})
        workers = self.npool or 1
        with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as executor:
            if resumes and os.path.exists(path):
                self.run = fk.resume(path, target=problem, executor=executor, checkpoint=path)
            else:
                self.run = fk.sample(problem, executor=executor, checkpoint=path, **options)
        if self.run.status == "interrupted":  # the next call continues
            raise KeyboardInterrupt(f"the run so far is in {path!r}")
        os.remove(path)
        self.fill(self.run, evidence)
        return self.result

    def fill(self, run: fk.Result, evidence: bool) -> None:
        """Set what bilby's result has of a run."""
        made, theta = self.result, np.array(run.extras["theta"])
        made.walkers, made.nburn = theta, 0
        made.samples = theta.reshape(-1, self.ndim)
        made.log_likelihood_evaluations = np.array(run.extras["log_l"]).reshape(-1)
        made.log_prior_evaluations = np.array([self.log_prior(one) for one in made.samples])
        made.num_likelihood_evaluations = run.evaluations
        made.log_evidence = made.log_evidence_err = np.nan
        if evidence and theta.shape[1] >= 20:  # fewer draws are refused
            found, keys = run.log_evidence(), tuple(self.search_parameter_keys)
            # bilby's prior is normalized where its constraints hold
            share = 1 / self.priors.normalize_constraint_factor(keys)
            made.log_evidence = found.value - math.log(share)
            made.log_evidence_err = found.error
        made.sampler_kwargs = {name: value if isinstance(value, (int, float, str, type(None)))
                               else repr(value)
                               for name, value in self.kwargs.items()}  # what JSON can hold
        made.meta_data = {**(made.meta_data or {}), "fastkam": {
            "version": fk.__version__, "sampler": repr(run.sampler), "status": run.status,
            "warnings": [finding.text for finding in run.warnings]}}
        self.calc_likelihood_count()

    def write_current_state(self) -> None:
        """Do nothing: the run writes its checkpoint itself."""
