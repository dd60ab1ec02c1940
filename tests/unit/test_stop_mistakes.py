"""Mistakes in the argument `stop`: each is refused with a rule that can be written instead."""

import copy
import pickle

import pytest

import fastkam as fk
from fastkam.stop import ESS, StopRule, Time


def stopped(rule):
    def never(x):
        raise AssertionError("a density is evaluated")

    return fk.sample(never, [0.0, 0.0], stop=rule, progress=False)


@pytest.mark.parametrize(("text", "mend"), [
    ("ess", "write fk.stop.ESS(400)"), ("ESS(300)", "write fk.stop.ESS(400)"),
    ("ess_bulk", "write fk.stop.ESS(400)"), ("r_hat", "write fk.stop.Rhat(1.01)"),
    ("rhat<1.01", "write fk.stop.Rhat(1.01)"), ("mcse", 'write fk.stop.MCSE({"mu": 0.01})'),
    ("time", 'write fk.stop.Time("10min")'), ("done", "write fk.stop.Done()"),
    ("evaluation", "write fk.stop.Evaluations(100_000)"), ("10min", "write fk.stop.Time('10min')"),
    ("1h 30min", "write fk.stop.Time('1h 30min')"),
    ("when it is good", 'write fk.stop.Done(), fk.stop.ESS(400) or fk.stop.Time("10min")'),
    ("", "write fk.stop.Done(), fk.stop.ESS(400)")])
def test_the_error_for_a_text_names_a_rule_to_write(text, mend):
    with pytest.raises(TypeError, match="stop must be a rule") as caught:
        stopped(text)
    assert mend in str(caught.value)
    rule = str(caught.value).partition("write ")[2].partition(" or ")[0].partition(", fk")[0]
    assert isinstance(eval(rule), StopRule)


@pytest.mark.parametrize("several", [[ESS(100), Time(3)], (ESS(100), Time(3)), {ESS(100)}, []])
def test_several_rules_are_combined_by_operators(several):
    with pytest.raises(TypeError, match=r"one \| other.* one & other"):
        stopped(several)


def test_the_error_for_a_function_names_the_method_to_define():
    with pytest.raises(TypeError, match=r"a subclass of fk\.stop\.StopRule with a method met\("):
        stopped(lambda run: True)


class Reached(StopRule):
    def reached(self, run):
        return True


@pytest.mark.parametrize("make", [
    Reached, lambda: Reached() | Time(3), lambda: Time(3) & Reached(), StopRule])
def test_a_rule_without_its_method_is_refused_before_any_work(make):
    with pytest.raises(TypeError, match=r"stop must define met\(self, run\), .* (Reached|Stop)"):
        stopped(make())


def test_arguments_that_a_rule_does_not_have():
    with pytest.raises(TypeError, match=r"ESS has no argument 'names'; it has size, of: it is of "
                                        r"all coordinates, .*fk\.stop\.MCSE"):
        ESS(300, names=["mu"])
    with pytest.raises(TypeError, match="Time has no argument 'limits': did you mean 'limit'"):
        Time(limits=3)
    for rule in (ESS(300, of="tail"), Time("3s") | ESS(2)):
        assert pickle.loads(pickle.dumps(rule)) == copy.copy(rule) == rule


@pytest.mark.parametrize(("rule", "error", "text"), [
    ("ess", TypeError, "stop must be a rule"), (Reached(), TypeError, r"stop must define met"),
    (fk.stop.MCSE({"y": 0.1}), ValueError, "errors of stop must name parameters: there is no 'y'"),
    (fk.stop.Time(3) | fk.stop.MCSE({"y": 0.1}), ValueError, "there is no 'y'")])
def test_resume_refuses_a_bad_rule_before_any_evaluation(rule, error, text):
    calls = []

    def normal(x):
        calls.append(1)
        return -0.5 * float(x @ x)

    result = fk.sample(normal, [0.0, 0.0], sampler="ram", search=False, draws=20, tune=20, seed=1,
                       progress=False, diagnose=False)
    made = len(calls)
    for again in (lambda: result.resume(10, stop=rule),
                  lambda: fk.resume(result, 10, target=normal, stop=rule)):
        with pytest.raises(error, match=text):
            again()
    assert len(calls) == made
