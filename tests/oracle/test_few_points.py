"""KAM and its relatives in n dimensions equal the NumPy references, which know no such form.

They have the same draws, first e then f, and the covariances built in full.
"""

import pytest
import test_sharing
from agreement import compare, disagreement
from forms import InPoints
from test_oracle import KERNELS, StaleReverse, WithoutHastings
from twins import caught_by

from fastkam.kernels import Linear, Matern
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Finite, IncreasinglyRare, Perpetual, Power

KAM, CYCLES = SAMPLERS["kam"], SAMPLERS["ckam"]
N = 11      # in twelve dimensions


def test_the_form_for_many_dimensions_is_used_from_twelve_on():
    assert KAM(subsample=N).few_points(12)
    assert not KAM(subsample=N).few_points(10)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel):
    compare("kam", KAM(kernel=kernel, subsample=N), "twelve", tune=500, draws=300)


@pytest.mark.parametrize("target", ["correlated", "five", "modes", "holes"])
def test_more_points_than_dimensions(target):
    compare("kam", InPoints(subsample=25), target, tune=500, draws=300)


@pytest.mark.parametrize("options", [
    {"history_size": 30}, {"history_size": 31, "renewal": 0.3}, {"gamma": Power(c=2.0, k=0.4)},
    {"subsample": 0, "history_size": 50}, {"subsample": 1}, {"subsample": 8},
    {"step_size": 0.05, "target_acceptance": 0.5},
], ids=str)
@pytest.mark.parametrize("schedule", [Finite(), Perpetual()], ids=str)
def test_memory(options, schedule):
    compare("kam", KAM(**{"subsample": N} | options), "twelve", tune=500, draws=300,
            schedule=schedule)


@pytest.mark.parametrize("options", [
    {}, {"kernel": Linear()}, {"bank_size": 3}, {"subsample": 0},
    {"exploration_fraction": 0.7, "cycle": 77, "renewal": 0.2},
], ids=str)
@pytest.mark.parametrize("schedule", [Finite(), Perpetual()], ids=str)
def test_cycles(options, schedule):
    sampler = CYCLES(**{"subsample": N, "cycle": 80, "bank_size": 8, "gamma": 0.5} | options)
    compare("ckam", sampler, "twelve", tune=730, draws=300, schedule=schedule)


@pytest.mark.parametrize(("name", "options"), [
    ("pt", {"n_replicas": 3, "sampler": KAM(subsample=N)}),
    ("jumps", {"moves": "hop", "jump_probability": 0.5, "means": [[1.0] * 12, [-1.0] * 12],
               "sampler": KAM(subsample=N)}),
    ("jumps", {"sampler": CYCLES(subsample=N, cycle=80)}),
], ids=str)
def test_within_others(name, options):
    # the first round of pt has as many states as decide that they have a covariance
    compare(name, SAMPLERS[name](**options), "twelve", tune=600, draws=300)


@pytest.mark.parametrize("schedule", [Finite(), Perpetual(), IncreasinglyRare(rarity=0.5)], ids=str)
def test_chains_that_learn_as_one(schedule):
    sampler = KAM(subsample=N, history_size=60, renewal=0.2)
    found = test_sharing.disagreement("kam", "twelve", sampler=sampler, schedule=schedule)
    assert found is None, found


# ---- with one mistake ----


@pytest.mark.parametrize("reference", [WithoutHastings, StaleReverse])
def test_a_planted_mistake_is_detected(reference):
    sampler = KAM(kernel=Matern(2.0, 4.0), subsample=N, renewal=0.1)
    assert disagreement(reference, sampler, "twelve", tune=500, draws=300) is not None


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")     # it hardly moves
@pytest.mark.parametrize(("twin", "name"), caught_by("sharing"))
def test_a_mistake_of_sharing_is_detected(twins, twin, name):
    """Distances that another chain has changed."""
    sampler = twins.sampler(twin)(subsample=N, history_size=60, renewal=0.2)
    assert test_sharing.disagreement(name, "twelve", sampler=sampler) is not None
