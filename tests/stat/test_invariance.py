"""Every registered sampler leaves its target invariant once it is frozen; broken ones do not.

Each test has a false-alarm rate of at most 1e-4 over the seeds (Bonferroni over features); the
seeds are fixed, so that a run either always passes or always fails.
"""

import pytest
from forms import CyclesInPoints, InPoints

from fastkam import kernels, targets
from fastkam.samplers import (
    HMC,
    MALA,
    NUTS,
    SAMPLERS,
    AutoMALA,
    AutoStepRandomWalk,
    BarkerProposal,
    CyclicalKernelAdaptiveMetropolis,
    DelayedRejectionAdaptiveMetropolis,
    DivergenceMinimization,
    FisherAdaptiveMALA,
    GradientAdaptiveMALA,
    KernelAdaptiveMetropolis,
    KernelPCAMetropolis,
    RandomWalk,
)
from fastkam.samplers.exchange import Coupled
from fastkam.schedules import Power
from fastkam.testing import invariance, invariance_as_published

FALSE_ALARM = 1e-4

# smaller than the defaults, so that many replicates fit into seconds
SMALL = {
    "kam": {"subsample": 30, "history": 200},
    "kpca": {"subsample": 30, "history": 200},
    "dm": {"bank": 50},
    "ckam": {"cycle": 20, "subsample": 8, "noise": Power(c=2.0, k=0.25, offset=0.0)},
}
BANANA = targets.banana(b=0.1, V=4.0, d=2)
MODES = targets.GaussianMixture([[-3.0, 0.0], [3.0, 0.0]], covs=[0.2, 1.5])


def small(name):
    return SAMPLERS[name](**SMALL.get(name, {}))


def steps_of(sampler):
    return getattr(sampler, "cycle", 3)  # whole cycles, where there are cycles


SINGLE = [name for name, cls in SAMPLERS.items() if not issubclass(cls, Coupled)]
# the law of all rungs is tested in test_exchange.py


@pytest.mark.parametrize("target", [BANANA, MODES], ids=["banana", "modes"])
@pytest.mark.parametrize("name", SINGLE)
def test_a_frozen_sampler_is_invariant(name, target):
    sampler = small(name)
    found = invariance(sampler, target, steps=steps_of(sampler), replicates=40_000, seed=2)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("name", [name for name in SINGLE if name != "ckam"])
def test_a_single_step_is_reversible(name):
    found = invariance(small(name), BANANA, steps=1, replicates=40_000, seed=3, reversible=True)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize("name", SINGLE)
def test_a_slightly_wrong_temperature_is_seen(name):
    sampler = small(name)
    found = invariance(sampler, BANANA, steps=2 * steps_of(sampler), replicates=120_000, seed=4,
                       beta=0.9)
    assert found.p_value < FALSE_ALARM, found


@pytest.mark.parametrize("name", ["rwm", "ram", "dram", "mala", "fishermala", "barker"])
def test_a_random_step_size_changes_nothing(name):
    found = invariance(SAMPLERS[name](jitter=0.9), BANANA, replicates=40_000, seed=8)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Linear(),
        kernels.Gaussian(2.0),
        kernels.Matern(2.0, 1.5),
        kernels.Matern("median", 4.0),
    ],
    ids=str,
)
def test_kam_is_invariant_with_every_kernel(kernel):
    sampler = KernelAdaptiveMetropolis(kernel=kernel, **SMALL["kam"])
    found = invariance(sampler, BANANA, replicates=40_000, seed=5)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize("sampler", [
    InPoints(**SMALL["kam"]),
    CyclesInPoints(**SMALL["ckam"]),
], ids=["kam", "ckam"])
@pytest.mark.parametrize("target", [BANANA, MODES], ids=["banana", "modes"])
def test_kam_is_invariant_in_as_many_dimensions_as_points(sampler, target):
    found = invariance(sampler, target, steps=steps_of(sampler), replicates=40_000, seed=9)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


class WithoutHastings(KernelAdaptiveMetropolis):
    KERNEL = "broken.WithoutHastings"


class WrongDeterminant(KernelAdaptiveMetropolis):
    KERNEL = "broken.WrongDeterminant"


class StaleReverse(KernelAdaptiveMetropolis):
    KERNEL = "broken.StaleReverse"


class WrongDeterminantInPoints(InPoints):
    KERNEL = "broken.WrongDeterminant"


class PCAWithoutHastings(KernelPCAMetropolis):
    KERNEL = "broken.PCAWithoutHastings"


class DriftingWalk(RandomWalk):
    KERNEL = "broken.DriftingWalk"


class UncorrectedLangevin(MALA):
    KERNEL = "broken.UncorrectedLangevin"


class StaleGradient(FisherAdaptiveMALA):
    KERNEL = "broken_langevin.StaleGradient"


class SymmetricSigns(BarkerProposal):
    KERNEL = "broken_langevin.SymmetricSigns"


class OneWayMALA(AutoMALA):
    KERNEL = "broken_langevin.OneWayMALA"


class OneWayWalk(AutoStepRandomWalk):
    KERNEL = "broken_langevin.OneWayWalk"


class SecondTryForFirst(DelayedRejectionAdaptiveMetropolis):
    KERNEL = "broken_langevin.SecondTryForFirst"
class IndexOfCurrentPoint(DivergenceMinimization):
    KERNEL = "broken_dm.IndexOfCurrentPoint"


class WrongSign(GradientAdaptiveMALA):
    KERNEL = "broken_gad.WrongSign"


class WithoutKineticEnergy(HMC):
    KERNEL = "broken_hamiltonian.WithoutKineticEnergy"


class AlwaysTheNewest(NUTS):
    KERNEL = "broken_hamiltonian.AlwaysTheNewest"


@pytest.mark.parametrize(
    "sampler",
    [
        WithoutHastings(**SMALL["kam"]),
        WrongDeterminant(**SMALL["kam"]),
        StaleReverse(**SMALL["kam"]),
        WrongDeterminantInPoints(**SMALL["kam"]),
        PCAWithoutHastings(**SMALL["kpca"]),
        DriftingWalk(),
        UncorrectedLangevin(),
        StaleGradient(),
        SymmetricSigns(),
        OneWayMALA(),
        OneWayWalk(),
        SecondTryForFirst(),
        IndexOfCurrentPoint(**SMALL["dm"]),
        WrongSign(cov=0.5),
        WithoutKineticEnergy(),
        AlwaysTheNewest(),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_a_broken_sampler_is_caught(sampler):
    found = invariance(sampler, MODES, steps=6, replicates=100_000, seed=6)
    assert found.p_value < FALSE_ALARM, found


def test_ckam_as_published_is_biased_and_its_exact_form_is_not():
    sampler = CyclicalKernelAdaptiveMetropolis(
        cycle=20, subsample=8, bank=20, step_size=1.0, kernel=kernels.Matern(2.0, 4.0),
        noise=Power(c=2.0, k=0.25, offset=0.0),
    )
    published = invariance_as_published(sampler, MODES, steps=20, replicates=150_000, seed=7)
    assert published.p_value < FALSE_ALARM, published
    exact = invariance(sampler, MODES, steps=20, tune=600, replicates=150_000, seed=7)
    assert exact.p_value > FALSE_ALARM, exact
