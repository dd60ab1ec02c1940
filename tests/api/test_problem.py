"""Problems: the forms in which users have a likelihood, a prior, bounds, transforms and a start."""

import ctypes
import pickle

import numpy as np
import pytest
from runs import sample
from scipy import stats
from scipy.optimize import Bounds

import fastkam as fk
from fastkam.cli.main import main

PRIOR = {"k": stats.uniform(0, 1), "sigma": stats.halfnorm(scale=2), "beta": (stats.norm(0, 1), 3)}
X = np.array([0.3, 1.5, 0.1, -0.2, 0.4])


def value(x):
    return -0.5 * ((x - 0.5) ** 2).sum()


def gradient(x):
    return value(x), 0.5 - x


def by_name(k, sigma, beta):
    return -0.5 * ((k - 0.5) ** 2 + (sigma - 0.5) ** 2 + ((beta - 0.5) ** 2).sum())


def by_name_with_gradient(k, sigma, beta):
    return by_name(k, sigma, beta), {"k": 0.5 - k, "sigma": 0.5 - sigma, "beta": 0.5 - beta}


def rows_by_name(k, sigma, beta):
    assert k.ndim == 1
    return -0.5 * ((k - 0.5) ** 2 + (sigma - 0.5) ** 2 + ((beta - 0.5) ** 2).sum(axis=1))


def with_arguments(x, shift, scale=1.0):
    return -0.5 * ((x - shift) ** 2).sum() * scale


def named_with_arguments(k, sigma, beta, shift, *, scale):
    return -0.5 * ((k - shift) ** 2 + (sigma - shift) ** 2 + ((beta - shift) ** 2).sum()) * scale


def by_any_names(**parameters):
    assert set(parameters) == {"k", "sigma", "beta"}
    return by_name(**parameters)


def by_some_names(k, **others):
    return by_name(k, **others)


FORMS = {
    "array": (value, {}), "named": (by_name, {}), "gradient": (gradient, {}),
    "named gradient": (by_name_with_gradient, {}),
    "any names": (by_any_names, {}), "some names": (by_some_names, {}),
    "vectorized": (lambda X: -0.5 * ((X - 0.5) ** 2).sum(axis=1), {"vectorized": True}),
    "named, vectorized": (rows_by_name, {"vectorized": True}),
    "args": (with_arguments, {"args": (0.5,)}),
    "kwargs": (with_arguments, {"kwargs": {"shift": 0.5, "scale": 1.0}}),
    "named, args and kwargs": (named_with_arguments, {"args": (0.5,), "kwargs": {"scale": 1.0}}),
    "target": (fk.targets.Gaussian([0.5] * 5, 1.0), {}),
    "recipe": (fk.TargetRecipe("fastkam.targets:Gaussian", [0.5] * 5, 1.0), {})}


def run(target, x0=None, **options):
    return sample(target, x0, **{"draws": 40, "tune": 40, "chains": 2, "seed": 3,
                                 "progress": False} | options)


def expected_logp(problem, z):
    """Return likelihood, prior and Jacobian computed by hand."""
    k, sigma = 1 / (1 + np.exp(-z[0])), np.exp(z[1])
    x = np.concatenate([[k, sigma], z[2:]])
    np.testing.assert_allclose(problem.constrain(z), x, rtol=1e-14)
    prior = stats.halfnorm(scale=2).logpdf(sigma) + stats.norm.logpdf(z[2:]).sum()
    return value(x) + prior + np.log(k * (1 - k)) + z[1]


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_a_function(name):
    f, options = FORMS[name]
    problem = fk.Problem(f, PRIOR, **options)
    constant = problem.log_likelihood(X) - value(X)  # of the normalized ones
    for z in np.random.default_rng(1).normal(size=(10, 5)):
        np.testing.assert_allclose(problem.logp(z) - constant, expected_logp(problem, z),
                                   rtol=1e-12)
        np.testing.assert_allclose(
            problem.logp(z), problem.log_likelihood(problem.constrain(z)) + problem.log_prior_z(z))
    result = run(f, prior=PRIOR, **options)
    same = run(FORMS["array"][0], prior=PRIOR)
    np.testing.assert_allclose(result.draws, same.draws, rtol=1e-10)
    assert problem.target().needs_gil == (name not in ("target", "recipe"))


