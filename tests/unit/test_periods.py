"""Images of points whose coordinates repeat."""

import numpy as np
import pytest

import fastkam as fk
from fastkam.numerics.periods import Periods
from fastkam.search.evaluator import Evaluator
from fastkam.search.found import Known
from fastkam.search.one_period import take_window
from fastkam.search.population import Population
from fastkam.search.search import Searcher

PROBLEM = fk.Problem(lambda a, x, r: np.cos(a) - x * x + r,
                     bounds={"a": (0, 2 * np.pi), "x": (-np.inf, np.inf), "r": (-1, 2)},
                     transforms={"a": "periodic", "r": "reflect"})
PERIODS = Periods(PROBLEM.coordinates.periods)


def test_rows_are_those_of_the_coordinates():
    np.testing.assert_allclose(PERIODS.rows, [
        [0, 0, 2 * np.pi, 2 * np.pi, np.pi, 1.35 * 2 * np.pi], [2, -1, 3, 6, 0.5, 1.35 * 6]])


def test_images_are_the_same_points():
    z = 30 * np.random.default_rng(1).standard_normal((4, 500, 3))
    there = PERIODS.points(z)
    assert PERIODS.inside(there.reshape(-1, 3)).all()
    assert not PERIODS.inside(z.reshape(-1, 3)).all()
    np.testing.assert_allclose(PROBLEM.constrain(there), PROBLEM.constrain(z), atol=1e-12)
    np.testing.assert_array_equal(there[..., 1], z[..., 1])
    np.testing.assert_allclose(PERIODS.points(there), there, atol=1e-12)


def test_weights_of_all_images_add_up_to_one():
    z = np.array([0.7, 0.0, 1.1]) + np.zeros((31, 31, 2, 3))
    z[..., 0] += 2 * np.pi * np.arange(-15, 16)[:, None, None]
    z[:, :, 1, 2] = -2 - 1.1    # reflected at -1
    z[..., 2] += 6 * np.arange(-15, 16)[:, None]
    np.testing.assert_allclose(PROBLEM.constrain(z) - [0.7, 0.0, 1.1], 0, atol=1e-12)
    assert np.exp(PERIODS.log_weight(z)).sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(PERIODS.log_weight(z), PROBLEM.coordinates.log_weight(z))


@pytest.mark.parametrize("angles", [[0.1, 6.2], [3.0, 3.3, 3.4], [5.0], [1.0, 2.0, 4.0, 6.0]])
def test_a_window_is_cut_in_the_largest_gap(angles):
    z = np.zeros((len(angles), 3))
    z[:, 0] = np.array(angles) + 2 * np.pi * np.arange(len(angles))
    cut = PERIODS.cut(z)
    np.testing.assert_array_equal(cut.rows[1], PERIODS.rows[1])
    np.testing.assert_array_equal(cut.rows[0, 2:], PERIODS.rows[0, 2:])
    start = cut.rows[0, 1]
    assert abs(start) <= np.pi
    there = np.sort(cut.points(z)[:, 0])
    gap = np.diff(np.sort(angles), append=min(angles) + 2 * np.pi).max()
    np.testing.assert_allclose([there[0] - start, start + 2 * np.pi - there[-1]], gap / 2)


def test_a_search_has_one_image_of_each_point():
    evaluate = Evaluator(PROBLEM.target(), np.random.default_rng(1))
    evaluate.periods = PERIODS.cut(np.array([[0.1, 0, 0], [6.0, 0, 0]]))
    z = np.array([[0.2, 0.5, 0.3], [0.2 + 2 * np.pi, 0.5, 0.3], [0.2, 0.5, 0.3 + 6]])
    f = np.cos(0.2) - 0.25 + 0.3
    np.testing.assert_allclose(evaluate(z), f + PERIODS.log_weight(z))
    evaluate.windowed, before = True, evaluate.n
    np.testing.assert_allclose(evaluate(z), [-np.inf, f, -np.inf])
    assert evaluate.n == before + 1


