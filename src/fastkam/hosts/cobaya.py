"""Cobaya: the sampler `Fastkam`.

    sampler: {fastkam.hosts.cobaya.Fastkam: {draws: 2000}}

Torrado, J. and Lewis, A. (2021). Cobaya: code for Bayesian analysis of hierarchical physical
models. Journal of Cosmology and Astroparticle Physics 05, 057.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastkam as fk
from fastkam.arguments import check_integer, import_extra

import_extra("cobaya", "pip install fastkam[cobaya]")

from cobaya import mpi
from cobaya.collection import SampleCollection
from cobaya.log import LoggedError
from cobaya.model import LogPosterior
from cobaya.sampler import Sampler


class Fastkam(Sampler):
    """A sampler of Cobaya that calls `fastkam.sample`.

    Options of the input are the attributes below, which are arguments of `fastkam.sample`. Chains
    begin at reference points. Each process of MPI runs as many chains.

    Attributes
    ----------
    result : fastkam.Result
        The run, once it has been made; also in ``products()["result"]``.
    """

    draws: int = 1000
    tune: int | None = None
    chains: int = 4
    sampler: str = "auto"
    thin: int | None = None
    progress: bool | None = None
    max_tries: int = 1000
    seed: int | None = None

    def initialize(self) -> None:
        """Check the options, and make the collections; Cobaya calls this."""
        if self.output.is_resuming():
            raise LoggedError(self.log, "fastkam does not continue a run of Cobaya: use "
                                        "force (-f) for a new one")
        self.chains = check_integer("chains", self.chains, least=1)
        self.draws = check_integer("draws", self.draws, least=1)
        first = 1 + mpi.rank() * self.chains
        self.collections = [SampleCollection(self.model, self.output, name=str(first + k),
                                             sample_type="mcmc") for k in range(self.chains)]

    def density(self, x: NDArray[np.float64]) -> Any:
        """The log posterior at x (d,), with its terms and the derived parameters."""
        found = self.model.logposterior(x.copy())
        if not np.isfinite(found.logpost):
            return -np.inf
        terms = {"logpriors": found.logpriors, "loglikes": found.loglikes, "derived": found.derived}
        return found.logpost, {name: np.array(some, dtype=float) for name, some in terms.items()
                               if len(some)}

    def run(self) -> None:
        """Run, and fill the collections; Cobaya calls this."""
        names = list(self.model.parameterization.sampled_params())
        bounds = self.model.prior.bounds(confidence_for_unbounded=1)
        start = [self.model.get_valid_point(self.max_tries, random_state=self._rng)[0]
                 for _ in range(self.chains)]
        self.result = fk.sample(
            self.density, np.array(start), bounds=dict(zip(names, bounds, strict=True)),
            names=names, draws=self.draws, tune=self.tune, chains=self.chains, thin=self.thin,
            sampler=self.sampler, progress=self.progress, seed=self._rng)
        for k, collection in enumerate(self.collections):
            self.fill(collection, k)

    def fill(self, collection: Any, k: int) -> None:
        """Add the draws of chain k, each with the number of times that it is repeated."""
        x = self.result.draws[k]
        terms = {name: some[k] for name, some in self.result.extras.items()}
        first = np.flatnonzero(np.append(True, (np.diff(x, axis=0) != 0).any(axis=1)))
        for i, weight in zip(first, np.diff(np.append(first, len(x))), strict=True):
            found = {name: some[i].tolist() for name, some in terms.items()}
            collection.add(x[i], LogPosterior(**{"derived": [], **found}), weight=int(weight))
        collection.out_update()

    def samples(self, combined: bool = False, skip_samples: float = 0,
                to_getdist: bool = False) -> Any:
        """The collections of this process, a list; or one for GetDist, or `combined`.

        Parameters
        ----------
        combined, to_getdist : bool
            Whether the chains are put together, in a SampleCollection or in GetDist's MCSamples.
        skip_samples : float
            Number of draws, or fraction of them, that are left out at the beginning of each chain.
        """
        some = [one.skip_samples(skip_samples, inplace=False) for one in self.collections]
        if to_getdist:
            return some[0].to_getdist(combine_with=some[1:])
        if not combined:
            return some
        for one in some[1:]:
            some[0]._append(one)
        return some[0]

    def products(self, combined: bool = False, skip_samples: float = 0,
                 to_getdist: bool = False) -> dict[str, Any]:
        """``"sample"``, as `samples` returns it, and ``"result"``, the `fastkam.Result`."""
        return {"sample": self.samples(combined, skip_samples, to_getdist), "result": self.result}

    @classmethod
    def output_files_regexps(cls, output: Any, info: Any = None, minimal: bool = False) -> Any:
        """The files of the chains, which Cobaya deletes if a run is forced."""
        return [(output.collection_regexp(name=None), None)]
