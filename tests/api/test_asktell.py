"""AskTell: the draws are those of `sample`, whatever the order in which values arrive."""

import copy
import gc
import os
import pickle
import random
import signal
import time

import numpy as np
import pytest
from densities import short
from runs import sample
from same import assert_same
from scipy import stats
from simulators import OPTIONS, loglike, quick, raises_beyond

import fastkam as fk
from fastkam.samplers import SAMPLERS


def drive(loop, f, seed=0, most=3, copies=0.0):
    """Pass all values in random order, some at a time; return the ended loop and the calls made."""
    order, held, n = random.Random(seed), [], 0
    while not loop.done:
        held += list(loop.ask(most))
        order.shuffle(held)
        k = order.randint(1, len(held))
        some, held = held[:k], held[k:]
        loop.tell([index for index, _ in some], [f(x) for _, x in some])
        n += k
        if order.random() < copies:
            loop = pickle.loads(pickle.dumps(loop))
            assert sorted(loop.asked_for().indices) == sorted(index for index, _ in held)
    return loop, n


def begin(**options):
    return fk.AskTell(**{"sampler": "ram", "search": False} | OPTIONS | options)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_draws_are_those_of_sample(name):
    options = OPTIONS | {"draws": 20, "tune": 30, "chains": 2}
    needs = SAMPLERS[name]().needs_gradient
    f = (lambda x: (-0.5 * x @ x, -x)) if needs else quick
    options["sampler"] = short(name)
    expected = sample(f, **options)
    loop, _ = drive(begin(**options), f)
    assert_same(loop.result, expected)
    assert loop.result.status == "complete"
    for extra in expected.extras:
        np.testing.assert_array_equal(loop.result[extra], expected[extra])


@pytest.mark.parametrize("sampler", ["ram", "auto"])
def test_the_search_asks_too(sampler):
    options = OPTIONS | {"sampler": sampler, "search": True, "chains": 3}
    expected = fk.sample(quick, **options)
    loop, n = drive(fk.AskTell(**options), quick, most=50)
    assert_same(loop.result, expected)
    assert loop.result.evaluations == expected.evaluations
    assert n <= expected.evaluations + 3        # the starts of chains are not counted


def test_chains_that_learn_as_one():
    expected = sample(quick, share=True, **OPTIONS)
    loop, _ = drive(begin(share=True), quick)
    assert_same(loop.result, expected)


def test_each_chain_waits_for_its_own_point():
    loop = begin()
    first = loop.ask()                          # the chains begin at one point
    assert len(first) == 1
    assert len(loop.ask()) == 0
    loop.tell(first, [quick(first.x[0])])
    points = loop.ask()
    assert len(points) == OPTIONS["chains"]
    for _ in range(20):                         # one chain goes on while the others wait
        loop.tell([points.indices[0]], [quick(points.x[0])])
        more = loop.ask()
        assert len(more) == 1
        points = more
    assert int(loop.result.states[0]["t"]) == 20
    assert [int(state["t"]) for state in loop.result.states[1:]] == [0] * 4


def test_numbers_count_the_requested_points():
    loop = begin()
    seen = []
    for _ in range(10):
        points = loop.ask(2)
        seen += points.indices.tolist()
        assert points.x.shape == (len(points), 2)
        assert points.indices.dtype == np.int64
        np.testing.assert_array_equal(np.asarray(points), points.x)
        loop.tell(points, [quick(x) for _, x in points])
    assert len(set(seen)) == len(seen)
    assert set(seen) <= set(range(len(seen) + OPTIONS["chains"]))


def test_chains_that_are_behind_come_first():
    loop = begin(x0=np.ones((5, 2)) * np.arange(1.0, 6.0)[:, None])
    for _ in range(40):
        points = loop.ask(3)
        loop.tell(points, [quick(x) for _, x in points])
    steps = [int(state["t"]) for state in loop.result.states]
    assert max(steps) - min(steps) <= 1