def test_a_search_takes_all_that_it_has_seen_into_the_window():
    rng = np.random.default_rng(1)
    evaluate = Evaluator(PROBLEM.target(), rng)
    evaluate.periods = PERIODS
    x = 4 * rng.standard_normal((4, 8, 3))
    kept = [(one, evaluate(one)) for one in x]
    population = Population(evaluate, *kept[0], np.ones(3), np.full(8, 0.5), rng, PERIODS.points)
    population.scouted, population.climbed, seen = [kept[1]], [kept[2]], [kept[3]]
    take_window(evaluate, population, seen)
    assert population.wrap is None
    for points, logp in [(population.x, population.logp), *population.scouted,
                         *population.climbed, *seen]:
        assert evaluate.periods.inside(points).all()
        np.testing.assert_allclose(evaluate(points), logp)
    np.testing.assert_allclose(PROBLEM.constrain(population.x), PROBLEM.constrain(x[0]), atol=1e-9)


def test_walkers_and_draws_from_the_prior_are_in_one_period():
    rng, known = np.random.default_rng(1), Known(prior=lambda n, rng: 40 * rng.normal(size=(n, 3)),
                                                 periods=PERIODS)
    searcher = Searcher(PROBLEM.target(), np.zeros((1, 3)), rng, known)
    x, _ = searcher.many_from_prior(known.prior)
    assert PERIODS.inside(x).all()
    searcher.begin()
    assert PERIODS.inside(searcher.gather(8, (1.0,)).wrap(x + 50.0)).all()


def test_the_likelihood_has_no_weights_of_periods(monkeypatch):
    """A search compares with a density the values that the function has returned."""
    seen = []
    monkeypatch.setattr("fastkam.search.search.returns_density",
                        lambda target, x, logp, prior: seen.append((x, logp - prior)) or (False, 0))
    fk.choose_sampler(PROBLEM, seed=1)
    (x, likelihood), = seen
    a, b, r = PROBLEM.constrain(x).T
    np.testing.assert_allclose(likelihood, np.cos(a) - b * b + r, rtol=1e-6, atol=1e-6)


def test_a_search_that_is_cut_short_keeps_its_window():
    """The walk does not learn a shape from states in several periods."""
    result = fk.sample(PROBLEM, budget=6000, seed=1, progress=False, diagnose=False)
    assert "ended early" in " ".join(result.search)
    assert isinstance(result.sampler.sampler, fk.RobustAdaptiveMetropolis)
    np.testing.assert_array_equal(result.sampler.periods[:, [0, 2]], PERIODS.rows[:, [0, 2]])


@pytest.mark.parametrize(("periods", "match"), [
    ([0, 0, 1, 1, 0, 1], r"periods must be an array \(m, 6\), not \[0, 0, 1, 1, 0, 1\]"),
    ([[0, 0, 1, 1, 0, np.inf]], "periods must be finite"),
    ([[2, 0, 1, 1, 0, 1]], "periods must begin with different indices below 2"),
    ([[0.5, 0, 1, 1, 0, 1]], "periods must begin with different indices below 2"),
    ([[0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 1]], "periods must begin with different indices below 2"),
    ([[0, 0, 1, 3, 0, 1]], "periods of the width or twice that"),
    ([[0, 0, 0, 0, 0, 1]], "periods must have positive widths"),
    ([[0, 0, 1, 1, 0, 0]], "standard deviations of 1 to 100 periods"),
    ([[0, 0, 1, 1, 0, 0.9]], "standard deviations of 1 to 100 periods"),
    ([[0, 0, 1, 2, 0, 1.9]], "standard deviations of 1 to 100 periods"),
    ([[0, 0, 1, 1, 0, 101]], "standard deviations of 1 to 100 periods"),
])
def test_bad_periods(periods, match):
    with pytest.raises(ValueError, match=match):
        fk.ModeJumping(periods=periods).build(np.zeros(2))


def test_periods_in_units_of_the_scales():
    sampler = fk.ModeJumping(periods=PERIODS.rows).in_units(np.array([2.0, 3.0, 4.0]))
    np.testing.assert_allclose(sampler.periods[0], [0, *PERIODS.rows[0, 1:] / 2])
    np.testing.assert_allclose(sampler.periods[1], [2, *PERIODS.rows[1, 1:] / 4])
