"""Every registered sampler leaves its target invariant once it is frozen; broken ones do not.

Each test has a false-alarm rate of at most 1e-4 over the seeds (Bonferroni over features); the
seeds are fixed, so that a run either always passes or always fails.
"""

import pytest
from forms import CyclesInPoints, InPoints
from twins import TWINS, caught_by

from fastkam import kernels, targets
from fastkam.samplers import SAMPLERS, CyclicalKernelAdaptiveMetropolis, KernelAdaptiveMetropolis
from fastkam.samplers.exchange import Coupled
from fastkam.schedules import Power
from fastkam.testing import invariance, invariance_as_published

FALSE_ALARM = 1e-4

# smaller than the defaults, so that many replicates fit into seconds
SMALL = {
    "kam": {"subsample": 30, "history_size": 200},
    "kpca": {"subsample": 30, "history_size": 200},
    "dm": {"bank_size": 50},
    "ckam": {"cycle": 20, "subsample": 8, "gamma": Power(c=2.0, k=0.25, offset=0.0)},
}
BANANA = targets.banana(b=0.1, V=4.0, d=2)
MODES = targets.GaussianMixture([[-3.0, 0.0], [3.0, 0.0]], covs=[0.2, 1.5])


def small(name):
    return SAMPLERS[name](**SMALL.get(name, {}))


def steps_of(sampler):
    return getattr(sampler, "cycle", 3)  # whole cycles, where there are cycles


SINGLE = [name for name, cls in SAMPLERS.items() if not issubclass(cls, Coupled)]
# the joint distribution of all rungs is tested in test_exchange.py


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
def test_a_slightly_wrong_target_is_detected(name):
    """A variance that is too large by a tenth; a sampler of short steps takes more of them."""
    sampler = small(name)
    steps = 20 if name == "gadrwm" else 2 * steps_of(sampler)
    found = invariance(sampler, targets.banana(b=0.1, V=4.4, d=2), exact=BANANA, steps=steps,
                       replicates=120_000, seed=4)
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


LINE = targets.Gaussian([0.0])
# with which a mistake counts for more than by default: (target, options of the sampler, steps)
CASES = {
    "second_try_for_first": (LINE, {"second_cov_ratio": 0.5}, 6),
    "without_first_density": (BANANA, {"second_cov_ratio": 0.25}, 6),
    "cycles_without_hastings": (    # 8 of the 10 steps of Exploration, gamma falling
        MODES, SMALL["ckam"] | {"gamma": Power(c=0.7, k=0.1, offset=0.0)}, 8),
    "wrong_sign": (MODES, {"proposal_cov": 0.5}, 6),
    "stale_reverse": (MODES, SMALL["kam"] | {"metric": "identity"}, 6),
}


def see(twins, twin, name, base=None):
    """Assert that a mistake is seen."""
    target, options, steps = CASES.get(twin, (MODES, SMALL.get(name, {}), 6))
    sampler = twins.sampler(twin, name, base=base)(**options)
    found = invariance(sampler, target, steps=steps, replicates=100_000, seed=6)
    assert found.p_value < FALSE_ALARM, (TWINS[twin].mistake, found)


@pytest.mark.parametrize(("twin", "name"), caught_by("invariance"))
def test_a_planted_mistake_is_detected(twins, twin, name):
    see(twins, twin, name)


@pytest.mark.parametrize("twin", ["wrong_determinant", "stale_reverse"])
def test_a_planted_mistake_is_detected_in_as_many_dimensions_as_points(twins, twin):
    see(twins, twin, "kam", base=InPoints)


def test_ckam_as_published_is_biased_and_its_exact_form_is_not():
    sampler = CyclicalKernelAdaptiveMetropolis(
        cycle=20, subsample=8, bank_size=20, step_size=1.0, kernel=kernels.Matern(2.0, 4.0),
        gamma=Power(c=2.0, k=0.25, offset=0.0),
    )
    published = invariance_as_published(sampler, MODES, steps=20, replicates=150_000, seed=7)
    assert published.p_value < FALSE_ALARM, published
    exact = invariance(sampler, MODES, steps=20, tune=600, replicates=150_000, seed=7)
    assert exact.p_value > FALSE_ALARM, exact
