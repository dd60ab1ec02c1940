"""Every form of `executor=` gives the draws of a run without it, also if a worker dies.

Pools of packages that are not installed are left out: `pip install loky joblib schwimmbad
"dask[distributed]" mpi4py mpich` has all of them.
"""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from pathlib import Path

import densities
import numpy as np
import pytest
import threadpoolctl
from densities import D
from runs import sample
from same import assert_same
from test_executors import FAILING, Beyond, Loopback, fails_beyond_three
from test_workers import HERE, dies_once_made

import fastkam as fk
from fastkam.run import executors, processes, worker

OPTIONS = {"x0": np.ones(D), "tune": 60, "draws": 250, "chains": 3, "seed": 4,
           "diagnose": False, "progress": False}
PATH = os.pathsep.join([HERE, str(Path(HERE).parent)])


class MapAlone:
    """A pool with `map` and nothing else."""

    def map(self, function, tasks):
        return [function(task) for task in tasks]


@contextmanager
def dask_client():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None,
                                  processes=True) as cluster, distributed.Client(cluster) as one:
        yield one


def loky_pool():
    return pytest.importorskip("loky").ProcessPoolExecutor(2)


KINDS = {
    "processes of the call": lambda: nullcontext(2),
    "multiprocessing.Pool": lambda: get_context("spawn").Pool(2),
    "forked multiprocessing.Pool": lambda: get_context("fork").Pool(2),
    "multiprocessing.pool.ThreadPool": lambda: ThreadPool(2),
    "map alone": lambda: nullcontext(MapAlone()),
    "schwimmbad": lambda: pytest.importorskip("schwimmbad").MultiPool(2),
    "joblib": lambda: nullcontext(pytest.importorskip("joblib").Parallel(2)),
    "loky": loky_pool,
    "dask": dask_client,
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(autouse=True)
def path_of_workers(monkeypatch):
    """Workers that start as new programs find the modules of the tests."""
    monkeypatch.setenv("PYTHONPATH", PATH)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_draws_in_every_kind_of_pool(kind):
    with KINDS[kind]() as pool:
        result = sample(densities.python, executor=pool, **OPTIONS)
        assert_same(result, sample(densities.python, **OPTIONS))
        assert_same(result.resume(20, executor=pool), result.resume(20))


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_in_every_kind_of_pool(kind):
    with KINDS[kind]() as pool, pytest.raises(
            fk.SamplingError, match=r"raised Beyond: too far \(chain 1, ") as caught:
        sample(fails_beyond_three, executor=pool, **FAILING)
    assert isinstance(caught.value.__cause__, Beyond)
    assert_same(caught.value.result.resume(target=densities.python),
                sample(densities.python, **FAILING))


@pytest.mark.parametrize("kind", ["processes of the call", "multiprocessing.Pool",
                                  "forked multiprocessing.Pool", "loky", "dask"])
def test_a_worker_that_is_killed_in_every_kind_of_pool(tmp_path, kind):
    recipe = fk.TargetRecipe(dies_once_made, str(tmp_path / "mark"))
    options = OPTIONS | {"draws": 3000}
    with KINDS[kind]() as pool:
        result = sample(recipe, executor=pool, **options)
    assert (tmp_path / "mark").exists()
    assert_same(result, sample(densities.python, **options))


def test_functions_without_a_name_in_processes_of_the_call():
    pytest.importorskip("cloudpickle")
    scale = np.ones(1)
    result = sample(lambda x: densities.python(x) * scale[0], executor=2, **OPTIONS)
    assert_same(result, sample(densities.python, **OPTIONS))


SCRIPT = """
import sys
import numpy as np
import fastkam as fk

class Own(fk.PythonSampler):
    "y ~ N(x, s^2 I)"
    s: float = 1.0

    def propose(self, x, rng):
        return x + self.s * rng.standard_normal(self.d)

def density(x):
    return -0.5 * float(x @ x)

options = dict(sampler=Own(), search=False, tune=20, draws=50, seed=1, diagnose=False)
result = fk.sample(density, np.zeros(2), executor=2, **options)
assert (result.draws == fk.sample(density, np.zeros(2), **options).draws).all()
print("same", __name__)
"""


def printed_by(text, path):
    """Return what a script of this text prints."""
    path.write_text(text)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_needs_no_guard(tmp_path):
    """Workers do not run the script again; what it defines is sent to them."""
    pytest.importorskip("cloudpickle")
    assert printed_by(SCRIPT, tmp_path / "script.py") == "same __main__\n"


SPAWNED = """
from multiprocessing import get_context
import cloudpickle
import numpy as np
import fastkam as fk

def scaled(x):
    return 0.5 * x

def density(x):
    return -float(x @ scaled(x))

def sample_in_processes():
    options = dict(sampler="ram", tune=20, draws=50, seed=1, diagnose=False)
    expected = fk.sample(density, np.zeros(2), **options).draws
    for spread in ("chains", "points", "prefetch"):
        result = fk.sample(density, np.zeros(2), executor=2, spread=spread, **options)
        assert (result.draws == expected).all()
    assert not cloudpickle.list_registry_pickle_by_value()
    print("same", __name__)

if __name__ == "__main__":
    process = get_context("spawn").Process(target=sample_in_processes)
    process.start()
    process.join()
"""


def test_functions_of_the_script_of_a_spawned_process(tmp_path):
    """They are sent whole, as in the process that has started it; cloudpickle is left as it was."""
    pytest.importorskip("cloudpickle")
    assert printed_by(SPAWNED, tmp_path / "script.py") == "same __mp_main__\n"


@pytest.mark.parametrize("main", ["__main__", "__mp_main__"])
def test_functions_of_the_main_program_need_cloudpickle(monkeypatch, main):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)

    def density(x):
        return -0.5 * float(x @ x)

    density.__module__, density.__qualname__ = main, "density"
    monkeypatch.setattr(sys.modules[main], "density", density, raising=False)
    with pytest.raises(TypeError, match=r"target .* defined in the main program, .* cloudpickle"):
        sample(density, executor=2, **OPTIONS)


