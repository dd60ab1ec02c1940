"""The check by gradients after a run of "auto": its findings, and where it makes none."""

import os
import signal
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.diagnostics import faults
from fastkam.diagnostics.look import Look
from fastkam.search import walks


def rosenbrock(x):
    """Rosenbrock's density to the power 1/20, turned by 45 degrees.

    u = x0 + x1 is normal with mean 1 and variance 10, v = x0 - x1 = u^2 + e, and the variance of e
    is 1/10: var v = 240.1 and cov(u, v) = 20.
    """
    u, v = x[0] + x[1], x[0] - x[1]
    return -(100 * (v - u * u) ** 2 + (1 - u) ** 2) / 20


OTHERS = 5  # calls that are not counted: one to see what the function returns, one a chain

ROSENBROCK_MEAN = np.array([6.0, -5.0])
ROSENBROCK_SD = np.sqrt([250.1 + 40, 250.1 - 40]) / 2


def normal(x):
    return -0.5 * float(x @ x)


def quietly(f, x0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return fk.sample(f, x0, progress=False, **{"seed": 1} | options)


def kinds(result):
    return [one.kind for one in result.warnings]


@pytest.fixture(scope="module")
def bent():
    """Runs of a search that does not follow the density along its arms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "walks", lambda *_, **_options: [])
        return [quietly(rosenbrock, [0.0, 0.0], draws=1000, seed=seed) for seed in range(8)]


def test_no_bent_run_is_wrong_without_a_warning(bent):
    """The chains of some have not been far enough along the arms, at good R-hat and ESS."""
    for result in bent:
        table = result.summary()
        off = np.abs(table["sd"] / ROSENBROCK_SD - 1).max()
        off = max(off, (np.abs(table["mean"] - ROSENBROCK_MEAN) / ROSENBROCK_SD).max())
        assert off < 0.1 or kinds(result)
    assert any("moments" in kinds(result) for result in bent)


def test_the_moments_implied_are_right(bent):
    """There are none where chains that disagree leave too few draws that are independent."""
    some = [result for result in bent if len(result.state.implied)]
    assert len(some) >= 6
    assert all("r_hat" in kinds(result) for result in bent if result not in some)
    for result in some:
        assert np.allclose(result.state.implied[:, 0], ROSENBROCK_MEAN, rtol=1e-3)
        assert np.allclose(result.state.implied[:, 2], ROSENBROCK_SD, rtol=1e-3)


def test_the_finding_names_both_moments(bent):
    result = next(one for one in bent if "moments" in kinds(one))
    text = next(one.text for one in result.warnings if one.kind == "moments")
    implied, implied_sd = result.state.implied[1, [0, 2]]
    mean, sd = result.draws[..., 1].mean(), result.draws[..., 1].std()
    assert f"x[1] mean {implied:.3g} and sd {implied_sd:.3g} (the draws have" in text
    assert f"have {mean:.3g} and {sd:.3g})" in text


def test_a_file_keeps_them(bent, tmp_path):
    path = tmp_path / "run.npz"
    bent[0].save(path)
    loaded = fk.load(path)
    assert np.array_equal(loaded.state.implied, bent[0].state.implied)
    assert kinds(loaded) == kinds(bent[0])


@pytest.mark.parametrize("wrong", [
    np.zeros((1, 4)), np.zeros((2, 3)), np.zeros(2), [["a"] * 4] * 2])
def test_a_file_with_others_is_refused(bent, tmp_path, wrong):
    path = tmp_path / "run.npz"
    bent[0].save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"implied": np.array(wrong)})
    with pytest.raises(ValueError, match="implied"):
        fk.load(path)


# ---- where nothing is implied ----


def walled(x):
    return normal(x) if x[0] < 1 else -np.inf


def stepped(x):
    return normal(x) + (2.0 if x[0] > 0.3 else 0.0)


def in_levels(x):
    return -np.sum(np.floor(4 * x) ** 2) / 32


@pytest.mark.parametrize("f", [walled, stepped, in_levels])
@pytest.mark.parametrize("seed", range(5))
def test_walls_jumps_and_levels_are_no_finding(f, seed):
    result = quietly(f, [0.0, 0.0], seed=seed)
    assert not len(result.state.implied)
    assert "moments" not in kinds(result)


def test_moments_that_do_not_exist_are_no_finding():
    """The tails are: the mean of a half-Cauchy distribution does not exist."""
    found = [kinds(quietly(lambda a, b: -2 * (b - 1) ** 2, None, draws=1000, seed=seed, prior={
        "a": stats.halfcauchy(scale=2), "b": stats.norm(0, 3)})) for seed in range(4)]
    assert all("tails" in some and "moments" not in some for some in found)


def test_moments_of_a_log_normal_density_are_not_said_to_be_wrong():
    """They exist, but polynomials of its logarithm do not follow them; in 4 of 25 runs."""
    known = {"s": stats.lognorm(2)}
    found = [kinds(quietly(lambda s: 0.0, None, draws=1000, seed=seed, prior=known))
             for seed in range(25)]
    assert not any("moments" in some for some in found)


def test_a_verdict_with_evaluations_does_not_say_so_either():
    """In the gradients that it takes itself; with each of these seeds, the moments differ."""
    for seed in (0, 9):
        result = quietly(lambda s: 0.0, None, draws=1000, seed=seed, sampler="ram", tune=1000,
                         search=False, prior={"s": stats.lognorm(2)})
        assert not len(result.state.implied)
        assert "moments" not in [one.kind for one in result.verdict(2000).reasons]


@pytest.mark.parametrize(("prior", "most"), [(stats.gamma(3), 0.2), (stats.t(6, 3, 1.4), -9.0)])
def test_light_tails_and_tails_of_no_exponential_do_not_hide_moments(prior, most, monkeypatch):
    """Draws of a density, and others of it that are far too narrow."""
    result = quietly(lambda s, u: 0.0, None, draws=1000, seed=1,
                     prior={"s": prior, "u": stats.gamma(3)})
    assert "moments" not in kinds(result)
    monkeypatch.setattr(faults, "MOST_OF_EXPONENTIAL", most)
    wide = result.state.implied.copy()
    wide[0] = 3.0, 0.01, 3 * np.sqrt(3), 0.01
    found = list(faults.moments(Look(replace(result.state, implied=wide))))
    assert [(one.kind, one.coordinates) for one in found] == [("moments", ("s",))]


@pytest.mark.parametrize("options", [
    {"sampler": "am"}, {"search": False}, {"diagnose": False}, {"chains": 1}, {"draws": 50},
    {"stop": fk.stop.Evaluations(20_000)}, {"stop": fk.stop.Time(100)}])
def test_where_it_does_not_look(options):
    calls = []

    def f(x):
        calls.append(1)
        return normal(x)

    result = quietly(f, [0.0, 0.0], **{"draws": 1000} | options)
    assert not len(result.state.implied)
    if options.get("search", True):
        assert 0 <= len(calls) - result.evaluations <= OTHERS


def test_its_evaluations_are_counted():
    calls = []

    def f(x):
        calls.append(1)
        return normal(x)

    result = quietly(f, [0.0, 0.0])
    assert result.state.implied.shape == (2, 4)
    assert 0 <= len(calls) - result.evaluations <= OTHERS


# ---- in the user's coordinates ----


def test_moments_are_those_of_the_parameters():
    """k = exp(z) for a z of mean 0.5 and sd 0.3, and a vector."""
    def f(k, v):
        z = np.log(k)
        return -0.5 * ((z - 0.5) / 0.3) ** 2 - z - 0.5 * float((v - 7) @ (v - 7)) / 4

    result = quietly(f, {"k": 1.0, "v": [7.0, 7.0]}, bounds={"k": (0, np.inf)}, draws=5000)
    mean, sd = np.exp(0.5 + 0.3**2 / 2), np.sqrt(np.exp(0.3**2) - 1) * np.exp(0.5 + 0.3**2 / 2)
    implied = result.state.implied
    assert (np.abs(implied[:, 0] - [mean, 7, 7]) < 5 * implied[:, 1] + 1e-6).all()
    assert (np.abs(implied[:, 2] - [sd, 2, 2]) < 5 * implied[:, 3] + 1e-6).all()
    assert (implied[:, [1, 3]] < 0.03).all()
    assert kinds(result) == []


# ---- faults in it ----


class AfterTheRun:
    """A function that does something else from a given call on."""

    def __init__(self, calls, action):
        self.left, self.action = calls, action

    def __call__(self, x):
        self.left -= 1
        if self.left < 0:
            self.action()
        return normal(x)


def fail():
    raise NameError("no such name")


def test_an_error_in_it_loses_nothing():
    before = quietly(normal, [0.0, 0.0], draws=500)
    n = before.evaluations - 10
    result = quietly(AfterTheRun(n, fail), [0.0, 0.0], draws=500)
    assert np.array_equal(result.draws, before.draws)
    assert not len(result.state.implied)


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent otherwise")
def test_an_interrupt_in_it_loses_nothing():
    before = quietly(normal, [0.0, 0.0], draws=500)
    f = AfterTheRun(before.evaluations - 10, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.warns(fk.SamplingWarning, match="no draw is missing"):
        result = fk.sample(f, [0.0, 0.0], draws=500, seed=1, progress=False)
    assert result.status == "complete"
    assert np.array_equal(result.draws, before.draws)


def test_workers_give_the_same():
    here = quietly(normal, [0.0, 0.0])
    with ProcessPoolExecutor(2) as executor:
        there = quietly(normal, [0.0, 0.0], executor=executor)
    assert np.array_equal(there.state.implied, here.state.implied)
