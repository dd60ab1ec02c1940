"""Starts drawn by a function, from a distribution, an earlier run, or within bounds."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import fastkam as fk

PRIOR = {"a": stats.norm(), "s": stats.halfnorm(scale=2)}
QUICK = {"draws": 20, "tune": 20, "sampler": "am", "search": False, "diagnose": False, "seed": 3}


def normal(x):
    return -0.5 * float(x @ x)


def named(a, s):
    return -0.5 * (a / s) ** 2


def starts(f, x0=None, **options):
    """The points at which the chains of a run start, in the user's coordinates."""
    state = fk.sample(f, x0, progress=False, **QUICK | options).state
    return state.constrain(state.x0)


@pytest.fixture(scope="module")
def earlier():
    return fk.sample(normal, np.zeros(2), draws=100, seed=1, progress=False, diagnose=False)


def test_a_function_is_called_once_for_each_chain():
    made = []

    def start(rng):
        made.append(rng.normal(size=2))
        return made[-1]

    np.testing.assert_array_equal(starts(normal, start), made)
    assert len(made) == 4
    assert len(np.unique(made)) == 8
    np.testing.assert_array_equal(starts(normal, lambda rng: rng.normal(size=2)), made)
    assert not np.array_equal(starts(normal, lambda rng: rng.normal(size=2), seed=4), made)


def test_a_function_may_return_names():
    x = starts(named, lambda rng: {"a": rng.normal(), "s": rng.random()}, prior=PRIOR)
    assert len(np.unique(x)) == 8
    assert (x[:, 1] < 1).all()


def of_two(a, b):
    return -0.5 * (a**2 + np.sum(b**2))


EACH = [{"a": k, "b": [10.0 + k, 20.0 + k]} for k in range(4)]


@pytest.mark.parametrize(("options", "order"), [
    ({}, [0, 1, 2]),
    ({"prior": {"b": (stats.norm(0, 30), 2), "a": stats.norm(0, 30)}}, [1, 2, 0]),
    ({"bounds": {"b": (-99, 99), "a": (-99, 99)}, "shapes": {"b": 2}}, [0, 1, 2])])
def test_a_list_of_points_by_name(options, order):
    expected = np.array([[k, 10 + k, 20 + k] for k in range(4)])[:, order]
    np.testing.assert_allclose(starts(of_two, EACH, **options), expected, atol=1e-12)


def test_a_function_of_names_without_a_prior():
    each = iter(EACH)
    np.testing.assert_array_equal(starts(of_two, lambda rng: next(each)),
                                  starts(of_two, EACH))


@pytest.mark.parametrize(("x0", "message"), [
    (EACH[:3], "a dict for each of 4 chains, not 3"),
    ([*EACH[:3], {"a": 1.0}], "the same names for every chain"),
    ([*EACH[:3], {"a": 1.0, "b": [1.0]}], "'b' in the same shape for every chain")])
def test_a_list_of_points_must_be_one_for_each_chain(x0, message):
    with pytest.raises(ValueError, match=message):
        starts(of_two, x0)


@pytest.mark.parametrize("distribution", [
    stats.multivariate_normal([100, -100], np.eye(2)),
    stats.multivariate_t([100, -100], np.eye(2), df=9)])
def test_a_distribution(distribution):
    x = starts(normal, distribution)
    assert len(np.unique(x)) == 8
    np.testing.assert_allclose(x.mean(axis=0), [100, -100], atol=5)


def test_a_distribution_in_one_dimension():
    assert starts(lambda x: -x[0] ** 2, stats.norm(50, 1)).shape == (4, 1)


@pytest.mark.parametrize("of", ["result", "draws"])
def test_draws_of_an_earlier_run(earlier, of):
    x = starts(normal, earlier if of == "result" else earlier.draws)
    known = {tuple(row) for row in earlier.draws.reshape(-1, 2)}
    assert len({tuple(row) for row in x}) == 4
    assert all(tuple(row) in known for row in x)


def test_draws_in_a_store(earlier, tmp_path):
    stored = fk.sample(normal, np.zeros(2), draws=50, tune=50, seed=1, progress=False,
                       store=tmp_path / "run", diagnose=False)
    draws = np.asarray(stored.draws)
    assert all((draws == row).all(axis=2).any() for row in starts(normal, stored))


def test_weighted_draws_are_chosen_by_their_weights():
    from fastkam.run.drawn_starts import chosen

    draws, weights = np.arange(40.0).reshape(2, 20, 1), np.zeros(40)
    weights[[3, 37]] = 1
    found = chosen(draws, np.random.default_rng(1), 100, weights)
    assert set(found.ravel()) == {3.0, 37.0}


