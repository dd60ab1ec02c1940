"""Chains as tasks of an executor: the same draws, and nothing lost when a worker fails."""

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import types
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import densities
import numpy as np
import pytest
from densities import D, Provider, short, with_gradient
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.run import worker
from fastkam.run.sending import portable_target
from fastkam.samplers import SAMPLERS

OPTIONS = {"x0": np.ones(D), "tune": 60, "draws": 250, "chains": 3, "seed": 4,
           "diagnose": False}


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


class Loopback(Executor):
    """An executor of another package: tasks are pickled, and its `workers` share nothing."""

    def __init__(self, workers=1):
        self.caches, self.tasks = [{} for _ in range(workers)], []
        self.random = random.Random(1)

    def submit(self, function, *args):
        task = pickle.dumps((function, args))
        cache = self.random.choice(self.caches)
        self.tasks.append(len(task))
        future = Future()
        known, worker.known_targets = worker.known_targets, cache
        try:
            function, args = pickle.loads(task)
            future.set_result(pickle.loads(pickle.dumps(function(*args))))
        except BaseException as error:
            future.set_exception(error)
        finally:
            worker.known_targets = known
        return future


class Beyond(Exception):
    """Raised where a chain has moved too far."""


def fails_beyond_three(x):
    if x[0] > 3:
        raise Beyond("too far")
    return densities.python(x)


def dies_beyond_three(x):
    if x[0] > 3:
        os._exit(1)
    return densities.python(x)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("kind", ["python", "vectorized"])
def test_the_same_draws(processes, kind, name):
    target = with_gradient(kind, None)
    expected = sample(target, sampler=short(name), **OPTIONS)
    with ThreadPoolExecutor(2) as threads:
        for executor in (threads, processes, Loopback()):
            result = sample(target, sampler=short(name), executor=executor, **OPTIONS)
            assert_same(result, expected)


def test_compiled_targets_are_sent_to_workers_as_recipes(library, processes):
    recipe = fk.TargetRecipe("densities:Provider", library)
    expected = sample(Provider(library), **OPTIONS)
    result = sample(recipe, executor=processes, **OPTIONS)
    assert_same(result, expected)
    assert_same(result.resume(50, executor=processes), expected.resume(50))
    assert_same(sample(recipe, **OPTIONS), expected)
    with pytest.raises(TypeError, match=r"target <Target .*> cannot be sent .*TargetRecipe"):
        sample(Provider(library), executor=processes, **OPTIONS)


def test_built_in_targets_are_pickled(processes):
    target = fk.targets.two_mode()
    expected = sample(target, **OPTIONS)
    assert_same(sample(target, executor=processes, **OPTIONS), expected)


def test_numba_functions_are_pickled():
    numba = pytest.importorskip("numba")
    expected = sample(densities.python, **OPTIONS)
    assert_same(sample(numba.njit(densities.python), executor=Loopback(), **OPTIONS), expected)


def test_functions_without_a_name(processes, monkeypatch):
    pytest.importorskip("cloudpickle")
    expected = sample(densities.python, **OPTIONS)
    result = sample(lambda x: densities.python(x), executor=processes, **OPTIONS)
    assert_same(result, expected)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"target <function .*lambda.* cannot be sent .*install "
                                        r"cloudpickle, or give a fastkam.TargetRecipe"):
        sample(lambda x: 0.0, executor=processes, **OPTIONS)


@pytest.mark.parametrize(("installed", "says"), [
    (None, "define the function in a module, install cloudpickle, or give a fastkam.TargetRecipe"),
    (types.SimpleNamespace(dumps=pickle.dumps),
     "define the function in a module, or give a fastkam.TargetRecipe")])
def test_cloudpickle_is_advised_where_it_is_missing(monkeypatch, installed, says):
    monkeypatch.setitem(sys.modules, "cloudpickle", installed)
    with pytest.raises(TypeError, match=says):
        portable_target(lambda x: 0.0)


def test_functions_of_the_main_program(processes, monkeypatch):
    """They are sent whole, as the main program of a worker may be another."""
    pytest.importorskip("cloudpickle")

    def density(x):
        return -0.5 * float(x @ x)

    expected = sample(density, **OPTIONS)
    density.__module__, density.__qualname__ = "__main__", "density"
    monkeypatch.setattr(sys.modules["__main__"], "density", density, raising=False)
    assert pickle.dumps(density)        # by its name
    assert_same(sample(density, executor=processes, **OPTIONS), expected)


