"""Worker processes that die, are interrupted, or have an old target: no draw is lost."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import active_children, get_context
from pathlib import Path

import densities
import numpy as np
import pytest
from densities import D
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.density.forms import with_surrogate
from fastkam.run import executors, tasks
from fastkam.run.processes import Process
from fastkam.run.sending import portable

OPTIONS = {"x0": np.ones(D), "tune": 50, "draws": 3000, "chains": 3, "seed": 4, "diagnose": False,
           "progress": False}
HERE = str(Path(__file__).parent)


@pytest.fixture
def short_tasks(monkeypatch):
    monkeypatch.setattr(executors, "TASK_SECONDS", 0.05)


def new_pool(workers=2, **options):
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), **options)


def dies_once(x, mark):
    """A density that kills its process, the first time that x[0] > 1.5."""
    if x[0] > 1.5 and not os.path.exists(mark):
        with suppress(FileExistsError):  # another process has made it in between
            open(mark, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
    return densities.python(x)


def dies_once_made(mark):
    return lambda x: dies_once(x, mark)


def dies_far_away(x):
    if x[0] > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return densities.python(x)


@pytest.mark.parametrize("options", [{}, {"share": True}, {"stop": fk.stop.Evaluations(6000)}],
                         ids=["alone", "shared", "stop"])
def test_a_worker_that_is_killed_once_changes_no_draw(tmp_path, options):
    recipe = fk.TargetRecipe(dies_once_made, str(tmp_path / "mark"))
    with new_pool() as pool:
        result = sample(recipe, executor=pool, **OPTIONS | options)
    assert (tmp_path / "mark").exists()
    assert_same(result, sample(densities.python, **OPTIONS | options))


def test_workers_that_are_killed_again_and_again(tmp_path, short_tasks):
    """Each time the chains are further on, and so each is sent again."""
    killed = [0]

    def kill(progress):
        if min(progress.draws) > killed[-1] + 500:
            killed.append(max(progress.draws))
            for worker in active_children():
                os.kill(worker.pid, signal.SIGKILL)

    with new_pool() as pool:
        result = sample(slow, executor=pool, checkpoint=tmp_path / "run.fk",
                        **OPTIONS | {"progress": kill})
    assert len(killed) > 3
    assert_same(result, sample(densities.python, **OPTIONS))
    assert_same(fk.load(tmp_path / "run.fk"), result)


def test_a_worker_that_dies_without_a_task_is_replaced():
    def done(future):
        while not future.done():
            each.tend()
            time.sleep(0.01)
        return future.result()

    with new_pool(1) as pool:
        each = tasks.OneEach(pool)
        pid = done(each.submit(os.getpid))
        os.kill(pid, signal.SIGKILL)
        while not each.free[0]._broken:
            time.sleep(0.01)
        assert done(each.submit(os.getpid)) != pid
        each.shutdown()


def slow(x):
    time.sleep(0.0005)
    return densities.python(x)


def test_a_chain_whose_worker_dies_repeatedly_is_reported():
    """The others go on to their end; resuming without the fault gives the whole run."""
    options = OPTIONS | {"draws": 400, "x0": np.array([[0.0, 0.0], [2.9, 4.0], [0.0, 0.0]]),
                         "tune": 5, "seed": 1, "sampler": fk.RandomWalk(proposal_cov=0.01)}
    with new_pool(3) as pool, pytest.raises(fk.SamplingError) as caught:
        sample(dies_far_away, executor=pool, **options)
    error = caught.value
    assert error.chain == 1
    assert "(chain 1, whose task was lost four times at the same draw)" in str(error)
    counts = error.result.trace.counts.tolist()
    assert counts[0] == counts[2] == 400
    assert_same(error.result.resume(target=densities.python), sample(densities.python, **options))


def test_a_pool_that_was_broken_before(short_tasks):
    """Its workers are replaced for this run; where they cannot begin, the error says so."""
    with new_pool(1) as pool:
        with pytest.raises(Exception, match="terminated abruptly"):
            pool.submit(os._exit, 1).result()
        result = sample(densities.python, executor=pool, **OPTIONS)
    assert_same(result, sample(densities.python, **OPTIONS))
    with new_pool(1, initializer=os._exit, initargs=(1,)) as pool, pytest.raises(
            fk.SamplingError, match="stopped by BrokenProcessPool"):
        sample(densities.python, executor=pool, **OPTIONS)


def test_chains_run_on_as_many_new_workers_as_the_pool_had():
    with new_pool(2) as pool:
        each = tasks.OneEach(pool)
    try:
        futures = [each.submit(time.sleep, 0.05) for _ in range(5)]
        assert len(each.running) == 2
        while not all(future.done() for future in futures):
            each.tend()
            time.sleep(0.005)
        assert len(each.free) == 2
    finally:
        each.shutdown()


# ---- the target in a worker ----


class Scaled:
    """A normal density with the sd that a file holds, read when it is made."""

    def __init__(self, path):
        self.sd = float(Path(path).read_text())

    def __call__(self, x):
        return -0.5 * float(x @ x) / self.sd**2


def test_a_recipe_is_followed_again_in_every_run(tmp_path):
    """The data behind it may have changed since, as in this process."""
    path = tmp_path / "sd"
    recipe = fk.TargetRecipe(Scaled, str(path))
    with new_pool(1) as pool:
        for sd in ("1.0", "96.0"):
            path.write_text(sd)
            result = sample(recipe, executor=pool, **OPTIONS)
            assert_same(result, sample(recipe, **OPTIONS))
    assert result.draws.std() > 20


class ChangesOnce(Scaled):
    """A density that kills its process after some calls, and has another sd in the next."""

    def __init__(self, path):
        super().__init__(path)
        self.path, self.calls = Path(path), 0

    def __call__(self, x):
        self.calls += 1
        time.sleep(1e-4)
        if self.sd == 1.0 and self.calls == 3000:  # some tasks later
            self.path.write_text("96.0")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(x)


def test_a_worker_that_makes_another_density_in_mid_run_is_refused(tmp_path, short_tasks):
    (tmp_path / "sd").write_text("1.0")
    options = OPTIONS | {"chains": 1, "draws": 10_000, "tune": 0}
    recipe = fk.TargetRecipe(ChangesOnce, str(tmp_path / "sd"))
    with new_pool(1) as pool, pytest.raises(
            fk.SamplingError, match="must be the density of the run, not another one") as caught:
        sample(recipe, executor=pool, **options)
    assert caught.value.result.trace.rows > 0


def test_a_recipe_for_a_python_function_is_sent_as_a_recipe():
    """Functions made by functions cannot be pickled."""
    target = fk.as_target(fk.TargetRecipe(dies_once_made, "mark"), D)
    assert pickle.loads(pickle.dumps(target)).logp([0.0, 0.0]) == 0.0


def made(kind):
    """A target of a kind that contains a function made here, which cannot be pickled."""
    def logp(x):
        return -0.5 * float(x @ x)

    if kind == "problem":
        return fk.Problem(logp, bounds={"x": (-9.0, 9.0)}, shapes={"x": 2})
    if kind == "estimator":
        return fk.Target.from_estimator(lambda x, u: logp(x), 2, 1)
    return with_surrogate(fk.as_target(logp, 2), lambda x: 0.5 * logp(x))


@pytest.mark.parametrize("kind", ["problem", "estimator", "surrogate"])
def test_every_kind_of_target_is_sent_as_its_recipe(kind):
    target = fk.as_target(fk.TargetRecipe(made, kind), 2)
    again = pickle.loads(pickle.dumps(target))
    assert type(again) is type(target)
    if kind == "estimator":
        assert again.estimate([1.0, 2.0], [0.0]) == -2.5
    else:
        assert again.logp([1.0, 2.0]) == target.logp([1.0, 2.0])


def test_what_has_no_prior_is_known_to_workers_too():
    """The evidence of such a density is not that of a model."""
    target = fk.Problem(densities.python, bounds={"x": (-9.0, 9.0)}, shapes={"x": 2}).target()
    assert pickle.loads(pickle.dumps(target)).without_prior == target.without_prior == ("x",)


# ---- interrupts ----

GROUP = """
import os, random, signal, sys, threading, time, warnings
sys.path[:0] = [sys.argv[1]]
import densities, same, test_workers
import fastkam as fk
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

