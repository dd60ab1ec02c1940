"""PyMC models: equal to densities by hand, in their own parameters, names and dimensions."""

import logging
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import by_hand
import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pm = pytest.importorskip("pymc")
    import pymc_models

import pytensor.tensor as pt
from scipy import special

import fastkam as fk
from fastkam.errors import SamplingWarning

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning",
                                        "ignore::UserWarning")
QUIET = {"diagnose": False, "seed": 1}
SHORT = {"draws": 10, "tune": 10, "sampler": "nuts", "search": False, **QUIET}


@pytest.fixture(scope="module")
def schools():
    return fk.from_pymc(pymc_models.eight_schools(), log_likelihood=True)


@pytest.fixture(scope="module")
def result(schools):
    return fk.sample(schools, draws=1000, **QUIET)


@pytest.fixture(scope="module")
def of_its_own():
    return fk.from_pymc(pymc_models.of_its_own())


def check_equal(model, value, slope, points):
    """To 1e-10 in value, but for a constant, and to 1e-8 in gradient.

    PyMC computes logarithms of its constants, such as log 2, in single precision.
    """
    constant = model.logp(points[0]) - value(points[0])
    assert abs(constant) < 1e-6
    for z in points:
        logp, gradient = model.logp_grad(z)
        assert abs(logp - value(z) - constant) <= 1e-10 * max(1, abs(value(z)))
        expected = slope(z)
        np.testing.assert_allclose(gradient, expected, rtol=1e-8,
                                   atol=1e-8 * np.abs(expected).max())
        assert abs(model.logp(z) - logp) <= 1e-12 * max(1, abs(logp))


@pytest.mark.parametrize("backend", ["numba", "python"])
def test_eight_schools_is_that_by_hand(backend):
    model = fk.from_pymc(pymc_models.eight_schools(), backend=backend)
    assert model.route == {"numba": "numba", "python": "Python"}[backend]
    rng = np.random.default_rng(1)
    check_equal(model, lambda z: by_hand.eight_schools(z)[0], lambda z: by_hand.eight_schools(z)[1],
                rng.normal(size=(20, 10)))


def test_logistic_regression_is_that_by_hand():
    model = fk.from_pymc(pymc_models.logistic())
    check_equal(model, lambda z: by_hand.logistic(z)[0], lambda z: by_hand.logistic(z)[1],
                np.random.default_rng(1).normal(size=(20, 4)))
    ours = fk.sample(model, draws=1000, **QUIET)
    hand = fk.sample(fk.Target.from_python(by_hand.logistic, 4, gradient=True), np.zeros(4),
                     draws=1000, diagnose=False, seed=2)
    assert_agree(ours.draws, hand.draws, ours.summary(), hand.summary())


def test_ode_is_that_by_hand():
    np.testing.assert_allclose(by_hand.curve(0.9, 10.0), by_hand.exact_curve(0.9, 10.0), rtol=1e-6)
    model = fk.from_pymc(pymc_models.ode())
    points = [0.0, -0.5, -1.0] + 0.3 * np.random.default_rng(1).normal(size=(5, 3))
    check_equal(model, by_hand.ode, lambda z: by_hand.slope_of(by_hand.ode, z), points)
    ours = fk.sample(model, draws=500, **QUIET)
    hand = fk.sample(by_hand.ode, points[0], draws=500, sampler="ram", tune=3000, thin=5,
                     diagnose=False, seed=2)
    theirs = model.constrain(hand.draws)
    assert_agree(ours.draws, theirs, ours.summary(), fk.diagnostics.summary(theirs))
    assert ours.extras["curve"].shape == (4, 500, 20)
    np.testing.assert_allclose(ours.extras["curve"][0, 3],
                               by_hand.curve(ours["r"][0, 3], ours["K"][0, 3]), rtol=1e-12)


def assert_agree(ours, theirs, one, other):
    """Means within five standard errors of their difference."""
    error = np.hypot(one["mcse_mean"], other["mcse_mean"])
    off = np.abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1)))
    assert (off < 5 * error).all(), off / error
    assert (error < 0.3 * ours.std(axis=(0, 1))).all()  # and they have the power to tell


