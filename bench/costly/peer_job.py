"""emcee on the posteriors, in its own environment: a file of curves.

    python -m bench.costly.peer_job FILE SEEDS
"""

import pickle
import sys
import warnings

import emcee
import numpy as np

from bench.costly.densities import CASES

WALKERS, CALLS = 32, 100_000
POINTS = 200


def curve(case, seed):
    """Estimates from the second half of the steps until then."""
    rng = np.random.RandomState(seed)
    start = case.x0 + 1e-2 * rng.standard_normal((WALKERS, case.d))

    def f(x):
        value = case.f(x)
        return value if value == value else -np.inf

    finite = np.array([np.isfinite(f(x)) for x in start])
    start[~finite] = start[finite][0]
    sampler = emcee.EnsembleSampler(WALKERS, case.d, f)
    sampler.random_state = rng.get_state()
    sampler.run_mcmc(start, CALLS // WALKERS, skip_initial_state_check=True)
    x = sampler.get_chain()
    ends = np.unique(np.geomspace(10, len(x), POINTS).astype(int))
    mean = np.array([x[n // 2 : n].mean(axis=(0, 1)) for n in ends])
    sd = np.array([x[n // 2 : n].std(axis=(0, 1)) for n in ends])
    return WALKERS * ends, mean, sd


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found = {name: [curve(case, seed) for seed in range(int(sys.argv[2]))]
             for name, case in CASES.items()}
    with open(sys.argv[1], "wb") as file:
        pickle.dump(found, file)
