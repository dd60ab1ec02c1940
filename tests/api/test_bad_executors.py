"""Executors that return garbage, and workers that exit: no draw is lost, and the executor named."""

import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
from runs import sample
from same import assert_same
from simulators import OPTIONS, quick

import fastkam as fk
from fastkam.run.workers import as_workers

AFTER = 40  # tasks
GARBAGE = {"none": None, "text": "x", "number": 3, "empty": [], "dict": {}, "others": [1]}


class Bad(Executor):
    """An executor that runs tasks at once, and after some of them returns something else."""

    def __init__(self, garbage):
        self.garbage, self.n = garbage, 0

    def submit(self, function, /, *args, **kwargs):
        self.n += 1
        assert self.n < 1000
        future = Future()
        if self.n <= AFTER:
            future.set_result(function(*args, **kwargs))
        elif isinstance(self.garbage, BaseException):
            future.set_exception(self.garbage)
        elif self.garbage == "no future":
            return self.garbage
        else:
            future.set_result(self.garbage)
        return future


@pytest.mark.parametrize("spread", ["points", "chains"])
@pytest.mark.parametrize("garbage", [*GARBAGE, "no future"])
def test_garbage_ends_the_run(garbage, spread, monkeypatch):
    monkeypatch.setattr("fastkam.run.executors.TASK_SECONDS", 0.001)
    executor = Bad(GARBAGE.get(garbage, garbage))
    executor.n = 0 if spread == "points" else AFTER - 3
    with pytest.raises(fk.SamplingError, match="executor must return") as info:
        sample(quick, executor=executor, spread=spread, **OPTIONS)
    assert_same(info.value.result.resume(diagnose=False), sample(quick, **OPTIONS))


class BadMap:
    """A pool with `map` alone, which returns something else than a value for every task."""

    def __init__(self, garbage):
        self.garbage = garbage

    def map(self, function, tasks):
        return self.garbage([function(task) for task in tasks])


@pytest.mark.parametrize(("garbage", "says"), [
    (lambda values: values[1:], r"a value for every task, \d, not \d"),
    (lambda values: values * 2, r"a value for every task, \d, not \d"),
    (lambda values: [None for _ in values], "what the function returns, not None"),
    (lambda values: [value for value, _ in values], "what the function returns, not "),
    (lambda values: [(value, "odd") for value, _ in values], "what the function returns, not "),
])
def test_a_map_that_does_not_return_the_values_is_refused(garbage, says):
    """The run used to wait for the others for ever."""
    with pytest.raises(TypeError, match=f"executor must return from its map {says}"):
        as_workers(BadMap(garbage)).submit(divmod, 7, 2).result(timeout=20)
    for spread in ("points", "chains"):
        with pytest.raises(fk.SamplingError, match=f"executor must return from its map {says}"):
            sample(quick, executor=BadMap(garbage), spread=spread, **OPTIONS)


class Swapping(Executor):
    """An executor that after some tasks exchanges the values of two."""

    def __init__(self, after):
        self.after, self.waiting = after, None

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        value = function(*args, **kwargs)
        self.after -= 1
        if self.after >= 0:
            future.set_result(value)
        elif self.waiting is None:
            self.waiting = future, value
        else:
            (first, one), self.waiting = self.waiting, None
            first.set_result(value)
            future.set_result(one)
        return future


@pytest.mark.parametrize("spread", ["points", "chains"])
def test_values_of_other_tasks_are_refused(spread, monkeypatch):
    monkeypatch.setattr("fastkam.run.executors.TASK_SECONDS", 0.001)
    executor = Swapping(12 if spread == "points" else 0)
    executor._max_workers = 4
    with pytest.raises(fk.SamplingError, match="the value of another task") as info:
        sample(quick, executor=executor, spread=spread, **OPTIONS)
    assert_same(info.value.result.resume(diagnose=False), sample(quick, **OPTIONS))


class Cancelling(Bad):
    """An executor that cancels some tasks, as a cluster does when it is restarted."""

    def submit(self, function, /, *args, **kwargs):
        self.n += 1
        future = Future()
        if self.n % self.garbage == 0:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(function(*args, **kwargs))
        return future


