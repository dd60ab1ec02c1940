"""Chains with a common adaptation learn more in the same number of steps than a single chain.

If they did not, all errors of one side would lie below all of the other with a probability of
1 / 12870, the rate of false alarms of each test; seeds are fixed.
"""

import numpy as np
import pytest
from runs import sample

import fastkam as fk

D, K, RUNS = 20, 8, 8
COV = 0.9 ** np.abs(np.subtract.outer(range(D), range(D))) * np.outer(
    *[np.geomspace(0.3, 3, D)] * 2)
TARGET = fk.targets.Gaussian(np.zeros(D), COV)
WHITEN = np.linalg.inv(np.linalg.cholesky(COV))
FACTORS = {"am": "L", "rbam": "L", "gam": "L", "arwm": "L", "ram": "S"}


def errors(name, chains, share, seeds):
    """Return the error |C - I| of the learned shape in each run, with C of mean trace 1."""
    found = []
    for seed in seeds:
        result = sample(TARGET, TARGET.sample(chains, seed), sampler=name, chains=chains,
                        tune=2000, draws=1, seed=seed, share=share, progress=False)
        F = WHITEN @ result.states[0][f"kernel.{FACTORS[name]}"]
        C = F @ F.T
        found.append(np.linalg.norm(C / (np.trace(C) / D) - np.eye(D)))
    return np.array(found)


@pytest.mark.parametrize("name", FACTORS)
def test_eight_chains_learn_more_than_one(name):
    alone = errors(name, 1, False, range(RUNS))
    assert errors(name, K, True, range(100, 100 + RUNS)).max() < alone.min()
    # chains that do not share are seen to learn no more
    assert not errors(name, K, False, range(100, 100 + RUNS)).max() < alone.min()
