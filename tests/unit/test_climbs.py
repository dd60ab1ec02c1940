"""Climbs of a learned surrogate from points that may be far from the mass."""

import numpy as np
import pytest

import fastkam as fk
from fastkam.density.forms import as_target
from fastkam.surrogate.calls import Calls
from fastkam.surrogate.climbs import MOST_STARTS, starting_points, to_mass, to_maxima

BUDGET = 2000


def calls_of(f, d, seed=0):
    return Calls(as_target(f, d), np.random.default_rng(seed), BUDGET)


def normal_prior(sd, d):
    return lambda n, rng: sd * rng.standard_normal((n, d))


def climbed_to_maximum(calls, points, prior, rng):
    """Make all climbs; return the factor of the covariance."""
    starts = starting_points(calls, points, prior, rng)
    return to_maxima(calls, starts, to_mass(calls, starts).scales)


def correlated(d):
    """A normal log density with correlations, and its maximum."""
    A = np.random.default_rng(d).standard_normal((d, d))
    precision = np.linalg.inv(A @ A.T / d + 0.3 * np.eye(d))
    mode = np.linspace(-3, 5, d)
    return lambda x: -0.5 * (x - mode) @ precision @ (x - mode)


@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_a_wide_prior_costs_few_calls(d):
    """Steps that grow from the scales at each start take several times as many."""
    for seed in range(4):
        calls = calls_of(correlated(d), d, seed)
        prior = normal_prior(50.0, d)
        climbed_to_maximum(calls, prior(4, calls.evaluator.rng), prior, calls.evaluator.rng)
        assert calls.finite()[1].max() > -0.5
        assert calls.n < 60 * (d + 1)


@pytest.mark.parametrize("sd", [1e6, 50.0])
def test_a_start_far_from_the_mass_within_a_vague_prior(sd):
    """No step in units of the prior raises the density, which is 1e6 times as narrow."""
    calls = calls_of(lambda x: -0.5 * float(x @ x), 3)
    climbed_to_maximum(calls, np.full((1, 3), 100.0), normal_prior(sd, 3), calls.evaluator.rng)
    assert calls.finite()[1].max() > -0.5


@pytest.mark.parametrize("away", [1e3, 1e6])
def test_a_start_far_from_the_mass_without_a_prior(away):
    calls = calls_of(lambda x: -0.5 * float(x @ x), 3)
    climbed_to_maximum(calls, np.full((1, 3), away), None, calls.evaluator.rng)
    assert calls.finite()[1].max() > -0.5
    assert calls.n < 500


def test_a_region_without_a_density_is_not_climbed():
    """The mode is next to a wall."""
    def f(x):
        return -0.5 * float((x - 3) @ (x - 3)) - 7 if x[0] < 3.5 else -np.inf

    calls = calls_of(f, 2)
    climbed_to_maximum(calls, np.array([[-60.0, 40]]), normal_prior(50.0, 2), calls.evaluator.rng)
    assert calls.finite()[1].max() > -7.1
    beyond = calls.all()[0][21:, 0] >= 3.5  # after the start and 20 draws from the prior
    assert beyond.mean() < 0.25  # 0.34 if a point without a density counted as a high one


def test_starts_are_the_first_point_and_the_best_of_the_others():
    calls = calls_of(lambda x: -0.5 * float(x @ x), 2)
    points = np.array([[30.0, 0], [30.0, 0], [3.0, 0], [9.0, 0]])
    starts = starting_points(calls, points, normal_prior(5.0, 2), calls.evaluator.rng)
    X, y = calls.finite()
    assert calls.n == len(np.unique(points, axis=0)) + 20
    assert len(starts.points) == MOST_STARTS
    np.testing.assert_array_equal(starts.points[:-1], X[np.argsort(-y)][: MOST_STARTS - 1])
    np.testing.assert_array_equal(starts.points[-1], points[0])
    assert (np.abs(np.log(starts.lengths / 5.0)) < 0.7).all()


