"""Chains next to a bound, where the function has lost its digits: the finding `digits`."""

import numpy as np
import pytest
from runs import sample
from scipy import stats

import fastkam as fk


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
