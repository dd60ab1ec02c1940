"""Diagnostics that fail, or meet numbers that are not finite: no draw is lost."""

from types import SimpleNamespace

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics import checks
from fastkam.diagnostics.unvisited import placed
from fastkam.diagnostics.weights import far_below_calls


def f(x):
    return -0.5 * float(x @ x)


def test_a_fault_of_the_diagnostics_is_a_warning(monkeypatch):
    def failing(state):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(checks, "findings", failing)
    with pytest.warns(fk.SamplingWarning, match="could not be judged: ZeroDivisionError: a fault"):
        result = fk.sample(f, [0.0, 0.0], draws=200, sampler="am", progress=False)
    assert result.draws.shape == (4, 200, 2)


@pytest.mark.parametrize(("x", "sd", "text"), [
    ([np.inf, 1.0], 1.0, "(inf, 1)"), ([np.nan, -2.5], 1.0, "(nan, -2.5)"),
    ([1e300, 1.0], np.inf, "(1e+300, 1)"), ([1.25, 0.0], 0.0, "(1.25, 0)"),
    ([1234.5678, 0.5], 0.01, "(1234.5678, 0.5)")])
def test_points_and_draws_that_are_not_finite_are_shown(x, sd, text):
    draws = sd * np.random.default_rng(1).choice([-1.0, 1.0], (4, 100, 2))
    assert placed(np.array(x), draws) == text


@pytest.mark.parametrize(("best", "kinds"), [(30.0, ["weights"]), (10.0, []), (np.nan, [])])
def test_weighted_draws_are_compared_with_the_best_call(best, kinds):
    """Draws without weight do not count."""
    calls = np.array([[0.0, 0, 0, 1.0], [1.0, 1, 1, best]])
    state = SimpleNamespace(calls=calls, d=3, lp=lambda: np.array([[1.0, 2.0, -np.inf]]))
    found = list(far_below_calls(state, np.array([[1.0, 2.0, 0.0]])))
    assert [one.kind for one in found] == kinds
    assert all(one.status == "wrong" for one in found)
