"""Functions that keep failing, and exceptions that cannot be printed: no draw or call is lost."""

import itertools
import math
import queue
import time
import warnings
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
import scipy.stats
from runs import sample
from simulators import After

import fastkam as fk
from fastkam._core.engine.fault import Fault
from fastkam.points.reply import PointLost
from fastkam.points.target import Unevaluated
from fastkam.run.faults import TaskLost
from fastkam.search.evaluator import MOST_IN_ROW, MOST_KEPT, Evaluator
from fastkam.search.watch import Spent


class FaultyText(Exception):
    def __str__(self):
        raise ValueError("no text")


LONG = 10**6


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"on_error": "reject"}])
@pytest.mark.parametrize("error", [FaultyText(), OSError("x" * LONG)])
def test_an_error_that_cannot_be_printed_loses_no_draw(error, options, tmp_path):
    if options.get("on_error"):
        result = sample(After(300, error), np.ones(2), draws=200, tune=50, seed=1, diagnose=False,
                        evaluations=tmp_path / "calls.fk", **options)
        assert len(result.workers.failures[0][1]) < 12_000
        assert len(fk.Evaluations(tmp_path / "calls.fk")) > 300
        return
    with pytest.raises(fk.SamplingError, match=type(error).__name__) as info:
        sample(After(600, error), np.ones(2), draws=200, tune=50, seed=1, **options)
    assert len(str(info.value)) < 12_000
    rest = info.value.result.resume(target=After(10**9, error), diagnose=False)
    whole = sample(After(10**9, error), np.ones(2), draws=200, tune=50, seed=1, diagnose=False)
    np.testing.assert_array_equal(rest.draws, whole.draws)


@pytest.mark.parametrize("after", range(1, 9))
def test_an_error_that_cannot_be_printed_gets_no_hint(after):
    """Functions that fail at a starting point, and in the first step."""
    with pytest.raises(fk.SamplingError, match="its message cannot be made"):
        sample(After(after, FaultyText()), np.ones(2), draws=10, tune=0, chains=4, search=False,
               seed=1)


@pytest.mark.parametrize("error", [ValueError, lambda: np.linalg.LinAlgError("x" * LONG)])
def test_a_search_ends_where_the_function_keeps_failing(error):
    f = After(60, error)
    with pytest.raises(fk.SamplingError, match="in the search for a start"):
        fk.sample(f, np.ones(2), seed=1, progress=False)
    assert 60 + MOST_IN_ROW < f.n <= 62 + MOST_IN_ROW


@pytest.mark.parametrize("error", [RecursionError, NotImplementedError,
                                   lambda: "\udc80".encode(), MemoryError])
def test_errors_that_no_point_explains_end_a_search_at_once(error):
    f = After(60, error)
    with pytest.raises(fk.SamplingError, match="in the search for a start"):
        fk.sample(f, np.ones(2), seed=1, progress=False)
    assert f.n == 61


def test_failures_of_a_search_are_counted_and_few_are_kept():
    def half(x):
        large = np.ones(10**5)
        if x[0] > 0:
            raise ValueError(f"{large.size}")
        return -0.5 * float(x @ x)

    evaluate = Evaluator(fk.as_target(half, 2), np.random.default_rng(1))
    evaluate(-np.ones((1, 2)))
    evaluate(np.random.default_rng(2).standard_normal((400, 2)))
    assert 150 < evaluate.n_failed < 250
    assert len(evaluate.failures) == MOST_KEPT
    assert all(fault.cause.__traceback__ is None for fault in evaluate.failures)


@pytest.mark.parametrize(("start", "options"), [
    (30.0, {}), (1.0, {"sampler": "ram", "search": False})])
def test_a_wrong_sign_is_suspected_where_the_log_density_is_infinite(start, options):
    def growing(x):
        with np.errstate(over="ignore"):
            return np.exp(x * x).sum()

    with pytest.raises(fk.SamplingError, match=r"is \+inf, .*: is its sign wrong\?"):
        fk.sample(growing, np.full(2, start), seed=1, progress=False, **options)


class SolverError(Exception):
    """An error of a simulator."""


@pytest.mark.parametrize(("error", "advised"), [
    (RuntimeError, True), (np.linalg.LinAlgError, True), (ValueError, True), (AssertionError, True),
    (SolverError, True), (NotImplementedError, False), (OSError, False), (Exception, False)])
