"""In ten dimensions and more, a covariance is learned from enough states, by the default gain.

With the gain of few dimensions, (1 + n)^(-0.6 or -0.7), it becomes nearly singular, so that the
chain moves along a few directions alone. The bounds are far from the values of both.
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
def test_the_default_gain_learns_a_covariance(name, rho):
    assert least_ess(name, rho) > LEAST[name][1]


@pytest.mark.parametrize("name", LEAST)
def test_the_gain_of_few_dimensions_does_not(name):
    assert least_ess(name, 0.9, SAMPLERS[name]().default_gain(7)) < LEAST[name][1] / 2