def ready(progress):
    if min(progress.draws) > 0:
        print("drawing", flush=True)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    options = dict(sampler="ram", search=False, tune=20, chains=3, seed=1)
    method = sys.argv[2]
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        part = fk.sample(test_workers.slow, [0.0, 0.0], draws=10**5, progress=ready, executor=pool,
                         checkpoint=sys.argv[3], checkpoint_interval=0.2, **options)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert part.status == "interrupted", part
    assert part.trace.rows > 0
    same.assert_same(fk.load(sys.argv[3]), part)
    rows = int(part.trace.counts.max()) + 20
    whole = fk.sample(densities.python, [0.0, 0.0], draws=rows, **options)
    same.assert_same(part.resume(20, target=densities.python), whole)
    print("same", flush=True)
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("delay", [0.0, 0.11, 0.23])
def test_ctrl_c_to_the_whole_group(tmp_path, method, delay):
    """A terminal sends Ctrl-C to the workers, too."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(GROUP))
    with subprocess.Popen([sys.executable, script, HERE, method, tmp_path / "run.fk"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True,
                          env=os.environ | {"PYTHONPATH": HERE + os.pathsep + str(Path(HERE).parent)
                                            }) as process:
        assert process.stdout.readline() == "drawing\n"
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.endswith("same\n"), err


# ---- fork ----


@pytest.mark.skipif(sys.platform == "darwin",
                    reason="on macOS a process with threads may not be forked")
def test_a_fork_while_other_threads_sample():
    """The child can sample: no lock is held there by a thread that it does not have."""
    whole = sample(with_extras, **OPTIONS | {"draws": 200})
    done = threading.Event()

    def keep_sampling():
        while not done.is_set():
            sample(with_extras, **OPTIONS | {"draws": 200, "threads": 2})

    threads = [threading.Thread(target=keep_sampling) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes = []
    try:
        for _ in range(8):
            time.sleep(0.03)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    signal.alarm(20)
                    again = sample(with_extras, **OPTIONS | {"draws": 200, "threads": 2})
                    assert_same(again, whole)
                    code = 0
                finally:
                    os._exit(code)
            codes.append(os.waitpid(child, 0)[1])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 8


def with_extras(x):
    return densities.python(x), {"u": x[0]}


def test_ctrl_c_while_a_process_begins(capfd):
    """Ctrl-C goes to the whole group of processes, and the calling process alone acts on it."""
    for delay in (0.0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05):
        process = Process()
        time.sleep(delay)
        process.signal(signal.SIGINT)
        value, error = pickle.loads(process.call(portable((max, (1, 2), {}), anywhere=False)))
        assert (value, error) == (2, None)
        process.end()
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
