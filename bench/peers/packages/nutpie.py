"""nutpie (Seyboldt et al.): NUTS in Rust, on the very function that fastkam samples."""

import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc

from bench.peers.job import Contestant
from bench.peers.nutpie_target import Model

NAMES = ["nutpie", "numpy"]


def python_model(density, x0):
    d = len(x0)
    return from_pyfunc(d, lambda: density, lambda *_: lambda x: {"x": x}, [np.dtype("float64")],
                       [(d,)], ["x"], make_initial_point_fn=lambda seed: x0)


def nuts(model, **options):
    def prepare(density, x0, tune, draws, thin, seed):
        made = model(density, x0[0])

        def go():
            trace = nutpie.sample(made, draws=draws, tune=tune, chains=len(x0), cores=1,
                                  seed=seed, progress_bar=False, **options)
            steps = (trace.sample_stats["n_steps"].values.sum()
                     + trace.warmup_sample_stats["n_steps"].values.sum())
            return trace.posterior["x"].values, int(steps)

        return go

    return prepare


SAMPLERS = {
    "NUTS": Contestant(nuts(python_model), "gradient"),
    "NUTS, compiled": Contestant(nuts(Model), "compiled", parts=("banana", "neal")),
}
