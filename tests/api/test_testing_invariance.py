"""The invariance test with exact draws of the user; what it refuses, and what it prints."""

from functools import partial

import numpy as np
import pytest

import fastkam as fk

invariance = partial(fk.testing.invariance, "rwm", steps=2, tune=0)
DRAWS = np.random.default_rng(3).standard_normal((6001, 2))


def normal(x):
    return -0.5 * x @ x


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exact_draws_as_an_array(seed):
    """False alarms: 1 in 10 000 each."""
    found = invariance(normal, exact=DRAWS, seed=seed)
    assert found.p_value > 1e-4, found
    assert found.moved > 0.3
    assert "% of the points have moved" in str(found)


def test_the_comparison_detects_other_draws():
    assert invariance(normal, exact=1.3 * DRAWS).p_value < 1e-4


def test_a_gradient_is_used():
    found = fk.testing.invariance("mala", lambda x: (normal(x), -x), exact=DRAWS, tune=100)
    assert found.p_value > 1e-4, found


def test_points_that_do_not_move_say_nothing():
    found = invariance(lambda x: normal(x) if (x == DRAWS).all(axis=1).any() else -np.inf,
                       exact=DRAWS[:201])
    assert str(found).startswith("no point has moved")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"exact": None}, TypeError, "target must have exact draws, .* give them as exact"),
        ({"exact": DRAWS[:2]}, ValueError, "exact must have at least 3 rows, not 2"),
        ({"exact": DRAWS[:, 0]}, ValueError, r"exact must have shape"),
        ({"exact": np.full((200, 2), np.nan)}, ValueError, "exact must be finite"),
        ({"exact": "draws"}, TypeError, "exact must be an array of numbers"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"replicates": 1}, ValueError, "replicates must be at least 2"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"reversible": 1}, TypeError, "reversible must be True or False"),
    ],
)
def test_bad_arguments(change, error, says):
    with pytest.raises(error, match=says):
        invariance(normal, **{"exact": DRAWS} | change)


def test_a_coordinate_with_one_value_cannot_be_compared():
    before = np.c_[DRAWS, np.full(len(DRAWS), 3.0)]
    with pytest.raises(ValueError, match=r"before must have different values of each coordinate, "
                       r"and coordinate 2 is 3\.0 in all points"):
        fk.testing.compare(before, before + np.array([0, 0, 1]), seed=1)


@pytest.mark.parametrize("sampler", ["pt", "scout", fk.ModeJumping(sampler="pt"),
                                     fk.ModeJumping(sampler=fk.Scout())])
def test_samplers_with_replicas_are_refused(sampler):
    """Replicas that always begin at the same state would make right samplers seem wrong."""
    says = "^sampler must be one without replicas, and (ParallelTempering|Scout) has some"
    with pytest.raises(ValueError, match=says):
        fk.testing.invariance(sampler, fk.targets.banana(b=0.1, V=4.0, d=2))
    with pytest.raises(ValueError, match=says):
        fk.testing.replicate(sampler, fk.targets.banana(d=2), np.zeros((1, 2)), 1, seed=1)