ORPHANS = """
import os, sys, time
import fastkam as fk

def f(x):
    open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
    time.sleep(60)
    return 0.0

fk.sample(f, [1.0], draws=5, chains=2, executor=2, sampler="am", search=False, progress=False)
"""


def runs_still(pid):
    """Whether a process still runs; one that has ended may remain, with the state Z."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_processes_of_a_call_end_when_its_process_is_killed(tmp_path, sent):
    """Within a long evaluation, too."""
    (tmp_path / "script.py").write_text(ORPHANS)
    (tmp_path / "pids").mkdir()
    master = subprocess.Popen([sys.executable, tmp_path / "script.py", tmp_path / "pids"],
                              stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not (pids := {int(path.name) for path in (tmp_path / "pids").iterdir()} - {
                master.pid}) and time.monotonic() < until:
            time.sleep(0.05)
        assert pids
    finally:
        master.send_signal(sent)
        master.wait()
    until = time.monotonic() + 30
    while any(map(runs_still, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(runs_still, pids))


def test_processes_of_a_call_end_with_it(monkeypatch):
    started = []
    begin = processes.Process.__init__

    def noted(self):
        begin(self)
        started.append(self.popen)

    monkeypatch.setattr(processes.Process, "__init__", noted)
    sample(densities.python, executor=2, **OPTIONS)
    with pytest.raises(fk.SamplingError):
        sample(fails_beyond_three, executor=2, **FAILING)
    assert 2 <= len(started) <= 4
    assert all(one.poll() is not None for one in started)


# ---- losses ----


class Loses(Executor):
    """An executor that loses the first tasks of a chain."""

    def __init__(self, losses, every=False):
        self.left, self.every = losses, every

    def submit(self, function, *args):
        if self.left and self.is_second_chain(args):
            self.left -= 1
            future = Future()
            future.set_exception(BrokenExecutor("gone"))
            return future
        return Loopback().submit(function, *args)

    def is_second_chain(self, args):
        piece = args[5]
        return piece.chains == 1 and piece.x0[0, 0] == 2.0


STARTS = OPTIONS | {"x0": np.array([[1.0, 1.0], [2.0, 1.0], [0.0, 1.0]]), "draws": 1000}


def test_a_task_is_sent_again_three_times():
    assert_same(sample(densities.python, executor=Loses(3), **STARTS),
                sample(densities.python, **STARTS))


@pytest.mark.parametrize("stop", [None, fk.stop.ESS(1e6)])
def test_a_chain_that_is_lost_leaves_the_others_whole(stop):
    with pytest.raises(fk.SamplingError, match="BrokenExecutor: gone") as caught:
        sample(densities.python, executor=Loses(10**9), stop=stop, **STARTS)
    assert caught.value.chain == 1
    assert caught.value.result.trace.counts.tolist() == [1000, 0, 1000]
    assert_same(caught.value.result.resume(), sample(densities.python, **STARTS))


# ---- what travels ----


class Counting(Loopback):
    """An executor that says how many workers it has."""

    def __init__(self, workers):
        super().__init__(workers)
        self._max_workers = workers


@pytest.mark.parametrize("options", [{}, {"sampler": "ram"}])
def test_data_travel_once_a_worker_in_a_call(monkeypatch, options):
    """In the search, in the first part of the run and in those that follow it."""
    pytest.importorskip("cloudpickle")
    monkeypatch.setattr("fastkam.search.evaluator.SLOW_SECONDS", 0.0)
    monkeypatch.setattr(executors, "TASK_SECONDS", 0.02)
    data = np.arange(100_000.0)
    workers = Counting(2)
    fk.sample(lambda x: -0.5 * float(x @ x) + 0 * data[0], np.zeros(2), executor=workers, chains=8,
              draws=400, seed=1, diagnose=False, progress=False, **options)
    assert len(workers.tasks) > 20
    # a worker that is asked at random may miss the first, and is then sent it for the task it has
    assert sum(size > data.nbytes for size in workers.tasks) <= 2 * 2


def test_equal_targets_are_one():
    from fastkam.run.workers import as_workers

    workers = as_workers(Loopback())
    first, second = (fk.as_target(densities.python, D) for _ in range(2))
    assert workers.sending(first) is workers.sending(second)
    other = as_workers(Loopback())
    assert other.run != workers.run


# ---- BLAS ----


def blas_threads():
    return max((one["num_threads"] for one in threadpoolctl.threadpool_info()
                if one["user_api"] == "blas"), default=1)


def with_threads(x):
    return densities.python(x), {"threads": float(blas_threads())}


@pytest.mark.parametrize("kind", KINDS)
def test_blas_has_one_thread_in_workers(kind):
    before = blas_threads()
    with KINDS[kind]() as pool:
        result = sample(with_threads, executor=pool, **OPTIONS | {"draws": 50})
    assert (result.extras["threads"] == 1).all()
    assert blas_threads() == before


def minus_threads(x):
    return -float(blas_threads())


def test_blas_has_one_thread_in_tasks_of_a_search():
    from fastkam.search.spread import evaluate_sent

    target = pickle.dumps(fk.as_target(minus_threads, 1))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        _, found = evaluate_sent(1, "run", "digest", target, "", np.zeros((3, 1)), None)
    np.testing.assert_array_equal(found[0], -1)


def test_blas_is_limited_while_any_task_runs():
    """Tasks that overlap in the threads of a worker, as dask's do."""
    from fastkam.run.blas import BlasLimit

    limit, before, seen = BlasLimit(), blas_threads(), []

    def task(seconds):
        with limit():
            time.sleep(seconds)
            seen.append(blas_threads())

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(task, [0.05, 0.1, 0.15]))
    assert seen == [1, 1, 1]
    assert blas_threads() == before