def test_a_summary(earlier):
    summary = earlier.summary()
    x = starts(normal, summary, chains=50)
    assert (x >= summary["q5"] - 1e-12).all()
    assert (x <= summary["q95"] + 1e-12).all()
    np.testing.assert_allclose(x.std(axis=0), 0.85, atol=0.25)


def test_an_earlier_run_with_a_prior():
    before = fk.sample(named, prior=PRIOR, draws=100, seed=1, progress=False, diagnose=False)
    for x0 in (before, before.summary()):
        x = starts(named, x0, prior=PRIOR)
        assert len(np.unique(x)) == 8
        assert (x[:, 1] > 0).all()


VECTORS = {
    "simplex": (stats.dirichlet([1, 1, 1]), None),
    "simplexes": ((stats.dirichlet([1, 2]), 2), None),
    "ordered": ((stats.norm(), 4), "ordered"), "correlations": (fk.LKJ(3), None)}


@pytest.mark.parametrize("what", VECTORS)
def test_a_summary_of_vectors_with_relations_between_their_elements(what):
    """Starts are dispersed, and in the support: a simplex, increasing, or a Cholesky factor."""
    prior, transform = VECTORS[what]
    problem = fk.Problem(lambda a, w: 0.0, prior={"a": stats.norm(), "w": prior},
                         transforms={"w": transform} if transform else None)
    summary = fk.sample(problem, draws=200, seed=1, progress=False, diagnose=False).summary()
    x = starts(problem, summary, chains=20)
    assert np.isfinite(problem.log_prior(x)).all()
    assert len(np.unique(x.round(6), axis=0)) == 20
    moving = summary["sd"] > 0
    assert (x.std(axis=0)[moving] > 0.3 * summary["sd"][moving]).all()
    choice = fk.choose_sampler(problem, summary, seed=1)
    assert choice.search.evaluations > 0


@pytest.fixture(scope="module")
def of_names():
    """A run of 100 < a < 101 and -2 < b[0] < -1 < 1 < b[1] < 2."""
    return fk.sample(
        lambda a, b: 0.0, bounds={"a": (100, 101), "b": ([-2, 1], [-1, 2])}, draws=50, seed=1,
        sampler="am", progress=False, diagnose=False)


@pytest.mark.parametrize("what", ["result", "summary"])
def test_an_earlier_run_with_names_in_another_order(of_names, what):
    x0 = of_names if what == "result" else of_names.summary()
    inside = {"b": ([-2, 1], [-1, 2]), "a": (100, 101)}
    x = starts(lambda a, b: 0.0, x0, bounds=inside)
    assert ((x > [-2, 1, 100]) & (x < [-1, 2, 101])).all()
    x = starts(normal, x0, names=["b", "a"], shapes={"b": 2})
    assert ((x > [-2, 1, 100]) & (x < [-1, 2, 101])).all()
    choice = fk.choose_sampler(fk.Problem(lambda a, b: 0.0, bounds=inside), x0, seed=1)
    assert choice.search.evaluations > 0


@pytest.mark.parametrize("what", ["result", "summary"])
def test_an_earlier_run_of_other_names(of_names, what):
    """Other names are refused; draws, or a vector without a name, are taken in their order."""
    x0 = of_names if what == "result" else of_names.summary()
    with pytest.raises(ValueError, match=r"x0 must have the parameters \['a', 'c', 'd'\], and is "
                                         r"of a run with \['a', 'b\[0\]', 'b\[1\]'\]"):
        starts(normal, x0, names=["a", "c", "d"])
    for f, given, names in ((normal, of_names.draws, ["a", "c", "d"]), (normal, x0, None)):
        x = starts(f, given, names=names)
        assert ((x > [100, -2, 1]) & (x < [101, -1, 2])).all()
    labeled = {"dims": {"b": "side"}, "coords": {"side": ["left", "right"]}}
    assert (starts(normal, x0, names=["a", "b"], shapes={"b": 2}, **labeled)[:, 0] > 100).all()


@pytest.mark.parametrize("what", ["result", "summary"])
@pytest.mark.parametrize(("names", "says"), [
    (["a"], r"has \['b\[0\]', 'b\[1\]'\] too many"),
    (["a", "b", "c"], r"lacks \['c'\]: "), (["a", "c"], r"lacks \['c'\], and has \['b\[0\]', 'b"),
    (["a", "c", "d"], r"lacks \['c', 'd'\], and has \['b\[0\]', 'b\[1\]'\] too many: ")])
