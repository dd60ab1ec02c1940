"""The summary of chosen parameters, extras and quantiles."""

import numpy as np
import pytest
from runs import sample
from scipy import stats

import fastkam as fk
from fastkam.diagnostics import summary


def logp(a, b):
    return -0.5 * (a**2 + b @ b), {"twice": 2 * b, "square": a * a, "on": a > 0}


@pytest.fixture(scope="module")
def result():
    return sample(logp, prior={"a": stats.uniform(-5, 10), "b": (stats.norm(0, 10), 2)}, draws=400,
                  tune=400, chains=2, seed=1, sampler="am", derived=lambda a, b: {"sum": a + b},
                  coords={"place": ["north", "south"]}, dims={"b": ["place"]})


def test_names_select_parameters_extras_and_elements(result):
    table = result.summary(["twice", "b", "sum[1]", "square", "a", "on"])
    assert table.labels == ["twice[0]", "twice[1]", "b[north]", "b[south]", "sum[1]", "square",
                            "a", "on"]
    whole = result.summary()
    np.testing.assert_array_equal(table["ess_bulk"][[6, 2, 3]], whole["ess_bulk"])
    np.testing.assert_allclose(table["mean"][:2], 2 * whole["mean"][1:])
    np.testing.assert_allclose(table["mean"][4], whole["mean"][0] + whole["mean"][2])
    assert result.summary("twice[1]").labels == ["twice[1]"]
    assert result.summary("b[1]").labels == result.summary("b[south]").labels == ["b[south]"]
    assert table.verdict == whole.verdict
    assert result.summary(name for name in ("b", "b")).labels == ["b[north]", "b[south]"]


def test_elements_of_extras_are_selected_by_their_labels(result):
    np.testing.assert_array_equal(result["twice[1]"], result["twice"][:, :, 1])
    np.testing.assert_array_equal(result["sum[0]"], result["sum"][:, :, 0])
    assert "twice[1]" in result
    for name in ("twice[2]", "twice[", "sum[2]", "square[0]", 3, None):
        assert name not in result
        with pytest.raises(KeyError, match="there is no parameter"):
            result[name]


def test_quantiles_are_those_of_the_draws(result):
    levels = [0.5, 0.025, 0.975]
    table = result.summary(quantiles=levels)
    assert list(table.columns) == ["mean", "sd", "q50", "q2.5", "q97.5", "mcse_mean", "mcse_sd",
                                   "ess_bulk", "ess_tail", "r_hat"]
    expected = np.quantile(result.draws, levels, axis=(0, 1))
    np.testing.assert_allclose([table["q50"], table["q2.5"], table["q97.5"]], expected)
    assert "q12.5" in result.summary("a", quantiles=0.125).columns
    x = np.random.default_rng(1).standard_normal((2, 50, 2))
    x[0, 3, 1] = np.nan
    q = summary(x, quantiles=[0.25])["q25"]
    assert q[0] == np.quantile(x[..., 0], 0.25)
    assert np.isnan(q[1])


def test_weighted_draws_have_weighted_quantiles():
    result = sample(lambda x: (-0.5 * x @ x, {"y": 3 * x[0]}), np.zeros(1), surrogate="learn",
                    sampler="auto", budget=300, seed=1, draws=2000)
    table = result.summary(["y", "x"], quantiles=[0.16, 0.84])
    np.testing.assert_allclose(table["q84"] - table["q16"], [6, 2], rtol=0.15)
    np.testing.assert_allclose(table["sd"][0], 3 * table["sd"][1])


def test_draws_in_a_store_are_selected_too(tmp_path):
    result = sample(lambda x: (-0.5 * x @ x, {"y": 3 * x}), np.zeros(2), sampler="am", draws=300,
                    tune=100, seed=1, store=tmp_path / "run")
    table = result.summary(["y[1]", "x"])
    np.testing.assert_allclose(table["mean"][0], 3 * table["mean"][2])
    assert fk.load(tmp_path / "run").summary("y").labels == ["y[0]", "y[1]"]


@pytest.mark.parametrize(("words", "error", "message"), [
    ({"var_names": "bb"}, ValueError, r"var_names has 'bb', and there are a, b, .*mean 'b'"),
    ({"var_names": ["a", "twice[2]"]}, ValueError, r"var_names has 'twice\[2\]'"),
    ({"var_names": [3]}, ValueError, "var_names has 3"),
    ({"var_names": []}, ValueError, r"must name a parameter or an extra .*, not \[\]"),
    ({"var_names": 3}, TypeError, "var_names must be a name or a list of names, not 3"),
    ({"quantiles": [0, 1]}, ValueError, "quantiles must be different probabilities above 0 and"),
    ({"quantiles": [0.5, 0.5]}, ValueError, "quantiles must be different probabilities"),
    ({"quantiles": []}, ValueError, r"quantiles must be different .*, not \[\]"),
    ({"quantiles": "all"}, TypeError, "quantiles must be an array of numbers"),
    ({"names": "a"}, TypeError, r"no argument 'names': did you mean 'var_names'\?"),
])
def test_bad_arguments_are_refused_by_name(result, words, error, message):
    with pytest.raises(error, match=message):
        result.summary(**words)


@pytest.mark.parametrize("words", [
    {}, {"sampler": "am"}, {"sampler": "nuts"}, {"sampler": "am", "search": False},
    {"prior": {"x": (stats.norm(), 2)}, "x0": None}])
def test_extras_with_the_name_of_a_parameter_are_refused(words):
    def f(x):
        value = -0.5 * x @ x
        return (value, -x, {"x": x}) if words.get("sampler") == "nuts" else (value, {"x": x})

    with pytest.raises((ValueError, fk.SamplingError), match="extras must not have the names"):
        sample(f, **{"x0": np.zeros(2), "draws": 50, "tune": 50, **words})