@pytest.mark.parametrize("name", ["gradient", "named gradient", "target", "vectorized pair"])
def test_gradients(name):
    options = {}
    if name == "vectorized pair":
        options = {"vectorized": True}

        def f(X):
            return -0.5 * ((X - 0.5) ** 2).sum(axis=1), 0.5 - X
    else:
        f = FORMS[name][0]
    problem = fk.Problem(f, PRIOR, **options)
    for z in np.random.default_rng(1).normal(size=(10, 5)):
        assert fk.check_gradient(problem.target(gradient=True), z).ok
    result = run(problem, sampler="nuts")
    assert result.draws.shape == (2, 40, 5)
    assert fk.choose_sampler(problem.target(), np.zeros(5)).reason.startswith(
        "the density has a gradient")


@pytest.mark.parametrize(("slopes", "says"), [
    ({"k": 0, "sgma": 0, "beta": [0, 0, 0]},
     r"and \['sigma'\] are missing, and only these: \['sgma'\] are none; or, if"),
    ({"sigma": 0}, r"every parameter, and \['k', 'beta'\] are missing; or, if"),
    ({"k": 0, "sigma": 0, "beta": [0, 0, 0], "more": 1}, r"every parameter, and only these"),
])
@pytest.mark.parametrize("sampler", ["auto", "nuts"])
def test_a_gradient_by_name_has_all_parameters_and_no_others(slopes, says, sampler):
    def f(k, sigma, beta):
        return by_name(k, sigma, beta), slopes

    with pytest.raises(fk.SamplingError, match=says):
        run(f, prior=PRIOR, sampler=sampler)


def test_numba():
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x, shift):
        return -0.5 * ((x - shift) ** 2).sum()

    @numba.njit
    def g(k, sigma, beta):
        return -0.5 * ((k - 0.5) ** 2 + (sigma - 0.5) ** 2 + ((beta - 0.5) ** 2).sum())

    problem = fk.Problem(f, PRIOR, args=(0.5,))
    assert not problem.target().needs_gil
    z = np.full(5, 0.3)
    np.testing.assert_allclose(problem.logp(z), expected_logp(problem, z), rtol=1e-12)
    np.testing.assert_allclose(fk.Problem(g, PRIOR).logp(z), problem.logp(z), rtol=1e-12)


def test_pointers():
    """erf of the first coordinate, by a plain C function of libm behind SciPy's signature."""
    signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_double))
    f = signature(lambda n, x: -0.5 * sum((x[i] - 0.5) ** 2 for i in range(n)))
    problem = fk.Problem(f, PRIOR)
    z = np.full(5, -0.3)
    np.testing.assert_allclose(problem.logp(z), expected_logp(problem, z), rtol=1e-12)
    with pytest.raises(TypeError, match="args is for functions of Python and numba"):
        fk.Problem(f, PRIOR, args=(1,))


def test_estimators():
    target = fk.Target.from_estimator(lambda x, u: value(x) + 0.1 * u[0], 5, 1)
    problem = fk.Problem(target, PRIOR)
    z, u = np.full(5, 0.2), np.array([0.7])
    np.testing.assert_allclose(problem.target().estimate(z, u),
                               expected_logp(problem, z) + 0.07, rtol=1e-12)
    assert run(problem).draws.shape == (2, 40, 5)
    with pytest.raises(ValueError, match="is an estimate"):
        run(problem, sampler="hmc")


def test_parameters_with_and_without_names():
    one = fk.Problem(lambda x: float(x.shape == (1,)), prior={"x": stats.norm()})
    assert one.log_likelihood([0.3]) == 1.0
    one = fk.Problem(lambda x: float(np.ndim(x) == 0), prior={"x": stats.norm()}, named=True)
    assert one.log_likelihood([0.3]) == 1.0
    one = fk.Problem(lambda mu: float(np.ndim(mu) == 0), prior={"mu": stats.norm()})
    assert one.log_likelihood([0.3]) == 1.0
    array = fk.Problem(lambda mu: float(mu.shape == (1,)), prior={"mu": stats.norm()}, named=False)
    assert array.log_likelihood([0.3]) == 1.0


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_the_likelihood_is_called_within_the_bounds_only():
    """Neither where the prior is 0 nor beyond hard bounds, also among many points."""
    def f(x):
        assert 0 <= x[0] <= 1
        assert x[1] >= 0
        return value(x)

    def rows(X):
        return np.array([f(x) for x in X])

    for vectorized in (False, True):
        result = run(rows if vectorized else f, prior=PRIOR, transforms=False, draws=300,
                     vectorized=vectorized)
        assert result.rejected["outside"].sum() > 0
        outside = result.offending["outside"]
        assert ((outside[:, 0] < 0) | (outside[:, 0] > 1) | (outside[:, 1] < 0)).all()
    with pytest.raises(ValueError, match=r"x0 must have 'k' within \[0, 1\], not \[1.5\]"):
        run(f, [1.5, 1, 0, 0, 0], prior=PRIOR, transforms=False)


