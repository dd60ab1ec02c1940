"""The default call from starts that are far from the mass."""

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.search.search import Searcher
from fastkam.surrogate import run
from fastkam.surrogate.calls import Calls

N = 200
RNG = np.random.default_rng(7)
HEIGHT = RNG.normal(170, 10, N)
PAY = 100 * HEIGHT + RNG.normal(0, 2000, N)


def regression(x):
    """Raw predictors of pay, flat priors: two coefficients and the logarithm of the deviation."""
    r = PAY - x[0] - x[1] * HEIGHT
    return -0.5 * (r @ r) * np.exp(-2 * x[2]) - N * x[2]


NOISE = RNG.standard_normal(N)
SERIES = NOISE + 0.5 * np.r_[0.0, NOISE[:-1]]


def moving_average(x):
    """Errors grow as theta^n where |theta| > 1: log densities of -1e60."""
    theta, log_sd = x
    e = 0.0
    total = -0.5 * theta**2
    for y in SERIES:
        e = y - theta * e
        total -= 0.5 * (e * np.exp(-log_sd)) ** 2 + log_sd
        if not total > -1e300:
            return -np.inf
    return total


@pytest.mark.parametrize("start", [[0.05, 1.8, -1.4], [-1.9, 0.3, 1.1]])
def test_a_regression_from_a_start_without_thought(start):
    assert regression(start) < -1e7
    result = fk.sample(regression, start, seed=1)
    assert result.warnings == []
    assert result.evaluations < 25_000
    X = np.column_stack([np.ones(N), HEIGHT])
    best, squares, *_ = np.linalg.lstsq(X, PAY, rcond=None)
    sd = np.sqrt(squares[0] / (N - 4) * np.linalg.inv(X.T @ X).diagonal())  # Student, flat priors
    table = result.summary()
    np.testing.assert_allclose(table["mean"][:2], best, atol=0.2 * sd.max(), rtol=0.1)
    np.testing.assert_allclose(table["sd"][:2], sd, rtol=0.15)


@pytest.mark.parametrize("start", [[1.8, -1.5], [-1.7, 0.5]])
def test_a_series_whose_errors_explode_at_the_start(start):
    assert moving_average(start) < -1e30
    result = fk.sample(moving_average, start, seed=1)
    assert result.warnings == []
    assert abs(result.summary()["mean"][0] - 0.5) < 0.25


def test_far_from_one_of_two_modes():
    """Starts at a distance of thousands of standard deviations; both modes are found."""
    def f(x):
        return np.logaddexp(-0.5 * ((x - 4) ** 2).sum(), -0.5 * ((x + 4) ** 2).sum())

    result = fk.sample(f, [3e3, -1e3], seed=1)
    assert result.warnings == []
    assert 0.35 < (result.draws[..., 0] > 0).mean() < 0.65


def test_a_named_sampler_starts_near_the_mass():
    result = fk.sample(regression, [0.05, 1.8, -1.4], sampler="am", seed=1)
    assert regression(result.state.x0[0]) > -2500  # -1800 at the mode
    assert result.warnings == []


def test_starts_of_several_chains_climb():
    """Each from its own point."""
    starts = np.array([[0.05, 1.8, -1.4], [-1.9, 0.3, 1.1]])
    searcher = Searcher(fk.as_target(regression, 3), starts, np.random.default_rng(1))
    with np.errstate(all="ignore"):
        searcher.begin()
        searcher.ascend()
    assert all(regression(x) > -2500 for x in searcher.points)
    assert (searcher.points[0] != searcher.points[1]).any()


def test_the_way_to_the_mass_does_not_count_as_learning(monkeypatch):
    ways, most = [], []
    design, until_good = run.design, run.Rounds.until_good

    def seen_design(calls, *arguments):
        ways.append(calls.n)
        return design(calls, *arguments)

    def seen_until_good(rounds, calls):
        most.append(calls)
        until_good(rounds, calls)

    monkeypatch.setattr(run, "design", seen_design)
    monkeypatch.setattr(run.Rounds, "until_good", seen_until_good)
    fk.sample(regression, [0.05, 1.8, -1.4], surrogate="learn", budget=3000, seed=1)
    assert ways[0] > 100
    assert most[0] == ways[0] + 400 + 3 * 100


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_a_run_goes_on_from_the_calls_of_a_surrogate_that_does_not_pay(monkeypatch):
    monkeypatch.setattr(run, "LEAST", 2.0)  # no surrogate is good enough
    result = fk.sample(regression, [0.05, 1.8, -1.4], surrogate="learn", budget=6000, seed=1)
    assert any("does not pay" in line for line in result.search)
    assert not any("climb from far away" in line for line in result.search)


def test_a_surrogate_is_learned_from_a_start_without_thought():
    """Within 2000 calls, a few hundred of which are the way to the mass."""
    result = fk.sample(regression, [0.05, 1.8, -1.4], surrogate="learn", budget=2000, seed=1)
    assert result.weights is not None  # draws of a surrogate
    assert result.evaluations <= 2000
    X = np.column_stack([np.ones(N), HEIGHT])
    best, squares, *_ = np.linalg.lstsq(X, PAY, rcond=None)
    sd = np.sqrt(squares[0] / (N - 4) * np.linalg.inv(X.T @ X).diagonal())
    table = result.summary()
    assert (np.abs(table["mean"][:2] - best) < 0.2 * sd).all()


def test_a_run_that_follows_a_surrogate_begins_at_its_best_call():
    """Unless its start is about as good."""
    target = fk.as_target(lambda x: -0.5 * float(x @ x), 2)
    calls = Calls(target, np.random.default_rng(1), 100)
    far, near = np.full((4, 2), 30.0), np.full((4, 2), 1.0)
    calls(np.array([[30.0, 30.0], [0.5, 0.0], [1.0, 1.0]]))
    assert (calls.higher(far) == [0.5, 0.0]).all()
    assert (calls.higher(near) == near).all()
    mixed = np.array([[30.0, 30.0], [1.0, 1.0], [7.0, 7.0]])    # the last one is no call
    assert (calls.higher(mixed) == [[0.5, 0.0], [1.0, 1.0], [7.0, 7.0]]).all()


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize("budget", [150, 300])
def test_starts_drawn_from_the_prior_are_replaced_if_the_budget_is_small(budget):
    def loglike(x):
        z = x - 3
        return -0.5 * (z[0]**2 / 0.01 + (z[1] - z[0]**2)**2 / 0.001 + 4 * z[2]**2 + z[3]**2)

    for seed in range(3):
        result = fk.sample(loglike, prior={"x": (stats.norm(0, 10), 4)}, surrogate="learn",
                           budget=budget, seed=seed)
        assert result.evaluations <= budget
        assert result.log_weights is None
        assert result.stats["lp"].min() > result.state.calls[:, -1].max() - 20
