"""Slow Python functions that release the GIL get threads; the draws stay the same."""

import logging
import threading
import time

import densities
import numpy as np
import pytest
from same import assert_same

import fastkam as fk
from fastkam.run import trial

X0 = np.random.default_rng(1).standard_normal((6, 2))
OPTIONS = {"x0": X0, "sampler": "ram", "chains": 6, "draws": 40, "tune": 20, "seed": 2,
           "search": False, "diagnose": False, "progress": False}


class Counted:
    """A density that notes how many threads were in it at once at the most."""

    def __init__(self, work):
        self.work, self.lock = work, threading.Lock()
        self.inside = self.most = 0

    def __call__(self, x):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            self.work(x)
            return densities.python(x)
        finally:
            with self.lock:
                self.inside -= 1


def sleeps(x):
    time.sleep(0.01)


def computes(x):
    sum(i for i in range(60_000))


@pytest.fixture
def certain(monkeypatch):
    """Treat any function as slow, and threads as faster."""
    monkeypatch.setattr(trial, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(trial, "FREE", 0.0)
    monkeypatch.setattr(trial, "FASTER", 0.0)
    monkeypatch.setattr(trial.Measured, "threads", lambda self: 4)


def test_a_function_that_waits_gets_threads(caplog):
    caplog.set_level(logging.INFO, "fastkam")
    density = Counted(sleeps)
    result = fk.sample(density, **OPTIONS)
    assert density.most > 1
    assert caplog.text.count("the chains run in ") == 1
    assert "releases the GIL" in caplog.text
    assert_same(result, fk.sample(densities.python, **OPTIONS))


@pytest.mark.parametrize("options", [{"stop": fk.stop.ESS(1e6)}, {"sampler": "auto"}])
def test_threads_are_found_once_for_all_parts_of_a_run(certain, caplog, options):
    """Milestones of a stop rule, and what follows when it is known how much to thin."""
    caplog.set_level(logging.INFO, "fastkam")
    options = OPTIONS | {"draws": 300} | options
    result = fk.sample(Counted(lambda x: time.sleep(0.001)), **options)
    assert caplog.text.count("the chains run in ") == 1
    assert_same(result, fk.sample(densities.python, **options | {"threads": 1}))


def test_a_python_loop_stays_in_one_thread():
    density = Counted(computes)
    fk.sample(density, **OPTIONS)
    assert density.most == 1


@pytest.mark.parametrize("options", [{"threads": 1}, {"chains": 1, "x0": X0[0]}])
def test_threads_that_are_given_are_kept(certain, options):
    density = Counted(sleeps)
    fk.sample(density, **OPTIONS | options)
    assert density.most == 1


def test_a_quick_function_is_not_watched_by_a_thread(monkeypatch):
    monkeypatch.setattr(trial.Measured, "tick", None)
    fk.sample(densities.python, **OPTIONS)


class SharedState:
    """A density that several threads must not call: it keeps the point while it works."""

    def __init__(self, after=0):
        self.calls, self.after = 0, after

    def __call__(self, x):
        self.calls += 1
        if self.calls > self.after:
            self.x = x.copy()
        time.sleep(0.003)
        return densities.python(x if self.calls <= self.after else self.x)


def test_a_function_with_a_state_stays_in_one_thread(certain, caplog):
    caplog.set_level(logging.INFO, "fastkam")
    result = fk.sample(SharedState(), **OPTIONS)
    assert "does not return the same values" in caplog.text
    assert_same(result, fk.sample(densities.python, **OPTIONS))


def test_a_function_whose_values_change_in_threads_ends_the_run(certain):
    """Its calls are harmless at first, so that threads are used; the end of the run shows it."""
    with pytest.raises(fk.SamplingError, match=r"not the same when several threads.*threads=1"):
        fk.sample(SharedState(after=250), **OPTIONS | {"draws": 100})


def test_a_function_that_is_random_stays_in_one_thread(certain):
    rng = np.random.default_rng(1)
    density = Counted(sleeps)
    fk.sample(lambda x: density(x) + 0.1 * rng.standard_normal(), **OPTIONS)
    assert density.most <= 4  # in the trial alone
    before, density.most = density.most, 0
    fk.sample(lambda x: density(x) + 0.1 * rng.standard_normal(), **OPTIONS | {"threads": 1})
    assert density.most == 1 <= before


def test_an_exception_in_the_trial_leaves_one_thread(certain):
    def density(x):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only the main thread may")
        return densities.python(x)

    assert_same(fk.sample(density, **OPTIONS), fk.sample(densities.python, **OPTIONS))


def test_an_exception_in_threads_keeps_all_draws(certain):
    def density(x):
        time.sleep(0.001)
        if threading.current_thread().name.startswith("fastkam_") and abs(x[0]) > 1.5:
            raise LookupError("there")
        return densities.python(x)

    with pytest.raises(fk.SamplingError, match="LookupError: there") as caught:
        fk.sample(density, **OPTIONS | {"draws": 2000})
    result = caught.value.result
    rows = int(result.trace.counts.max()) + 10
    assert_same(result.resume(target=densities.python, draws=10),
                fk.sample(densities.python, **OPTIONS | {"draws": rows}))


def test_scales_and_names_make_no_difference(certain):
    """Values are compared at the points of the density, whatever the units of the sampler."""
    options = OPTIONS | {"search": True, "draws": 60}
    density = Counted(lambda x: time.sleep(0.001))
    result = fk.sample(density, **options)
    assert density.most > 1
    assert_same(result, fk.sample(densities.python, **options | {"threads": 1}))
