"""A run leaves the host as it was: global generator, warnings, logging, BLAS threads, signals."""

import itertools
import logging
import pickle
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import densities
import numpy as np
import pytest
import scipy.linalg  # noqa: F401, its BLAS would be loaded within a call
from densities import D
from runs import sample
from threadpoolctl import threadpool_info, threadpool_limits

import fastkam as fk


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def host():
    return {
        "generator": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "warnings": list(warnings.filters),
        "errors": np.geterr(),
        "logging": (logging.root.level, list(logging.root.handlers)),
        "blas": blas_threads(),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "threads": threading.active_count(),
    }


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_leaves_global_state_unchanged(threads):
    def fails(x):
        return np.inf

    with threadpool_limits(2, user_api="blas"):
        before = host()
        inside = []

        def density(x):
            inside.append(blas_threads())
            return densities.python(x)

        sample(density, np.zeros(D), draws=20, tune=5, chains=2, threads=threads)
        assert inside[-1] == [1] * len(inside[-1])
        with pytest.raises(fk.SamplingError):
            sample(fails, np.zeros(D), chains=2, threads=threads)
        assert host() == before


def test_all_of_a_call_has_one_blas_thread():
    """The search, the draws and the look for further modes: others would wait for a long time."""
    inside, calls = set(), itertools.count()

    def density(x):
        if next(calls) % 50 == 0:
            inside.add(tuple(blas_threads()))
        return densities.python(x)

    with threadpool_limits(2, user_api="blas"):
        result = fk.sample(density, np.zeros(D), seed=1, progress=False)
        assert inside == {(1,) * len(blas_threads())}
        inside.clear()
        result.resume(draws=100, progress=False)
        fk.choose_sampler(density, np.zeros(D), seed=1)
        assert inside == {(1,) * len(blas_threads())}


def test_runs_side_by_side_leave_the_number_of_blas_threads():
    """Two runs in threads, of which the first to begin ends first."""
    first_runs, second_runs, first_ended = (threading.Event() for _ in range(3))

    def first(x):
        first_runs.set()
        second_runs.wait(10)
        return densities.python(x)

    def second(x):
        if not second_runs.is_set():
            second_runs.set()
            first_ended.wait(10)
        return densities.python(x)

    options = {"x0": np.zeros(D), "draws": 5, "tune": 0, "chains": 1}
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(2) as pool:
        before = blas_threads()
        one = pool.submit(sample, first, **options)
        one.add_done_callback(lambda _: first_ended.set())
        first_runs.wait(10)
        pool.submit(sample, second, **options).result()
        assert blas_threads() == before


needs_threads = pytest.mark.skipif(max(blas_threads(), default=1) == 1,
                                   reason="BLAS has one thread in any case")


@needs_threads
def test_a_run_in_another_thread_has_one_blas_thread():
    """Otherwise a learned surrogate would have other bits than in the main thread."""
    inside, before = [], blas_threads()

    def density(x):
        inside.append(blas_threads())
        return densities.python(x)

    def limited():
        with threadpool_limits(2, user_api="blas"):
            sample(density, np.zeros(D), draws=20, tune=5, chains=2)
            return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(sample, density, np.zeros(D), draws=20, tune=5, chains=2).result()
        assert blas_threads() == before
        assert pool.submit(limited).result() == [2] * len(before)
    assert inside == [[1] * len(before)] * len(inside)
    assert blas_threads() == before


@needs_threads
@pytest.mark.parametrize("main", [True, False])
def test_the_last_of_several_runs_removes_the_limit_of_blas(main):
    """The first of two to begin, in another thread than the second, ends first."""
    began, may_end, inside, before = threading.Event(), threading.Event(), [], blas_threads()

    def first(x):
        began.set()
        may_end.wait(10)
        inside.append(blas_threads())
        return densities.python(x)

    def second(x):
        if not may_end.is_set():
            may_end.set()
            one.result()
        inside.append(blas_threads())
        return densities.python(x)

    options = {"x0": np.zeros(D), "draws": 5, "tune": 0, "chains": 1}
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(sample, first, **options)
        began.wait(10)
        if main:
            sample(second, **options)
        else:
            pool.submit(sample, second, **options).result()
    assert inside == [[1] * len(before)] * len(inside)
    assert blas_threads() == before


@needs_threads
def test_a_run_that_begins_within_one_of_the_main_thread_and_ends_later():
    """The limit of the main thread is not the number that is to be restored."""
    began, may_end, before, futures = threading.Event(), threading.Event(), blas_threads(), []

    def inner(x):
        began.set()
        may_end.wait(10)
        return densities.python(x)

    def outer(x):
        if not futures:
            futures.append(pool.submit(sample, inner, **options))
            began.wait(10)
        return densities.python(x)

    options = {"x0": np.zeros(D), "draws": 5, "tune": 0, "chains": 1}
    with ThreadPoolExecutor(1) as pool:
        sample(outer, **options)
        may_end.set()
        futures[0].result()
    assert blas_threads() == before


@needs_threads
def test_another_thread_can_limit_blas_after_a_run():
    def limited():
        with threadpool_limits(1, user_api="blas"):
            return blas_threads()

    sample(densities.python, np.zeros(D), draws=5, tune=0, chains=1)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(limited).result() == [1] * len(blas_threads())


@needs_threads
def test_the_user_of_an_asktell_has_all_blas_threads():
    """The user's own code runs at the same time as that of the run."""
    before = blas_threads()
    loop = fk.AskTell(np.zeros(D), sampler="ram", draws=5, tune=0, chains=1, search=False,
                      seed=1, diagnose=False)
    while not loop.done:
        points = loop.ask()
        assert blas_threads() == before
        loop.tell(points, [densities.python(x) for _, x in points])