@pytest.mark.parametrize(("spread", "each"), [("points", 7), ("chains", 2)])
def test_tasks_that_are_cancelled_are_sent_again(spread, each):
    result = sample(quick, executor=Cancelling(each), spread=spread, **OPTIONS)
    assert_same(result, sample(quick, **OPTIONS))


@pytest.mark.parametrize("spread", ["points", "chains"])
def test_no_future(spread):
    executor = Bad("no future")
    executor.n = AFTER
    with pytest.raises(fk.SamplingError, match="executor must return a Future from submit"):
        sample(quick, executor=executor, spread=spread, **OPTIONS)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor, ThreadPool])
def test_an_executor_that_was_shut_down_is_refused(kind):
    executor = kind(1)
    executor.close() if kind is ThreadPool else executor.shutdown()
    with pytest.raises(ValueError, match=r"executor must take tasks, and .* is shut down: give"):
        sample(quick, executor=executor, **OPTIONS)


@pytest.mark.parametrize("spread", ["points", "chains"])
def test_an_executor_that_is_shut_down_in_a_run_is_named(spread):
    class Ending(ThreadPoolExecutor):
        n = 0

        def submit(self, *task):
            self.n += 1
            if self.n == (AFTER if spread == "points" else 3):
                self.shutdown()
            return super().submit(*task)

    with pytest.raises(fk.SamplingError, match=r"executor must take tasks, and .*RuntimeError"):
        sample(quick, executor=Ending(2), spread=spread, **OPTIONS)


def test_tasks_that_the_executor_has_cancelled_are_not_waited_for():
    """As those of a pool that another thread shuts down with cancel_futures=True."""
    class Cancelling(ThreadPoolExecutor):
        n = 0

        def submit(self, *task):
            self.n += 1
            if self.n < 4:
                return super().submit(*task)
            future = Future()
            assert future.cancel()
            return future

    def no_longer(progress):
        assert progress.seconds < 20

    with pytest.raises(fk.SamplingError, match="CancelledError"):
        sample(quick, executor=Cancelling(2), progress=no_longer, **OPTIONS)


@pytest.mark.parametrize("on_error", ["stop", "reject"])
def test_tasks_that_are_lost_on_their_way_are_sent_again(on_error):
    """Up to four times, as on a cluster that loses some jobs: no point is without a density."""
    class Losing(ThreadPoolExecutor):
        n = 0

        def submit(self, *task):
            self.n += 1
            if self.n % 9 > 3:
                return super().submit(*task)
            future = Future()
            future.set_exception(ConnectionError("node lost"))
            return future

    with Losing(2) as pool:
        result = sample(quick, executor=pool, spread="points", on_error=on_error, **OPTIONS)
    assert_same(result, sample(quick, **OPTIONS))


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), OSError("no worker")])
def test_a_worker_that_exits_loses_no_draw(error):
    with pytest.raises(fk.SamplingError, match=f"PointLost: {type(error).__name__}") as info:
        sample(quick, executor=Bad(error), spread="points", **OPTIONS)
    assert_same(info.value.result.resume(diagnose=False), sample(quick, **OPTIONS))


def test_a_function_that_exits_in_a_thread():
    def f(x):
        if x[0] > 1.9:
            raise SystemExit(3)
        return -0.5 * float(x @ x)

    with ThreadPoolExecutor(2) as pool:
        result = sample(f, executor=pool, spread="points", on_error="reject", **OPTIONS)
    assert (np.asarray(result.draws)[..., 0] <= 1.9).all()


def test_an_evaluation_that_hangs_is_named():
    """After the run, which a rule ends; it is not among those that have failed."""
    over, at = threading.Event(), []

    def hanging(x):
        if len(at) < 1 and x[0] > 1.5:
            at.append(x.copy())
            over.wait(60)
        return -0.5 * float(x @ x)

    with ThreadPoolExecutor(2) as pool:
        try:
            result = sample(hanging, executor=pool, spread="points", stop=fk.stop.Time("1s"),
                            **OPTIONS | {"draws": 10**6, "chains": 2})
        finally:
            over.set()
    assert result.status == "stopped"
    seconds, x = result.workers.unfinished[0]
    np.testing.assert_array_equal(x, at[0])
    assert 0 < seconds < 60
    assert "not ended after" in str(result.workers)
    assert result.workers.failures == []
