"""A change of units changes nothing: every sampler with its defaults, and correlated targets.

Coordinates are multiplied by powers of 2, of about 10^6 and 10^-6, with the starting point: no
rounding comes in, and the draws must be the same bit for bit. Powers of 10 round, and some samplers
are chaotic maps, in which rounding grows: there the first draws are compared.
"""

import warnings

import numpy as np
import pytest

import fastkam as fk
from fastkam.samplers import SAMPLERS

PRECISION = np.linalg.inv([[2.0, 0.8, -0.3], [0.8, 1.0, 0.2], [-0.3, 0.2, 0.5]])
PRECISION = 0.5 * (PRECISION + PRECISION.T)
CENTER = np.array([1.0, -2.0, 0.5])
# short warm-ups, and trajectories along which rounding does not grow
OPTIONS = {"hmc": {"n_steps": 3}, "ckam": {"cycle": 50}, "kam": {"subsample": 20},
           "kpca": {"subsample": 20}}


def run(name, units, tune, draws):
    """Draws in units of x, of a density that is measured in x times `units`."""
    def density(y):
        x = y / units - CENTER
        return -0.5 * x @ PRECISION @ x, -(PRECISION @ x) / units

    sampler = SAMPLERS[name](**OPTIONS.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(density, np.array([0.5, -1.5, 0.3]) * units, sampler=sampler, chains=2,
                           tune=tune, draws=draws, seed=3, progress=False, check_gradient=False)
    return result.draws / units


UNITS = {"long": np.full(3, 2.0**20), "short": np.full(3, 2.0**-20),
         "mixed": np.array([2.0**20, 1.0, 2.0**-20])}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_units_do_not_matter(name, units):
    assert np.array_equal(run(name, np.ones(3), 200, 50), run(name, units, 200, 50))


@pytest.mark.parametrize("units", [1e6, 1e-6])
@pytest.mark.parametrize("name", SAMPLERS)
def test_units_that_round(name, units):
    """30 steps in all."""
    one, other = run(name, np.ones(3), 25, 5), run(name, np.full(3, units), 25, 5)
    assert np.allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["ram", "am", "kam"])
def test_lengths_that_are_given_are_those_of_the_user(name):
    """Lengths that are not relative stay in the units of the coordinates."""
    options = {"ram": {"proposal_cov": 1.0}, "am": {"target_cov": 1.0},
               "kam": {"metric": "identity", "gamma": 0.2}}[name]
    assert SAMPLERS[name]().relative
    assert not SAMPLERS[name](**options).relative


def test_lengths_in_a_learned_metric_are_relative():
    assert fk.KernelAdaptiveMetropolis(gamma=0.1, kernel=fk.kernels.Gaussian(1.0)).relative
    assert not fk.KernelAdaptiveMetropolis(
        metric="identity", kernel=fk.kernels.Gaussian(1.0)).relative


LEARN_SHAPE = ("am", "ram", "gam", "rbam", "dram", "kam", "barker", "automala", "autorwm",
               "fishermala", "nuts")


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("name", LEARN_SHAPE)
def test_correlation(name, d):
    """Chains agree at a correlation of 0.9999, and have the right spread within 5 errors."""
    target = fk.targets.Gaussian(np.zeros(d), 0.9999 + 1e-4 * np.eye(d))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(target, np.zeros(d), sampler=name, tune=6000, draws=6000, seed=2,
                           progress=False)
    summary = result.summary()
    assert summary["r_hat"].max() < 1.03
    assert summary["ess_bulk"].min() > 100
    assert (np.abs(summary["sd"] - 1) < 5 * summary["mcse_sd"]).all()
    assert np.diff(result.draws, axis=2).std() == pytest.approx(2e-4**0.5, rel=0.1)