def test_thread_pools_need_no_pickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    lock = threading.Lock()

    def density(x):
        with lock:
            return densities.python(x)

    with ThreadPoolExecutor(2) as pool:
        result = sample(density, executor=pool, **OPTIONS)
    assert_same(result, sample(densities.python, **OPTIONS))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_target_is_sent_once_to_each_worker(workers):
    """A large likelihood is sent again only to workers that do not have it."""
    data = np.arange(100_000.0)
    target = fk.TargetRecipe(likelihood, data)
    executor = Loopback(workers)
    result = sample(target, executor=executor, stop=fk.stop.Evaluations(3 * 900),
                    **OPTIONS | {"draws": 2000})
    assert_same(result, sample(target, stop=fk.stop.Evaluations(3 * 900),
                               **OPTIONS | {"draws": 2000}))
    assert len(executor.tasks) > 20
    assert sum(size > data.nbytes for size in executor.tasks) <= 3 + workers


def likelihood(data):
    return lambda x: densities.python(x) + 0 * data[0]


def test_milestones_and_checkpoints(tmp_path):
    path = tmp_path / "run.fk"
    whole = sample(densities.python, **OPTIONS)
    result = sample(densities.python, executor=Loopback(), checkpoint=path,
                    checkpoint_interval=0.0, **OPTIONS)
    assert_same(result, whole)
    assert_same(fk.load(path), whole)
    seen = []
    sample(densities.python, executor=Loopback(), progress=seen.append, **OPTIONS)
    assert seen[-1].steps == seen[-1].total == 3 * 310
    part = sample(densities.python, executor=Loopback(), stop=fk.stop.Evaluations(300),
                  **OPTIONS)
    assert part.evaluations == 300
    assert_same(part.resume(250 - part.trace.rows), whole)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, Loopback])
def test_time_ends_a_run_of_tasks(pool):
    """The results of finished tasks are a run that can be resumed."""
    with pool(2) as executor:
        part = sample(densities.python, executor=executor, stop=fk.stop.Time(0.1),
                      **OPTIONS | {"draws": 100_000})
    assert part.status == "stopped"
    rows = int(part.trace.counts.max()) + 10
    assert rows < 100_000
    whole = sample(densities.python, **OPTIONS | {"draws": rows})
    assert_same(part.resume(10), whole)


# ---- failures ----

FAILING = OPTIONS | {"x0": np.array([[0.0, 0.0], [2.9, 4.0], [0.0, 0.0]]), "draws": 30, "tune": 5,
                     "seed": 1, "sampler": fk.RandomWalk(proposal_cov=0.01)}


def test_a_failure_in_a_worker_keeps_all_other_chains(processes):
    """Chain 1 starts where it soon fails; with this seed the others never do."""
    for executor in (processes, Loopback()):
        with pytest.raises(fk.SamplingError, match=r"raised Beyond: too far \(chain 1, ") as caught:
            sample(fails_beyond_three, executor=executor, **FAILING)
        error = caught.value
        assert isinstance(error.__cause__, Beyond)
        assert "in fails_beyond_three" in error.__cause__.__notes__[0]
        assert error.chain == 1
        assert error.x[0] > 3
        counts = error.result.trace.counts.tolist()
        assert counts[0] == 30
        assert_same(error.result.resume(target=densities.python),
                    sample(densities.python, **FAILING))


def test_a_failure_in_a_thread_pool_is_the_cause_of_the_error():
    with ThreadPoolExecutor(2) as pool, pytest.raises(fk.SamplingError) as caught:
        sample(fails_beyond_three, executor=pool, **FAILING)
    assert caught.value.__cause__.__traceback__ is not None
    assert_same(caught.value.result.resume(target=densities.python),
                sample(densities.python, **FAILING))


def test_tasks_that_wait_for_a_worker_are_withdrawn_after_a_failure():
    waiting = []

    class Busy(Loopback):
        """Only the first task finds a worker; the others are given up after ten seconds."""

        def submit(self, function, *args):
            if not self.tasks:
                return super().submit(function, *args)
            future = Future()
            timer = threading.Timer(10.0, future.set_exception, [TimeoutError()])
            future.add_done_callback(lambda _: timer.cancel())
            timer.start()
            waiting.append(future)
            return future

    with pytest.raises(fk.SamplingError, match=r"raised Beyond: too far \(chain 0, "):
        sample(fails_beyond_three, executor=Busy(), **FAILING | {"x0": FAILING["x0"][[1, 0, 2]]})
    assert [future.cancelled() for future in waiting] == [True, True]


