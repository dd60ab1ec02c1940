"""Modes that a search finds: between its walkers, and where none of them has started."""

import warnings

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.search.evaluator import Evaluator
from fastkam.search.search import Searcher
from fastkam.search.unexplained import led_uphill, modes_beyond, suspicious


def test_walkers_cross_between_modes_of_different_width():
    def f(x):
        return float(np.logaddexp(-0.5 * (x[0] + 5) ** 2, -0.5 * ((x[0] - 5) / 0.05) ** 2 + 3))

    target = fk.as_target(f, 1)
    for seed in range(5):
        searcher = Searcher(target, np.array([[-5.0]]), np.random.default_rng(seed))
        means = searcher.full(4, 30_000).mixture.means[:, 0]
        assert means.min() < 0, seed
        assert np.abs(means - 5).min() < 1, seed


def test_a_mode_with_one_walker_is_found_again_after_the_walkers_spread():
    """On the flatter power on which they spread, a mode of a 10^5th of the volume is lost."""
    def f(X):
        wide = -0.5 * ((X + 3) ** 2).sum(axis=1)
        return np.logaddexp(wide, -0.5 * ((X - 3) ** 2).sum(axis=1) / 0.3**2 - 10 * np.log(0.3))

    target = fk.as_target(f, 10, vectorized=True)
    for seed in (1, 3, 7, 9):
        searcher = Searcher(target, np.full((1, 10), -3.0), np.random.default_rng(seed))
        means = searcher.full(4, 60_000).mixture.means
        assert np.abs(means - 3).max(axis=1).min() < 1, seed


def test_walkers_that_soon_agree_look_around():
    """A mode with a hundredth of the mass, in which none of them has started."""
    def f(X):
        return np.logaddexp(np.log(0.99) - 0.5 * (X**2).sum(axis=1),
                            np.log(0.01) - 0.5 * ((X - 6) ** 2).sum(axis=1))

    target, soon = fk.as_target(f, 2, vectorized=True), 0
    for seed in range(60, 100):
        found = Searcher(target, np.zeros((1, 2)), np.random.default_rng(seed)).full(4, 60_000)
        assert np.abs(found.mixture.means - 6).max(axis=1).min() < 1, seed
        if any("soon agree" in step for step in found.steps):
            soon += 1
            assert any("have found more" in step for step in found.steps), seed
    assert soon > 8


@pytest.mark.parametrize("d", [20, 30])
def test_gradients_far_away_lead_to_a_mode_of_the_same_shape(d):
    """A step of a tenth of the way towards either mode leads towards the other, too."""
    center = np.full(d, 7 / np.sqrt(d))

    def f(X):
        return np.logaddexp(-0.5 * (X**2).sum(axis=1), -0.5 * ((X - center) ** 2).sum(axis=1))

    target = fk.as_target(f, d, vectorized=True)
    for seed in range(6):
        searcher = Searcher(target, np.full((1, d), 0.3), np.random.default_rng(seed))
        searcher.full(4, 60_000)
        share = (searcher.population.x @ center > 24.5).mean()
        assert 0.2 < share < 0.8, seed


def test_a_narrow_mode_that_the_prior_covers():
    """A ten-thousandth of the prior's volume; walkers from the other mode never come near it."""
    center, far = np.array([5.0, -3.0]), np.array([-4.0, 2.0])

    def f(x):  # the likelihood: weights 0.7 and 0.3, standard deviations 1 and 0.06
        wide = np.log(0.7) - 0.5 * (x - far) @ (x - far)
        narrow = np.log(0.3) - 0.5 * (x - center) @ (x - center) / 0.06**2 - 2 * np.log(0.06)
        return float(np.logaddexp(wide, narrow)) + 0.5 * x @ x / 36

    for seed in range(5):
        result = fk.sample(f, prior={"x": (stats.norm(0, 6), 2)}, seed=seed)
        share = (np.abs(result["x"] - center) < 0.5).all(axis=-1).mean()
        assert abs(share - 0.3) < 0.1, seed


def mixture(means, sds, weights):
    """The log of a normalized mixture of normal densities, as a likelihood of one point."""
    means, sds, log_w = np.asarray(means, float), np.asarray(sds, float), np.log(weights)

    def f(x):
        squares = (((x - means) / sds[:, None]) ** 2).sum(axis=1)
        return float(np.logaddexp.reduce(log_w - 0.5 * squares - means.shape[1] * np.log(sds)))
    return f


