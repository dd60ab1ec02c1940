"""Names of parameters, derived quantities and extras."""

import functools
import re

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

# ---- names of a function that are not those of the problem ----


@pytest.mark.parametrize(("f", "match"), [
    (lambda a: 0.0, "has no argument 'b', which is a parameter: a function takes all"),
    (lambda A, b: 0.0, "has no argument 'a', which is a parameter, and takes 'A', which is none"),
    (lambda a, b, sigma: 0.0, "takes 'sigma', which is no parameter: give it a prior"),
])
def test_names_that_do_not_fit(f, match):
    with pytest.raises(TypeError, match=match):
        fk.Problem(f, {"a": stats.norm(), "b": stats.norm()})


@pytest.mark.parametrize(("f", "options"), [
    (lambda theta: 0.0, {}), (lambda x: 0.0, {}), (lambda theta, y: 0.0, {"args": (1.0,)}),
    (lambda theta, *, y: 0.0, {"kwargs": {"y": 1.0}}), (lambda *x: 0.0, {}),
    (lambda a, b, y=2.0: 0.0, {}), (lambda b, a, y: 0.0, {"kwargs": {"y": 1.0}}),
])
def test_names_that_fit(f, options):
    problem = fk.Problem(f, {"a": stats.norm(), "b": stats.norm()}, **options)
    assert problem.log_likelihood([0.0, 0.0]) == 0.0


def of_data(a, b, y):
    return -0.5 * (a**2 + b**2) * y


def with_data(f):
    """The function f with its last argument filled in."""
    @functools.wraps(f)
    def filled(a, b):
        return f(a, b, 2.0)
    return filled


def passing_on(f):
    """The function f, called through another one that takes everything."""
    @functools.wraps(f)
    def called(*args, **kwargs):
        return f(*args, **kwargs)
    return called


@pytest.mark.parametrize(("f", "options"), [
    (with_data(of_data), {}), (passing_on(with_data(of_data)), {}),
    (passing_on(of_data), {"kwargs": {"y": 2.0}}), (functools.cache(of_data), {"args": (2.0,)})])
def test_names_of_a_wrapper_are_those_of_the_function_that_is_called(f, options):
    problem = fk.Problem(f, {"a": stats.norm(), "b": stats.norm()}, **options)
    assert problem.log_likelihood([1.0, 2.0]) == -5.0


def test_a_wrapper_that_fills_in_an_argument_is_called_as_it_is():
    def of_point(x, scale):
        return -0.5 * x @ x * scale

    @functools.wraps(of_point)
    def filled(x):
        return of_point(x, 2.0)

    assert fk.as_target(filled, 2).logp([1.0, 2.0]) == -5.0


# ---- starts by name ----


def test_a_start_that_is_a_series_of_pandas():
    pandas = pytest.importorskip("pandas")
    options = {"sampler": "ram", "draws": 20, "tune": 20, "seed": 1, "diagnose": False}
    start = {"a": 1.0, "b": 2.0}
    for f in (lambda a, b: -0.5 * (a**2 + b**2), lambda x: -0.5 * x @ x):
        result = fk.sample(f, pandas.Series(start), **options)
        assert result.names == ["a", "b"]
        np.testing.assert_array_equal(result.draws, fk.sample(f, start, **options).draws)
    plain = fk.sample(lambda x: -0.5 * x @ x, pandas.Series([1.0, 2.0]), **options)
    assert plain.names == ["x"]
    with pytest.raises(ValueError, match="x0 must have each name once"):
        fk.sample(lambda x: 0.0, pandas.Series([1.0, 2.0], index=["a", "a"]), **options)


def test_the_error_for_named_arguments_with_an_array_x0_shows_the_call():
    with pytest.raises(TypeError, match=r"by name where x0 is a dict, x0=\{'a': ..., 'b': ...\}"):
        fk.sample(lambda a, b, c=1.0: 0.0, [0.0, 0.0])


@pytest.mark.parametrize("layout", [
    {"shapes": {"c": 3}}, {"dims": {"c": ["k"]}, "coords": {"k": [5, 6, 7]}},
    {"names": ["b", "c"], "shapes": {"c": 3}}])
