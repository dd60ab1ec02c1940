"""One part of the space for densities whose components can be exchanged."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.search.components import components_of, leading_away
from fastkam.search.evaluator import Evaluator
from fastkam.search.fold import MOST_IMAGES, Fold, take_fold
from fastkam.search.found import Known
from fastkam.search.mixture import Mixture
from fastkam.search.population import Population

RNG = np.random.default_rng(3)
CENTERS = np.array([[-3.0, 1.0], [0.0, 2.0], [4.0, 0.5]])  # of (mu, w) of three components
PRIOR = {"mu": (stats.norm(0, 10), 3), "w": stats.dirichlet([4, 4, 4]), "shift": stats.norm(0, 1)}


def three(mu, w, shift):
    """A mode for each of 6 orders: the sum over all of them."""
    middle = np.array([0.2, 0.3, 0.5])
    each = [-0.5 * (((mu[list(p)] - shift - CENTERS[:, 0]) / 0.3) ** 2).sum()
            - 0.5 * (((w[list(p)] - middle) / 0.05) ** 2).sum() for p in permutations(range(3))]
    return float(np.logaddexp.reduce(each))


@pytest.fixture
def problem():
    return fk.Problem(three, prior=PRIOR)


def states(problem, n, rng=RNG):
    """Points z near all six modes."""
    mu = CENTERS[:, 0] + 0.3 * rng.normal(size=(n, 3))
    w = np.array([0.2, 0.3, 0.5]) * np.exp(0.1 * rng.normal(size=(n, 3)))
    order = rng.permuted(np.tile(np.arange(3), (n, 1)), axis=1)
    mu, w = (np.take_along_axis(x, order, axis=1) for x in (mu, w / w.sum(axis=1)[:, None]))
    shift = np.full((n, 1), 0.1)
    return problem.coordinates.unconstrain(np.hstack([mu, w, shift]))


def folded(problem, z):
    """The part in which z[0] is."""
    (components,) = components_of(problem.layout.shapes)
    return Fold(components, problem.coordinates, z)


@pytest.mark.parametrize(("shapes", "K", "orders"), [
    ({"mu": (3,), "s": (), "w": (3,)}, 3, {(1, 0, 2, 3, 5, 4, 6), (2, 1, 0, 3, 6, 5, 4)}),
    ({"m1": (), "m2": (), "s_1": (), "s_2": ()}, 2, {(1, 0, 3, 2)}),
    ({"P": (2, 2), "mu": (2,)}, 2, {(3, 2, 1, 0, 5, 4)}),
    ({"a": (2, 3)}, 2, {(3, 4, 5, 0, 1, 2)}),
])
def test_components_of_named_parameters(shapes, K, orders):
    (found,) = components_of(shapes)
    assert found.K == K
    assert {tuple(found.exchange(k).tolist()) for k in range(1, K)} == orders


def test_components_of_names_with_other_numbers_are_kept_apart():
    shapes = dict.fromkeys(["a1", "a2", "b1", "b2", "b3", "c1", "c2"], ()) | {"d1": (2,), "d2": ()}
    found = {some.K: some for some in components_of(shapes)}
    assert sorted(found) == [2, 3]
    assert found[2].exchange(1).tolist() == [1, 0, 2, 3, 4, 6, 5, 7, 8, 9]
    assert found[3].exchange(2).tolist() == [0, 1, 4, 3, 2, 5, 6, 7, 8, 9]


def test_a_cyclic_order_moves_all_parameters_of_a_component():
    (found,) = components_of({"mu": (3,), "P": (3, 3)})
    x = np.r_[10, 20, 30, np.arange(9)]
    mu, P = np.split(x[found.order([1, 2, 0])], [3])
    assert mu.tolist() == [20, 30, 10]
    assert P.tolist() == [4, 5, 3, 7, 8, 6, 1, 2, 0]


def test_every_point_has_one_image_in_the_part(problem):
    z = states(problem, 200)
    fold = folded(problem, z)
    assert len(fold.orders) == 6
    for k in range(6):
        of = np.full(200, k)
        np.testing.assert_allclose(fold.points(fold.moved(z, of)), fold.points(z), atol=1e-9)
    inside = sum(fold.inside(fold.moved(z, np.full(200, k))).astype(int) for k in range(6))
    np.testing.assert_array_equal(inside, 1)
    assert fold.inside(fold.points(z)).all()
    mu = problem.constrain(fold.points(z))[:, :3]
    assert (np.sort(mu.std(axis=0)) < 0.5).all()  # one mode of the six


@pytest.mark.parametrize("origin", [0.0, 1e6, 1e9])
def test_the_part_does_not_depend_on_the_origin(origin):
    (components,) = components_of({"x": (3,)})
    x = RNG.permuted(np.array([-3.0, 0, 4]) + 0.3 * RNG.normal(size=(400, 3)), axis=1)
    here, there = (Fold(components, None, some).inside(some) for some in (x, x + origin))
    assert 20 < here.sum() < 140  # 1 in 6
    np.testing.assert_array_equal(there, here)


def test_images_have_the_log_densities_that_are_computed_there(problem):
    z, target = states(problem, 30), problem.target()
    logp = np.array([target.logp(one) for one in z])
    logp[3] = -np.inf
    new, values = folded(problem, z).with_values(z, logp)
    right = np.array([target.logp(one) for one in new])
    right[3] = -np.inf
    np.testing.assert_allclose(values, right, rtol=1e-9)
    assert np.abs(new - z).max() > 1


def test_a_mixture_has_the_components_of_all_parts(problem):
    """Compare the log density of the whole mixture with that of its part, 6 times as high."""
    z = states(problem, 6000)
    fold = folded(problem, z)
    within = Mixture.fitted(fold.points(z), np.random.default_rng(0), 1, 6000)
    q = fold.unfolded(within)
    assert q.n == 6
    np.testing.assert_allclose(q.weights[1:], 0.95 / 6)
    level = q.log_density(states(problem, 500, np.random.default_rng(4)))
    own = within.log_density(fold.points(z[:500]))
    assert abs(np.median(level) - (np.median(own) - np.log(6))) < 0.3
    drawn = q.draw(2000, np.random.default_rng(5))
    assert len({tuple(row) for row in np.argsort(problem.constrain(drawn)[:, :3], axis=1)}) == 6


def test_a_mixture_of_many_components_keeps_the_heaviest(problem):
    fold = folded(problem, states(problem, 50))
    d, n = 6, MOST_IMAGES // 6 + 10
    means = np.tile(states(problem, 1), (n + 1, 1))
    factors = np.tile(0.1 * np.eye(d), (n + 1, 1, 1))
    weights = np.r_[0.05, np.arange(1, n + 1)]
    found = fold.unfolded(Mixture(weights, means, factors))
    assert found.n == 6 * (MOST_IMAGES // 6)
    assert found.weights[1:].min() / found.weights[1:].max() == pytest.approx(11 / n)


def test_coordinates_near_an_edge_stay_where_they_are(problem):
    z = states(problem, 4)
    z[1, 3:5] = [900.0, -900.0]  # a weight of 1, and two of 0
    fold = folded(problem, states(problem, 50))
    for k in range(1, 6):
        new = fold.moved(z, np.full(4, k))
        np.testing.assert_array_equal(new[1], z[1])
        assert (new[[0, 2, 3]] != z[[0, 2, 3]]).any(axis=1).all()


def population_of(problem, n, rng):
    target = problem.target()
    evaluate = Evaluator(target, rng)
    z = states(problem, n, np.random.default_rng(8))
    population = Population(evaluate, z, evaluate(z), np.ones(z.shape[1]), np.ones(n), rng)
    return evaluate, population


def known_of(problem):
    return Known(layout=problem.layout, coordinates=problem.coordinates)


def test_walkers_stay_in_the_part(problem):
    evaluate, population = population_of(problem, 32, np.random.default_rng(1))
    before = evaluate.n
    (line,) = take_fold(evaluate, population, [], known_of(problem))
    assert line.startswith("the density stays the same if one exchanges mu[0] and w[0] with ")
    assert evaluate.n - before < 12
    np.testing.assert_allclose(population.logp, evaluate(population.x), rtol=1e-9)
    assert population.wrap == evaluate.fold.points  # steps that leave the part lead to images
    population.window(50)
    assert evaluate.fold.inside(population.x).all()
    mu = problem.constrain(population.x)[:, :3]
    assert len({tuple(row) for row in np.argsort(mu, axis=1)}) == 1
    outside = evaluate.fold.shuffled(population.x, np.random.default_rng(2))
    some = ~evaluate.fold.inside(outside)
    assert 16 < some.sum() < 32
    assert (evaluate(outside[some]) == -np.inf).all()
    with evaluate.everywhere():
        assert np.isfinite(evaluate(outside)).all()


def three_at_their_best(mu, w, shift):
    """Lower down, components differ."""
    value = three(mu, w, shift)
    return value if value > -2 else value - 1e-3 * mu[0]


@pytest.mark.parametrize("function", [
    three_at_their_best,
    lambda mu, w, shift: three(mu, w, shift) - 1e-3 * mu[2],  # the last one differs
    lambda mu, w, shift: three(mu, w, shift) - 1e-3 * w[1],
    lambda mu, w, shift: -0.5 * (mu**2).sum() - shift**2,  # one mode
    lambda mu, w, shift: three(mu, w, shift) if mu[0] < mu[1] else -np.inf,
])
def test_other_densities_have_no_such_part(function):
    problem = fk.Problem(function, prior=PRIOR)
    evaluate, population = population_of(problem, 32, np.random.default_rng(1))
    assert take_fold(evaluate, population, [], known_of(problem)) == []
    assert evaluate.fold is None
    assert population.wrap is None


def test_an_exchange_that_stays_in_the_mode_is_none_that_leads_away():
    """Two components coincide, the third is elsewhere: exchanges with the third lead away."""
    def f(x):
        centers = np.array([[1, 1, 9], [1, 9, 1], [9, 1, 1]])
        return np.logaddexp.reduce(-0.5 * ((x[:, None] - centers)**2).sum(axis=2), axis=1)

    (components,) = components_of({"x": (3,)})
    x = np.array([[1.0, 1.1, 9.0], [0.9, 1.2, 9.3]])
    assert leading_away(components, x, f(x), f).tolist() == [2, 1, 0]