def test_starts_without_a_prior():
    calls = calls_of(lambda x: -0.5 * float(x @ x), 2)
    starts = starting_points(calls, np.array([[1.0, 0], [9.0, 0]]), None, calls.evaluator.rng)
    np.testing.assert_array_equal(starts.points, [[1, 0], [9, 0]])
    assert starts.lengths is None
    assert calls.n == 2


def cubic(x):
    """Regression on a cubic polynomial, with the log of the errors' standard deviation."""
    t = np.linspace(0, 1, 40)
    y = 1 + 2 * t - 3 * t**2 + 0.1 * np.random.default_rng(5).standard_normal(40)
    r = (y - np.polyval(x[:4], t)) / np.exp(x[4])
    return float(-0.5 * r @ r - 40 * x[4] - 0.5 * (x[:4] @ x[:4]) / 1e4 - 0.5 * x[4] ** 2)


def test_a_thin_valley_is_climbed_by_newtons_method():
    """The eigenvalues of the covariance differ by a factor of 1e4, and it is known afterwards."""
    t = np.linspace(0, 1, 40)
    want = np.linalg.inv(np.vander(t, 4).T @ np.vander(t, 4))
    for seed in range(3):
        calls = calls_of(cubic, 5, seed)
        prior = normal_prior(np.array([100.0, 100, 100, 100, 1]), 5)
        factor = climbed_to_maximum(calls, prior(4, calls.evaluator.rng), prior,
                                    calls.evaluator.rng)
        X, y = calls.finite()
        best = X[y.argmax()]
        cov = np.exp(2 * best[4]) * want
        assert abs(np.exp(best[4]) - 0.1) < 0.03
        L = np.linalg.solve(factor[:4, :4], np.linalg.cholesky(cov))
        assert (np.abs(np.log(np.linalg.svd(L)[1])) < np.log(2)).all()


def test_a_thin_valley_is_learned_after_many_calls_of_climbs():
    from scipy import stats

    result = fk.sample(lambda b, s: cubic(np.append(b, np.log(s))), prior={
        "b": (stats.norm(0, 100), 4), "s": stats.halfnorm(scale=10)}, surrogate="learn",
        budget=2000, seed=1, progress=False, diagnose=False)
    assert result.log_weights is not None
    assert abs(np.average(result["s"], weights=result.weights) - 0.1) < 0.03


def modes(x):
    """A normal component, and one with heavier tails, 20 apart in each coordinate."""
    a, b = x + 10.0, x - 10.0
    return float(np.logaddexp(-0.5 * a @ a, 2 - 2 * (1 + b @ b) ** 0.75))


def test_further_climbs_find_another_mode_and_end_at_the_known_one():
    far = np.array([[-30.0, -25], [70.0, 60], [-25.0, -40]])
    calls = calls_of(modes, 2)
    climbed_to_maximum(calls, far, None, calls.evaluator.rng)
    X, y = calls.finite()
    for mode in (-10.0, 10.0):
        near = np.abs(X - mode).max(axis=1) < 1
        assert y[near].max(initial=-np.inf) > y.max() - 0.1
    again = calls_of(modes, 2)
    climbed_to_maximum(again, far[:1], None, again.evaluator.rng)
    both = calls_of(modes, 2)
    climbed_to_maximum(both, far[[0, 2]], None, both.evaluator.rng)
    assert both.n - again.n < 25


def test_a_surrogate_is_learned_with_few_calls_under_a_wide_prior():
    from scipy import stats

    mode = np.array([-3.0, 0, 2, 5])
    result = fk.sample(lambda x: -0.5 * float((x - mode) @ (x - mode)),
                       prior={"x": (stats.norm(0, 50), 4)}, surrogate="learn", budget=700, seed=0,
                       progress=False)
    found, = (line for line in result.search if line.startswith("surrogate learned"))
    assert int(found.split("after ")[1].split()[0]) < 450
    table = result.summary()
    assert (np.abs(table["mean"] - mode) < 4 * table["mcse_mean"]).all()