def test_shapes_of_some_parameters_alone(layout):
    """The others have the shapes of their starting values."""
    result = fk.sample(lambda b, c: -b * b - c @ c, {"b": 0.0, "c": [-1.0, 0.0, 1.0]},
                       sampler="ram", draws=20, tune=20, progress=False, diagnose=False, **layout)
    assert result.names == ["b", "c"]
    assert result["b"].shape == (4, 20)
    assert result["c"].shape == (4, 20, 3)
    second = "c[6]" if "coords" in layout else "c[1]"
    np.testing.assert_array_equal(result[second], result["c"][:, :, 1])


# ---- shapes of parameters with a prior from their dimensions ----

SCHOOLS = {"dims": {"a": ["school"]}, "coords": {"school": ["A", "B", "C"]}}


@pytest.mark.parametrize("prior", [
    stats.norm(1, 2), stats.Normal(mu=1, sigma=2), stats.gaussian_kde([-1.0, 3.0, 1.0]), None,
    (stats.norm(1, 2), 3), stats.norm([1, 1, 1], 2)])
def test_shapes_of_priors_from_coords(prior):
    problem = fk.Problem(lambda a, b: 0.0, prior={"b": stats.norm(), "a": prior}, **SCHOOLS)
    assert problem.shapes == {"b": (), "a": (3,)}
    assert problem.layout.labels == ["b", "a[A]", "a[B]", "a[C]"]
    if prior is not None:
        draws = problem.constrain(problem.sample_prior(1000, 1))
        assert np.isfinite(problem.log_prior(draws)).all()
        assert abs(np.corrcoef(draws.T)[np.triu_indices(4, 1)]).max() < 0.15


def test_a_prior_with_two_dimensions_has_the_shape_of_both():
    result = fk.sample(
        lambda a: -0.5 * (a**2).sum(), prior={"a": stats.norm()}, dims={"a": ["i", "j"]},
        coords={"i": [1, 2], "j": ["x", "y", "z"]}, seed=1, draws=20, progress=False,
        diagnose=False)
    assert result["a"].shape == (4, 20, 2, 3)
    assert result.names == ["a"]


def test_a_distribution_alone_has_the_shape_of_its_dimensions():
    result = fk.sample(stats.norm(), names=["a"], **SCHOOLS, seed=1, draws=20, progress=False,
                       diagnose=False)
    assert result["a[B]"].shape == (4, 20)


@pytest.mark.parametrize(("prior", "coords", "match"), [
    ((stats.norm(), 4), True, r"prior\['a'\] has the shape \(4,\), and its dimensions \['school'\] "
     r"have the shape \(3,\) in coords: .*\(stats.norm\(\), 3\)"),
    (stats.norm([0, 1], 1), True, r"prior\['a'\] has the shape \(2,\)"),
    (stats.dirichlet([1, 1]), True, r"prior\['a'\] has the shape \(2,\)"),
    ((None, (3, 2)), True, r"prior\['a'\] has the shape \(3, 2\)"),
    (stats.norm(), False, r"dims\['a'\] has \['school'\]: give their values in coords, or the "
     r"shape of 'a' in prior, as \(stats.norm\(\), 3\)"),
])
def test_shapes_of_priors_that_differ_from_coords(prior, coords, match):
    options = SCHOOLS if coords else {"dims": SCHOOLS["dims"]}
    with pytest.raises(ValueError, match=match):
        fk.Problem(lambda a: 0.0, prior={"a": prior}, **options)


# ---- names of derived quantities ----


def derived_run(derived):
    return fk.sample(lambda a: 0.0, seed=1, prior={"a": stats.norm()}, derived=derived,
                     progress=False)


@pytest.mark.parametrize(("derived", "error", "match"), [
    (lambda a: {"b": undefined}, NameError, "undefined"),  # noqa: F821
    (lambda a: a, TypeError, "derived must return a dict"),
    (lambda a: {"a": a**2}, ValueError, r"derived must not return \['a'\], which are parameters"),
])
def test_mistakes_of_derived_before_any_work(derived, error, match):
    with pytest.raises(error, match=match):
        derived_run(derived)


def test_an_error_of_numbers_where_the_search_begins_is_none():
    """No draw is where this is 0."""
    calls = []

    def derived(a):
        calls.append(a)
        return {"b": 1 / 0 if len(calls) == 1 else a + 1}

    result = derived_run(derived)
    np.testing.assert_array_equal(result["b"], result["a"] + 1)


def test_extras_by_name():
    result = fk.sample(lambda x: (-0.5 * float(x @ x), {"s": float(x.sum())}), [0.0, 0.0], seed=1)
    np.testing.assert_array_equal(result["s"], result.extras["s"])
    with pytest.raises(KeyError, match=r"there are \['x', 's'\]"):
        result["t"]