def test_points_without_a_density_can_be_rejected(error, advised):
    options = {"draws": 100, "tune": 50, "seed": 1, "sampler": "ram", "search": False}
    with pytest.raises(fk.SamplingError, match="the target raised") as info:
        sample(After(300, error), np.ones(2), **options)
    assert ('return -inf where x is impossible, or give on_error="reject"' in str(info.value)) == (
        advised)


def test_the_form_of_the_call_is_suspected_at_the_start_alone():
    for calls, suspected in ((0, True), (300, False)):
        with pytest.raises(fk.SamplingError, match="the target raised IndexError") as info:
            sample(After(calls, IndexError), np.ones(2), draws=100, tune=50, seed=1,
                   sampler="ram", search=False)
        assert ("the function was called with an array" in str(info.value)) == suspected


def test_a_logarithm_outside_its_domain_is_such_a_point():
    with pytest.raises(fk.SamplingError, match=r"math domain error.*: return -inf where x is"):
        sample(lambda x: math.log(x[0]) - x[0], np.ones(1), draws=500, tune=50, seed=1,
               sampler="ram", search=False)


def test_a_function_of_one_point_cannot_be_vectorized():
    with pytest.raises(fk.SamplingError, match=r"called with points \(k, d\), one per row"):
        fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), vectorized=True, progress=False)


@pytest.mark.parametrize(("after", "error"), [
    (60, OSError("the license is lost")), (260, ValueError("the solver failed")),
    (260, FaultyText())])
def test_an_error_in_learning_a_surrogate_keeps_the_calls(after, error, tmp_path, monkeypatch):
    monkeypatch.setattr("fastkam.points.opening.MOST_COMPARED", 0)      # five, to compare After
    options = {"surrogate": "learn", "budget": 300, "seed": 1, "progress": False}
    f = After(after, error)
    with pytest.raises(fk.SamplingError, match="learning a surrogate") as info:
        fk.sample(f, np.ones(2), evaluations=tmp_path / "calls.fk", **options)
    result = info.value.result
    assert result.status == "failed"
    assert after - 64 <= len(np.unique(result.state.calls, axis=0)) <= after
    assert (result.draws.shape[1] > 0) == (after == 260)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        again = After(10**9, error)
        rest = fk.sample(again, np.ones(2), evaluations=tmp_path / "calls.fk", **options)
        whole = fk.sample(After(10**9, error), np.ones(2), **options)
    np.testing.assert_array_equal(rest.draws, whole.draws)
    assert again.n <= whole.evaluations - after + 6


def test_an_interrupt_in_the_first_call_for_a_surrogate():
    with pytest.warns(fk.SamplingWarning, match="interrupted"):
        result = fk.sample(After(0, KeyboardInterrupt), np.ones(2), surrogate="learn", seed=1,
                           progress=False)
    assert result.state.calls.shape == (0, 3)


# ---- functions that change the array they are called with ----


def retyped(x):
    x.dtype = np.int64


def swapped(x):
    x.dtype = ">f8"


def reshaped(x):
    x.shape = (1, 2)


