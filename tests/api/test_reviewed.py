"""Faults that readings of the code have found."""

import re
import warnings

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics import checks
from fastkam.diagnostics.table import Summary


def normal(x):
    return -0.5 * float(x @ x)


def test_a_verdict_makes_no_more_evaluations_than_it_may():
    points = []

    def f(X):
        points.append(len(X))
        return -0.5 * (X**2).sum(axis=1)

    result = fk.sample(f, np.zeros(2), vectorized=True, draws=1000, tune=500, sampler="ram", seed=1)
    points.clear()
    result.verdict(evaluations=200)
    assert sum(points) <= 201  # one more shows that the density is that of the run


def test_an_error_that_is_limited_by_the_number_of_a_coordinate():
    """Labels with coords have other names; the number of a coordinate is a name, too."""
    stop = fk.stop.MCSE({"theta[0]": 10.0})
    result = fk.sample(
        normal, np.zeros(2), names=["theta"], shapes={"theta": 2}, dims={"theta": "place"},
        coords={"place": ["A", "B"]}, surrogate="learn", budget=600, stop=stop, seed=1)
    assert result.stopped_by.startswith("MCSE")


def test_no_warm_up_after_a_learned_surrogate():
    result = fk.sample(normal, np.zeros(2), surrogate="learn", surrogate_steps=5, budget=400,
                       tune=0, seed=1)
    assert result.tune == 0


def test_the_advice_on_arguments_of_samplers_is_that_of_a_sampler():
    with pytest.raises(TypeError, match="as in sampler=") as caught:
        fk.sample(normal, np.zeros(2), inner_steps=3)
    advised = re.search(r"sampler=fk\.(\w+)\((\w+)=(\d+)\)", str(caught.value))
    getattr(fk, advised[1])(**{advised[2]: int(advised[3])})
    for name in ("max_treedepth", "max_depth"):
        with pytest.raises(TypeError, match="did you mean 'max_tree_depth'"):
            fk.NUTS(**{name: 8})


def test_worker_processes_end_with_a_call_that_fails_after_its_search():
    from fastkam.run import processes

    def f(x):
        return normal(x), {"x": 1.0}

    before = set(processes.everything()) if hasattr(processes, "everything") else set()
    with pytest.raises(ValueError, match="x"):
        fk.sample(f, np.zeros(2), executor=2, seed=1, draws=100)
    assert not before


@pytest.mark.parametrize(("r_hat", "ess", "text"), [
    (1.001, 400.0, "The chains agree: R-hat is at most 1.001, ESS at least 400."),
    (1.001, np.nan, "The chains agree: R-hat is at most 1.001."),
    (np.nan, 400.0, "R-hat is unknown. ESS at least 400."), (np.nan, np.nan, "R-hat is unknown.")])
def test_the_text_of_a_verdict_is_a_sentence(r_hat, ess, text):
    result = fk.sample(normal, np.zeros(1), draws=200, tune=100, sampler="ram", seed=1)
    table = Summary(["x"], {"r_hat": [r_hat], "ess_bulk": [ess], "ess_tail": [ess]})
    assert checks.known_of(result.state, table) == text


def test_a_long_table_is_abridged():
    n = 1000
    table = Summary([f"x[{i}]" for i in range(n)], {"mean": np.arange(n), "sd": np.ones(n)})
    lines = str(table).splitlines()
    assert len(lines) == 52
    assert lines[41].startswith("... 950 more")
    assert lines[40].split()[0] == "x[39]"
    assert lines[42].split()[0] == "x[990]"


def test_few_draws_after_a_surrogate_that_failed_are_wrong():
    """A density that no smooth surrogate describes."""
    def f(x):
        return -float(np.abs(np.sin(37 * x)).sum()) * 5 - 0.5 * float(x @ x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(f, np.full(8, 0.3), surrogate="learn", budget=300, seed=1)
    assert result.draws.shape[1] < 100
    verdict = result.verdict()
    assert verdict.status == "wrong"
    assert "Learning a surrogate has used up" in str(verdict)