def test_a_worker_that_dies():
    """Four times at the same point: the other chains are not concerned."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(fk.SamplingError, match=r"stopped by BrokenProcessPool.*\(chain 1, "
                           "whose task was lost four times") as caught:
            sample(dies_beyond_three, executor=pool, **FAILING)
        assert isinstance(caught.value.__cause__, BrokenProcessPool)
        assert caught.value.chain == 1
    assert caught.value.result.trace.counts.tolist() == [30, 0, 30]
    assert_same(caught.value.result.resume(target=densities.python),
                sample(densities.python, **FAILING))


class Unsendable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raises_unsendable(x):
    raise Unsendable("this", "that")


def test_an_exception_that_cannot_be_pickled():
    with pytest.raises(fk.SamplingError, match="Unsendable: this and that") as caught:
        sample(raises_unsendable, executor=Loopback(), **OPTIONS)
    assert "in raises_unsendable" in caught.value.__cause__.__notes__[0]


INTERRUPTED = """
import sys, warnings
import densities, same
import fastkam as fk
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

def ready(progress):
    if min(progress.draws) > 0:
        print("drawing", flush=True)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    options = dict(sampler="ram", search=False, tune=100, chains=2, seed=1)
    if sys.argv[2] == "process":
        pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    else:
        pool = ThreadPoolExecutor(2)
    target = fk.TargetRecipe("densities:ctypes_function", sys.argv[3], "slow")
    with pool:
        part = fk.sample(target, [0.0, 0.0], draws=40_000, progress=ready, executor=pool,
                         checkpoint=sys.argv[4], **options)
    assert part.status == "interrupted", part
    rows = int(part.trace.counts.max()) + 20
    whole = fk.sample(target, [0.0, 0.0], draws=rows, **options)
    same.assert_same(part.resume(20), whole)
    print("same", flush=True)
"""


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_ctrl_c_returns_what_finished(library, tmp_path, kind):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    here = os.pathsep.join(str(path) for path in Path(__file__).parents[:2])
    with subprocess.Popen([sys.executable, script, here, kind, library, tmp_path / "run.fk"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ | {"PYTHONPATH": here}) as process:
        assert process.stdout.readline() == "drawing\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.endswith("same\n"), err


def test_results_are_pickled_without_their_target(library):
    result = sample(Provider(library), **OPTIONS)
    other = pickle.loads(pickle.dumps(result))
    assert other.target is None
    assert_same(other, result)
    assert_same(other.resume(10, target=densities.python), result.resume(10))


# ---- the search before the run ----


def ridged(x):
    """A density that fails in a corner, where only the search comes."""
    if x[0] > 40:
        raise ValueError("too far")
    return -0.5 * float(x @ x)


class Counting(Loopback):
    """An executor that counts the tasks of the search."""

    broken_after = 10**9
    searches = 0

    def submit(self, function, *args):
        if function.__name__ == "evaluate_sent":
            self.searches += 1
            if self.searches > self.broken_after:
                raise BrokenProcessPool("no worker is left")
        return super().submit(function, *args)


@pytest.mark.parametrize("options", [{}, {"sampler": "am"}, {"broken_after": 7}])
def test_workers_evaluate_the_points_of_a_search(monkeypatch, options):
    """Values, failures and counts are the same with and without workers."""
    monkeypatch.setattr("fastkam.search.evaluator.SLOW_SECONDS", 0.0)
    executor = Counting(3)
    executor.broken_after = options.pop("broken_after", executor.broken_after)
    common = {"draws": 30, "tune": 50, "seed": 2, "thin": 1, "diagnose": False} | options
    here = fk.sample(ridged, [1.0, 1.0], **common)
    there = fk.sample(ridged, [1.0, 1.0], executor=executor, **common)
    assert_same(here, there)
    assert there.evaluations == here.evaluations
    assert there.search == here.search
    assert executor.searches > 7


def test_a_fault_in_a_search_elsewhere(monkeypatch):
    """An interrupt of the density's own ends the search, as it does here."""
    monkeypatch.setattr("fastkam.search.evaluator.SLOW_SECONDS", 0.0)

    def f(x):
        if abs(x[0]) > 3:
            raise MemoryError("of a worker")
        return -0.5 * float(x @ x)

    pytest.importorskip("cloudpickle")
    with pytest.raises(fk.SamplingError, match="of a worker") as seen:
        fk.sample(f, [1.0, 1.0], executor=Loopback(2), seed=1)
    assert isinstance(seen.value.__cause__, MemoryError)


def test_a_fast_density_is_searched_in_the_main_process():
    executor = Counting(2)
    fk.sample(ridged, [1.0, 1.0], executor=executor, draws=10, tune=10, seed=2, diagnose=False)
    assert executor.searches == 0
