"""Results in a user's hands: names that clash, weights of any run, a density beside a file."""

import copy
import pickle
import re

import numpy as np
import pytest
from runs import sample
from scipy import stats

import fastkam as fk
from fastkam.diagnostics.weights import NO_SURROGATE
from fastkam.problem.described import INTERNAL as INTERNAL_OF_PROBLEMS
from fastkam.result import INTERNAL

SHORT = {"draws": 100, "tune": 100, "chains": 2, "seed": 1, "sampler": "am", "search": False}


def test_statistics_do_not_replace_extras_in_a_data_frame():
    pytest.importorskip("pandas")
    result = sample(lambda x: (-0.5 * x @ x, {"accepted": 100 * x[0], "step_size": 7.0}),
                    np.zeros(2), **SHORT | {"sampler": fk.RandomWalk()})
    table = result.to_pandas()
    np.testing.assert_array_equal(table["accepted"], result["accepted"].ravel())
    np.testing.assert_array_equal(table["stats.accepted"], result.stats["accepted"].ravel())
    assert (table["step_size"] == 7.0).all()
    table = sample(lambda accepted: -0.5 * accepted**2, {"accepted": 0.0}, **SHORT).to_pandas()
    assert table["accepted"].dtype == float
    assert table["stats.accepted"].dtype == bool


def test_an_extra_with_the_label_of_a_coordinate_has_a_column_of_its_own():
    pytest.importorskip("pandas")
    result = sample(lambda x: (-0.5 * x @ x, {"x[0]": 99.0}), np.zeros(2), **SHORT)
    table = result.to_pandas()
    assert list(table.columns)[:3] == ["x[0]", "x[1]", "extras.x[0]"]
    np.testing.assert_array_equal(table["x[0]"], result.draws[..., 0].ravel())
    assert (table["extras.x[0]"] == 99).all()


def test_every_result_has_weights():
    result = sample(lambda x: -0.5 * x @ x, np.zeros(2), **SHORT)
    assert (result.weights * result["x"][..., 0]).sum() == pytest.approx(result.draws[..., 0].sum())
    assert result.resample() is result
    some = result.resample(30)
    kept = 99 - np.arange(30)[::-1] * 100 // 30
    np.testing.assert_array_equal(some.draws, result.draws[:, kept])
    assert some.summary()["mean"].shape == (2,)
    with pytest.raises(ValueError, match="draws must be at most 100"):
        result.resample(101)


def extra_of(x):
    return -0.5 * x @ x, {"y": 2 * x}


@pytest.mark.parametrize("words", [{"x0": np.zeros(2)}, {"bounds": [(-9, 9)] * 2}])
def test_draws_cannot_be_written_to(words):
    """A result does not change if the arrays that it returns are used for something else."""
    result = sample(extra_of, **words, **SHORT)
    before = str(result.summary())
    draws = np.array(result.draws)
    arrays = [result.draws, result["x"], result["x[1]"], result["y"], result["y[0]"],
              result.extras["y"], *result.stats.values(), result.weights, result.to_numpy(),
              result.warmup_draws, result.trace.draws, result.warmup.draws,
              result.resample(10).draws]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array *= 1000
    if (flat := result.to_numpy(flat=True)).flags.writeable:  # a copy
        flat *= 1000
    np.testing.assert_array_equal(result.draws, draws)
    assert str(result.summary()) == before


def test_a_data_tree_does_not_change_the_draws_of_its_result():
    pytest.importorskip("xarray")
    result = sample(extra_of, np.zeros(2), **SHORT)
    draws = np.array(result.draws)
    for values in result.to_datatree()["posterior"].data_vars.values():
        with pytest.raises(ValueError, match="read-only"):
            values.values[:] = 0.0
    np.testing.assert_array_equal(result.draws, draws)


@pytest.mark.parametrize("words", [{"x0": np.zeros(2)}, {"bounds": [(-9, 9)] * 2}])
def test_results_with_draws_that_cannot_be_written_travel(words, tmp_path):
    result = sample(extra_of, **words, **SHORT)
    result.save(tmp_path / "run.fk")
    others = [pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result),
              fk.load(tmp_path / "run.fk")]
    for other in others:
        np.testing.assert_array_equal(other.draws, result.draws)
        assert not other.draws.flags.writeable
    again = [other.resume(20, target=result.target, progress=False, diagnose=False).draws
             for other in [result, *others]]
    for one in again:
        np.testing.assert_array_equal(one, again[0])


def test_a_verdict_with_evaluations_needs_the_log_densities():
    result = sample(lambda x: -0.5 * x @ x, np.zeros(2), keep_stats=False, **SHORT)
    with pytest.raises(ValueError, match=r"evaluations must be 0 .*keep_stats=False\), not 500"):
        result.verdict(evaluations=500)


