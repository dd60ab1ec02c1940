"""Controls of weighted draws: the factors that calibrate weights, and the errors that are left."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics.checks import verdict_of
from fastkam.diagnostics.controls import Controls, calibrated, factors
from fastkam.diagnostics.weights import error_of
from fastkam.surrogate import importance
from fastkam.surrogate.controls import ControlFunctions, independent

RNG = np.random.default_rng(3)
NORMAL = RNG.standard_normal((4, 100, 50))


def test_controls_have_the_mean_0_with_the_factors():
    C = NORMAL[:, :, :5].reshape(-1, 5) + 0.2
    f = np.exp(factors(C))
    np.testing.assert_allclose(f.mean(), 1)
    np.testing.assert_allclose(f @ C, 0, atol=1e-6)


@pytest.mark.parametrize("C", [
    1 + np.abs(NORMAL[0, :, :1]),           # no weights give the mean 0
    NORMAL[0, :, :1] + 2.5,                 # a few draws would have all of the weight
    np.tile(NORMAL[0, :, :1] + 0.1, 2)])    # twice the same
def test_there_may_be_no_factors(C):
    assert factors(C) is None


def test_few_draws_have_few_controls():
    log_f, used = calibrated(Controls(NORMAL, 1e5))
    assert used.values.shape == (4, 100, 40)
    assert log_f.shape == (4, 100)
    assert calibrated(Controls(NORMAL[:, :30], 1e5))[1].values.shape == (4, 30, 12)
    assert calibrated(Controls(NORMAL[:, :9], 1e5)) is None
    assert calibrated(Controls(NORMAL, 700.0)) is None  # their means are known from too few draws
    assert calibrated(Controls(NORMAL[:, :, :0], 1e5)) is None


def test_fewer_controls_are_used_if_not_all_can_be():
    values = np.concatenate([NORMAL[:, :, :1], 9 + NORMAL[:, :, 1:2]], axis=2)
    assert calibrated(Controls(values, 1e5))[1].values.shape == (4, 100, 1)


def test_a_residual_is_that_of_a_regression_on_the_other_draws():
    """The regression is of the terms without the factors; its residual is times the factor."""
    C = NORMAL[:, :, :6]
    terms = NORMAL[:, :, :2] @ [[1.0, 0.0], [0.5, 0.3]] + NORMAL[:, :, 2:4] ** 2
    rest, _ = Controls(C, 1e5).unexplained(terms)
    f = np.exp(factors(C.reshape(-1, 6)))
    F = np.column_stack([np.ones(400), C.reshape(-1, 6)])
    T = terms.reshape(-1, 2) / f[:, None]
    for i in (0, 57, 399):
        others = np.arange(400) != i
        b = np.linalg.lstsq(F[others], T[others], rcond=None)[0]
        np.testing.assert_allclose(rest.reshape(-1, 2)[i], f[i] * (T[i] - F[i] @ b))


def test_errors_are_of_what_is_not_explained_and_of_the_means_of_controls():
    C = NORMAL[:, :, :3]
    f = np.exp(factors(C.reshape(-1, 3))).reshape(4, 100, 1)
    terms = f * (2 * NORMAL[:, :, :1] + 0.1 * NORMAL[:, :, 10:11])
    small = error_of(terms, Controls(C, 1e12))
    assert 0.08 / 20 < small < 0.13 / 20
    known = error_of(terms, Controls(C, 1600.0))
    np.testing.assert_allclose(np.sqrt(known**2 - small**2), 2 / 40, rtol=0.15)


def test_variables_that_others_explain_are_left_out():
    a = NORMAL[:, :, :4].reshape(-1, 4)
    X = np.column_stack([a[:, 0], a[:, 0] * 2, a[:, 1], np.zeros(400), a[:, 0] - a[:, 1], a[:, 2]])
    kept, factor = independent(X, 10)
    assert kept.tolist() == [0, 2, 5]
    np.testing.assert_allclose(factor @ factor.T, (X.T @ X / 400)[np.ix_(kept, kept)])
    assert independent(X, 2)[0].tolist() == [0, 2]
    assert independent(X, 0)[0].tolist() == []


def test_variables_with_long_tails_are_left_out():
    a = NORMAL.ravel()
    X = np.column_stack([a, np.exp(2 * a), a * a - 1, 1 / a])
    assert independent(X, 10)[0].tolist() == [0, 2]


def test_draws_for_the_means_of_controls_follow_those_with_weights(monkeypatch):
    """Few further draws, and none of those before."""
    seen = []

    def at(self, x, at=ControlFunctions.at):
        seen.append(x)
        return at(self, x)

    def continued(run, learned, rows, further=importance.continued):
        seen.append(further(run, learned, 3))
        return further(run, learned, rows)

    monkeypatch.setattr(ControlFunctions, "at", at)
    monkeypatch.setattr("fastkam.surrogate.controls.continued", continued)
    fk.sample(lambda x: -0.5 * float(x @ x), np.ones(2), surrogate="learn", budget=400, seed=1,
              progress=False)
    more, draws = seen[0], seen[-1]
    assert more.shape == (4, 3, 2)
    assert not np.isin(more, draws).any()


# ---- in files ----


@pytest.fixture(scope="module")
def runs():
    """Runs whose calls, and so whose sizes, depend on the last bits of a machine's BLAS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)  # 1 in 5 has an ESS below 400
        return [fk.sample(lambda x: -0.5 * float(x @ x) - 0.1 * float(x[0] ** 4), np.ones(2),
                          surrogate="learn", budget=500, seed=seed, progress=False)
                for seed in range(1, 6)]


