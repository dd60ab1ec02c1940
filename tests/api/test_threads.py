"""Threads, progress and stop rules may change where a run ends, but none of its draws."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import densities
import numpy as np
import pytest
from densities import D, short, with_gradient
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.run import trial
from fastkam.samplers import SAMPLERS
from fastkam.stop import StopRule

OPTIONS = {"tune": 100, "chains": 3, "seed": 2}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("kind", ["python", "vectorized", "c"])
def test_the_number_of_threads_changes_nothing(library, name, kind):
    target = with_gradient(kind, library)
    one, *others = (
        sample(target, np.ones(D), draws=150, sampler=short(name), threads=threads,
               diagnose=False, **OPTIONS)
        for threads in (1, 2, 3)
    )
    for other in others:
        assert_same(one, other)


def test_chains_that_outnumber_the_threads_advance_in_turn():
    """Wherever the run ends, every chain has draws."""
    most, draws = 0, 3_000_000

    def until_one_is_half_done(progress):
        nonlocal most
        most = max(progress.draws)
        if most > draws / 2:
            progress.stop()

    result = fk.sample(fk.targets.banana(d=4), np.zeros(4), sampler="ram", draws=draws, thin=1,
                       seed=1, threads=2, progress=until_one_is_half_done, diagnose=False)
    assert result.status == "stopped"
    assert result.trace.counts.min() > draws / 8


def test_the_number_of_chains_does_not_change_the_first():
    few, many = (sample(densities.python, np.ones(D), draws=50, chains=n, seed=1)
                 for n in (2, 5))
    np.testing.assert_array_equal(few.draws, many.draws[:2])
    assert len({chain.tobytes() for chain in many.draws}) == 5


class Counting:
    """Serial targets of one C function, and the most threads that were in it at once."""

    def __init__(self):
        self.inside, self.most, self.lock = 0, 0, threading.Lock()

    def target(self):
        @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, densities.DOUBLES)
        def density(n, x):
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            value = sum(densities.python(x[:n]) for _ in range(20)) / 20
            time.sleep(1e-5)
            with self.lock:
                self.inside -= 1
            return value

        return fk.Target.from_c(density, D, thread_safe=False)


def test_a_serial_target_is_never_in_two_threads():
    counting = Counting()
    serial = counting.target()
    assert serial.serial
    sample(serial, np.ones(D), draws=200, threads=3, **OPTIONS)
    assert counting.most == 1
    with ThreadPoolExecutor(3) as pool:
        sample(serial, np.ones(D), draws=200, executor=pool, **OPTIONS)
    assert counting.most == 1


def test_runs_in_several_threads_take_turns_with_a_serial_target():
    """In search and run; the two targets are different objects."""
    counting = Counting()

    def run(seed):
        return fk.sample(counting.target(), np.ones(D), seed=seed, draws=100, tune=50, chains=2,
                         progress=False, diagnose=False)

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(run, seed) for seed in (1, 2)]
        found = [one.result(timeout=60) for one in both]
    assert counting.most == 1
    assert_same(run(1), found[0])


def other_in_threads(above, shift):
    """A pointer whose values are shifted in worker threads, where x[0] is above a number."""
    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, densities.DOUBLES)
    def density(n, x):
        wrong = x[0] > above and threading.current_thread() is not threading.main_thread()
        return densities.python(x[:n]) + shift * wrong

    return density


PARALLEL = """
import numba
import numpy as np

import fastkam as fk


@numba.njit(parallel=True)
def half_square(x):
    total = 0.0
    for i in numba.prange(len(x)):
        total += x[i] * x[i]
    return 0.5 * total


@numba.njit
def logp(x):
    return -half_square(x)


@numba.njit
def estimate(x, u):
    return u[0] - half_square(x)


assert fk.as_target(logp, 3).serial and not fk.as_target(numba.njit(lambda x: -x @ x), 3).serial
assert fk.Target.from_estimator(estimate, 3, 1).serial
result = fk.sample(logp, np.zeros(3), sampler="ram", draws=300, threads=2, progress=False, seed=1)
assert result.draws.shape == (4, 300, 3)
"""
PYTHON_CALLS_PARALLEL = """
import numba
import numpy as np

import fastkam as fk


@numba.njit(parallel=True)
def total(x, data):
    s = 0.0
    for i in numba.prange(len(data)):
        s -= np.log1p((data[i] - x[0]) ** 2)
    return s


data = np.random.default_rng(0).standard_normal(400_000)
fk.sample(lambda x: total(x, data) / 2e4, np.zeros(1), sampler="ram", draws=20, tune=20,
          progress=False, seed=1)