def named(a, b):
    return -0.5 * a * a - 0.5 * b * b


@pytest.mark.parametrize("words", [
    {"x0": {"a": 0.1, "b": 0.2}}, {"x0": {"a": 0.1, "b": 0.2}, "bounds": {"a": (0, 3)}},
    {"x0": {"a": 0.1, "b": 0.2}, "bounds": {"a": (None, 3), "b": (-1, 1)}}])
def test_a_function_continues_a_run_from_a_file(words, tmp_path):
    result = sample(named, **words, **SHORT)
    result.save(tmp_path / "run.fk")
    again = fk.resume(tmp_path / "run.fk", 20, target=named, progress=False, diagnose=False)
    np.testing.assert_array_equal(again.draws, result.resume(20, progress=False,
                                                             diagnose=False).draws)
    assert fk.load(tmp_path / "run.fk").log_evidence(target=named).kind.startswith("integral")


@pytest.mark.parametrize(("words", "message"), [
    ({"prior": {"a": stats.norm(), "b": stats.norm()}}, "if that had a prior, give the fk.Problem"),
    ({"prior": {"a": stats.norm(), "b": stats.gamma(2)}}, r"Write fk\.Problem\(f, prior=\.\.\."),
    ({"derived": lambda a, b: {"s": a + b}}, r"Write fk\.Problem\(f, prior=\.\.\."),
    ({"transforms": {"a": "periodic"}, "bounds": {"a": (0, 6)}}, r"Write fk\.Problem"),
])
def test_a_function_alone_does_not_continue_a_run_with_more(words, message, tmp_path):
    result = sample(named, {"a": 0.1, "b": 0.2}, **words, **SHORT)
    result.save(tmp_path / "run.fk")
    with pytest.raises(ValueError, match=message):
        fk.resume(tmp_path / "run.fk", 20, target=named, progress=False)


def test_the_kind_of_an_evidence_follows_from_the_priors():
    def loglike(p, q=0.0):
        return stats.binom.logpmf(7, 20, p) - 0.5 * q * q

    def kind(prior, **more):
        result = sample(loglike, prior=prior, **SHORT | {"draws": 300} | more)
        return result.log_evidence().kind

    assert kind({"p": stats.uniform()}) == kind({"p": stats.beta(1, 1)}) == "marginal likelihood"
    some = {"p": stats.beta(2, 3), "q": None}
    assert kind(some, x0={"p": 0.5, "q": 0.0}) == "integral of the density"
    assert kind({"p": None}, bounds={"p": (0, 1)}, x0={"p": 0.5}) == "integral of the density"


def test_a_run_that_goes_on_without_a_surrogate_says_so():
    def far(x):
        return -0.5 * float(np.sum((x - 1) ** 2)) / 1e-6

    with pytest.warns(fk.SamplingWarning, match="the run continues without one"):
        result = sample(far, np.zeros(4), surrogate="learn", sampler="auto", budget=60, seed=1,
                        draws=10)
    assert any(line.startswith(NO_SURROGATE) for line in result.search)
    (one,) = (one for one in result.warnings if one.kind == "surrogate")
    assert one.status == "ok"
    assert "more calls may give one" in one.text
    assert "No surrogate was found" in str(result.summary())


def test_the_advice_on_vectorized_functions_is_for_these_alone():
    loop = fk.AskTell(np.zeros(2), seed=1)
    points = loop.ask()
    loop.tell(points, [ValueError("boo")] * len(points))
    with pytest.raises(fk.SamplingError) as error:
        loop.ask()
    assert "boo" in str(error.value)
    assert "vectorized" not in str(error.value)


def test_elements_of_matrices_may_be_named_without_a_space():
    result = sample(lambda x: -0.5 * x @ x, np.zeros(4), names=["M"], shapes={"M": (2, 2)}, **SHORT)
    np.testing.assert_array_equal(result["M[0,1]"], result["M"][..., 0, 1])
    assert result.summary("M[1,0]").labels == ["M[1, 0]"]
    assert "M[0,2]" not in result


@pytest.mark.parametrize("sites", [[1, 2, 3], ["1", "2", "3"], [3.0, 2.0, 1.0], ["A", "B", "1"],
                                   np.array(["2001", "2002", "2003"], "datetime64[Y]")])