# ---- bounds ----


@pytest.mark.parametrize("bounds", [
    [(0, 1), (0, None)], [(0, 1), (0, np.inf)], np.array([[0, 1], [0, np.inf]]),
    Bounds([0, 0], [1, np.inf]), {"a": (0, 1), "b": (0, None)}])
def test_forms_of_bounds(bounds):
    names = None if isinstance(bounds, dict) else ["a", "b"]
    result = run(lambda x: -x.sum(), [0.5, 0.5], bounds=bounds, names=names)
    assert result.names == ["a", "b"]
    assert ((result["a"] > 0) & (result["a"] < 1) & (result["b"] > 0)).all()
    assert run(lambda a, b: -a - b, {"a": 0.5, "b": 0.5}, bounds=bounds, names=names
               ).draws.tobytes() == result.draws.tobytes()


def test_bounds_of_arrays():
    problem = fk.Problem(lambda x: 0.0, bounds={"a": (np.zeros(3), [1, 2, np.inf]), "b": (None, 0)})
    assert problem.shapes == {"a": (3,), "b": ()}
    assert [row[0] for row in problem.coordinates.rows] == ["interval", "interval", "log", "upper"]
    problem = fk.Problem(lambda x: 0.0, bounds=Bounds(0, 1), dim=3)
    assert problem.coordinates.rows[0][3] == 3


def test_a_flat_parameter_beside_a_prior():
    result = run(lambda a, b: -b, {"a": 0.1, "b": 0.2}, prior={"a": stats.norm(), "b": None},
                 bounds={"b": (0, None)})
    assert (result["b"] > 0).all()
    with pytest.raises(ValueError, match=r"sample_prior needs a prior of every.*'b'"):
        fk.Problem(lambda a, b: -b, prior={"a": stats.norm(), "b": None}).sample_prior(1)


def test_bounds_equal_a_flat_prior():
    bounded = fk.Problem(value, bounds=[(0, 1)] * 5)
    prior = fk.Problem(value, prior={"x": (stats.uniform(0, 1), 5)})
    z = np.random.default_rng(1).normal(size=5)
    np.testing.assert_allclose(bounded.logp(z), prior.logp(z), rtol=1e-14)


# ---- starts and results ----


def test_starts():
    problem = fk.Problem(value, PRIOR)
    as_dict = {"k": 0.3, "sigma": 1.5, "beta": [0.1, -0.2, 0.4]}
    np.testing.assert_allclose(problem.constrain(problem.unconstrain(as_dict)), X, rtol=1e-14)
    whole = run(problem, X)
    for x0 in (as_dict, np.array([X, X]), as_dict | {"k": [0.3, 0.3]}):
        assert run(problem, x0).draws.tobytes() == whole.draws.tobytes()
    np.testing.assert_allclose(whole.state.constrain(whole.state.x0)[0], X, rtol=1e-14)


def test_ordered_elements_of_a_prior_whose_parameters_are_equal_arrays():
    """The prior is that of one distribution and a shape."""
    arrays, shape = (fk.Problem(lambda c: -(c @ c), {"c": prior}, transforms={"c": "ordered"})
                     for prior in (stats.norm(np.zeros(3), 2 * np.ones(3)), (stats.norm(0, 2), 3)))
    for z in np.random.default_rng(0).standard_normal((5, 3)):
        assert arrays.log_prior_z(z) == shape.log_prior_z(z)


def test_underflows_are_no_errors():
    """NumPy is set to raise errors."""
    with np.errstate(all="raise"):
        result = fk.sample(lambda s: -s, prior={"s": stats.halfnorm()}, seed=1, progress=False)
        assert np.isfinite(result.log_evidence().value)
        learned = fk.sample(lambda x: -0.5 * (x[0] ** 2 + (2 * x[1] - x[0] ** 2) ** 2), np.ones(2),
                            seed=1, progress=False, surrogate="learn", budget=600)
        assert np.isfinite(learned.summary()["mean"]).all()