@pytest.fixture(scope="module")
def run(runs):
    return max(runs, key=smallest_size)


def smallest_size(run):
    table = run.summary()
    return min(table["ess_bulk"].min(), table["ess_tail"].min())


def changed(path, change):
    """A copy of a file, with other arrays."""
    arrays = dict(np.load(path))
    change(arrays)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def test_controls_are_kept_in_files(run, tmp_path):
    run.save(tmp_path / "run.fk")
    read = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(read.state.controls.values, run.state.controls.values)
    assert read.state.controls.draws == run.state.controls.draws
    assert str(read.summary()) == str(run.summary())


@pytest.mark.parametrize(("change", "names"), [
    (lambda arrays: arrays.pop("control_draws"), "control_draws"),
    (lambda arrays: arrays.pop("controls"), "controls"),
    (lambda arrays: arrays.update(controls=arrays["controls"][:, 1:]), "controls"),
    (lambda arrays: arrays.update(controls=arrays["controls"][..., 0]), "controls"),
    (lambda arrays: arrays.update(controls=np.nan * arrays["controls"]), "controls"),
    (lambda arrays: arrays.update(control_draws=np.array([-1.0])), "control_draws"),
    (lambda arrays: arrays.update(control_draws=np.array([np.nan])), "control_draws"),
    (lambda arrays: arrays.update(control_draws=np.array(3.0)), "control_draws")])
def test_a_file_with_bad_controls_is_refused(run, tmp_path, change, names):
    run.save(tmp_path / "run.fk")
    with pytest.raises(ValueError, match=rf"run\.fk is not a fastkam result: .*{names}"):
        fk.load(changed(tmp_path / "run.fk", change))


def test_a_run_without_weights_has_no_controls(run, tmp_path):
    run.save(tmp_path / "run.fk")
    plain = run.resample()
    assert plain.state.controls is None
    plain.save(tmp_path / "plain.fk")
    with np.load(tmp_path / "run.fk") as weighted:
        some = {name: weighted[name] for name in ("controls", "control_draws")}
    with pytest.raises(ValueError, match=r"controls.* must be missing"):
        fk.load(changed(tmp_path / "plain.fk", lambda arrays: arrays.update(some)))


def test_effective_sizes_exceed_the_number_of_draws(runs):
    """Sizes of the median run: of ten runs, one had a size just below the number of its draws."""
    assert np.median([smallest_size(run) / run.draws[..., 0].size for run in runs]) > 1


def test_weighted_draws_are_judged_by_their_number_in_all_chains(run):
    assert run.draws.shape[1] < 100
    assert run.verdict().status == "ok"
    few = replace(run.state, trace=run.state.trace.take(np.arange(39)))
    judged = verdict_of(few, [], run.summary())
    assert [one.kind for one in judged.reasons] == ["short"]
    assert "Allow more calls" in judged.reasons[0].text


def test_extras_have_smaller_errors_too(run):
    """The extra is a function of the parameters that the controls nearly explain."""
    def f(x):
        return -0.5 * float(x @ x), {"sum": 2 * x[0] - x[1]}

    table = fk.sample(f, np.ones(2), surrogate="learn", budget=500, seed=1,
                      progress=False).summary("sum")
    assert table["ess_bulk"][0] > 1000
    assert abs(table["mean"][0]) < 4 * table["mcse_mean"][0]


def test_a_surrogate_without_draws_where_it_counts_has_no_controls(monkeypatch):
    """A scale that is not finite, for example where the user's points overflow."""
    monkeypatch.setattr("fastkam.surrogate.controls.share",
                        lambda density, x: np.zeros(x.shape[:2]))
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.ones(2), surrogate="learn", budget=300,
                       seed=1, progress=False, diagnose=False)
    assert result.state.controls is None
    assert result.log_weights is not None
