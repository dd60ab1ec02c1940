"""PINTS (Clerx et al. 2019)."""

import numpy as np
import pints

from bench.peers.job import Contestant

NAMES = ["pints", "numpy"]


class Density(pints.LogPDF):
    """A log density of x (d,), or a pair of it and its gradient, as PINTS takes it."""

    def __init__(self, f, d):
        self.f, self.d = f, d

    def n_parameters(self):
        return self.d

    def __call__(self, x):
        return self.f(x)

    def evaluateS1(self, x):
        return self.f(x)


def controlled(method):
    def prepare(density, x0, tune, draws, thin, seed):
        def go():
            np.random.seed(seed)  # noqa: NPY002  the package draws from it
            chains, d = x0.shape
            control = pints.MCMCController(Density(density, d), chains, x0, method=method)
            control.set_max_iterations(tune + draws)
            control.set_log_to_screen(False)
            control.set_parallel(False)
            return control.run()[:, tune:], None

        return go

    return prepare


SAMPLERS = {
    "adaptive (Haario-Bardenet)": Contestant(controlled(pints.HaarioBardenetACMC), "python"),
    "DREAM": Contestant(controlled(pints.DreamMCMC), "python"),
    "population": Contestant(controlled(pints.PopulationMCMC), "python"),
    "NUTS": Contestant(controlled(pints.NoUTurnMCMC), "gradient"),
}
