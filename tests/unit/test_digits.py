"""Functions that lose their digits, next to a bound or where they are rough: finding `digits`."""

import numpy as np
import pytest
from runs import sample
from scipy import special, stats

import fastkam as fk
from fastkam.search.evaluator import Evaluator
from fastkam.search.repeated import ROUGH, checked_again


def lossy(x):
    """-(x - 0.3)^2 / 0.02, with a wrong value next to 0, as gammaln(a / x) - gammaln(b / x) has."""
    return 200.0 if x < 1e-15 else -50 * (x - 0.3) ** 2


def interval(F):
    return lossy(F)


def simplex(p):
    return lossy(p[1]) + 2 * np.log(p).sum() if p[1] >= 1e-15 else 200.0


@pytest.mark.parametrize(("f", "problem", "starts", "label"), [
    (interval, {"bounds": {"F": (0, 1)}}, [{"F": 0.3}, {"F": 0.3}, {"F": 1e-18}, {"F": 0.3}], "F"),
    (simplex, {"prior": {"p": stats.dirichlet([1.0, 1.0, 1.0])}},
     [{"p": [0.3, 0.3, 0.4]}, {"p": [0.3, 0.3, 0.4]}, {"p": [0.5, 1e-18, 0.5]},
      {"p": [0.3, 0.3, 0.4]}], "p[1]"),
])
def test_chains_that_have_no_digits_are_named(f, problem, starts, label):
    result = sample(fk.Problem(f, **problem), starts, sampler="ram", search=False, draws=400,
                    tune=400, seed=1, diagnose=False)
    found = {one.kind: one for one in result.warnings}
    assert found["digits"].coordinates == (label,)
    assert found["digits"].chains == (2,)
    assert found["digits"].text.startswith(f"Chain 2 is next to a bound of {label}, nearer than")
    assert not {"boundary", "bound"} & found.keys()
    assert result.verdict().status == "wrong"


def test_chains_that_agree_next_to_a_bound_are_right():
    """A beta distribution that has half of its mass there."""
    result = sample(fk.Problem(lambda F: -0.99 * np.log(F) - 0.99 * np.log1p(-F),
                               bounds={"F": (0, 1)}), [{"F": 0.5}] * 4, sampler="jumps",
                    draws=2000, seed=1, diagnose=False)
    assert (np.minimum(result["F"], 1 - result["F"]) < 1e-13).mean() > 0.5
    assert "digits" not in {one.kind for one in result.warnings}


def with_waves(frequency):
    return lambda x: -0.5 * x @ x + 5 * np.sin(frequency * x[0])


@pytest.mark.parametrize("given", [
    {"x0": [0.1, 0.2]}, {"prior": {"x": (stats.norm(0, 3), 2)}}], ids=["x0", "prior"])
def test_a_rough_density_is_reported(given):
    with pytest.warns(fk.SamplingWarning, match="is rough: it changes by .* within a millionth"):
        result = fk.sample(with_waves(1e9), seed=1, progress=False, **given)
    assert result.verdict().status == "wrong"


def test_differences_of_gamma_functions():
    """A negative binomial likelihood: far out its values are high, and thousands apart."""
    y = np.random.default_rng(0).poisson(3.0, 200)

    def logp(x):
        mean, r = np.exp(np.clip(x, -50, 50))
        return float((special.gammaln(y + r) - special.gammaln(r) + r * np.log(r / (r + mean))
                      + y * np.log(mean / (r + mean))).sum())

    rough = checked_again(Evaluator(fk.as_target(logp, 2), np.random.default_rng(1)),
                          np.array([[1.1, 38.0]]), np.array([logp([1.1, 38.0])]), np.ones(2))
    assert rough
    assert rough[0].startswith(ROUGH)


def test_an_estimate_may_jump():
    """Estimates of a simulation with fixed noise change abruptly with the parameters."""
    waves = with_waves(1e9)
    estimate = fk.Target.from_estimator(lambda x, u: waves(x) + 0.0 * u[0], 2, 1)
    evaluate = Evaluator(estimate, np.random.default_rng(1))
    x = np.array([[0.1, 0.2]])
    assert checked_again(evaluate, x, evaluate(x), np.ones(2)) == []
    exact = Evaluator(fk.as_target(waves, 2), np.random.default_rng(1))
    assert checked_again(exact, x, exact(x), np.ones(2))


@pytest.mark.parametrize("f", [
    with_waves(1e3), lambda x: 3 * np.cos(x[0]) + np.cos(x[1]),  # its walkers go anywhere
    lambda x: float(np.floor(x[0])) ** 2 * -0.1 - x[1] ** 2,
    lambda x: -x[0] ** 2 if 0 < x[0] < 1e-3 and abs(x[1]) < 1 else -np.inf])
def test_waves_steps_and_walls_are_not_rough(f):
    result = fk.sample(f, [5e-4, 0.2], draws=50, tune=50, seed=1, diagnose=False, progress=False)
    assert result.search
    assert not [line for line in result.search if line.startswith(ROUGH)]
