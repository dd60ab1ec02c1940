"""surrogate="learn": stop rules, and progress."""

import time

import numpy as np
import pytest
from learning import QUIET, SLOW, Bent, slow

import fastkam as fk
from fastkam.progress.text import counts, phase
from fastkam.surrogate import run as run_of_surrogate


def test_a_stop_rule_is_a_budget_too():
    f = Bent()
    result = fk.sample(f, np.ones(3), surrogate="learn", stop=fk.stop.Evaluations(500), seed=1,
                       **QUIET)
    assert result.log_weights is not None
    assert f.n == result.evaluations <= 500
    assert (result.status, result.stopped_by) == ("stopped", "Evaluations(count=500)")


def test_a_rule_of_time_that_ends_weighted_draws_is_named():
    def slow_later(x):  # after learning, which may take half of the time
        time.sleep(0.05 if calls.n > 600 else 0.0)
        return calls(x)

    calls = Bent()
    rule = fk.stop.Time(20) | fk.stop.Evaluations(1900)  # 65 s of calls that are slow
    result = fk.sample(slow_later, np.ones(3), surrogate="learn", stop=rule, seed=1, draws=5000,
                       **QUIET)
    assert result.log_weights is not None
    assert (result.status, result.stopped_by) == ("stopped", repr(rule.one))


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize("keeps", [True, False], ids=["calls in a file", "without a file"])
def test_learning_may_take_all_of_the_time_if_a_later_run_goes_on(keeps, tmp_path, monkeypatch):
    """Calls of chains without a surrogate would be of no use to it."""
    monkeypatch.setattr(run_of_surrogate, "LEARNING_TIME", 0.0)
    options = {"evaluations": tmp_path / "calls.fk"} if keeps else {}
    result = fk.sample(Bent(), np.ones(3), surrogate="learn", stop=fk.stop.Time(60), seed=1,
                       budget=1500, **QUIET, **options)
    assert (result.log_weights is not None) == keeps


@pytest.mark.parametrize("rule", [fk.stop.ESS(100, of="both"), fk.stop.Done(ess=100, r_hat=1.1)])
def test_stop_rules_ask_the_weighted_draws(rule):
    f = Bent()
    result = fk.sample(f, np.ones(3), surrogate="learn", stop=rule, seed=2, **QUIET)
    assert result.status == "stopped"
    assert result.state.stopped_by == repr(rule)
    table = result.summary()
    assert result.draws.shape == (4, 50, 3)  # at the first check
    assert min(table["ess_bulk"].min(), table["ess_tail"].min()) > result.draws[..., 0].size
    assert f.n == result.evaluations < 1200


def test_progress_is_shown():
    seen = []
    fk.sample(lambda x: -0.5 * float(x @ x), np.ones(2), surrogate="learn", budget=250, seed=1,
              progress=seen.append, diagnose=False)
    assert all(one.searched <= 250 for one in seen)


def test_progress_tells_draws_from_the_search():
    """The density takes 3 ms, so that progress is reported often enough."""
    seen = []
    result = fk.sample(slow, np.ones(2), **SLOW | {"progress": seen.append})
    assert {phase(one) for one in seen} == {"searching", "drawing"}
    drawing = [one for one in seen if one.total]
    assert drawing[-1].requested >= result.draws.shape[1]
    assert drawing[-1].draws[0] > 0
    assert "accepted" not in counts(drawing[-1])
