"""mici (Graham 2019): Hamiltonian Monte Carlo in Python."""

import mici
import numpy as np

from bench.peers.job import Contestant

NAMES = ["mici", "numpy"]


def hamiltonian(algorithm, **options):
    def prepare(density, x0, tune, draws, thin, seed):
        def gradient(x):
            value, gradient = density(x)
            return -gradient, -value

        system = mici.systems.EuclideanMetricSystem(
            neg_log_dens=lambda x: -density(x)[0], grad_neg_log_dens=gradient)

        def go():
            integrator = mici.integrators.LeapfrogIntegrator(system)
            sampler = algorithm(system, integrator, np.random.default_rng(seed), **options)
            adapters = [mici.adapters.DualAveragingStepSizeAdapter(0.8),
                        mici.adapters.OnlineVarianceMetricAdapter()]
            found = sampler.sample_chains(
                tune, draws, list(x0), adapters=adapters, n_process=1, display_progress=False)
            return np.stack(found.traces["pos"]), None

        return go

    return prepare


SAMPLERS = {
    "NUTS": Contestant(hamiltonian(mici.samplers.DynamicMultinomialHMC), "gradient", first=20,
                       parts=("overhead", "banana", "neal")),
    "HMC, 5 steps": Contestant(hamiltonian(mici.samplers.StaticMetropolisHMC, n_step=5),
                               "gradient", first=20, parts=("neal",)),
}