def test_start_and_chains_have_different_streams():
    """The first draws of the prior are not those of the chain's own generator."""
    result = run(value, prior={"x": (stats.norm(), 5)}, tune=0, draws=1, sampler="rwm")
    own = np.random.default_rng(result.state.seed.spawn(1)[0]).normal(size=5)
    assert not np.isin(result.state.x0[0], own).any()


def test_a_seed_gives_the_same_draws():
    assert run(value, prior=PRIOR).draws.tobytes() == run(value, prior=PRIOR).draws.tobytes()
    generator = np.random.default_rng(3)
    first, second = (run(value, prior=PRIOR, seed=generator) for _ in range(2))
    assert first.draws.tobytes() != second.draws.tobytes()


def test_results_are_in_the_users_coordinates(tmp_path):
    prior = {"mu": stats.norm(0, 3), "p": stats.dirichlet([1, 2, 3]), "c": (stats.norm(), 2)}
    problem = fk.Problem(lambda mu, p, c: -0.5 * mu**2, prior, transforms={"c": "ordered"},
                         dims={"p": ["party"]}, coords={"party": ["a", "b", "c"]})
    assert (problem.dim, problem.n_x) == (5, 6)
    result = run(problem)
    assert result.d == 6
    assert result.draws.shape == result.warmup_draws.shape == (2, 40, 6)
    assert result.trace.draws.shape == (2, 40, 5)
    np.testing.assert_allclose(result["p"].sum(axis=-1), 1, rtol=1e-14)
    assert (np.diff(result["c"], axis=-1) > 0).all()
    assert result.draws is result.draws
    assert len(result.summary()["mean"]) == 6
    result.save(tmp_path / "run.fk")
    loaded = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(loaded.draws, result.draws)
    np.testing.assert_array_equal(loaded["p"], result["p"])
    again = fk.resume(tmp_path / "run.fk", 20, target=problem)
    np.testing.assert_array_equal(again.draws, run(problem, draws=60).draws)
    np.testing.assert_array_equal(again.draws, result.resume(20).draws)


def test_resuming_needs_the_problem(tmp_path):
    run(value, prior=PRIOR).save(tmp_path / "run.fk")
    with pytest.raises(ValueError, match=r"if that had a prior, give the fk\.Problem with it"):
        fk.resume(tmp_path / "run.fk", 5, target=value)
    with pytest.raises(ValueError, match="other parameters or transforms than the run"):
        fk.resume(tmp_path / "run.fk", 5, target=fk.Problem(value, PRIOR, transforms=False))
    run(value, np.zeros(5)).save(tmp_path / "bare.fk")
    with pytest.raises(ValueError, match="other parameters or transforms than the run"):
        fk.resume(tmp_path / "bare.fk", 5, target=fk.Problem(value, PRIOR))
    fk.resume(tmp_path / "run.fk", 5, target=fk.Problem(value, PRIOR).target())


def test_errors_say_where_in_the_users_coordinates():
    calls = []

    def f(x):
        calls.append(x.copy())
        if len(calls) == 50:
            raise ArithmeticError("no")
        return value(x)

    with pytest.raises(fk.SamplingError) as caught:
        run(f, prior=PRIOR)
    np.testing.assert_allclose(caught.value.x, calls[-1], rtol=1e-15)


def test_starts_name_parameters_without_bounds():
    """x0 names the parameters, if only some have bounds."""
    result = run(lambda a, b: -0.5 * (a @ a) - b, {"b": 0.5, "a": [0.1, 0.2]},
                 bounds={"b": (0, None)})
    assert result["a"].shape[2:] == (2,)
    assert (result["b"] > 0).all()
    with pytest.raises(ValueError, match=r"bounds names \['c'\], and the parameters are \['b'\]"):
        run(lambda b: -b, {"b": 0.5}, bounds={"c": (0, None)})


# ---- errors ----


