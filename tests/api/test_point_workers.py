"""Points on workers: the same bits whatever the workers do, and nothing lost when they fail."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from runs import sample
from same import assert_same
from scipy import stats
from simulators import (
    OPTIONS,
    dies_beyond,
    dies_once,
    loglike,
    nan_beyond,
    noted,
    outside_beyond,
    pid_of,
    quick,
    raises_beyond,
    slow,
    with_gradient,
)

import fastkam as fk
from fastkam.points.carriers import Here, OverExecutor
from fastkam.points.executor import tasks_at_once
from fastkam.points.pool import PointPool
from fastkam.run.workers import as_workers

POINTS = {"spread": "points"}


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


class Held(Executor):
    """Workers whose tasks end by `end` once nothing has been submitted for `pause` seconds."""

    def __init__(self, workers, pause):
        self._max_workers, self.pause = workers, pause
        self.tasks, self.lock, self.touched, self.closed = [], threading.Lock(), 0, False
        self.thread = threading.Thread(target=self.tend, daemon=True)
        self.thread.start()

    def tend(self):
        while not self.closed:
            touched = self.touched
            time.sleep(self.pause)
            if touched == self.touched:
                self.end()

    def __exit__(self, *error):
        self.closed = True
        self.thread.join()


class Late(Held):
    """Workers whose tasks end in random order; as many are under way as there are workers."""

    def __init__(self, workers, seed=0):
        self.random, self.order = random.Random(seed), []
        super().__init__(workers, 0.0005)

    def submit(self, function, *args):
        future = Future()
        with self.lock:
            self.tasks.append((future, function, args))
            self.touched += 1
            full = len(self.tasks) > self._max_workers
        if full:
            self.end()
        return future

    def end(self):
        """End one task."""
        with self.lock:
            if not self.tasks:
                return
            i = self.random.randrange(len(self.tasks))
            future, function, args = self.tasks.pop(i)
            self.order.append(i)
        if future.set_running_or_notify_cancel():
            future.set_result(function(*args))


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_same_bits_for_any_number_of_processes(workers):
    expected = sample(quick, **OPTIONS)
    with ProcessPoolExecutor(workers) as pool:
        result = sample(quick, executor=pool, **POINTS, **OPTIONS)
    assert_same(result, expected)
    np.testing.assert_array_equal(result["many"], expected["many"])
    assert result.workers.workers == workers
    assert result.workers.points > 0


@pytest.mark.parametrize("options", [{}, {"sampler": "pt"}, {"share": True}, {"sampler": "dram"},
                                     {"sampler": "auto", "search": True, "chains": 2}])
def test_the_same_bits_in_any_order(options):
    options = OPTIONS | options
    expected = sample(quick, **options)
    orders = []
    for workers in (1, 7):
        with Late(workers, seed=workers) as late:
            assert_same(sample(quick, executor=late, **POINTS, **options), expected)
        orders.append(late.order)
    assert any(orders[1])                       # not the first that was submitted


def test_a_thousand_workers():
    options = {"x0": np.zeros(2), "chains": 1000, "draws": 3, "tune": 3, "seed": 5,
               "diagnose": False}
    with Late(1000) as late:
        assert_same(sample(quick, executor=late, **POINTS, **options), sample(quick, **options))
    assert np.mean(late.order) > 100


def test_all_kinds_of_targets(processes):
    built_in = fk.targets.two_mode()
    assert_same(sample(built_in, executor=processes, **POINTS, **OPTIONS),
                sample(built_in, **OPTIONS))
    recipe = fk.TargetRecipe("simulators:built_in")
    assert_same(sample(recipe, executor=processes, **POINTS, **OPTIONS),
                sample(built_in, **OPTIONS))
    mala = OPTIONS | {"sampler": "mala"}
    assert_same(sample(with_gradient, executor=processes, **POINTS, **mala),
                sample(with_gradient, **mala))
    assert_same(sample(built_in, executor=processes, **POINTS, **OPTIONS | {"sampler": "ram"}),
                sample(built_in, **OPTIONS))

    def vectorized(X):
        return -0.5 * (X**2).sum(axis=1)

    pytest.importorskip("cloudpickle")
    assert_same(sample(vectorized, vectorized=True, executor=processes, **POINTS, **OPTIONS),
                sample(vectorized, vectorized=True, **OPTIONS))
    prior = {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=3)}
    options = {"draws": 40, "tune": 40, "seed": 2, "diagnose": False, "sampler": "ram"}
    assert_same(fk.sample(loglike, prior=prior, executor=processes, **POINTS, **options),
                fk.sample(loglike, prior=prior, **options))


def test_behind_a_surrogate(processes):
    def cheap(x):
        return -0.4 * float(x @ x)

    expected = sample(quick, surrogate=cheap, **OPTIONS)
    result = sample(quick, surrogate=cheap, executor=processes, **POINTS, **OPTIONS)
    assert_same(result, expected)
    assert_same(result.resume(10, diagnose=False), expected.resume(10, diagnose=False))


def test_points_where_calls_are_slow_and_workers_many():
    with ThreadPoolExecutor(8) as pool:
        spread = sample(slow, executor=pool, **OPTIONS | {"draws": 5, "tune": 3})
        assert spread.workers is not None
        assert spread.workers.workers == 8
        quickly = sample(quick, executor=pool, **OPTIONS | {"draws": 5, "tune": 3})
        assert quickly.workers is None
        chains = sample(slow, executor=pool, spread="chains", **OPTIONS | {"draws": 2, "tune": 1})
        assert chains.workers is None
    with ThreadPoolExecutor(5) as pool:         # one for each chain
        assert sample(slow, executor=pool, **OPTIONS | {"draws": 2, "tune": 1}).workers is None


def test_resume_and_checkpoint(processes, tmp_path):
    expected = sample(quick, **OPTIONS)
    first = sample(quick, executor=processes, checkpoint=tmp_path / "run.npz", **POINTS,
                   **OPTIONS | {"draws": 30})
    assert_same(first.resume(30, executor=processes, diagnose=False, **POINTS), expected)
    again = fk.resume(tmp_path / "run.npz", 30, target=quick, executor=processes, diagnose=False,
                      evaluations=tmp_path / "calls.fk")
    assert_same(again, expected)


# ---- failures ----


def test_a_worker_that_dies_costs_the_points_it_held(tmp_path):
    expected = sample(quick, **OPTIONS)
    target = partial(dies_once, folder=tmp_path)
    with ProcessPoolExecutor(2) as pool:
        result = sample(target, executor=pool, **POINTS, **OPTIONS)
    assert_same(result, expected)
    assert (tmp_path / "dead").exists()
    assert 0 < result.workers.n_failures < 10


@pytest.mark.parametrize("target", [dies_beyond, raises_beyond])
def test_a_point_that_fails_twice_is_rejected(target, tmp_path):
    options = OPTIONS | {"x0": np.zeros(2), "draws": 20, "tune": 10, "chains": 3}
    expected = sample(nan_beyond, **options)
    with ProcessPoolExecutor(2) as pool:
        result = sample(target, executor=pool, on_error="reject",
                        evaluations=tmp_path / "calls.fk", **options)
    assert_same(result, expected)
    calls = fk.Evaluations(tmp_path / "calls.fk")
    failed = np.array([error != "" for error in calls.errors])
    assert failed.sum() == expected.rejected["nan"].sum() > 0
    assert (calls.x[failed, 0] > 1.5).all()
    x, error, _ = result.workers.failures[-1]
    assert ("no solution" in error) == (target is raises_beyond)
    assert x.shape == (2,)


@pytest.mark.parametrize("target", [dies_beyond, raises_beyond])
def test_a_point_that_fails_twice_ends_the_run(target):
    options = OPTIONS | {"x0": np.zeros(2)}
    with (ProcessPoolExecutor(2) as pool,
          pytest.raises(fk.SamplingError, match=r"no solution|BrokenProcessPool") as info):
        sample(target, executor=pool, **POINTS, **options)
    assert info.value.x[0] > 1.5
    result = info.value.result
    assert result.status == "failed"
    assert result.workers.n_failures >= 2
    if target is raises_beyond:
        assert "in a worker" in "".join(info.value.__cause__.__notes__)
    result.target = fk.as_target(outside_beyond, 2)
    assert_same(result.resume(diagnose=False), sample(outside_beyond, **options))


def test_objects_that_cannot_be_sent_are_named_before_the_run(processes):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be sent to the workers"):
        sample(lambda x: lock and 0.0, executor=processes, **POINTS, **OPTIONS)


def test_the_time_of_a_job_ends_the_run_and_its_file_goes_on(tmp_path):
    expected = sample(quick, **OPTIONS)
    path = tmp_path / "calls.fk"
    with ThreadPoolExecutor(2) as pool:
        begun = time.monotonic()
        result = sample(slow, executor=pool, evaluations=path, stop=fk.stop.Time(0.5),
                        **OPTIONS)
        assert time.monotonic() - begun < 10
    assert result.status == "stopped"
    n = len(fk.Evaluations(path))
    assert 0 < n < expected.evaluations
    again = sample(slow, evaluations=path, **OPTIONS | {"draws": 5, "chains": 5})
    assert len(fk.Evaluations(path)) >= n
    assert again.status == "complete"


def test_a_killed_master_goes_on_from_its_file(tmp_path):
    """A pool of processes repeats no call of the file."""
    program = (
        "import sys, time; sys.path[:0] = sys.argv[3:]\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from functools import partial\n"
        "from runs import sample\n"
        "from simulators import OPTIONS, noted\n"
        "if __name__ == '__main__':\n"
        "    with ProcessPoolExecutor(2) as pool:\n"
        "        sample(partial(noted, folder=sys.argv[1]), evaluations=sys.argv[2],\n"
        "               executor=pool, **OPTIONS | {'draws': 10**5})\n")
    folder, path, here = tmp_path / "notes", tmp_path / "calls.fk", Path(__file__).parent
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-c", program, folder, path, here, here.parent],
                               start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < 120 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.2)                             # workers may end the tasks that they have
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    known = len(fk.Evaluations(path))
    assert known > 50
    before = len(list(folder.iterdir()))
    target = partial(noted, folder=str(folder))
    with ProcessPoolExecutor(2) as pool:
        result = sample(target, evaluations=path, executor=pool, **OPTIONS)
    assert_same(result, sample(quick, **OPTIONS))
    calls = fk.Evaluations(path)
    assert len(np.unique(calls.x, axis=0)) == len(calls)
    assert len(list(folder.iterdir())) - before == len(calls) - known


# ---- the pool of points alone ----


def test_a_pool_numbers_its_points():
    pool = PointPool(Here(fk.as_target(quick, 2)))
    X = np.arange(12.0).reshape(6, 2)
    assert pool.submit(X[:4]) == [0, 1, 2, 3]
    assert pool.submit(X[2:]) == [4, 5, 6, 7]
    found = {}
    while len(found) < 8:
        found |= dict(pool.wait())
    assert [found[i].value for i in range(8)] == [quick(x)[0] for x in [*X[:4], *X[2:]]]
    assert pool.record.points == 6
    assert pool.waiting == 0
    assert pool.wait() == []
    assert [reply.value for reply in pool.evaluate(X[::-1])] == [quick(x)[0] for x in X[::-1]]
    assert pool.record.points == 6


def test_short_calls_share_a_task(processes):
    carrier = OverExecutor(as_workers(processes), fk.as_target(quick, 2))
    carrier.workers = 1000
    for seconds, size in ((30.0, 1), (1.0, 5), (0.1, 50), (1e-9, 4096)):
        carrier.seconds = seconds
        assert carrier.task_size == size
    carrier.workers, carrier.seconds = 2, 1e-3
    pool = PointPool(carrier)
    X = np.random.default_rng(1).normal(size=(200, 2))
    assert [reply.value for reply in pool.evaluate(X)] == [quick(x)[0] for x in X]


def test_the_tasks_at_once(processes):
    assert tasks_at_once(processes) == 2
    with ThreadPoolExecutor(3) as pool:
        assert tasks_at_once(pool) == 3
    assert tasks_at_once(Executor()) is None


def test_work_is_done_elsewhere(processes):
    result = sample(pid_of, executor=processes, **POINTS, **OPTIONS)
    assert os.getpid() not in set(result["process"].ravel())
    assert len(result.workers.by_worker) <= 2
    assert "evaluations by 2 workers" in str(result.workers)


def test_blas_has_one_thread_in_a_worker(processes):
    def threads(x):
        from threadpoolctl import threadpool_info
        most = max([one["num_threads"] for one in threadpool_info()
                    if one["user_api"] == "blas"], default=1)
        return -0.5 * float(x @ x), {"threads": most}

    pytest.importorskip("cloudpickle")
    result = sample(threads, executor=processes, **POINTS, **OPTIONS | {"draws": 3, "tune": 1})
    assert (result["threads"] == 1).all()


def test_dask():
    distributed = pytest.importorskip("distributed")
    expected = sample(quick, **OPTIONS)
    with (distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
          distributed.Client(cluster) as client):
        executor = client.get_executor()
        assert tasks_at_once(executor) == 2
        assert_same(sample(quick, executor=executor, **POINTS, **OPTIONS), expected)


# ---- prefetching ----


class Rounds(Held):
    """Workers that are equally quick: all tasks that are under way end together."""

    def __init__(self, workers):
        self.rounds, self.calls = 0, 0
        super().__init__(workers, 0.004)

    def submit(self, function, *args):
        future = Future()
        with self.lock:
            self.tasks.append((future, function, args))
            self.touched += 1
        return future

    def end(self):
        """End all tasks."""
        with self.lock:
            tasks, self.tasks = self.tasks, []
        self.rounds += bool(tasks)
        self.calls += len(tasks)
        for future, function, args in tasks:
            if future.set_running_or_notify_cancel():
                future.set_result(function(*args))


@pytest.mark.parametrize("options", [
    {}, {"sampler": "ram"}, {"sampler": "kam"}, {"sampler": "mala"}, {"sampler": "pt"},
    {"sampler": "dram"}, {"share": True}, {"sampler": "auto", "search": True, "chains": 2},
    {"schedule": "perpetual"}])
def test_prefetching_changes_no_bit(options):
    options = OPTIONS | options
    f = with_gradient if options.get("sampler") == "mala" else quick
    expected = sample(f, **options)
    with Late(12, seed=3) as late:
        assert_same(sample(f, executor=late, spread="prefetch", **options), expected)


def test_prefetching_with_a_prior(processes):
    prior = {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=3)}
    options = {"draws": 40, "tune": 40, "seed": 2, "diagnose": False, "sampler": "ram", "chains": 1}
    assert_same(fk.sample(loglike, prior=prior, executor=processes, spread="prefetch", **options),
                fk.sample(loglike, prior=prior, **options))


@pytest.mark.parametrize("sampler", ["rwm", "am", "jumps"])
def test_prefetching_needs_fewer_rounds(sampler):
    """One chain and 15 workers: several of its steps are in the points of a round.

    A chain that rejects three of four proposals makes about 1 + 3/4 + (3/4)^2 + ... steps a round.
    """
    options = OPTIONS | {"sampler": sampler, "chains": 1, "draws": 200, "tune": 50}
    made = {}
    for spread in ("points", "prefetch"):
        with Rounds(15) as workers:
            result = sample(quick, executor=workers, spread=spread, **options)
        made[spread] = workers.rounds
    assert made["points"] >= 200
    assert made["prefetch"] - 50 < 0.6 * (made["points"] - 50)    # of warm-up none is guessed
    assert workers.calls > result.evaluations


def test_a_point_that_is_not_needed_may_fail():
    """An error at a point that no chain needs does not end the run."""
    seen = set()

    def fails_elsewhere(x):
        if tuple(x) not in seen:
            raise ValueError("no chain comes here")
        return -0.5 * float(x @ x)

    def notes(x):
        seen.add(tuple(x))
        return -0.5 * float(x @ x)

    options = OPTIONS | {"chains": 1, "sampler": "rwm"}
    expected = sample(notes, **options)
    with Late(8) as late:
        result = sample(fails_elsewhere, executor=late, spread="prefetch", **options)
    assert_same(result, expected)
    assert result.workers.n_failures > 0


def test_prefetching_needs_to_know_the_workers():
    class Silent(Executor):
        def submit(self, function, *args):
            raise AssertionError

    with pytest.raises(ValueError, match="says how many workers it has"):
        sample(quick, executor=Silent(), spread="prefetch", **OPTIONS)
    with pytest.raises(ValueError, match="spread='prefetch' needs executor"):
        sample(quick, spread="prefetch", **OPTIONS)
