"""Normal densities of separate modes in which few walkers are."""

import numpy as np
import pytest

import fastkam as fk
from fastkam.samplers import modes
from fastkam.search.evaluator import Evaluator
from fastkam.search.mixture import Mixture
from fastkam.search.population import Window
from fastkam.search.sharpened import LEAST_WEIGHT, sharpened

FAR = np.array([10.0, 10.0])


def made(mass, sd, factor=1.0, weight=0.05):
    """(evaluate, q, window, f): 30 walkers in N(0, I), and 2 in N(FAR, sd^2 I) with that mass."""
    def f(X):
        narrow = -0.5 * (((X - FAR) / sd) ** 2).sum(axis=-1) - 2 * np.log(sd)
        return np.logaddexp(np.log(1 - mass) - 0.5 * (X**2).sum(axis=-1), np.log(mass) + narrow)

    rng = np.random.default_rng(1)
    x = rng.standard_normal((200, 32, 2))
    x[:, 30:] = FAR + sd * x[:, 30:]
    q = Mixture(*modes.with_wide(np.array([1 - weight, weight]), np.stack([np.zeros(2), FAR]),
                                 np.stack([np.eye(2), factor * np.eye(2)])))
    return Evaluator(fk.as_target(f, 2, vectorized=True), rng), q, Window(x, f(x), 0.3)


@pytest.mark.parametrize(("mass", "weight"), [(0.1, 0.1), (0.001, LEAST_WEIGHT)])
def test_the_mode_gets_its_own_width_and_mass(mass, weight):
    evaluate, q, window = made(mass, 0.01)
    found = sharpened(evaluate, q, window, np.random.default_rng(2))
    assert found.n == q.n + 1
    np.testing.assert_allclose(found.means[-1], FAR, atol=1e-3)
    np.testing.assert_allclose(found.factors[-1], 0.01 * np.eye(2), atol=1e-4)
    assert found.weights[-1] / found.weights[1:].sum() == pytest.approx(weight, rel=0.15)


@pytest.mark.parametrize("options", [{"sd": 1.0}, {"sd": 0.01, "factor": 0.012},
                                     {"sd": 0.01, "weight": 0.2}])
def test_a_component_that_fits_or_has_many_states_is_left_alone(options):
    evaluate, q, window = made(0.05, **options)
    assert sharpened(evaluate, q, window, np.random.default_rng(2)) is q


def test_a_component_of_the_same_mode_is_left_alone():
    """A bent density has many components with few states, which are not separate modes."""
    evaluate, q, window = made(0.05, 0.5)
    beside = Mixture(q.weights, q.means / [[1.0], [1.0], [5.0]], q.factors)
    assert sharpened(evaluate, beside, window, np.random.default_rng(2)) is beside
