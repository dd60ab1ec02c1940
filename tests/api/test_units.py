"""A change of units changes nothing: every sampler with its defaults, and correlated targets.

Coordinates are multiplied by powers of 2, of about 10^6 and 10^-6, with the starting point: no
rounding comes in, and the draws must be the same bit for bit. Powers of 10 round, and some samplers
are chaotic maps, in which rounding grows: there the first draws are compared.
"""

import warnings

import numpy as np
import pytest

import fastkam as fk
from fastkam.hosts.steps import Chains
from fastkam.samplers import SAMPLERS

PRECISION = np.linalg.inv([[2.0, 0.8, -0.3], [0.8, 1.0, 0.2], [-0.3, 0.2, 0.5]])
PRECISION = 0.5 * (PRECISION + PRECISION.T)
CENTER = np.array([1.0, -2.0, 0.5])
# short warm-ups, and trajectories along which rounding does not grow
OPTIONS = {"hmc": {"n_steps": 3}, "ckam": {"cycle": 50}, "kam": {"subsample": 20},
           "kpca": {"subsample": 20}}


def run(name, units, tune, draws, sampler=None):
    """Draws in units of x, of a density that is measured in x times `units`."""
    def density(y):
        x = y / units - CENTER
        return -0.5 * x @ PRECISION @ x, -(PRECISION @ x) / units

    sampler = sampler or SAMPLERS[name](**OPTIONS.get(name, {}))
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


MEANS = np.array([CENTER, CENTER + 1.0])
COV = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.5]])
POSITIONED = {  # samplers with points and matrices in the user's units, of units (3,)
    **{name: lambda u, name=name: SAMPLERS[name](mean=CENTER * u)
       for name in ("am", "rbam", "gam", "dram", "cholam", "barker", "automala", "autorwm")},
    "means": lambda u: fk.ModeJumping(means=MEANS * u),
    "a matrix for each": lambda u: fk.ModeJumping(
        means=MEANS * u, covs=[COV * np.outer(u, u)] * 2, weights=[1, 2], jump_cov=u**2),
    "a row for each": lambda u: fk.ModeJumping(
        means=MEANS * u, covs=[u**2, 2 * u**2], jump_cov=COV * np.outer(u, u), fit=False),
    "within": lambda u: fk.ModeJumping(
        jump_cov=50.0 * u**2, sampler=fk.AdaptiveMetropolis(mean=CENTER * u)),
    "a reference": lambda u: fk.ParallelTempering(
        reference=(CENTER * u, COV * np.outer(u, u)), sampler="am", n_replicas=3),
    "a reference without correlations": lambda u: fk.ParallelTempering(
        reference=(CENTER * u, 9 * u**2), n_replicas=3),
}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("name", POSITIONED)
def test_points_and_matrices_are_in_the_units_of_the_user(name, units):
    """All else remains in units of the scales, and multiplies with the coordinates."""
    made = POSITIONED[name]
    assert made(units).relative
    assert np.array_equal(run(name, np.ones(3), 200, 50, made(np.ones(3))),
                          run(name, units, 200, 50, made(units)))


class WithOwnArguments(fk.ParallelTempering):
    def __init__(self, n=3):
        super().__init__(sampler=fk.AdaptiveMetropolis(mean=CENTER), n_replicas=n)


class InTuple(fk.samplers.sampler.Composite):
    LENGTHS = ()
    some = (fk.AdaptiveMetropolis(mean=CENTER),)

    def parts(self):
        return list(self.some)


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_subclasses_with_own_arguments(units):
    assert run("own", units, 30, 10, WithOwnArguments()).shape == (2, 10, 3)


def test_parts_that_cannot_be_converted_keep_the_units_of_the_user():
    assert not InTuple().relative
    assert fk.ModeJumping(sampler=InTuple.some[0]).relative


def test_steps_of_a_host_are_in_the_units_of_its_scales():
    """Points that the user gives are converted, as in a run."""
    def course(units):
        chains = Chains(lambda X: -0.5 * np.square(X / units).sum(axis=1), np.ones((2, 3)) * units,
                        sampler=fk.AdaptiveMetropolis(mean=CENTER * units), tune=100, scales=units,
                        seed=np.random.SeedSequence(1))
        return chains.chains[0].state()["kernel.mu"]

    np.testing.assert_array_equal(course(UNITS["mixed"]), CENTER)


def test_as_many_modes_as_dimensions():
    scales = np.array([2.0, 4.0])
    one = fk.ModeJumping(means=np.ones((2, 2)), covs=[1.0, 2.0], jump_cov=[4.0, 8.0])
    np.testing.assert_array_equal(one.in_units(scales).covs, [[1 / 4, 1 / 16], [1 / 2, 1 / 8]])
    np.testing.assert_array_equal(one.in_units(scales).jump_cov, [1.0, 0.5])
    rows = fk.ModeJumping(means=np.ones((2, 2)), covs=[[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(rows.in_units(scales).covs, [[1 / 4, 1 / 8], [3 / 4, 1 / 4]])
    assert one.in_units(np.ones(2)) is one


def test_numbers_for_covariances_are_in_the_units_of_the_user():
    scales = np.array([2.0, 4.0])
    sampler = fk.ModeJumping(means=np.ones((3, 2)), covs=[1.0, 2.0, 3.0], jump_cov=8.0)
    own = sampler.in_units(scales)
    np.testing.assert_array_equal(own.covs, np.outer([1, 2, 3], [1 / 4, 1 / 16]))
    np.testing.assert_array_equal(own.jump_cov, [2.0, 0.5])
    np.testing.assert_array_equal(own.means, np.ones((3, 2)) / scales)
    one = fk.ModeJumping(means=np.ones((3, 2)), covs=4.0).in_units(scales)
    np.testing.assert_array_equal(one.covs, [[1.0, 0.25]] * 3)


def test_a_run_with_given_modes_goes_on_from_a_file(tmp_path):
    """The file has the sampler in the user's units; so has the result."""
    units = UNITS["mixed"]

    def density(y):
        x = y / units - CENTER
        return -0.5 * float(x @ PRECISION @ x)

    options = {"sampler": POSITIONED["a row for each"](units), "tune": 50, "seed": 1,
               "progress": False, "diagnose": False}
    whole = fk.sample(density, CENTER * units, draws=60, **options)
    part = fk.sample(density, CENTER * units, draws=40, **options)
    assert part.sampler == options["sampler"]
    part.save(tmp_path / "run.fk")
    again = fk.resume(tmp_path / "run.fk", 20, target=density, progress=False, diagnose=False)
    np.testing.assert_array_equal(again.draws, whole.draws)


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