def test_a_copy_goes_on_in_another_process():
    expected = sample(quick, **OPTIONS)
    loop, _ = drive(begin(), quick, copies=0.05)
    assert_same(loop.result, expected)


def test_a_copy_in_the_search_goes_on():
    options = OPTIONS | {"sampler": "ram", "search": True}
    loop, _ = drive(fk.AskTell(**options), quick, copies=0.05)
    assert_same(loop.result, fk.sample(quick, **options))


def test_a_file_of_the_run_goes_on(tmp_path):
    expected = sample(quick, **OPTIONS)
    loop = begin()
    for _ in range(150):
        points = loop.ask(1)
        loop.tell(points, [quick(x) for _, x in points])
    loop.result.save(tmp_path / "run.npz")
    assert loop.result.status == "running"
    again = fk.AskTell.resume(tmp_path / "run.npz", diagnose=False)
    again, _ = drive(again, quick)
    assert_same(again.result, expected)
    np.testing.assert_array_equal(again.result["sum"], expected["sum"])
    # and by sample's own resume, and back
    there = fk.resume(tmp_path / "run.npz", target=quick, diagnose=False)
    assert_same(there, expected)
    more, _ = drive(fk.AskTell.resume(there, 10, diagnose=False), quick)
    assert_same(more.result, expected.resume(10, diagnose=False))


def test_parameters_have_names():
    prior = {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=3)}
    options = {"draws": 30, "tune": 30, "seed": 2, "diagnose": False, "sampler": "ram"}
    expected = fk.sample(loglike, prior=prior, **options)
    loop = fk.AskTell(prior=prior, **options)
    while not loop.done:
        points = loop.ask()
        assert points.names == ["mu", "sigma"]
        assert (points["sigma"] > 0).all()
        loop.tell(points, [loglike(*one) for one in zip(points["mu"], points["sigma"],
                                                        strict=True)])
    assert_same(loop.result, expected)
    np.testing.assert_array_equal(loop.result["sigma"], expected["sigma"])
    problem = fk.Problem(loglike, prior)
    other, _ = drive(fk.AskTell(problem=problem, **options), lambda x: loglike(*x))
    assert_same(other.result, expected)
    half = fk.AskTell(problem=problem, **options | {"search": False})
    for _ in range(50):
        points = half.ask(2)
        half.tell(points, [loglike(*x) for _, x in points])
    again = fk.AskTell.resume(half.result, problem=problem, diagnose=False)
    again, _ = drive(again, lambda x: loglike(*x))
    assert_same(again.result, fk.sample(problem, **options | {"search": False}))
    with pytest.raises(ValueError, match=r"problem must be the fastkam.Problem of the run, which "
                                         r"has a prior, bounds or transforms, not None"):
        fk.AskTell.resume(half.result)


def test_points_without_a_density():
    values = iter([np.nan, -np.inf])

    def f(x):
        return next(values, -0.5 * x @ x) if abs(x[0]) > 1.5 else -0.5 * x @ x

    loop, _ = drive(begin(chains=1), f)
    assert loop.result.rejected["nan"].sum() == 1
    assert loop.result.rejected["outside"].sum() == 1


def test_values_by_index():
    loop, same = begin(), begin()
    drive(loop, quick)
    while not same.done:
        points = same.ask()
        same.tell(points, {i: quick(x) for i, x in reversed(list(points))})
    np.testing.assert_array_equal(same.result.draws, loop.result.draws)


def test_exceptions_are_values_too():
    def f(x):
        try:
            return raises_beyond(x)
        except ValueError as error:
            return error

    options = OPTIONS | {"x0": np.zeros(2)}
    loop, _ = drive(begin(**options, on_error="reject"), f)
    assert loop.result.workers.n_failures > 0
    with pytest.raises(fk.SamplingError, match="the target raised ValueError: no solution") as info:
        drive(begin(**options), f)
    assert info.value.result.status == "failed"


