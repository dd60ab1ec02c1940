"""In ten dimensions and more, a covariance is learned from enough states after a search.

With the gain (1 + n)^(-0.6 or -0.7) it becomes nearly singular, so that the chain moves along a few
directions alone. The bounds are far from the values of both. Without a search, scales that are
wrong by a factor of 100 are found, for which the slower gain would take too long.
"""

import numpy as np
import pytest

import fastkam as fk
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Finite

LEAST = {"am": (10, 120), "rbam": (10, 120), "gam": (10, 120), "dram": (10, 120),
         "barker": (14, 500), "automala": (14, 500)}  # dimensions, effective draws


def least_ess(name, rho, gain=None):
    """The least effective sample size of a coordinate, the median over three runs."""
    d = LEAST[name][0]
    P = np.linalg.inv(np.full((d, d), rho) + (1 - rho) * np.eye(d))

    def normal(x):
        slope = -P @ x
        value = 0.5 * float(slope @ x)
        return (value, slope) if SAMPLERS[name]().needs_gradient else value

    found = [fk.sample(normal, np.zeros(d), sampler=name, tune=2000, draws=3000, seed=seed,
                       schedule=Finite(gain=gain), progress=False,
                       diagnose=False).summary()["ess_bulk"].min() for seed in range(3)]
    return np.median(found)


@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("name", LEAST)
def test_a_covariance_is_learned(name, rho):
    assert least_ess(name, rho) > LEAST[name][1]


@pytest.mark.parametrize("name", LEAST)
def test_the_default_gain_does_not_learn_it(name):
    assert least_ess(name, 0.9, SAMPLERS[name]().default_gain(10)) < LEAST[name][1] / 2


@pytest.mark.parametrize("name", ["am", "gam", "barker"])
def test_wrong_scales_are_found_without_a_search(name):
    def narrow(x):
        return -0.5e4 * float(x @ x), -1e4 * x

    result = fk.sample(narrow, np.zeros(10), sampler=name, tune=1000, draws=500, seed=1,
                       search=False, progress=False, diagnose=False)
    assert (result.acceptance > 0.1).all()
