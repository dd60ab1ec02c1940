"""emcee (Foreman-Mackey et al. 2013): ensembles of walkers."""

import emcee
import numpy as np

from bench.peers.job import Contestant

NAMES = ["emcee", "numpy"]
EVOLUTION = [(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.2)]


def walking(moves=None, vectorize=False):
    def prepare(density, x0, tune, draws, thin, seed):
        def go():
            sampler = emcee.EnsembleSampler(*x0.shape, density, moves=moves, vectorize=vectorize)
            state = emcee.State(x0, random_state=np.random.RandomState(seed).get_state())
            state = sampler.run_mcmc(state, tune, store=False)
            sampler.run_mcmc(state, draws)
            return sampler.get_chain().swapaxes(0, 1), None

        return go

    return prepare


MANY = {"kind": "many", "chains": 64, "at_once": True, "ensemble": True}
SAMPLERS = {
    "stretch": Contestant(walking(), "python", chains=64, ensemble=True,
                          parts=("overhead",)),
    "stretch, vectorized": Contestant(walking(vectorize=True), **MANY),
    "differential evolution, vectorized": Contestant(
        walking(EVOLUTION, vectorize=True), **MANY, parts=("banana",)),
}