def test_a_density_of_infinity_ends_the_run():
    loop = begin()
    points = loop.ask()
    loop.tell(points, [-1.0])
    points = loop.ask()
    loop.tell(points, [np.inf] * len(points))
    for _ in range(2):
        with pytest.raises(fk.SamplingError, match=r"log density is \+inf"):
            loop.ask()
    with pytest.raises(fk.SamplingError):
        assert loop.done


@pytest.mark.parametrize(("points", "values", "message"), [
    ([99], [0.0], r"points has the index 99, which is not open: no point has it yet"),
    ([0], [0.0], r"points has the index 0, which is not open: its value is known"),
    ([1, 1], [0.0, 0.0], r"points has the index 1 twice"),
    ([1], [0.0, 0.0], r"values must have one for each of 1 points, not 2"),
    ([[1], 2], {1: 0.0, 2: 0.0}, r"values must have the indices of the points as keys"),
    ([1, 2], {1: 0.0}, r"values must have the indices of the points as keys .*\[1, 2\], not \[1\]"),
    ([1, 2], {1.0, -1.0}, r"values must be in the order of the points"),
    ([-1], [0.0], r"points must be"),
    ([1.5], [0.0], r"points must be"),
    ([1, 2], [0.0, None], r"log density must be one real number, not None"),
    ([1], [(0.0, "text")], r"log density|gradient|could not convert"),
    ([1, 2], [(0.0, {"a": 1.0}), (0.0, {"b": 1.0})], r"extras must be alike at every point"),
])
def test_bad_values_change_nothing(points, values, message):
    loop = begin()
    loop.tell(loop.ask(), [0.0])
    before = loop.ask()
    with pytest.raises((TypeError, ValueError), match=message):
        loop.tell(points, values)
    assert loop.asked_for().indices.tolist() == before.indices.tolist()


