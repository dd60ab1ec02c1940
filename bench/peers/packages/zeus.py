"""zeus (Karamanis et al. 2021): ensemble slice sampling."""

import numpy as np
import zeus

from bench.peers.job import Contestant

NAMES = ["zeus-mcmc", "numpy"]


def slicing(vectorize=False):
    def prepare(density, x0, tune, draws, thin, seed):
        def go():
            np.random.seed(seed)  # noqa: NPY002  the package draws from it
            sampler = zeus.EnsembleSampler(*x0.shape, density, vectorize=vectorize,
                                           verbose=False)
            sampler.run_mcmc(x0, tune + draws, progress=False)
            return sampler.get_chain(discard=tune).swapaxes(0, 1), None

        return go

    return prepare


MANY = {"kind": "many", "chains": 64, "at_once": True, "ensemble": True, "first": 20}
SAMPLERS = {
    "differential": Contestant(slicing(), "python", chains=64, ensemble=True, first=20,
                               parts=("overhead",)),
    "differential, vectorized": Contestant(slicing(vectorize=True), **MANY),
}