def test_a_result_has_the_names_of_a_mapping():
    result = fk.sample(lambda a, b: (-0.5 * (a * a + b @ b), {"q": a}),
                       {"a": 0.0, "b": np.zeros(2)}, sampler="ram", seed=1, draws=20,
                       diagnose=False)
    assert list(result) == result.keys() == ["a", "b", "q"]
    assert all(name in result for name in ("a", "b", "q", "b[1]"))
    assert not any(name in result for name in ("c", "b[2]", 0, None))
    assert {name: draws.shape for name, draws in dict(result).items()} == {
        "a": (4, 20), "b": (4, 20, 2), "q": (4, 20)}


def test_a_start_may_have_the_labels_of_coordinates():
    options = {"prior": {"th": (stats.norm(), 3)}, "sampler": "ram", "seed": 1, "draws": 20,
               "diagnose": False}
    labels = {f"th[{i}]": float(i) for i in range(3)}
    one, other = (fk.sample(lambda th: -0.5 * th @ th, x0, **options)
                  for x0 in (labels, {"th": np.arange(3.0)}))
    np.testing.assert_array_equal(one.draws, other.draws)
    options["prior"] = {"a": stats.norm(), "b": stats.norm()}
    some = fk.sample(lambda a, b: 0.0, {"a": np.arange(4.0), "b": 2.0}, search=False, **options)
    np.testing.assert_array_equal(some.state.x0, [[0, 2], [1, 2], [2, 2], [3, 2]])


# ---- shapes ----


def test_bounds_of_numbers_hold_for_all_elements_of_a_start():
    """The four elements are no starts of the four chains."""
    run = functools.partial(fk.sample, draws=100, tune=100, seed=1, progress=False, diagnose=False)
    result = run(lambda rates: -rates.sum(), {"rates": [1.0, 2.0, 3.0, 4.0]},
                 bounds={"rates": (0, None)})
    assert result["rates"].shape == (4, 100, 4)
    again = run(lambda rates: -rates.sum(), result, bounds={"rates": (0, None)})
    assert again["rates"].shape == (4, 100, 4)
    both = run(lambda c, a: -a.sum() - c @ c, {"c": [1.0, 2.0], "a": np.ones(3)},
               bounds={"a": (0, None), "c": (None, None)}, transforms={"c": "ordered"})
    assert list(both.names) == ["c", "a"]
    assert (both["c"].shape, both["a"].shape) == ((4, 100, 2), (4, 100, 3))


def test_bounds_of_arrays_have_the_shape_of_their_parameter():
    result = fk.sample(lambda a: -a.sum(), {"a": np.full((4, 3), 0.5)}, draws=50, tune=50, seed=1,
                       bounds={"a": (np.zeros(3), 1)}, progress=False, diagnose=False)
    assert result["a"].shape == (4, 50, 3)


@pytest.mark.parametrize("start", [{"prior": {"x": (stats.norm(0, 10), (2, 3))}},
                                   {"x0": {"x": np.zeros((2, 3))}}])
def test_a_parameter_called_x_has_its_shape(start):
    shapes = set()

    def logp(x):
        shapes.add(x.shape)
        return -0.5 * (x[0] ** 2).sum() - 0.5 * ((x[1] - 30) ** 2).sum()

    result = fk.sample(logp, **start, draws=200, seed=1, progress=False, diagnose=False)
    assert shapes == {(2, 3)}
    np.testing.assert_allclose(result["x"].mean(axis=(0, 1))[1], 30, atol=1)
    flat = fk.Problem(lambda x: float(x.shape == (6,)), {"x": (stats.norm(), (2, 3))}, named=False)
    assert flat.log_likelihood(np.zeros(6)) == 1.0


def test_the_point_of_another_density_is_the_users():
    """The message named z, the unconstrained point."""
    run = functools.partial(fk.sample, draws=50, seed=1, progress=False, diagnose=False)
    prior = {"s": stats.halfnorm(scale=2)}
    result = run(lambda s: -s, prior=prior)
    point = np.array2string(result["s"][0, -1:])
    with pytest.raises(ValueError, match=f"x = {re.escape(point)}; the values include the Jac"):
        result.resume(10, target=fk.Problem(lambda s: -2 * s, prior))