def grown(x):
    """The elements move to another place in memory, and the shape is as before."""
    x.resize((10**5,), refcheck=False)
    x.resize((2,), refcheck=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", [retyped, swapped, reshaped, grown])
@pytest.mark.parametrize("vectorized", [False, True])
def test_an_array_that_is_changed_is_replaced(change, vectorized):
    def normal(x):
        return -0.5 * (x * x).sum(axis=-1)

    def changing(x):
        value = normal(x)
        if x.ndim == 1 or change in (retyped, swapped):
            change(x)
        else:
            x.shape = x.shape[::-1]
        return value

    options = {"draws": 100, "tune": 50, "seed": 1, "vectorized": vectorized, "diagnose": False}
    np.testing.assert_array_equal(sample(changing, np.ones(2), **options).draws,
                                  sample(normal, np.ones(2), **options).draws)


@pytest.mark.parametrize("gradient", [np.zeros(3), np.zeros((2, 1)), 1.0, "ab"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_gradients_of_another_shape_are_named_where_calls_are_kept(gradient, vectorized, tmp_path):
    def f(x):
        value = -0.5 * (x * x).sum(axis=-1)
        return value, [gradient] * len(x) if vectorized else gradient

    with pytest.raises(fk.SamplingError, match=r"its gradient, an array|gradient must be") as info:
        sample(f, np.ones(2), draws=10, tune=10, vectorized=vectorized,
               evaluations=tmp_path / "calls.fk")
    assert "of 2 numbers" in str(info.value) or "(1, 2)" in str(info.value)


# ---- interrupts in a search ----


@pytest.mark.parametrize("surrogate", [None, "learn"])
@pytest.mark.parametrize("at", [1, 5, 9])
def test_an_interrupt_in_a_vectorized_function_ends_the_search(at, surrogate):
    """An interrupt is no failure at one of the points, which are then tried one by one."""
    calls = [0]

    def f(X):
        calls[0] += 1
        if calls[0] == at:
            raise KeyboardInterrupt
        return -0.5 * (X * X).sum(axis=1)

    def interrupted():
        return fk.sample(f, np.ones(2), vectorized=True, seed=1, progress=False,
                         surrogate=surrogate)

    if surrogate is None:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    else:
        with pytest.warns(fk.SamplingWarning, match="interrupted"):
            assert interrupted().status == "interrupted"
    assert calls[0] == at


# ---- exceptions that mean something within this package ----

OURS = {
    "Unevaluated": lambda: Unevaluated(np.full((1, 2), 0.5)),
    "Unevaluated, of no point": lambda: Unevaluated(np.zeros((0, 2))),
    "Spent": Spent, "Fault": lambda: Fault(0, np.zeros(2), -1), "PointLost": PointLost,
    "TaskLost": lambda: TaskLost([0], ValueError()), "Empty": queue.Empty,
    "CancelledError": CancelledError, "BrokenProcessPool": BrokenProcessPool,
    "StopIteration": StopIteration,
}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("how", ["evaluations", "points", "prefetch", "chains"])
def test_an_exception_of_ours_is_one_of_the_function(name, how, tmp_path):
    """None is taken for what it means where this package raises it: no such run waits for ever."""
    options = {"evaluations": tmp_path / "calls.fk"} if how == "evaluations" else {"spread": how}
    with ThreadPoolExecutor(2) as pool:
        if how != "evaluations":
            options["executor"] = pool
        with pytest.raises(fk.SamplingError) as info:
            sample(After(150, OURS[name]), np.ones(2), draws=200, tune=50, seed=1,
                   stop=fk.stop.Time("20s"), **options)
    assert info.value.result.draws.shape[0] == 4
    assert type(info.value.__cause__) is type(OURS[name]())


def test_many_failures_that_are_rejected_are_found():
    """They cut off a part of the density, here a third of it."""
    def fails_beyond(x):
        if x[0] > 0.4:
            raise ValueError("no solution")
        return -0.5 * float(x @ x)

    with pytest.warns(fk.SamplingWarning, match="The density was NaN at .*what makes it fail"):
        result = fk.sample(fails_beyond, -np.ones(2), on_error="reject", seed=1, progress=False)
    assert result.verdict().status == "doubtful"
    assert (result.offending["nan"][:, 0] > 0.4).all()
    assert not result.rejected["outside"].any()


GRADIENT_SAMPLERS = ["nuts", "hmc", "mala", "barker", "auto"]


@pytest.mark.parametrize("sampler", GRADIENT_SAMPLERS)
@pytest.mark.parametrize("vectorized", [False, True])
def test_points_that_are_rejected_need_no_gradient(sampler, vectorized):
    def fails_beyond(x):
        if np.max(x[..., 0]) > 1.5:
            raise RuntimeError("no convergence")
        return -0.5 * (x * x).sum(axis=-1)[()], -x

    result = fk.sample(fails_beyond, np.zeros(2), sampler=sampler, draws=50, tune=100, seed=1,
                       on_error="reject", vectorized=vectorized, progress=False, diagnose=False)
    assert result.rejected["nan"].sum() > 0
    assert result.draws[..., 0].max() <= 1.5


@pytest.mark.parametrize("nothing", [-np.inf, np.nan, np.float64(-np.inf)])
def test_where_there_is_no_density_there_need_not_be_a_gradient(nothing):
    def half(x):
        return nothing if x[0] > 1.5 else (-0.5 * float(x @ x), -x)

    def half_with(x):
        return (nothing, 0 * x) if x[0] > 1.5 else (-0.5 * float(x @ x), -x)

    one, other = (fk.sample(f, np.zeros(2), sampler="nuts", draws=100, tune=100, seed=1,
                            progress=False, diagnose=False) for f in (half, half_with))
    np.testing.assert_array_equal(one.draws, other.draws)
    with pytest.raises(TypeError, match="needs the gradient"):
        fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(2), sampler="nuts", draws=10)


def test_extras_may_be_empty_where_there_is_no_density():
    def logp(m):
        return (-0.5 * m * m, {"q": 2 * m}) if m < 1 else (-np.inf, {})

    result = fk.sample(logp, {"m": 0.0}, seed=1, progress=False)
    np.testing.assert_array_equal(result.extras["q"], 2 * result["m"])


@pytest.mark.parametrize("at", [50, 323, 330])
def test_an_error_in_a_gradient_of_the_search_says_where(at):
    calls = itertools.count(1)

    def f(x):
        if next(calls) == at:
            raise TypeError("no such operation")
        return -0.5 * float(x @ x), -x

    with pytest.raises(fk.SamplingError, match=r"TypeError: no such operation.*at x = \["):
        fk.sample(f, np.full(20, 1.0), seed=1)


def test_gradients_count_in_the_time_of_an_evaluation():
    def f(x):
        time.sleep(0.002)
        return -0.5 * float(x @ x), -x

    evaluate = Evaluator(fk.as_target(f, 3, gradient=True), np.random.default_rng(1))
    evaluate.gradients(np.zeros((5, 3)))
    assert evaluate.n == 5
    assert evaluate.seconds > 0.01


def test_points_with_an_infinite_density_can_be_rejected():
    def f(x):
        return np.inf if x[0] > 1 else -0.5 * float(x @ x)

    with pytest.raises(fk.SamplingError, match='give on_error="reject"'):
        fk.sample(f, np.zeros(1), sampler="rwm", search=False, draws=200, seed=1)
    result = fk.sample(f, np.zeros(1), sampler="rwm", search=False, draws=200, seed=1,
                       on_error="reject", diagnose=False)
    assert result.draws.max() <= 1
    assert result.rejected["nan"].sum() > 0


@pytest.mark.parametrize("options", [
    {"sampler": "ram", "draws": 100}, {"surrogate": "learn", "budget": 300}],
    ids=["search", "learned surrogate"])
def test_a_function_that_always_fails_is_named_although_failures_are_rejected(options):
    def failing(r, s):
        raise FileNotFoundError("simulator.exe not found")

    prior = {"r": scipy.stats.uniform(100, 50), "s": scipy.stats.beta(3, 2)}
    with pytest.raises(fk.SamplingError, match=r"FileNotFoundError: simulator\.exe") as raised:
        fk.sample(failing, prior=prior, seed=1, progress=False, on_error="reject", **options)
    assert 100 < raised.value.x[0] < 150


@pytest.mark.parametrize(("options", "who"), [
    ({"sampler": "ram", "search": False}, "run"), ({}, "search")])
def test_an_error_of_the_progress_function_is_said_to_be_its_own(options, who):
    def slow(x):
        time.sleep(1e-4)  # the search must take longer than the interval of its reports
        return -0.5 * x @ x

    with pytest.raises(fk.SamplingError, match=rf"the {who} was stopped by ZeroDivisionError: "
                                               "division by zero, raised by progress, which") as e:
        fk.sample(slow, np.ones(2), progress=lambda progress: 1 / 0, seed=1, draws=200,
                  diagnose=False, **options)
    assert str(e.value).count("raised by progress") == 1


@pytest.mark.parametrize("method", ["met", "due"])
def test_an_error_of_a_stop_rule_is_said_to_be_its_own(method):
    rule = type("Failing", (fk.stop.StopRule,), {"met": lambda rule, run: False} | {
        method: lambda rule, run: 1 / 0})
    says = "the run was stopped by ZeroDivisionError: division by zero, raised by the stop rule; "
    with pytest.raises(fk.SamplingError, match=says):
        fk.sample(lambda x: -0.5 * x @ x, np.ones(2), sampler="ram", search=False, seed=1,
                  draws=2000, stop=rule(), progress=False, diagnose=False)


@pytest.mark.parametrize("function", [lambda: 1, lambda progress, other: 1])
def test_a_progress_function_of_other_arguments_is_refused_before_any_work(function):
    def never(x):
        raise AssertionError("a density is evaluated")

    with pytest.raises(TypeError, match=r"progress must be a function of one argument, a Progress, "
                                        r"not one of \("):
        fk.sample(never, np.ones(2), progress=function)
    fk.sample(lambda x: -0.5 * x @ x, np.ones(2), progress=lambda one, other=2: None, draws=20,
              tune=20, sampler="ram", search=False, diagnose=False)