def shares(f, prior, means, sds, seed):
    """Shares of the draws of a default run that are nearest to each mean."""
    d = len(means[0])
    result = fk.sample(lambda x: f(x), prior={"x": (prior, d)}, seed=seed)
    away = (((result.draws.reshape(-1, 1, d) - means) / np.asarray(sds)[:, None]) ** 2).sum(axis=2)
    return np.bincount(away.argmin(axis=1), minlength=len(means)) / len(away)


@pytest.mark.parametrize("seed", range(3))
def test_every_mode_is_found_that_has_draws_from_the_prior(seed):
    """In eight dimensions few of the highest draws are in the mode that is farthest off."""
    means = np.random.default_rng(5).uniform(-8, 8, (9, 8))[5:]
    found = shares(mixture(means, [0.5] * 4, [0.25] * 4), stats.uniform(-10, 20), means,
                   [0.5] * 4, seed)
    assert np.abs(found - 0.25).max() < 0.08


@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_mode_in_three_dimensions_that_the_prior_covers(seed):
    """One in 400 draws from the prior is in it, and all of these are low."""
    means, sds = [[5.0] * 3, [-5.0] * 3], [1.0, 0.1]
    found = shares(mixture(means, sds, [0.5, 0.5]), stats.uniform(-10, 20), means, sds, seed)
    assert abs(found[1] - 0.5) < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_a_narrow_mode_of_a_hundredth_of_the_mass(seed):
    """90 standard deviations away, and a twentieth as wide: hardly a walker stays there."""
    means, sds = [[-30.0, 0.0], [60.0, 0.0]], [1.0, 0.05]
    found = shares(mixture(means, sds, [0.99, 0.01]), stats.uniform(-100, 200), means, sds, seed)
    assert 0.005 < found[1] < 0.02


@pytest.mark.parametrize("seed", [0, 3, 9])
def test_a_mode_of_a_thirtieth_of_the_width_and_a_fiftieth_of_the_mass(seed):
    """Proposals with the width of the other mode never reach it."""
    means, sds = [[5.0, 5.0], [-5.0, -5.0]], [1.0, 0.03]
    found = shares(mixture(means, sds, [0.98, 0.02]), stats.uniform(-10, 20), means, sds, seed)
    assert 0.006 < found[1] < 0.05


def test_plausible_points_come_before_those_that_are_high_for_their_distance():
    """Far out the square of the distance makes any log density seem high."""
    def f(x):
        return float(np.logaddexp(-0.5 * x @ x, -0.5 * (x - 20) @ (x - 20)))

    population, window = settled(lambda x: -0.5 * float(x @ x), 2, 1)
    population.evaluate = Evaluator(fk.as_target(f, 2), np.random.default_rng(3))
    rng = np.random.default_rng(4)
    far = 1000 * rng.standard_normal((300, 2)) + 3000
    x = np.vstack([far, [[21.0, 20.5]]])

    def evaluate(X):  # a second ridge far out, on which the log density falls off slowly
        low = -1e-4 * (X**2).sum(axis=1)
        return np.maximum(population.evaluate(X), np.where(X[:, 0] > 200, low, -np.inf))

    found, *_ = suspicious(evaluate, window, population.fit(window), x, evaluate(x))
    assert (found == [21.0, 20.5]).all(axis=1).any()


@pytest.mark.parametrize("seed", [1, 3, 5, 6])
@pytest.mark.parametrize("x0", [[2.0, 3, 7, 6], [4.0, 5, 6, 5]])
def test_components_whose_labels_can_be_exchanged(x0, seed):
    """Two emitters and seven sensors: a narrow mode for each order of the two."""
    rng = np.random.default_rng(7)
    sensors = rng.uniform(0, 10, (7, 2))

    def power(p):
        return np.log((1 / (0.1 + ((sensors[:, None] - p) ** 2).sum(axis=-1))).sum(axis=1))

    seen = power(np.array([[2.0, 3], [7, 6]])) + 0.1 * rng.normal(size=7)

    def f(x):
        if x.min() < 0 or x.max() > 10:
            return -np.inf
        return -0.5 * float((((seen - power(x.reshape(2, 2))) / 0.1) ** 2).sum())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(f, x0, seed=seed)
    share = (result.draws[..., 0] < result.draws[..., 2]).mean()
    assert abs(share - 0.5) < 0.05


def settled(f, d, seed):
    """(population that has settled on f, its window, the mixture)."""
    searcher = Searcher(fk.as_target(f, d), np.zeros((1, d)), np.random.default_rng(seed))
    searcher.begin()
    population = searcher.gather(32, (1.0,))
    population.approach(5)
    return population, searcher.settle(population, 30_000)


@pytest.mark.parametrize("f", [
    lambda x: -0.5 * float(x @ x), lambda x: -0.5 * float(((x / [1e-3, 50.0]) ** 2).sum()),
    lambda x: -float(np.abs(x).sum()),
    lambda x: -2.5 * float(np.log1p(x @ x / 3))])
