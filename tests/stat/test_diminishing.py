"""Draws made while adaptation diminishes have the spread of a bent target.

A covariance that forgets too soon follows the chain along the bend: the proposal is short where the
chain is, and it stays there for too long. The variance along a banana is estimated by independent
runs from their mean of x_1^2. The guarantee is asymptotic: a finite run may fall short of the truth
by ALLOWANCE, and a test fails where a one-sided t-test says that it falls short by more, at the
level FALSE_ALARMS.
"""

import numpy as np
import pytest
from runs import sample
from scipy.stats import ttest_1samp

from fastkam import targets
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Diminishing, Power

RUNS, DRAWS = 16, 20_000
ALLOWANCE = 0.06
FALSE_ALARMS = 1e-4
VARIANCE = 25.0
BANANA = targets.banana(b=0.1, V=VARIANCE, d=2)
LEARN_A_COVARIANCE = ("am", "rbam", "gam", "dram", "cholam")
OFFSETS = {"cholam": 1000.0}  # of gains that do not begin at 1 / 2

pytestmark = pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")  # of long stays in tails


def p_value(name, gain=None):
    """Return the p-value of a variance that is right within the allowance, or larger."""
    ratios = []
    for seed in range(RUNS):
        result = sample(BANANA, np.zeros(2), sampler=name, schedule=Diminishing(gain=gain),
                        tune=2000, draws=DRAWS, seed=seed, progress=False)
        ratios.append((result.draws[..., 0] ** 2).mean() / VARIANCE)
    return ttest_1samp(ratios, 1 - ALLOWANCE, alternative="less").pvalue


@pytest.mark.parametrize("name", LEARN_A_COVARIANCE)
def test_spread_with_the_default_gain(name):
    assert p_value(name) > FALSE_ALARMS


@pytest.mark.parametrize("name", LEARN_A_COVARIANCE)
def test_a_gain_that_forgets_is_detected(name):
    assert p_value(name, Power(k=0.7)) < FALSE_ALARMS


@pytest.mark.parametrize("name", LEARN_A_COVARIANCE)
def test_the_schedule_chooses_the_gain(name):
    sampler = SAMPLERS[name]()
    assert Diminishing().gain_of(sampler, 2) == Power(k=1.0, offset=OFFSETS.get(name, 1.0))
    assert Diminishing(gain=Power(k=0.7)).gain_of(sampler, 2) == Power(k=0.7)
    assert Diminishing().compiled(SAMPLERS["pt"](sampler=sampler), 2, 0).k == 1.0