@pytest.mark.parametrize(("options", "says"), [
    ({"prior": PRIOR, "names": ["a"]}, "names and shapes must not be given with prior"),
    ({"prior": PRIOR, "bounds": {"k": (0, 1)}}, r"truncated .* as prior\['k'\]"),
    ({"prior": PRIOR, "bounds": {"q": (0, 1)}}, "bounds names 'q'"),
    ({"prior": PRIOR, "bounds": [(0, 1)]}, "bounds must be a dict"),
    ({"prior": {}}, "prior must be a dict"), ({"prior": {1: stats.norm()}}, "prior must be a dict"),
    ({"prior": PRIOR, "transforms": {"q": "log"}}, r"transforms names \['q'\]"),
    ({"prior": PRIOR, "transforms": {"beta[0]": "log"}}, "is transformed as a whole; give names="),
    ({"prior": PRIOR, "transforms": {"k": "logs"}}, r"transforms\['k'\] must be one of.*'logs'"),
    ({"prior": PRIOR, "transforms": {"k": "log"}}, r"transforms\['k'\].*half-line.*\(0, 1\)"),
    ({"prior": PRIOR, "transforms": {"sigma": "logit"}}, "two finite bounds"),
    ({"prior": PRIOR, "transforms": {"beta": "periodic"}}, r"two finite bounds.*\(-inf, inf\)"),
    ({"prior": PRIOR, "transforms": {"k": "ordered"}}, r"vectors of two elements.*\(\)"),
    ({"prior": PRIOR, "transforms": {"beta": "simplex"}}, "needs a prior of a simplex"),
    ({"prior": PRIOR, "transforms": {"beta": "cholesky_corr"}}, r"matrices \(n, n\)"),
    ({"prior": {"b": stats.norm([0, 1], 1)}, "transforms": {"b": "ordered"}}, "one distribution"),
    ({"prior": PRIOR, "args": "ab"}, "args must be a tuple"),
    ({"prior": PRIOR, "kwargs": [1]}, "kwargs must be a dict"),
    ({"prior": PRIOR, "kwargs": {"k": 1}}, r"kwargs names \['k'\], which are parameters"),
    ({"prior": PRIOR, "args": (1, 2), "named": True}, "args has 2 arguments.*for 1 of them"),
    ({"prior": PRIOR, "derived": 3}, "derived must be a function"),
    ({"prior": PRIOR, "dims": {"beta": ["a", "b"]}}, "name for each dimension"),
    ({"bounds": {"a": (1, 0)}}, r"bounds\['a'\] must have low below high, not 1.0 and 0.0"),
    ({"bounds": {"a": (np.nan, 0)}}, "low below high"),
    ({"bounds": {"a": 3}}, r"bounds\['a'\] must be a pair"),
    ({"bounds": [(0, 1), (0, 1)], "dim": 3}, r"2 pairs \(low, high\), but x has 3 coordinates"),
    ({"bounds": 3}, "bounds must be a dict"), ({}, "dim must be given"),
    ({"bounds": {"a": (0, 1)}, "names": ["b"]}, r"bounds names \['a'\]"),
    ({"dim": 0}, "dim must be at least 1")])
def test_bad_arguments(options, says):
    with pytest.raises((TypeError, ValueError), match=says):
        fk.Problem(value, **options)


@pytest.mark.parametrize(("x0", "says"), [
    ({"k": 0.5}, r"x0 must have every parameter, and \['sigma', 'beta'\] are missing"),
    ({"k": 0.5, "sigma": 1, "beta": [1, 2, 3], "q": 1}, r"x0 names \['q'\]"),
    ({"k": 0.5, "sigma": 1, "beta": [1, 2]}, r"x0\['beta'\] must have shape"),
    ([0.5, -1, 0, 0, 0], r"x0 must have 'sigma' within \(0, inf\), not \[-1.\]"),
    ([1.0, 1, 0, 0, 0], r"x0 must have 'k' within \(0, 1\)"),
    ([0.5, 1, 0, np.nan, 0], "x0 must have 'beta'"), (np.zeros((3, 5)), "x0 has 3 rows"),
    ([0.5, 1], r"x0 must have shape \(..., 5\)")])
def test_bad_starts(x0, says):
    with pytest.raises(ValueError, match=says):
        run(value, x0, prior=PRIOR)


def test_a_problem_can_be_pickled():
    again = pickle.loads(pickle.dumps(fk.Problem(value, PRIOR, transforms={"k": "periodic"})))
    np.testing.assert_array_equal(run(again).draws,
                                  run(value, prior=PRIOR, transforms={"k": "periodic"}).draws)


