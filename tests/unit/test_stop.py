"""Stop rules: when combinations are met or due, and when rules are evaluated."""

from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from same import assert_same

import fastkam as fk
from fastkam.run import drive
from fastkam.run.loop import milestones

SHORT, LONG = fk.stop.Time(1.0), fk.stop.Time("1min")


@pytest.mark.parametrize(("seconds", "one", "both"), [
    (0.5, False, False), (1.5, True, False), (60.0, True, True)])
def test_two_rules(seconds, one, both):
    run = SimpleNamespace(seconds=seconds)
    for either in (SHORT | LONG, LONG | SHORT):
        assert either.met(run) == either.due(run) == one
    for all_of_them in (SHORT & LONG, LONG & SHORT):
        assert all_of_them.met(run) == all_of_them.due(run) == both
    assert (SHORT | LONG).limits().seconds == 1.0
    assert (SHORT & LONG).limits().seconds == 60.0


def test_rules_are_evaluated_after_100_more_draws_or_a_fifth_more():
    assert list(milestones(1000)) == [100, 200, 300, 400, 500, 600, 720, 864]
    assert list(milestones(100)) == []


@pytest.mark.parametrize(("rule", "by"), [
    (fk.stop.ESS(50) | fk.stop.Time(600), "ESS(size=50, of='bulk')"),
    (fk.stop.Time(600) | fk.stop.ESS(50), "ESS(size=50, of='bulk')"),
    (fk.stop.Evaluations(900), "Evaluations(count=900)"),
    (fk.stop.Time(1e-6), "Time(limit=1e-06)"),
    (fk.stop.Done(ess=100, r_hat=1.2) | fk.stop.Evaluations(50_000), "Done(ess=100, r_hat=1.2)"),
    (fk.stop.ESS(50) & fk.stop.Rhat(1.5),
     "Both(one=ESS(size=50, of='bulk'), other=Rhat(most=1.5))"),
])
def test_the_result_says_which_rule_has_ended_it(rule, by, tmp_path):
    options = {"sampler": "am", "tune": 300, "draws": 50_000, "seed": 1, "search": False,
               "progress": False, "diagnose": False}
    result = fk.sample(lambda x: -0.5 * x @ x, [0.1, 0.2], stop=rule, **options)
    assert result.status == "stopped"
    assert result.stopped_by == by
    result.save(tmp_path / "run.fk")
    assert fk.load(tmp_path / "run.fk").stopped_by == by
    went_on = result.resume(draws=10, diagnose=False)
    assert went_on.status == "complete"
    assert went_on.stopped_by == ""


@pytest.mark.parametrize("rule", [fk.stop.ESS(1000), fk.stop.Evaluations(9000)])
def test_a_complete_run_goes_on_until_the_rule_is_met(rule):
    """Whether its number of draws was given or not."""
    options = {"sampler": "am", "tune": 300, "seed": 1, "search": False, "progress": False,
               "diagnose": False}
    result = fk.sample(lambda x: -0.5 * x @ x, [0.1, 0.2], draws=300, **options)
    longer = result.resume(stop=rule, diagnose=False, progress=False)
    assert longer.status == "stopped"
    assert longer.stopped_by == repr(rule)
    assert longer.draws.shape[1] > 300
    np.testing.assert_array_equal(longer.draws[:, :300], result.draws)


class Interrupted(fk.stop.StopRule):
    """Holds from `least` draws on; its `at`-th evaluation is interrupted."""

    least = 300

    def __init__(self, at=None):
        self.at, self.seen = at, []

    def met(self, run):
        self.seen.append(run.trace.rows)
        if len(self.seen) == self.at:
            raise KeyboardInterrupt
        return run.trace.rows >= self.least


@pytest.mark.parametrize("executor", [None, 2])
@pytest.mark.parametrize("at", [1, 3])
def test_a_rule_that_was_interrupted_is_evaluated_again(at, executor):
    options = {"executor": executor, "diagnose": False, "progress": False}
    run = partial(fk.sample, normal, [0.1, 0.2], sampler="ram", tune=50, draws=1000, seed=1,
                  search=False, **options)
    whole = run(stop=Interrupted())
    with pytest.warns(fk.SamplingWarning, match=f"interrupted after .*{at}00"):
        part = run(stop=Interrupted(at))
    rule = Interrupted()
    again = part.resume(stop=rule, **options)
    assert rule.seen == [100, 200, 300][at - 1:]
    assert again.status == whole.status == "stopped"
    assert_same(again, whole)


def normal(x):
    return -0.5 * x @ x


def test_a_rule_is_evaluated_where_two_parts_of_a_run_meet(monkeypatch):
    """The first 250, 500, ... draws choose `thin`; rules are evaluated at 500, too."""
    monkeypatch.setattr(drive, "ENOUGH", 10**9)
    rule = Interrupted()
    rule.least = 500
    result = fk.sample(normal, [0.1, 0.2], sampler="ram", stop=rule, seed=1, search=False,
                       progress=False, diagnose=False)
    assert rule.seen == [100, 200, 300, 400, 500]
    assert result.draws.shape[1] == 500


def test_an_unknown_name_is_refused_before_any_work():
    calls = []

    def counted(x):
        calls.append(1)
        return -0.5 * x @ x

    with pytest.raises(ValueError, match="there is no 'z', there are"):
        fk.sample(counted, [0.1, 0.2], names=["x", "y"], stop=fk.stop.MCSE({"z": 0.1}))
    assert not calls


def test_forecasts_during_a_run():
    """Forecasts are finite during the run, and 0 at the end."""
    said = []

    class Asked(fk.stop.ESS):
        def met(self, run):
            holds = super().met(run)
            said.append(self.forecast(run))
            return holds

    fk.sample(lambda x: -0.5 * x @ x, [0.1], sampler="am", draws=20_000, stop=Asked(2000), seed=1,
              progress=False, diagnose=False)
    assert len(said) > 5
    assert all(seconds is not None and 0 <= seconds < 100 for seconds in said)
    assert said[-1] == 0


@pytest.mark.parametrize(("text", "seconds"), [
    ("90s", 90), ("10min", 600), (" 2 h ", 7200), (".5h", 1800), ("11h50min", 42_600),
    ("1h 2min 3.5s", 3723.5), ("2h30s", 7230), ("1d", 86_400), ("1d 2h", 93_600),
    (timedelta(hours=2, seconds=1), 7201)])
def test_times_as_texts(text, seconds):
    assert fk.stop.Time(text).limit == seconds


@pytest.mark.parametrize("text", [
    "", " ", "h", "10", "50min11h", "1h1h", "1h,2min", "0min", "2h1d", "1day"])
def test_texts_that_are_no_times(text):
    with pytest.raises(ValueError, match="limit must be"):
        fk.stop.Time(text)
