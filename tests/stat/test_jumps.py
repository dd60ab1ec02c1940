"""Each move of mode jumping leaves the target invariant, around any sampler; broken ones do not.

Each test has a false-alarm rate of at most 1e-4 over the seeds, which are fixed.
"""

import math

import numpy as np
import pytest
from runs import sample
from twins import TWINS, caught_by

import fastkam as fk
from fastkam.numerics.periods import Periods
from fastkam.testing import compare, invariance, replicate

FALSE_ALARM = 1e-4
MODES = fk.targets.GaussianMixture([[-3.0, 0.0], [3.0, 0.0]], covs=[0.2, 1.5])
THREE = {  # that do not fit the target, so that every ratio counts
    "means": [[-3.0, 0.5], [3.0, 0.0], [0.0, 1.0]], "covs": [0.3, 1.0, 2.0],
    "weights": [1.0, 2.0, 1.0], "fit": False,
}
DM = fk.DivergenceMinimization(bank_size=50, n_gradients=3)
KAM = fk.KernelAdaptiveMetropolis(subsample=30, history_size=200)


@pytest.mark.parametrize("options", [
    {"moves": "jump", "jump_cov": 16.0},
    {"moves": "independent"} | THREE,
    {"moves": "hop"} | THREE,
    {"moves": "hop"},
    {"sampler": DM} | THREE,
    {"sampler": KAM},
    {"sampler": "nuts", "moves": ("independent", "hop"), "jump_probability": 0.5} | THREE,
], ids=["jump", "independent", "hop", "fitted", "dm", "kam", "nuts"])
def test_moves_are_invariant(options):
    sampler = fk.ModeJumping(**{"jump_probability": 0.7} | options)
    found = invariance(sampler, MODES, replicates=20_000, seed=1)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("move", ["jump", "independent", "hop"])
def test_a_move_is_reversible(move):
    options = THREE if move != "jump" else {"jump_cov": 16.0}
    found = invariance(fk.ModeJumping(moves=move, jump_probability=0.9, **options), MODES, steps=1,
                       replicates=20_000, seed=2, reversible=True)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize(("twin", "options", "steps", "replicates"), [
    ("jumps_without_ratio", {"moves": "hop", "jump_probability": 0.7}, 6, 30_000),
    ("jumps_without_ratio", {"moves": "independent", "jump_probability": 0.7}, 6, 30_000),
    ("jumps_unannounced", {"moves": "hop", "jump_probability": 0.3, "sampler": KAM}, 40, 150_000),
], ids=["hop", "independent", "unannounced"])
def test_a_planted_mistake_is_detected(twins, twin, options, steps, replicates):
    sampler = twins.sampler(twin)(**options | THREE)
    found = invariance(sampler, MODES, steps=steps, replicates=replicates, seed=3)
    assert found.p_value < FALSE_ALARM, (TWINS[twin].mistake, found)


# an angle with two modes, a normal x, and r with the density 2 r between 0 and 1, reflected
FIRST, SECOND = np.log(0.3 / np.i0(8.0)), np.log(0.7 / np.i0(3.0))
CIRCLE = fk.Problem(
    lambda angle, x, r: (np.logaddexp(FIRST + 8 * math.cos(angle - 1),
                                      SECOND + 3 * math.cos(angle + 1.5))
                         - 0.5 * (x - math.sin(angle)) ** 2 + math.log(r)),
    bounds={"angle": (-np.pi, np.pi), "x": (-np.inf, np.inf), "r": (0, 1)},
    transforms={"angle": "periodic", "r": "reflect"})
WINDOW = Periods(CIRCLE.coordinates.periods).cut(np.array([[-1.5, 0, 0], [1.0, 0, 0]])).rows
IN_WINDOW = {"means": [[1.0, 0.8, 0.6], [-1.5, -1.0, 0.6]], "covs": [[0.3, 1, 0.1], [0.5, 1, 0.2]],
             "periods": WINDOW, "fit": False, "jump_probability": 0.7}


def on_circle(n, rng):
    """Exact draws (n, 3), of images that have the weights of their periods."""
    first = rng.random(n) < 0.3
    angle = rng.vonmises(np.where(first, 1, -1.5), np.where(first, 8, 3))
    z = np.column_stack([angle, rng.normal(np.sin(angle)), np.sqrt(rng.random(n))])
    for k, _, width, period, mean, sd in WINDOW:
        of = z[:, [int(k)]]
        images = np.hstack([of] if period == width else [of, -of]) + (
            period * np.arange(-15, 16)[:, None, None])
        images = images.transpose(1, 0, 2).reshape(n, -1)
        p = np.cumsum(np.exp(-0.5 * ((images - mean) / sd) ** 2), axis=1)
        z[:, int(k)] = images[np.arange(n), (p < p[:, -1:] * rng.random((n, 1))).sum(axis=1)]
    return z


def moved_on_circle(sampler, seed):
    z = on_circle(20_000, np.random.default_rng(seed))
    return compare(z, replicate(sampler, CIRCLE.target(), z, 4, seed=seed), seed=seed)


@pytest.mark.parametrize("moves", ["independent", "hop", ("jump", "independent", "hop")])
def test_moves_between_images_are_invariant(moves):
    found = moved_on_circle(fk.ModeJumping(moves=moves, **IN_WINDOW), 5)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("move", ["independent", "hop"])
def test_a_forgotten_weight_of_images_is_detected(twins, move):
    found = moved_on_circle(twins.sampler("jumps_without_images")(moves=move, **IN_WINDOW), 6)
    assert found.p_value < FALSE_ALARM, found


def test_no_mistake_is_left_out():
    assert {twin for twin, _ in caught_by("jumps")} == {
        "jumps_without_ratio", "jumps_without_images", "jumps_unannounced"}


def test_modes_never_visited_are_reached_by_hops():
    """Each of four modes is drawn as often as it should be, |z| < 5 by batch means."""
    target = fk.targets.basis_vectors(2)
    result = sample(target, target.modes[0], draws=20_000, tune=4000, chains=4, seed=4,
                    sampler=fk.ModeJumping(moves="hop", means=1.1 * target.modes))
    for k in range(4):
        batches = (target.mode_of(result.draws) == k).reshape(80, -1).mean(axis=1)
        assert abs(batches.mean() - 0.25) < 5 * batches.std(ddof=1) / np.sqrt(80)