# ---- Ctrl-C ----

def asked_to_end():
    return worker.interrupts.asked.wait(10)


def test_a_task_in_a_process_of_the_call_is_asked_to_end():
    with processes.Processes(1) as pool:
        assert pool.submit(abs, -1).result() == 1   # the process has begun
        task = pool.submit(asked_to_end)
        pool.interrupt()
        assert task.result()


INTERRUPTED = """
import sys, warnings
from multiprocessing import get_context
from contextlib import nullcontext
import densities, same, test_workers
import fastkam as fk

def ready(progress):
    if min(progress.draws) > 0:
        print("drawing", flush=True)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    options = dict(sampler="ram", search=False, tune=20, chains=3, seed=1)
    pool = get_context("spawn").Pool(2) if sys.argv[1] == "Pool" else nullcontext(2)
    with pool as executor:
        part = fk.sample(test_workers.slow, [0.0, 0.0], draws=10**5, progress=ready,
                         executor=executor, **options)
    assert part.status == "interrupted", part
    assert part.trace.rows > 0
    rows = int(part.trace.counts.max()) + 20
    whole = fk.sample(densities.python, [0.0, 0.0], draws=rows, **options)
    same.assert_same(part.resume(20, target=densities.python), whole)
    print("same", flush=True)
"""


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("kind", ["processes", "Pool"])
def test_ctrl_c_keeps_the_draws(tmp_path, kind, group):
    """To this process alone, as a notebook sends it, or to the workers too, as a terminal does."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    with subprocess.Popen([sys.executable, script, kind], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "drawing\n"
        time.sleep(0.2)
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.endswith("same\n"), err


# ---- what is refused ----


@pytest.mark.parametrize("given", [0, -1, True, 2.5, "4", ThreadPoolExecutor, object(), [1]])
def test_executors_that_run_no_tasks_are_refused(given):
    with pytest.raises((TypeError, ValueError), match="executor must be"):
        sample(densities.python, executor=given, **OPTIONS)


# ---- MPI ----

MPI = """
import numpy as np
import densities, same
import fastkam as fk
from runs import sample
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor

if __name__ == "__main__":
    options = dict(x0=np.ones(2), tune=60, draws=250, chains=4, seed=4, diagnose=False)
    with MPIPoolExecutor() as pool:
        result = sample(densities.python, executor=pool, **options)
    same.assert_same(result, sample(densities.python, **options))
    print("same", MPI.COMM_WORLD.Get_size())
"""


def test_three_ranks_of_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec.hydra") or shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("no mpiexec")
    (tmp_path / "script.py").write_text(MPI)
    done = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", tmp_path / "script.py"],
        capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("same 3\n"), done.stderr