def test_posterior_of_eight_schools(result):
    hand = fk.sample(fk.Target.from_python(by_hand.eight_schools, 10, gradient=True), np.zeros(10),
                     sampler="nuts", draws=1000, diagnose=False, seed=2)
    theirs = hand.draws.copy()
    theirs[..., 1] = np.exp(theirs[..., 1])
    assert_agree(result.draws[..., 2:], theirs[..., 2:],
                 fk.diagnostics.summary(result.draws[..., 2:]),
                 fk.diagnostics.summary(theirs[..., 2:]))


# ---- names, shapes, quantities ----


def test_result_has_the_models_own_parameters(result):
    assert result.shapes == {"mu": (), "tau": (), "theta": (8,)}
    assert (result["tau"] > 0).all()
    np.testing.assert_array_equal(result.extras["effect"],
                                  result["theta"] - result["mu"][..., None])
    np.testing.assert_array_equal(result.extras["positive"], result["theta"] > 0)
    assert result.extras["positive"].dtype == bool
    assert "theta[H]" in str(result.summary())


def test_log_likelihood_is_by_observation(result):
    from scipy import stats

    expected = stats.norm.logpdf(by_hand.Y, result["theta"], by_hand.S)
    np.testing.assert_allclose(result.extras["log_likelihood.y"], expected, rtol=1e-12)


def test_log_likelihood_without_dims_has_the_names_of_pymc():
    pytest.importorskip("xarray")
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Normal("y", a, 1, observed=np.zeros((3, 2)))
    result = fk.sample(fk.from_pymc(model, log_likelihood=True, backend="python"), **SHORT)
    group = result.to_datatree()["log_likelihood"]
    assert group["y"].dims == ("chain", "draw", "y_dim_0", "y_dim_1")
    assert set(group.coords) == {"chain", "draw", "y_dim_0", "y_dim_1"}


def test_datatree_has_dims_and_groups(result):
    pytest.importorskip("xarray")
    tree = result.to_datatree()
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "school")
    assert list(tree["posterior"]["effect"].coords["school"].values) == list("ABCDEFGH")
    assert tree["log_likelihood"]["y"].dims == ("chain", "draw", "school")
    assert "log_likelihood.y" not in tree["posterior"]


def coordinates(values):
    with pm.Model(coords={"t": values}) as model:
        pm.Normal("z", dims="t")
    return fk.from_pymc(model, backend="python")


@pytest.mark.parametrize("name", ["date_range", "date", "tuples", "MultiIndex", "period_range",
                                  "zone", "interval_range", "timedelta_range", "mixed"])