@pytest.mark.parametrize(("arguments", "message"), [
    ({"draws": 0}, "draws must be"),
    ({"sampler": "rma"}, "sampler must be .* did you mean"),
    ({"x0": None}, "x0 must be"),
    ({"walkers": 3}, "has no argument 'walkers': did you mean 'chains'"),
    ({"problem": 3}, "problem must be a fastkam.Problem, not 3"),
    ({"on_error": "rejects"}, "on_error must be one of .* did you mean 'reject'"),
])
def test_bad_arguments_are_refused_at_once(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        begin(**arguments)


def test_there_is_no_result_before_the_chains_begin():
    loop = fk.AskTell([0.0, 0.0], sampler="ram", seed=1)
    with pytest.raises(RuntimeError, match="no result during the search"):
        loop.result  # noqa: B018
    assert not loop.done
    loop = fk.AskTell(prior={"a": stats.norm()}, sampler="ram", seed=1, search=False)
    with pytest.raises(RuntimeError, match=r"the starting points have values: tell more values$"):
        loop.result  # noqa: B018


def test_the_thread_ends_with_its_loop():
    loop = begin()
    loop.ask()
    thread = loop.session.thread
    assert thread.is_alive()
    del loop
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_a_rule_ends_the_run():
    loop = begin(stop=fk.stop.Time(0.3), draws=10**6)
    while not loop.done:
        points = loop.ask()
        loop.tell(points, [quick(x) for _, x in points])
        time.sleep(0.001)
    assert loop.result.status == "stopped"
    assert len(loop.ask()) == 0


def test_a_thousand_workers_in_random_order():
    """Simulated times: the draws do not depend on when values arrive."""
    order = np.random.default_rng(1)
    options = {"x0": np.zeros(2), "chains": 1000, "draws": 3, "tune": 2, "seed": 5,
               "diagnose": False, "sampler": "ram", "search": False}
    loop = fk.AskTell(**options)
    held = {}
    while not loop.done:
        held.update(loop.ask(10_000))
        indices = list(held)
        first = order.permutation(len(indices))[: max(1, len(indices) // 3)]
        some = [indices[i] for i in first]
        loop.tell(some, [quick(held.pop(i)) for i in some])
    assert_same(loop.result, fk.sample(quick, **options))


@pytest.mark.parametrize(("points", "values", "message"), [
    (None, -1.0, "points must be a sequence, not None"),
    (np.array(0), [-1.0], "points must be a sequence"),
    ([0], -1.0, r"values must be a sequence, not -1\.0"),
    ([0], [(-1.0, np.ones(3))], r"values must have gradients of shape \(2,\), not \(3,\)"),
    ([0], [(-1.0, -2.0)], r"values must have gradients of shape \(2,\), not \(\)"),
    ([0], [(-1.0, "x")], "the log density must be alone, or together with its gradient"),
    (0, [(-1.0, {"a": 1})] * 2, "the log density must be alone, or together with its gradient"),
    ([0], [KeyboardInterrupt()], "must be one real number, not KeyboardInterrupt"),
    ([0], [SystemExit(3)], "must be one real number, not SystemExit"),
])
def test_a_refused_tell_changes_nothing(points, values, message):
    loop = begin()
    loop.ask()
    with pytest.raises((TypeError, ValueError), match=message):
        loop.tell(points, values)
    assert loop.asked_for().indices.tolist() == [0]
    drive_on(loop)


def test_points_of_another_loop_are_refused():
    loop, other = begin(), begin(x0=np.array([1.0, 2.5]))
    own = loop.ask()
    with pytest.raises(ValueError, match=r"points has the index 0 of another AskTell"):
        loop.tell(other.ask(), [-1.0])
    loop.tell(own, [quick(x) for _, x in own])


def test_a_copy_takes_values_at_once():
    """Points that were asked for before are open, although the run of the copy begins only now."""
    expected = sample(quick, **OPTIONS)
    loop = begin()
    for _ in range(20):
        points = loop.ask()
        if len(points):
            loop = pickle.loads(pickle.dumps(loop))
            loop.tell(points, [quick(x) for x in points.x])
    assert_same(drive_on(loop).result, expected)


def test_a_copy_asks_again_for_points_without_a_value():
    """The usual loop therefore continues after a restart, and the draws are the same."""
    expected = drive_on(begin()).result
    loop = begin()
    loop.tell(loop.ask(2), [quick(x) for _, x in begin().ask(2)])
    loop.ask()
    loop = pickle.loads(pickle.dumps(loop))
    for _ in range(10_000):
        if loop.done:
            break
        points = loop.ask()
        loop.tell(points, [quick(x) for _, x in points])
    assert_same(loop.result, expected)


def drive_on(loop):
    """Run the loop to its end, and return it."""
    points = loop.asked_for()
    while not loop.done:
        loop.tell(points, [quick(x) for _, x in points])
        points = loop.ask()
    return loop


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies_in_this_process_go_on_alone(how):
    expected = sample(quick, **OPTIONS)
    loop = begin()
    for _ in range(40):
        points = loop.ask()
        loop.tell(points, [quick(x) for _, x in points])
    other = how(loop)
    assert_same(drive_on(other).result, expected)
    assert not loop.done
    assert_same(drive_on(loop).result, expected)


def test_a_forked_process_is_asked_to_take_a_copy():
    """A forked process has no thread for the run, and would wait forever."""
    loop = begin()
    points = loop.ask()
    for look in (lambda: loop.tell(points, [quick(x) for x in points.x]), loop.ask,
                 lambda: loop.done, lambda: loop.result, lambda: pickle.dumps(loop)):
        child = os.fork()
        if not child:
            status = 1
            try:
                signal.alarm(20)
                look()
            except RuntimeError as error:
                status = 0 if "give others a pickled copy" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    loop.tell(points, [quick(x) for x in points.x])
    drive_on(loop)