"""


@pytest.mark.parametrize("script", [PARALLEL, PYTHON_CALLS_PARALLEL])
def test_a_parallel_numba_function_is_called_by_one_thread_at_a_time(script):
    """This layer of numba ends the process if two threads call it."""
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True,
                          text=True, env=os.environ | {"NUMBA_THREADING_LAYER": "workqueue"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("above", "shift"), [(-np.inf, 3.0), (1.5, 3.0), (0.0, -0.5)])
def test_a_pointer_that_several_threads_must_not_call_ends_the_run(above, shift):
    """Everywhere; in a small part, where chains stay; and in half, where they stay for less."""
    density = other_in_threads(above, shift)
    with pytest.raises(fk.SamplingError, match=r"not the same when several threads.*thread_safe="
                                               ) as caught:
        sample(density, np.ones(D), draws=500, threads=2, **OPTIONS)
    assert caught.value.result.draws.shape[:2] == (3, 500)
    one = sample(density, np.ones(D), draws=500, threads=1, **OPTIONS)
    serial = fk.Target.from_c(density, D, thread_safe=False)
    assert_same(sample(serial, np.ones(D), draws=500, **OPTIONS), one)


def test_draws_of_an_earlier_call_say_nothing_of_threads():
    """The density may be another one since, or nearly the same one."""
    shift = [0.0]

    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, densities.DOUBLES)
    def density(n, x):
        return densities.python(x[:n]) * (1 + shift[0])

    first = sample(density, np.ones(D), draws=100, threads=2, **OPTIONS)
    shift[0] = 1e-6
    assert first.resume(100, threads=2).draws.shape[1] == 200
    shift[0] = 1.0
    with pytest.warns(fk.SamplingWarning, match="another density"):
        on = first.resume(100, threads=2, check_target=False)
    assert on.draws.shape[1] == 200


def test_a_random_pointer_says_nothing_of_threads():
    rng = np.random.default_rng(1)

    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, densities.DOUBLES)
    def density(n, x):
        return densities.python(x[:n]) + 0.1 * rng.standard_normal()

    sample(density, np.ones(D), draws=50, threads=2, **OPTIONS)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_in_one_chain_keeps_the_others(threads):
    """The chain that fails starts at 50; the others keep the draws that they have made."""

    def density(x):
        if x[0] > 40 and density.fails:
            raise ValueError("too far")
        return densities.python(x)

    density.fails = True
    x0 = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 0.0]])
    with pytest.raises(fk.SamplingError) as caught:
        sample(density, x0, draws=50, threads=threads, **OPTIONS)
    assert caught.value.chain == 1
    density.fails = False
    whole = sample(density, x0, draws=50, **OPTIONS)
    assert_same(caught.value.result.resume(threads=threads), whole)


def test_a_chunk_cut_short_does_not_make_the_next_one_long(library):
    """Chunks grow by what was made, not by what was asked for: 8 times at most."""
    steps = []
    target = densities.ctypes_function(library, "slow")
    sample(target, np.ones(D), draws=900, tune=74, chains=1, threads=1, seed=1,
           progress=lambda p: steps.append(p.steps))
    sizes = np.diff([0, *steps[:-1]])
    assert 74 in steps
    assert (sizes[1:] <= 8 * sizes[:-1]).all()


# ---- progress ----


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_only_grows(library, threads):
    seen = []
    target = densities.ctypes_function(library, "slow")
    result = sample(target, np.ones(D), draws=400, threads=threads, progress=seen.append,
                    **OPTIONS)
    steps = [p.steps for p in seen]
    assert len(steps) > 3
    assert steps == sorted(steps)
    assert steps[-1] == result.evaluations == seen[-1].total == 3 * 500
    draws = np.array([p.draws for p in seen])
    assert (np.diff(draws, axis=0) >= 0).all()
    assert draws[-1].tolist() == [400] * 3
    tuning = [p.tuning for p in seen]
    assert tuning == sorted(tuning, reverse=True)
    assert not tuning[-1]
    seconds = [p.seconds for p in seen]
    assert seconds == sorted(seconds)
    assert 0 < seen[-1].acceptance < 1


def test_a_bar(capsys):
    sample(densities.python, np.ones(D), draws=50, progress=True, **OPTIONS)
    assert "drawing" in capsys.readouterr().err


# ---- stop rules ----


class Mean(StopRule):
    """A rule on the draws, which counts how often it is evaluated."""

    def __init__(self, limit):
        self.limit, self.asked = limit, []

    def met(self, run):
        self.asked.append(run.trace.rows)
        return abs(run.trace.draws[:, :, 0].mean()) < self.limit


def test_a_rule_on_the_draws_stops_at_the_same_draw(library):
    target = densities.ctypes_function(library, "plain_form")
    whole = sample(target, np.ones(D), draws=5000, **OPTIONS)
    lengths = set()
    for threads in (1, 2, 3):
        for rule in (Mean(0.02), Mean(0.02) | fk.stop.Time("1h")):
            result = sample(target, np.ones(D), draws=5000, threads=threads, stop=rule,
                            **OPTIONS)
            lengths.add(result.trace.rows)
            np.testing.assert_array_equal(result.draws, whole.draws[:, :result.trace.rows])
    assert len(lengths) == 1
    assert result.status == "stopped"
    assert_same(result.resume(5000 - result.trace.rows), whole)


def test_rules_on_draws_are_checked_at_milestones_only():
    """An ESS costs more than a chunk: a rule of time beside it must not cause its evaluation."""
    rules = [Mean(0.0), Mean(0.0)]
    stops = [rules[0], rules[1] | fk.stop.Time("1h")]
    for stop in stops:
        sample(densities.python, np.ones(D), draws=700, stop=stop, **OPTIONS)
    assert rules[0].asked == rules[1].asked == [100, 200, 300, 400, 500, 600]


@pytest.mark.parametrize("count", [1, 2, 50, 301, 1000])
@pytest.mark.parametrize("threads", [1, 2])
def test_evaluations(count, threads):
    """Every chain gets its share, so that the number is reached to within one a chain."""
    calls = []

    def density(x):
        calls.append(0)
        return densities.python(x)

    result = sample(density, np.ones(D), draws=10_000, threads=threads,
                    stop=fk.stop.Evaluations(count), **OPTIONS)
    assert result.status == "stopped"
    assert count <= result.evaluations < count + 3
    assert len(calls) == result.evaluations + 3  # the starting points
    whole = sample(densities.python, np.ones(D), draws=result.trace.rows + 1, **OPTIONS)
    assert_same(result.resume(1), whole)


def test_time():
    result = sample(densities.python, np.ones(D), draws=10**6, stop=fk.stop.Time(0.2), **OPTIONS)
    assert result.status == "stopped"
    assert result.seconds >= 0.2
    assert 0 < result.trace.rows < 10**6


@pytest.mark.parametrize("options", [
    {"sampler": "ram"}, {"sampler": "ram", "share": True}, {"sampler": "nuts"},
    {"sampler": "rwm", "vectorized": True}, {"sampler": "kam", "vectorized": True}])
@pytest.mark.parametrize("pool", [False, True])
def test_a_density_that_becomes_slower_does_not_delay_the_end(options, pool):
    """A chunk that was planned for fast calls would take minutes."""
    def density(x):
        calls[0] += 1
        if calls[0] > 20_000:
            time.sleep(0.01)
        value = -0.5 * (x * x).sum(axis=-1)
        return (value, -x) if options["sampler"] == "nuts" else value

    calls = [0]
    with ThreadPoolExecutor(2) as threads:
        result = sample(density, np.ones(D), draws=10**6, stop=fk.stop.Time(1.0), tune=50,
                        executor=threads if pool else None, seed=1, chains=3, diagnose=False,
                        **options)
    assert result.status == "stopped"
    assert 20_000 < calls[0] < 20_600      # 100 calls in a second; of 50 ms before, 5000 or more


def test_both_and_either():
    few, many = fk.stop.Evaluations(300), fk.stop.Evaluations(3000)
    run = {"draws": 10_000, **OPTIONS}
    either = sample(densities.python, np.ones(D), stop=few | many, **run)
    both = sample(densities.python, np.ones(D), stop=few & many, **run)
    assert (either.evaluations, both.evaluations) == (300, 3000)
    both = sample(densities.python, np.ones(D), stop=few & Mean(1e9), **run)
    assert both.trace.rows == 100


def test_a_run_that_has_all_its_draws_is_complete():
    result = sample(densities.python, np.ones(D), draws=50, stop=Mean(1e9), **OPTIONS)
    assert result.status == "complete"


def test_a_rule_that_raises_keeps_the_draws():
    class Broken(StopRule):
        def met(self, run):
            raise ZeroDivisionError("no rule")

    with pytest.raises(fk.SamplingError, match="ZeroDivisionError: no rule") as caught:
        sample(densities.python, np.ones(D), draws=500, stop=Broken(), **OPTIONS)
    assert caught.value.result.trace.counts.tolist() == [100] * 3


def test_ess_and_r_hat_stop_the_same_run_at_the_same_draw(library):
    pytest.importorskip("fastkam.diagnostics")
    target = densities.ctypes_function(library, "plain_form")
    for stop in (fk.stop.ESS(200), fk.stop.Rhat(1.05), fk.stop.ESS(200) & fk.stop.Rhat(1.05)):
        one, two = (sample(target, np.ones(D), draws=20_000, stop=stop, threads=n, **OPTIONS)
                    for n in (1, 2))
        assert one.status == "stopped"
        assert_same(one, two)


@pytest.mark.parametrize(("most", "looks"), [(trial.PLENTY - 1, 0), (trial.PLENTY, 4)])
def test_a_small_budget_has_room_for_one_trial(monkeypatch, most, looks):
    """Its calls are reserved; a later one, since other programs were busy, would exceed it."""
    class Measured:
        evaluations = each = free = staticmethod(lambda: 1)
        threads = staticmethod(lambda: 2)

    groups = [SimpleNamespace(run=SimpleNamespace(most_evaluations=most),
                              point=lambda k=k: (np.full(2, float(k)), 0.0)) for k in range(2)]
    monkeypatch.setattr(trial.Trial, "together", lambda *_: False)
    one = trial.Trial()
    for _ in range(2):  # in the first round the function is found to be slow
        one.look(groups, Measured())
    assert one.looks == looks
    assert one.threads == 1