def test_positions_name_no_elements_if_their_labels_look_like_integers(sites):
    result = sample(lambda th: -0.5 * ((th - [10, 20, 30]) ** 2).sum(), {"th": np.zeros(3)},
                    dims={"th": ["site"]}, coords={"site": sites}, **SHORT)
    labels = result.summary().labels
    for i, label in enumerate(labels):
        np.testing.assert_array_equal(result[label], result["th"][..., i])
    others = [name for name in ("th[0]", "th[1]", "th[2]") if name not in labels]
    assert others
    for name in others:
        assert name not in result
        with pytest.raises(KeyError, match=r"the elements of 'th' are .*" + re.escape(labels[0])):
            result[name]
        with pytest.raises(ValueError, match=r"the elements of 'th' are .*" + re.escape(labels[2])):
            result.summary(name)
    with pytest.raises(ValueError, match=r"there is no 'th\[0\]'"):
        fk.stop.MCSE({"th[0]": 1.0}).check(result.state.layout, 4)


def test_positions_name_elements_unless_a_label_looks_like_an_integer():
    result = sample(lambda x: (-0.5 * x @ x, {"y": x[:2]}), np.zeros(6), names=["a", "b"],
                    shapes={"b": (2, 2)},
                    dims={"a": ["site"], "b": ["site", "year"], "y": ["year"]},
                    coords={"site": ["N", "S"], "year": [1, 2]}, **SHORT)
    for name in ("a[N]", "a[0]"):
        np.testing.assert_array_equal(result[name], result["a"][..., 0])
    np.testing.assert_array_equal(result["b[S, 1]"], result["b"][..., 1, 0])
    assert "b[1, 1]" not in result
    np.testing.assert_array_equal(result["y[2]"], result["y"][..., 1])
    with pytest.raises(KeyError, match=r"the elements of 'y' are \['y\[1\]', 'y\[2\]'\]"):
        result["y[0]"]
    repeated = sample(lambda a: -0.5 * a @ a, {"a": np.zeros(3)}, dims={"a": ["k"]},
                      coords={"k": [1, 1, 0]}, **SHORT)
    np.testing.assert_array_equal(repeated["a[2]"], repeated["a"][..., 2])


def test_a_parameter_without_elements_has_draws():
    result = sample(lambda x: -0.5 * x @ x, np.zeros(2), names=["a", "none"],
                    shapes={"a": 2, "none": 0}, **SHORT)
    assert result["none"].shape == (2, 100, 0)
    assert "none" in result
    assert [3] not in result
    with pytest.raises(ValueError, match="an extra that has elements"):
        result.summary("none")


def test_extras_cannot_be_added_to_a_run():
    result = sample(lambda x: -0.5 * x @ x, np.zeros(2))
    with pytest.raises(TypeError, match=r"'radius' cannot be added.*derived="):
        result.extras["radius"] = np.zeros(3)
    with pytest.raises(TypeError, match="'radius' cannot be added"):
        result.extras.update(radius=np.zeros(3))


def test_extras_travel():
    result = sample(lambda x: (-0.5 * x @ x, {"y": x[0]}), np.zeros(2))
    for extras in (copy.copy(result.extras), copy.deepcopy(result.extras),
                   pickle.loads(pickle.dumps(result.extras))):
        np.testing.assert_array_equal(extras["y"], result.extras["y"])


@pytest.mark.parametrize(("name", "ours"), [
    ("get_chain", "to_numpy"), ("acceptance_fraction", "acceptance"), ("logz", "log_evidence"),
    ("get_log_prob", "lp"), ("blobs", "extras")])
def test_names_of_other_packages_lead_to_ours(name, ours):
    result = sample(lambda x: -0.5 * x @ x, [0.0, 0.0], draws=100, sampler="ram", diagnose=False)
    with pytest.raises(AttributeError, match=ours):
        getattr(result, name)
    assert not hasattr(result, "of_no_package")
    assert not hasattr(copy.copy(result), name)


@pytest.mark.parametrize("make", [
    lambda: fk.sample(lambda x: -0.5 * x @ x, [0.0], draws=5, seed=1, progress=False),
    lambda: fk.Problem(lambda a: -a * a, prior={"a": stats.norm()})], ids=["Result", "Problem"])
def test_completion_shows_what_is_for_users(make):
    """Every name that is shown exists; those that parts of the package share are left out."""
    one = make()
    shown = [name for name in dir(one) if not name.startswith("_")]
    assert all(hasattr(one, name) for name in shown)
    hidden = {name for name in object.__dir__(one) if not name.startswith("_")} - set(shown)
    assert hidden == (INTERNAL if isinstance(one, fk.Result) else INTERNAL_OF_PROBLEMS)
    assert not hidden & {"draws", "summary", "verdict", "sample_prior", "constrain", "logp"}


def test_keys_of_a_result_are_completed():
    one = fk.sample(lambda x: (-0.5 * x @ x, {"r": x @ x}), [0.0], names=["a"], draws=5, seed=1,
                    progress=False)
    assert one._ipython_key_completions_() == ["a", "r"]