def test_parameters_that_an_earlier_run_lacks_or_has_too_many_of(of_names, what, names, says):
    x0 = of_names if what == "result" else of_names.summary()
    shapes = {"b": 2} if "b" in names else {}
    problem = fk.Problem(lambda x: 0.0, prior={
        name: (stats.norm(), shapes[name]) if name in shapes else stats.norm() for name in names})
    for run in (lambda: starts(problem, x0), lambda: fk.choose_sampler(problem, x0)):
        with pytest.raises(ValueError, match="x0 must have the parameters.* it " + says):
            run()


def test_a_run_without_names_starts_one_with_names(earlier):
    assert starts(normal, earlier, names=["a", "b"]).shape == (4, 2)


def test_the_result_of_an_optimizer():
    found = optimize.minimize(lambda x: -normal(x - 3), [0.0, 0.0])
    np.testing.assert_allclose(starts(normal, found), 3, atol=1e-4)


@pytest.mark.parametrize(("f", "options", "low", "high"), [
    (normal, {"bounds": [(0, 1), (-5, -4)]}, [0, -5], [1, -4]),
    (normal, {"bounds": [(2, None), (None, -1)]}, [2, -np.inf], [np.inf, -1]),
    (named, {"bounds": {"a": (0, 1), "s": (0, None)}}, [0, 0], [1, np.inf]),
    (named, {"bounds": {"a": (0, 1), "s": (3, None)}, "transforms": False}, [0, 3], [1, np.inf]),
    (named, {"prior": {"a": stats.uniform(4, 1), "s": None}, "bounds": {"s": (0, 1)}},
     [4, 0], [5, 1]),
])
def test_within_bounds(f, options, low, high):
    x = starts(f, **options)
    assert len(np.unique(x)) == 8
    assert ((x > low) & (x < high)).all()


def test_a_simplex_without_a_prior():
    x = starts(lambda p: float(np.log(p).sum()), prior={"p": (None, 3)},
               transforms={"p": "simplex"})
    np.testing.assert_allclose(x.sum(axis=1), 1)


def test_a_default_call_within_bounds():
    result = fk.sample(lambda x: -3 * x[0], bounds=[(0, 1)], seed=1, progress=False)
    assert result.draws.mean() == pytest.approx(1 / 3 - 1 / (np.exp(3) - 1), abs=0.03)


@pytest.mark.parametrize(("x0", "problem", "message"), [
    (lambda: 3, TypeError, r"x0 must be a function of a numpy Generator, as .*not one of \(\)"),
    (lambda rng, scale: 3, TypeError, r"x0 must be a function of a numpy Gen.*\(rng, scale"),
    (lambda rng: math.sqrt(), TypeError, "sqrt"),
    (lambda rng: [[1, 2], [3, 4]], ValueError, "x0 must return a point"),
    (lambda rng: np.zeros(1 + rng.integers(5)), ValueError, "x0 must return a point"),
    (lambda rng: "a", TypeError, "x0 must be an array of numbers"),
    ("run.fk", TypeError, "not the path 'run.fk': give fastkam.load"),
    (Path("calls.fk"), TypeError, r"fastkam\.Evaluations\(path\) if it has calls"),
    (np.zeros((2, 0, 2)), ValueError, "x0 must have draws"),
    (np.zeros((100, 2)), ValueError, r"as x0\[None\]"),
    (None, ValueError, "give prior, from which to draw it"),
])
def test_mistakes(x0, problem, message):
    with pytest.raises(problem, match=message):
        starts(normal, x0)


def test_an_earlier_run_of_a_function_of_names():
    """The names and the shapes of the parameters are those of the run, as with a dict."""
    def f(a, b):
        return -0.5 * (a - 1) ** 2 - 0.5 * float(((b - 2) ** 2).sum())

    options = {"draws": 100, "tune": 100, "sampler": "am", "seed": 1, "progress": False}
    first = fk.sample(f, {"a": 0.0, "b": np.zeros(2)}, **options)
    again = fk.sample(f, first, bounds={"a": (0, None)}, **options)
    assert again.shapes == first.shapes == {"a": (), "b": (2,)}
    assert again["a"].min() > 0
    def g(a, b, data):
        return f(a, b - data)

    by_data = fk.sample(g, {"a": 0.0, "b": np.zeros(2)}, kwargs={"data": 1.0}, **options)
    assert fk.sample(g, by_data, kwargs={"data": 1.0}, **options).shapes == first.shapes
    by_array = fk.sample(lambda x: f(x[0], x[1:]), first, **options)
    assert list(by_array.shapes) == ["x"]
    names = np.array(["b", "a"])
    assert fk.sample(lambda x: f(x[2], x[:2]), first, names=names, shapes={"b": 2},
                     **options).names == ["b", "a"]