def test_coordinates_of_any_kind_are_kept(name, tmp_path):
    pd = pytest.importorskip("pandas")
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")
    values, expected = {
        "date_range": (pd.date_range("2024-01-01", periods=2), days),
        "date": (days.tolist(), days),
        "tuples": ([("a", 1), ("b", 2)], ["('a', 1)", "('b', 2)"]),
        "MultiIndex": (pd.MultiIndex.from_product([["a"], [1, 2]]), ["('a', 1)", "('a', 2)"]),
        "period_range": (pd.period_range("2024-01", periods=2, freq="M"), ["2024-01", "2024-02"]),
        "zone": (pd.date_range("2024-01-01", periods=2, tz="Europe/Berlin"),
                 ["2024-01-01 00:00:00+01:00", "2024-01-02 00:00:00+01:00"]),
        "interval_range": (pd.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
        "timedelta_range": (pd.timedelta_range("1D", periods=2), np.array([1, 2], "m8[D]")),
        "mixed": (["a", 1], ["a", "1"]),
    }[name]
    result = fk.sample(coordinates(values), **SHORT)
    np.testing.assert_array_equal(result.coords["t"], expected)
    result.save(tmp_path / "run.fk")
    np.testing.assert_array_equal(fk.load(tmp_path / "run.fk").coords["t"], expected)
    if name == "date_range":
        assert "z[2024-01-02" in str(result.summary())
        pytest.importorskip("xarray")
        tree = result.to_datatree()
        np.testing.assert_array_equal(tree["posterior"]["t"].values, expected)


def test_numbers_and_strings_of_coordinates_stay_as_they_are():
    for values in ([1, 2], [0.5, 1.0], ["a", "b"], [True, False]):
        found = coordinates(values).layout.coords["t"]
        np.testing.assert_array_equal(found, values)
        assert found.dtype == np.array(values).dtype


def test_files_keep_names_and_dims(schools, result, tmp_path):
    result.save(tmp_path / "run.fk")
    loaded = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(loaded["tau"], result["tau"])
    assert loaded.dims == result.dims
    more = fk.resume(tmp_path / "run.fk", 5, target=schools, diagnose=False)
    assert more.extras["effect"].shape == (4, 1005, 8)
    with pytest.raises(ValueError, match="other parameters or transforms"):
        fk.resume(result, 5, target=pymc_models.logistic())


def test_a_model_is_taken_directly():
    result = fk.sample(pymc_models.logistic(), draws=200, **QUIET)
    assert result.names == ["beta"]
    assert result.draws.shape == (4, 200, 4)


def test_deterministics_are_chosen():
    model = pymc_models.eight_schools()
    assert list(fk.sample(fk.from_pymc(model, deterministics=["positive"]), **SHORT).extras) == [
        "positive"]
    assert not fk.sample(fk.from_pymc(model, deterministics=False), **SHORT).extras


# ---- transforms ----


def test_transforms_that_both_have_need_no_model():
    model = fk.from_pymc(pymc_models.transformed())
    assert [row[0] for row in model.coordinates.rows] == [
        "identity", "log", "interval", "interval", "interval", "ordered"]
    check_map(model)


def test_other_transforms_are_those_of_the_model(of_its_own):
    assert [row[0] for row in of_its_own.coordinates.rows] == ["python"]
    check_map(of_its_own)
    result = fk.sample(of_its_own, draws=200, **QUIET)
    np.testing.assert_allclose(result["w"].sum(axis=-1), 1.0)
    assert (result["above"] > result["low"]).all()
    assert "chol_corr" in result.extras
    pickled = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(pickled["w"], result["w"])


def check_map(model):
    """The map is PyMC's, and has an inverse; the density of z is PyMC's with its Jacobian."""
    pymc_model = model.given[0]
    logp = pymc_model.compile_logp()
    parts = [pymc_model.rvs_to_values[rv].name for rv in pymc_model.free_RVs]
    start = pymc_model.initial_point()
    for z in 0.5 * np.random.default_rng(1).normal(size=(5, model.dim)):
        np.testing.assert_allclose(model.unconstrain(model.constrain(z)), z, rtol=1e-9, atol=1e-9)
        at, point = 0, {}
        for name in parts:
            point[name] = z[at : at + np.size(start[name])].reshape(np.shape(start[name]))
            at += np.size(start[name])
        np.testing.assert_allclose(model.logp(z), logp(point), rtol=1e-10)
        np.testing.assert_allclose(model.constrain(z), model.graph.constrain(z), rtol=1e-12,
                                   atol=1e-14)


# ---- starts ----


def test_starts_are_draws_from_the_prior(schools):
    assert schools.has_prior
    z = schools.sample_prior(400, 1)
    np.testing.assert_array_equal(z, schools.sample_prior(400, 1))
    assert abs(z[:, 0].mean()) < 5 * 5 / np.sqrt(400)
    assert 0.8 * 5 < z[:, 0].std() < 1.2 * 5
    x0 = {"mu": 1.0, "tau": 2.0, "theta": np.zeros(8)}
    run = fk.sample(schools, x0, **SHORT)
    np.testing.assert_allclose(run.state.constrain(run.state.x0[0])[:2], [1.0, 2.0], atol=1e-12)


def test_starts_off_the_support_are_refused(of_its_own):
    x = of_its_own.constrain(np.zeros((1, of_its_own.dim)))
    x0 = {name: value[0] for name, value in of_its_own.layout.split(x).items()}
    start = of_its_own.start(x0, 1, np.random.SeedSequence(1))
    np.testing.assert_allclose(start, 0, atol=1e-12)
    for name, value, what in [("w", [0.2, 0.3, 0.6], "positive numbers that add up to 1, not "),
                              ("w", [0.0, 0.4, 0.6], "positive numbers that add up to 1, not "),
                              ("angle", 5.0, "a point that its transform takes, not 5"),
                              ("above", 7.0, "a point that its transform takes, not 7"),
                              ("chol", [1.0, 0.5, -1.0], "a point that its transform takes, not ")]:
        with pytest.raises(ValueError, match=f"x0 must have {name!r} as {what}"):
            fk.sample(of_its_own, {**x0, name: value}, **SHORT)
        with pytest.raises(ValueError, match=f"x must have {name!r} as {what}"):
            of_its_own.unconstrain({**x0, name: value})
    with pm.Model() as model:
        pm.ZeroSumNormal("s", shape=(2, 3))
    made = fk.from_pymc(model, backend="python")
    made.start({"s": [[1.0, -1.0, 0.0], [0.0, 2.0, -2.0]]}, 1, np.random.SeedSequence(1))
    with pytest.raises(ValueError, match="x0 must have 's' as numbers that add up to 0, not "):
        made.start({"s": [[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]}, 1, np.random.SeedSequence(1))


def test_draws_of_a_run_are_starts(of_its_own):
    result = fk.sample(of_its_own, draws=300, **QUIET)
    of_its_own.unconstrain(result.draws)
    fk.sample(of_its_own, result, **SHORT)


def test_without_a_prior_starts_are_around_the_initial_point():
    with pm.Model() as model:
        a = pm.Flat("a", initval=3.0)
        pm.Normal("y", a, 1, observed=5.0)
    made = fk.from_pymc(model)
    assert not made.has_prior
    starts = made.start(None, 20, np.random.SeedSequence(1))
    assert (np.abs(starts - 3) <= 1).all()
    assert len(np.unique(starts)) == 20
    assert abs(fk.sample(made, draws=200, **QUIET)["a"].mean() - 5) < 0.5


# ---- routes, workers ----


class Black(pt.Op):
    """An operation that only Python has, without a gradient."""

    itypes, otypes = [pt.dscalar], [pt.dscalar]

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(-0.5 * inputs[0] ** 2)


def test_a_function_that_numba_cannot_compile_runs_in_python():
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1)
        pm.Potential("p", Black()(a))
    with pytest.warns(SamplingWarning, match="evaluated in Python"):
        made = fk.from_pymc(model)
    assert made.route == "Python"
    np.testing.assert_allclose(made.logp(np.array([2.0])), -4 - 0.5 * np.log(2 * np.pi))
    result = fk.sample(made, draws=300, **QUIET)
    assert 0.5 < result["a"].std() < 0.9
    with pytest.raises(TypeError, match="backend='numba' cannot compile"):
        fk.from_pymc(model, backend="numba")


def test_correlation_matrices_need_no_python():
    """PyMC tests by Python code whether they are positive definite."""
    with pm.Model() as model:
        pm.LKJCorr("r", n=3, eta=2)
    made = fk.from_pymc(model)
    assert made.route == "numba"
    Z = 1.5 * np.random.default_rng(1).normal(size=(60, 3))
    r = np.tanh(Z / 2)
    R = np.eye(3) + np.zeros((60, 3, 3))
    R[:, [0, 0, 1], [1, 2, 2]] = R[:, [1, 2, 2], [0, 0, 1]] = r
    within = np.linalg.eigvalsh(R)[:, 0] > 0
    assert 20 < within.sum() < 55
    with np.errstate(invalid="ignore"):
        expected = np.log(np.linalg.det(R)) + np.log1p(-r * r).sum(axis=1)
    expected[~within] = -np.inf
    found = np.array([made.logp(z) for z in Z])
    k = np.argmax(within)
    constant = found[k] - expected[k]
    np.testing.assert_allclose(found, expected + constant, rtol=1e-10, atol=1e-10)
    assert [made.logp_grad(z)[0] > -np.inf for z in Z] == within.tolist()


def test_positive_definite_is_as_in_scipy():
    from scipy import linalg

    from fastkam.interop.pymc_numba import is_positive_definite

    rng, seen = np.random.default_rng(1), set()
    for n in (1, 2, 3, 6):
        for shift in rng.uniform(0, 2, 30) * np.sqrt(n):
            x = rng.normal(size=(n, n))
            x = x + x.T + 2 * shift * np.eye(n)
            try:
                linalg.cholesky(x)
            except linalg.LinAlgError:
                assert not is_positive_definite(x)
                seen.add(False)
            else:
                assert is_positive_definite(x)
                seen.add(True)
    assert seen == {False, True}
    assert not is_positive_definite(np.full((2, 2), np.nan))


def test_the_route_is_logged(caplog):
    with caplog.at_level(logging.INFO, "fastkam"):
        fk.from_pymc(pymc_models.logistic())
    assert "compiled by numba" in caplog.text


def test_workers_compile_the_model(schools):
    pytest.importorskip("cloudpickle")
    options = {**SHORT, "chains": 2}
    here = fk.sample(schools, **options)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = fk.sample(schools, executor=pool, **options)
    np.testing.assert_array_equal(here.draws, there.draws)
    np.testing.assert_array_equal(here.extras["effect"], there.extras["effect"])


def test_data_are_those_when_the_model_is_compiled():
    with pm.Model() as model:
        data = pm.Data("data", [1.0, 2.0])
        mean = pm.Normal("mean", 0, 10)
        pm.Normal("y", mean, 1, observed=data)
    made = fk.from_pymc(model)
    before = made.logp(np.zeros(1))
    with model:
        pm.set_data({"data": [5.0, 6.0, 7.0]})
    assert made.logp(np.zeros(1)) == before
    assert fk.from_pymc(model).logp(np.zeros(1)) < before


@pytest.mark.parametrize("backend", ["numba", "python"])
def test_an_overflow_is_no_density(backend):
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Potential("p", pt.exp(pt.switch(a > 2, 1000.0, -1000.0)))
    made = fk.from_pymc(model, backend=backend)
    assert np.isnan(made.logp(np.array([3.0])))
    assert np.isnan(made.logp_grad(np.array([3.0]))[0])
    assert np.isfinite(made.logp(np.array([1.0])))


# ---- refusals ----


def test_models_that_cannot_be_sampled():
    with pm.Model() as empty:
        pm.Normal("y", 0, 1, observed=1.0)
    with pytest.raises(ValueError, match="must have free variables"):
        fk.sample(empty)
    with pm.Model() as discrete:
        pm.Normal("a")
        pm.Poisson("k", 3)
        pm.Bernoulli("b", 0.5)
    with pytest.raises(ValueError, match=r"\['k', 'b'\] are discrete"):
        fk.sample(discrete)
    with pm.Model() as circular:
        pm.VonMises("angle", 0.5, 2.0)
    with pytest.raises(ValueError, match=r"\['angle'\] have one: give .*Interval\(-np.pi, np.pi"):
        fk.sample(circular)
    with pm.Model() as within:
        pm.VonMises("angle", 3.0, 2.0, default_transform=pm.distributions.transforms.Interval(
            -np.pi, np.pi))
    angle = fk.sample(within, draws=1000, seed=1, progress=False)["angle"]
    assert abs(np.exp(1j * (angle - 3)).mean() - special.i1e(2) / special.i0e(2)) < 0.05
    with pytest.raises(TypeError, match=r"model must be a pymc\.Model, not 3"):
        fk.from_pymc(3)
    with pytest.raises(TypeError, match=r"model must be a pymc\.Model"):
        fk.from_pymc(pm.Model)


def test_bad_options():
    model = pymc_models.logistic()
    with pytest.raises(ValueError, match="backend must be"):
        fk.from_pymc(model, backend="nubma")
    with pytest.raises(ValueError, match=r"deterministics names \['curve'\]"):
        fk.from_pymc(model, deterministics=["curve"])
    with pytest.raises(TypeError, match="log_likelihood"):
        fk.from_pymc(model, log_likelihood="yes")
    with pytest.raises(ValueError, match="prior must be given to the Problem or the model"):
        fk.sample(model, prior={"beta": None})


def test_a_wrong_density_is_detected():
    """The comparison has the power to tell."""
    model = fk.from_pymc(pymc_models.logistic(), backend="python")
    with pytest.raises(AssertionError):
        check_equal(model, lambda z: by_hand.logistic(z)[0] + 1e-7 * z[0],
                    lambda z: by_hand.logistic(z)[1], np.array([np.ones(4), np.zeros(4)]))
    with pytest.raises(AssertionError):
        check_equal(model, lambda z: by_hand.logistic(z)[0],
                    lambda z: by_hand.logistic(z)[1] + 1e-5, np.ones((1, 4)))


@pytest.mark.filterwarnings("error")
def test_numba_has_no_hints_for_the_user():
    """Users cannot mend PyTensor's code where it could be faster."""
    with pm.Model() as model:
        w = pm.Normal("w", shape=(4, 3))
        pm.Potential("p", -pm.math.sum(pm.math.dot(w[::2], w[::2].T) ** 2))
    assert fk.from_pymc(model).route == "numba"
