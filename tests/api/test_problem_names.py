"""Functions that take parameters by name, and parameters on a circle."""

import numpy as np
import pytest
from scipy import special, stats

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


@pytest.mark.parametrize("kappa", [0.5, 4.0])
def test_the_default_call_on_a_circle(kappa):
    """Chains that drift around it stay fine: the circular mean and variance are those known."""
    result = fk.sample(lambda angle, a: -0.5 * a * a, seed=1, prior={
        "angle": stats.vonmises(kappa), "a": stats.norm(0, 3)})
    exact = special.i1(kappa) / special.i0(kappa)
    assert abs(np.cos(result["angle"]).mean() - exact) < 0.06
    assert abs(np.sin(result["angle"]).mean()) < 0.08
