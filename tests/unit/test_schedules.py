"""Times and gains of adaptation, read from the scale that a sampler records."""

from math import ceil

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.schedules import (
    SCHEDULES,
    Diminishing,
    Finite,
    IncreasinglyRare,
    Perpetual,
    Power,
    Schedule,
    as_schedule,
    constant,
)

SAMPLER = fk.GlobalAdaptiveMetropolis(scale=0.7)


def adaptations(schedule, *, tune=200, draws=300):
    """{step: gain} of one run: log scale moves by gain (alpha - alpha*) where it adapts."""
    result = sample(lambda x: -0.5 * x @ x, [0.3, 0.1], sampler=SAMPLER, tune=tune, draws=draws,
                    chains=1, seed=4, schedule=schedule, progress=False)
    scale, alpha = (np.r_[result.warmup.stats[name][0], result.stats[name][0]]
                    for name in ("log_scale", "acceptance_rate"))
    change = np.diff(scale, prepend=np.log(SAMPLER.scale))
    assert (np.abs(alpha - SAMPLER.target_acceptance) > 1e-6).all()
    assert len(change) == tune + draws
    gains = change / (alpha - SAMPLER.target_acceptance)
    return {int(t): gains[t] for t in np.flatnonzero(change)}


def check(found, times, gain):
    assert list(found) == list(times)
    expected = [gain(n) for n in range(1, len(found) + 1)]
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("gain", [
    Power(k=0.7), Power(c=0.5, k=1.0), Power(c=3.0, k=0.6, offset=10.0), constant(0.01),
    Power(c=5.0, k=0.9, offset=0.0, cap=0.2),
], ids=str)
@pytest.mark.parametrize("start", [0, 1, 37])
def test_gains(gain, start):
    check(adaptations(Perpetual(gain=gain, start=start)), range(start, 500), gain)
    check(adaptations(Finite(gain=gain, start=start)), range(start, 200), gain)


def test_default_gain_is_the_samplers():
    check(adaptations("perpetual"), range(500), SAMPLER.default_gain(2))
    check(adaptations("diminishing"), range(500), SAMPLER.diminishing_gain(2))


def test_finite_ends_with_warm_up():
    assert adaptations(Finite(), tune=0) == {}
    assert list(adaptations(Finite(), tune=1)) == [0]
    assert list(adaptations(Finite(start=199), tune=200)) == [199]
    with pytest.raises(ValueError, match="start must be below the step 200 at which"):
        adaptations(Finite(start=200), tune=200)


@pytest.mark.parametrize("rarity", [0.01, 0.3, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("start", [0, 1, 40])
def test_increasingly_rare(rarity, start):
    times = [start - 1 + ceil(j ** (1 + rarity)) for j in range(1, 600)]
    found = adaptations(IncreasinglyRare(rarity=rarity, start=start))
    check(found, [t for t in times if t < 500], SAMPLER.default_gain(2))


def test_resuming_goes_on_counting():
    for schedule in (IncreasinglyRare(rarity=0.4), Diminishing()):
        options = {"sampler": SAMPLER, "tune": 50, "chains": 2, "seed": 1, "schedule": schedule,
                   "progress": False}
        whole = sample(lambda x: -0.5 * x @ x, [0.0], draws=300, **options)
        part = sample(lambda x: -0.5 * x @ x, [0.0], draws=77, **options).resume(223)
        np.testing.assert_array_equal(part.draws, whole.draws)
        np.testing.assert_array_equal(part.stats["log_scale"], whole.stats["log_scale"])


def test_power():
    power = Power(c=2.0, k=0.5, offset=3.0, cap=0.9)
    assert power(1) == 0.9
    assert power(13) == 2.0 / 4.0
    assert constant(0.3)(10**9) == 0.3


def test_every_schedule_states_its_guarantee():
    assert {type(as_schedule(name)) for name in SCHEDULES} == set(Schedule.__subclasses__())
    assert all(schedule.guarantee for schedule in SCHEDULES.values())


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Power(c=0), "c must be above 0, not 0"),
    (lambda: Power(c="x"), "c must be a number, not 'x'"),
    (lambda: Power(k=-0.1), "k must be at least 0, not -0.1"),
    (lambda: Power(offset=-1), "offset must be at least 0, not -1"),
    (lambda: Power(cap=0.0), "cap must be above 0, not 0.0"),
    (lambda: Power(c=np.nan), "c must be.*nan"),
    (lambda: Finite(gain=0.5), "gain must be a Power, not 0.5"),
    (lambda: Finite(start=-1), "start must be at least 0, not -1"),
    (lambda: Perpetual(start=1.5), "start must be an integer, not 1.5"),
    (lambda: IncreasinglyRare(rarity=0), "rarity must be above 0, not 0"),
    (lambda: as_schedule("often"), "schedule must be.*'often'"),
    (lambda: as_schedule(None), "schedule must be.*None"),
    (lambda: adaptations(Diminishing(gain=Power(k=0.5))), r"\(1/2, 1\], not k = 0.5"),
    (lambda: adaptations(Diminishing(gain=Power(k=1.01))), "not k = 1.01"),
    (lambda: adaptations(Diminishing(gain=constant(0.1))), "not k = 0"),
])
def test_bad_arguments(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()