def test_where_a_target_is_taken():
    problem = fk.Problem(gradient, PRIOR)
    assert fk.as_target(problem, 5).dim == 5
    assert fk.check_gradient(problem, X).ok
    assert "gradient" in fk.choose_sampler(problem).reason
    with pytest.raises(ValueError, match="has dimension 5"):
        fk.as_target(problem, 4)


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.py").write_text(
        "from scipy import stats\nimport fastkam as fk\n"
        "problem = fk.Problem(lambda k, s: -k * k, {'k': stats.norm(), 's': stats.gamma(2)})\n")
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--sampler", "auto"]):
        assert main(["sample", "model.py:problem", "--draws", "150", "--tune", "50", "--seed", "1",
                     "--out", "problem.fk", *more]) == 0
    assert (fk.load("problem.fk")["s"] > 0).all()
    assert main(["resume", "problem.fk", "--target", "model.py:problem", "--draws", "10"]) == 0
    (tmp_path / "model.py").write_text("def f(x):\n    return -x @ x\n")
    assert main(["sample", "model.py:f"]) == 2
    assert "--init, where the chains start, or --dim" in capsys.readouterr().err


def test_arguments_that_belong_to_the_problem_are_refused_by_sample():
    problem = fk.Problem(value, PRIOR)
    for name, argument in (("prior", PRIOR), ("names", ["a"]), ("vectorized", True)):
        with pytest.raises(ValueError, match=f"{name} must be given to the Problem"):
            run(problem, **{name: argument})


def test_a_surrogate_takes_parameters_by_name():
    priors = {"a": stats.norm(0, 1), "b": stats.halfnorm(scale=2)}
    options = {"prior": priors, "sampler": "ram", "draws": 50, "tune": 20, "seed": 1}

    def by_name(a, b):
        return -0.5 * (a - 1) ** 2 - 0.4 * (b - 1) ** 2

    found = [sample(by_name, surrogate=one, **options).draws
             for one in (by_name, lambda x: by_name(*x), lambda **names: by_name(**names))]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    with pytest.raises(TypeError, match="surrogate: <lambda> has no argument 'b'"):
        sample(by_name, surrogate=lambda a: 0.0, **options)
    # with the data of `kwargs`, as far as it takes them; and an array where that is asked for
    with_data = sample(lambda a, b, y, z: by_name(a, b), kwargs={"y": 1.0, "z": 2.0},
                       surrogate=lambda a, b, y: y * by_name(a, b), **options)
    np.testing.assert_array_equal(with_data.draws, found[0])
    problem = fk.Problem(lambda x: by_name(*x), prior=priors, named=False)
    of_array = sample(problem, surrogate=lambda a: by_name(*a),
                      **{name: value for name, value in options.items() if name != "prior"})
    np.testing.assert_array_equal(of_array.draws, found[0])


def test_a_surrogate_is_of_the_users_coordinates():
    result = run(value, prior=PRIOR, surrogate=lambda x: value(x) + 0.1 * np.sin(x[0]), draws=200)
    assert ((result["k"] > 0) & (result["k"] < 1)).all()
    again = run(value, prior=PRIOR, surrogate=lambda x: value(x) + 0.1 * np.sin(x[0]), draws=150)
    np.testing.assert_array_equal(again.resume(50).draws, result.draws)


def test_names_of_columns_are_not_lost():
    """As an array, the columns of a DataFrame would be in their own order."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"b": [1.0] * 4, "a": [2.0] * 4})
    with pytest.raises(TypeError, match=r"not a DataFrame, .* x0=frame\[names\]\.to_numpy\(\)"):
        fk.sample(lambda x: -x @ x, frame, draws=2, search=False)
    with pytest.raises(TypeError, match=r"give the summary of a run as it is, x0=result\.summary"):
        fk.sample(lambda x: -x @ x, frame.rename(columns={"a": "mean"}))
    plain = pandas.DataFrame(np.ones((4, 2)))
    assert fk.sample(lambda x: -x @ x, plain, draws=2, search=False, diagnose=False).d == 2


def test_an_error_of_derived_is_named():
    def derived(a):
        return {"b": 1 / 0 if a > 2 else a}

    says = r"division by zero, raised by derived, at x = \["
    with pytest.raises(fk.SamplingError, match=says) as at:
        fk.sample(lambda a: -0.5 * a * a, {"a": 0.0}, derived=derived, sampler="ram", tune=200,
                  draws=3000, seed=1, progress=False)
    assert at.value.result is not None


def test_derived_takes_no_data():
    with pytest.raises(TypeError, match=r"derived: .*'data', which is no parameter.*the "
                                        r"parameters alone, so that data go in by functools"):
        fk.Problem(lambda a, data: -a * a, {"a": stats.norm()}, args=(1.0,),
                   derived=lambda a, data: {"b": a + data})
