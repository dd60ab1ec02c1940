"""`x0=fk.Evaluations(...)`: the calls of an earlier run."""

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.search.found import Known
from fastkam.surrogate.given import MOST, MOST_EACH, given_calls

QUIET = {"progress": False, "diagnose": False}
MODE = np.array([-3.0, 0.0, 2.0])


class Counted:
    def __init__(self, constant=0.0):
        self.n, self.constant = 0, constant

    def __call__(self, x):
        self.n += 1
        return self.constant - 0.5 * float((x - MODE) @ (x - MODE))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("calls") / "calls.fk"
    fk.sample(Counted(), prior={"x": (stats.norm(0, 50), 3)}, surrogate="learn", budget=500, seed=1,
              evaluations=file, **QUIET)
    return file


def learned_after(result):
    line, = (line for line in result.search if line.startswith("surrogate learned"))
    return int(line.split("after ")[1].split()[0])


@pytest.mark.parametrize("wide", [2.0, 50.0])
def test_a_surrogate_is_fitted_to_the_calls_with_another_prior(path, wide):
    f, prior = Counted(), {"x": (stats.norm(0, wide), 3)}
    result = fk.sample(f, fk.Evaluations(path), prior=prior, surrogate="learn", budget=600, seed=2,
                       **QUIET)
    assert f.n == result.evaluations == len(result.state.calls) <= 600
    alone = fk.sample(Counted(), prior=prior, surrogate="learn", budget=600, seed=2, **QUIET)
    assert learned_after(result) < 0.75 * learned_after(alone)
    shrunk = wide**2 / (1 + wide**2)
    table = result.summary()
    assert (np.abs(table["mean"] - shrunk * MODE) < 4 * table["mcse_mean"]).all()
    assert (np.abs(table["sd"] - np.sqrt(shrunk)) < 4 * table["mcse_sd"]).all()


def test_points_outside_of_new_bounds_are_left_out(path):
    """The best of all points are outside, too."""
    result = fk.sample(Counted(), fk.Evaluations(path), bounds=[(-5, 5), (0.5, 5), (-5, 5)],
                       surrogate="learn", budget=600, seed=2, **QUIET)
    assert (result.draws[..., 1] > 0.5).all()
    table, half = result.summary(), stats.truncnorm(0.5, 5)
    assert abs(table["mean"][1] - half.mean()) < 4 * table["mcse_mean"][1]


def test_few_calls_lead_to_climbs(tmp_path):
    file = tmp_path / "calls.fk"
    fk.sample(Counted(), np.full(3, 30.0), sampler="ram", draws=2, tune=2, chains=1, seed=1,
              search=False, evaluations=file, **QUIET)
    calls = fk.Evaluations(file)
    assert len(calls) < 13
    f = Counted()
    result = fk.sample(f, calls, surrogate="learn", budget=500, seed=2, **QUIET)
    assert f.n == result.evaluations
    again = [x for x in result.state.calls[:, :-1] if (x == calls.x).all(axis=1).any()]
    np.testing.assert_array_equal(again, calls.best())
    table = result.summary()
    assert (np.abs(table["mean"] - MODE) < 4 * table["mcse_mean"]).all()


def test_many_calls_are_not_all_used(tmp_path):
    """A process cannot be fitted to thousands of points."""
    file = tmp_path / "calls.fk"
    fk.sample(Counted(), MODE, sampler="ram", draws=1000, tune=0, chains=2, seed=1, search=False,
              evaluations=file, **QUIET)
    calls = fk.Evaluations(file)
    given = given_calls(calls, ["x[0]", "x[1]", "x[2]"], None, Known(), np.random.default_rng(1))
    assert 2000 < len(calls)
    assert MOST + 3 * MOST_EACH <= len(given.values) <= 1.5 * (MOST + 3 * MOST_EACH)
    assert given.values.max() == calls.values.max()


def test_calls_that_failed_have_no_density(tmp_path):
    file = tmp_path / "calls.fk"

    def failing(x):
        if x[0] > 0.5:
            raise ArithmeticError
        return np.nan if x[1] > 0.5 else -0.5 * float(x @ x)

    fk.sample(failing, np.zeros(2), sampler="ram", draws=20, tune=20, seed=1, search=False,
              evaluations=file, on_error="reject", **QUIET)
    calls = fk.Evaluations(file)
    given = given_calls(calls, ["x[0]", "x[1]"], None, Known(), np.random.default_rng(1))
    out = given.points.max(axis=1) > 0.5
    assert out.any()
    np.testing.assert_array_equal(given.values[out], -np.inf)
    assert np.isfinite(given.values[~out]).all()


def test_a_run_without_a_surrogate_starts_at_the_best_calls(path):
    calls = fk.Evaluations(path)
    result = fk.sample(Counted(), calls, sampler="rwm", draws=1, tune=0, seed=1, search=False,
                       chains=2, keep_warmup=True, **QUIET)
    steps = np.abs(result.draws[:, 0] - calls.best(2))
    assert steps.max() < 10
    assert fk.choose_sampler(Counted(), calls, seed=1).sampler is not None


@pytest.mark.parametrize("surrogate", [None, "learn"])
def test_no_call_within_the_support(path, surrogate):
    with pytest.raises(ValueError, match="x0 must have a call with a density within the support"):
        fk.sample(Counted(), fk.Evaluations(path), bounds=[(90, 99)] * 3, surrogate=surrogate,
                  **QUIET)


def test_calls_of_another_density_are_refused(path):
    f = Counted(3.0)
    with pytest.raises(ValueError, match="x0 must have calls of the same density"):
        fk.sample(f, fk.Evaluations(path), surrogate="learn", budget=500, seed=1, **QUIET)
    assert f.n == 1


def test_parameters_are_found_by_name(tmp_path):
    file = tmp_path / "calls.fk"

    def two(a, b):
        return -0.5 * (a - 1) ** 2 - 0.5 * (b - 40) ** 2

    def other(b, a):
        return two(a, b)

    fk.sample(two, prior={"a": stats.norm(0, 10), "b": stats.norm(0, 90)}, surrogate="learn",
              budget=300, seed=1, evaluations=file, **QUIET)
    result = fk.sample(other, fk.Evaluations(file), surrogate="learn", budget=300, seed=1,
                       prior={"b": stats.norm(0, 90), "a": stats.norm(0, 10)}, **QUIET)
    table = result.summary()
    assert (np.abs(table["mean"] - [40, 1]) < 1).all()
    start = fk.sample(other, fk.Evaluations(file), sampler="rwm", draws=1, tune=0, search=False,
                      seed=1, prior={"b": stats.norm(0, 90), "a": stats.norm(0, 10)}, **QUIET)
    assert (np.abs(start["b"] - 40) < 15).all()
    with pytest.raises(ValueError, match="x0 must have the parameters"):
        fk.sample(lambda a, c: two(a, c), fk.Evaluations(file), surrogate="learn", budget=300,
                  prior={"a": stats.norm(0, 10), "c": stats.norm(0, 90)}, **QUIET)
