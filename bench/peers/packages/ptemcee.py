"""ptemcee (Vousden et al. 2016): parallel tempering of ensembles, four temperatures."""

import numpy as np
import ptemcee

from bench.peers.job import Contestant

NAMES = ["ptemcee", "numpy"]
TEMPERATURES = 4


def flat(x):
    return 0.0


def tempering(density, x0, tune, draws, thin, seed):
    def go():
        random = np.random.RandomState(seed)
        sampler = ptemcee.Sampler(*x0.shape, density, flat, ntemps=TEMPERATURES, random=random)
        start = np.stack([x0] + [random.standard_normal(x0.shape)
                                 for _ in range(TEMPERATURES - 1)])
        sampler.run_mcmc(start, iterations=tune, adapt=True, storechain=False)
        sampler.run_mcmc(iterations=draws)
        return sampler.chain[0], None

    return go


SAMPLERS = {
    "4 temperatures, 64 walkers": Contestant(tempering, "python", chains=64, ensemble=True),
}
