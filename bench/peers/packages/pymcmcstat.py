"""pymcmcstat (Miles 2019): adaptive Metropolis, with and without delayed rejection."""

import numpy as np
from pymcmcstat.MCMC import MCMC

from bench.peers.job import Contestant

NAMES = ["pymcmcstat", "numpy"]


def adaptive(method):
    """Its likelihood is exp(-S / 2) with S the sum of squares; chains one after the other."""

    def prepare(density, x0, tune, draws, thin, seed):
        def chain(x):
            mcmc = MCMC()
            mcmc.data.add_data_set(x=np.zeros(1), y=np.zeros(1))
            for j, start in enumerate(x):
                mcmc.parameters.add_model_parameter(name=f"x{j}", theta0=start)
            mcmc.model_settings.define_model_settings(
                sos_function=lambda theta, data: -2 * density(theta), sigma2=1.0)
            mcmc.simulation_options.define_simulation_options(
                nsimu=tune + draws, method=method, qcov=2.38**2 / len(x) * np.eye(len(x)),
                updatesigma=False, waitbar=False, verbosity=0)
            mcmc.run_simulation()
            return mcmc.simulation_results.results["chain"][tune:]

        def go():
            np.random.seed(seed)  # noqa: NPY002  the package draws from it
            return np.stack([chain(x) for x in x0]), None

        return go

    return prepare


SAMPLERS = {
    "AM": Contestant(adaptive("am"), "python"),
    "DRAM": Contestant(adaptive("dram"), "python"),
}