def test_no_point_is_suspicious_where_the_density_decreases_on_all_sides(f):
    population, window = settled(f, 2, 1)
    q = population.fit(window)
    rng = np.random.default_rng(2)
    x = q.means[1] + 30 * rng.standard_normal((500, 2)) * np.sqrt(np.diag(q.within))
    logp = population.evaluate(x)
    found, *_ = suspicious(population.evaluate, window, q, x, logp)
    assert len(found) == 0


def test_walkers_move_from_suspicious_points_to_the_mode():
    def f(x):
        return float(np.logaddexp(-0.5 * x @ x, 2 - 0.5 * (x - 20) @ (x - 20) / 0.01))

    population, window = settled(lambda x: -0.5 * float(x @ x), 2, 1)
    population.evaluate = Evaluator(fk.as_target(f, 2), np.random.default_rng(3))
    q = population.fit(window)
    x = np.array([[20.4, 19.8], [-20.0, -20.0], [19.9, 20.1]])
    found, logp = modes_beyond(population, window, q, (x, population.evaluate(x)), 4)
    assert len(found) == 4     # two of which gradients have led there
    assert np.abs(found - 20).max() < 1
    np.testing.assert_array_equal(logp, population.evaluate(found))


def test_a_point_behind_the_middle_of_another_mode_is_suspicious():
    """A tenth of the way to the known mode leads nearer to the middle of the other one."""
    def f(x):
        return float(np.logaddexp(-0.5 * x @ x, -0.5 * (x - 20) @ (x - 20) / 0.25))

    population, window = settled(lambda x: -0.5 * float(x @ x), 2, 1)
    population.evaluate = Evaluator(fk.as_target(f, 2), np.random.default_rng(3))
    x = np.array([[21.2, 21.2]])
    found, *_ = suspicious(population.evaluate, window, population.fit(window), x,
                           population.evaluate(x))
    np.testing.assert_array_equal(found, x)


def far_apart(tail):
    """A mode whose first coordinate has heavy tails, and a narrow one 15 widths away."""
    center = np.array([0, 11.0, 11.0, 0, 0, 0])

    def f(x):
        y = tail * np.arcsinh(x[0])
        heavy = np.log(tail) + np.log(np.cosh(y)) - 0.5 * np.log1p(x[0] ** 2)
        wide = heavy - 0.5 * (np.sinh(y) ** 2 + x[1:] @ x[1:])
        narrow = -0.5 * ((x - center) ** 2).sum() / 0.5**2 - 6 * np.log(0.5)
        return float(np.logaddexp(np.log(0.4) + wide, np.log(0.6) + narrow))

    return f, np.stack([np.zeros(6), center])


def one_in_the_shoulder():
    """A wide mode, one 14 of its widths away, and a small one 3 widths away."""
    means = np.array([[0, 0, 0, 0, 0, 0], [14, 5, 0, 0, 0, 0], [0, 0, 4, 4, -4, 0]])
    sds, shares = np.array([2.2, 0.8, 1.0]), np.array([0.14, 0.77, 0.09])

    def f(x):
        logs = np.log(shares / sds**6) - 0.5 * ((x - means) ** 2).sum(axis=1) / sds**2
        return float(np.logaddexp.reduce(logs))

    return f, means


@pytest.mark.parametrize(("density", "seed"), [
    *((far_apart(0.75), seed) for seed in (1, 3, 5)),
    *((one_in_the_shoulder(), seed) for seed in (1, 4, 7))])
def test_modes_beyond_tails_and_beyond_other_modes(density, seed):
    """Points in the far mode are less high than those in heavy tails; a third one is found next."""
    f, modes = density
    found = fk.choose_sampler(f, np.full(6, 0.3), seed=seed).search.mixture.means[1:]
    squares = ((found - modes[:, None]) ** 2).sum(axis=2)
    assert (squares.min(axis=1) < 6).all()


def test_gradients_lead_no_further_than_the_density_rises():
    """A longer step would lead across a valley to the known mode, which is higher."""
    def f(x):
        return float(np.logaddexp(20 - 0.5 * x @ x, -0.5 * (x - 20) @ (x - 20) / 0.0209))

    population, window = settled(lambda x: 20 - 0.5 * float(x @ x), 2, 1)
    evaluate = Evaluator(fk.as_target(f, 2), np.random.default_rng(3))
    x = np.array([[21.5, 21.5]])
    found, *_ = led_uphill(evaluate, window, population.fit(window), x, evaluate(x))
    assert np.abs(found - 20).max() < 1
    assert len(found) == 1
