"""Runs whose draws go to a store: the same draws, while they are made, after faults, and later."""

import errno
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from runs_in_files import CASES, DRAWS, SEED, TUNE, surrogate, target_of
from same import assert_same

import fastkam as fk
from fastkam.run import stored
from fastkam.run.lazy import StoredArray
from fastkam.stores import Npy, Zarr
from fastkam.stores import npy as npy_files

OPTIONS = {"sampler": "ram", "search": False, "tune": TUNE, "draws": DRAWS, "chains": 2,
           "seed": SEED, "progress": False, "diagnose": False, "check_gradient": False}
KINDS = ["run", pytest.param("run.zarr", marks=pytest.mark.skipif(
    find_spec("zarr") is None, reason="zarr is optional"))]
SAMPLE = partial(fk.sample, progress=False, diagnose=False, sampler="ram", search=False)


def normal(x):
    return -0.5 * float(x @ x)


def with_extras(x):
    return -0.5 * float(x @ x), {"twice": 2 * x, "left": bool(x[0] < 0)}


@pytest.fixture(autouse=True)
def small_windows(monkeypatch, request):
    """Few rows in memory, so that short runs write often; zarr takes milliseconds each time."""
    zarr = "zarr" in request.node.name
    monkeypatch.setattr(stored, "WINDOW_BYTES", 0)  # nor of many chains: a multiple of it
    monkeypatch.setattr(stored, "FEWEST_ROWS", 120 if zarr else 8)


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """The path of a store that is not there yet."""
    return str(tmp_path / request.param)


def same_extras(one, other):
    assert one.extras.keys() == other.extras.keys()
    for name, values in one.extras.items():
        np.testing.assert_array_equal(np.asarray(values), np.asarray(other.extras[name]))


def run(case, stopped_at=None, **more):
    """The result of a case, complete or stopped at one evaluation."""
    start = None if case == "problem" else np.ones(2)
    try:
        return fk.sample(target_of(case, stopped_at), start, **OPTIONS | CASES[case] | more)
    except fk.SamplingError as error:
        return error.result


# ---- the same bits, for every sampler and form ----


@pytest.mark.parametrize("case", CASES)
def test_every_run_is_the_same_in_a_store(tmp_path, case):
    """Whole, and stopped within warm-up and within the draws, and resumed from the folder."""
    whole = run(case)
    more = {"surrogate": surrogate} if case == "behind a surrogate" else {}
    assert_same(run(case, store=tmp_path / "whole"), whole)
    last = whole.evaluations
    for i, stopped_at in enumerate((2, last // 2, 4 * last // 5)):
        path = tmp_path / f"part{i}"
        part = run(case, stopped_at, store=path)
        if part is None:  # stopped within the search
            continue
        assert part.status in ("failed", "complete")
        assert_same(fk.load(path), part)
        other = fk.resume(path, target=target_of(case), progress=False, diagnose=False, **more)
        assert_same(other, whole)
        same_extras(other, whole)
        assert_same(fk.load(path), whole)


@pytest.mark.parametrize("case", ["nuts", "pt", "jumps", "noisy", "extras", "problem", "shared",
                                  "no statistics", "dm"])
def test_every_kind_of_store(place, case):
    whole = run(case)
    part = run(case, whole.evaluations // 2, store=place)
    other = fk.resume(place, target=target_of(case), progress=False, diagnose=False)
    assert_same(other, whole)
    same_extras(other, whole)
    assert part.trace.rows < DRAWS
    np.testing.assert_array_equal(other.draws, whole.draws)
    np.testing.assert_array_equal(other.draws[:, ::-3], whole.draws[:, ::-3])
    for name in whole.names:
        np.testing.assert_array_equal(other[name][1, 3:], whole[name][1, 3:])
    np.testing.assert_array_equal(other.warmup_draws, whole.warmup_draws)
    assert other.rejected.keys() == whole.rejected.keys()
    np.testing.assert_array_equal(other.acceptance, whole.acceptance)


def test_vectorized_targets(place):
    def density(x):
        return -0.5 * np.einsum("ij,ij->i", x, x)

    for sampler in ("ram", "kam", fk.ModeJumping(sampler="ram", means=np.eye(2))):
        options = {"sampler": sampler, "vectorized": True, "draws": 90, "tune": 50, "chains": 5,
                   "seed": 3, "thin": 2, "search": False, "progress": False, "diagnose": False}
        whole = fk.sample(density, np.ones(2), **options)
        shutil.rmtree(place, ignore_errors=True)
        assert_same(fk.sample(density, np.ones(2), store=place, **options), whole)


def ridge(x):
    return -0.5 * float(x[0] ** 2 / 100 + (x[1] + 0.1 * x[0] ** 2 - 10) ** 2), {"twice": 2 * x}


def test_thinning_as_the_first_draws_show(place):
    """The draws before it is decided go to the store too, and the thinned ones to their place."""
    options = {"seed": 1, "draws": 600, "progress": False, "diagnose": False}
    whole = fk.sample(ridge, np.zeros(2), **options)
    assert whole.thin > 1
    np.testing.assert_array_equal(whole.extras["twice"], 2 * whole.draws)
    other = fk.sample(ridge, np.zeros(2), store=place, **options)
    assert_same(other, whole)
    same_extras(other, whole)
    assert not (Path(place) / stored.UNDECIDED).exists()
    assert_same(fk.load(place), whole)


def test_runs_that_are_made_longer(place, monkeypatch):
    """What is thinned once more goes to another section; the old one stays until it is there."""
    monkeypatch.setattr("fastkam.sampling.disagrees", lambda state: True)
    options = {"seed": 1, "draws": 150, "progress": False}
    whole = fk.sample(with_extras, np.zeros(2), **options)
    other = fk.sample(with_extras, np.zeros(2), store=place, **options)
    np.testing.assert_array_equal(whole.extras["twice"], 2 * whole.draws)
    assert_same(other, whole)
    same_extras(other, whole)
    assert_same(fk.load(place), whole)
    assert not (Path(place) / stored.DRAWS).exists()
    assert (Path(place) / stored.THINNED).exists()


# ---- processes and threads ----


@pytest.mark.parametrize("target", [normal, with_extras])
def test_executors(place, target):
    options = {"tune": 60, "draws": 250, "chains": 3, "seed": 4}
    whole = SAMPLE(target, np.ones(2), **options)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(
            2, mp_context=get_context("spawn")) as processes:
        for pool in (threads, processes):
            shutil.rmtree(place, ignore_errors=True)
            part = SAMPLE(target, np.ones(2), executor=pool, store=place,
                          **options | {"draws": 101})
            assert part.trace.base.tolist() == [101] * 3
            other = fk.resume(place, 149, target=target, executor=pool, progress=False,
                              diagnose=False)
            assert_same(other, whole)
            same_extras(other, whole)


def test_threads(place):
    target = fk.targets.banana(d=2)
    options = {"tune": 60, "draws": 3000, "chains": 4, "seed": 4}
    whole = SAMPLE(target, np.zeros(2), **options)
    assert_same(SAMPLE(target, np.zeros(2), store=place, threads=2, checkpoint_interval=0.0,
                       **options), whole)


def test_a_worker_holds_no_lock():
    """A forked process does not keep the store of its parent locked."""
    code = """
import os, sys, time, tempfile, fastkam as fk
path = tempfile.mkdtemp() + "/run"
pids = []
def fork(p):
    if not pids:
        pids.append(os.fork())
        if not pids[0]:
            time.sleep(20)
            os._exit(0)
f = lambda x: -0.5 * float(x @ x)
fk.sample(f, [0.0], sampler="ram", search=False, draws=50, tune=5, store=path, progress=fork,
          diagnose=False)
fk.resume(path, 10, target=f, progress=False, diagnose=False)
os.kill(pids[0], 9)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


# ---- killed ----

SLOW = """
import json, sys, time
import numpy as np
import fastkam as fk
def normal(x):
    time.sleep(2e-5)
    return -0.5 * float(x @ x)
fk.sample(normal, np.ones(2), sampler="ram", search=False, draws=10**6, tune=200, chains=2, seed=7,
          store=sys.argv[1], checkpoint_interval=0.2, progress=False)
"""


def started(place):
    return subprocess.Popen([sys.executable, "-c", SLOW, place], stderr=subprocess.PIPE, text=True)


@pytest.fixture
def going_on(place):
    """A run in another process, which has written some draws."""
    process = started(place)
    try:
        while True:
            assert process.poll() is None, process.stderr.read()
            try:
                if fk.load(place).trace.rows > 500:
                    break
            except (FileNotFoundError, IsADirectoryError):
                pass  # not begun
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_store_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    """Who reads while it is made finds no half of a file; where one is damaged, it is named."""
    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        fk.stores.Npy(tmp_path / "run").create()
    with pytest.raises(IsADirectoryError):
        fk.load(tmp_path / "run")
    (tmp_path / "run" / "store.json").write_text("")
    with pytest.raises(ValueError, match=r"run' has a damaged file, store.json"):
        fk.load(tmp_path / "run")


def test_killed_and_resumed(place, going_on):
    going_on.send_signal(signal.SIGKILL)
    going_on.wait()
    part = fk.load(place)
    assert part.status == "running"
    section = Path(place) / "draws"
    if not place.endswith(".zarr"):  # rows were written after the last state
        n = len(np.load(section / "x.0.npy", mmap_mode="r"))
        assert n >= part.trace.counts[0]
    rows = int(part.trace.counts.max()) + 300
    whole = SAMPLE(normal, np.ones(2), draws=rows, tune=200, chains=2, seed=7)
    other = fk.resume(place, 300, target=normal, progress=False, diagnose=False)
    assert_same(other, whole)
    assert_same(fk.load(place), whole)


def test_others_read_while_it_goes_on(place, going_on):
    """What is read is a beginning of the run, each time a longer one; and nobody else writes."""
    seen, last = [], None
    until = time.monotonic() + 20
    while len(set(seen)) < 4 and time.monotonic() < until:
        part = fk.load(place)
        draws, lp = np.asarray(part.draws), np.asarray(part.stats["lp"])
        assert draws.shape[:2] == lp.shape == (2, part.trace.rows)
        np.testing.assert_allclose(lp, -0.5 * (draws**2).sum(axis=2))
        if last is not None:
            np.testing.assert_array_equal(draws[:, : last.shape[1]], last)
        seen, last = [*seen, len(draws[0])], draws
        time.sleep(0.1)
    assert len(set(seen)) >= 4
    assert seen == sorted(seen)
    if not place.endswith(".zarr"):
        x = np.load(Path(place) / "draws" / "x.1.npy", mmap_mode="r")
        assert len(x) >= last.shape[1] * 0.9
        np.testing.assert_array_equal(x[: last.shape[1]], last[1][: len(x)])
    with pytest.raises(BlockingIOError, match="is being written by another run"):
        fk.resume(place, 10, target=normal, progress=False)
    assert going_on.poll() is None


def test_deleted_while_it_goes_on(place, going_on):
    while os.path.exists(place):
        shutil.rmtree(place, ignore_errors=True)  # files may be made meanwhile
    _, text = going_on.communicate(timeout=60)
    assert "SamplingError" in text
    assert "cannot be written" in text
    assert os.path.basename(place) in text


# ---- faults ----


def test_a_full_disk(tmp_path, monkeypatch):
    """The run stops, says so, and goes on where it was: in this process, or from the last state."""
    whole = SAMPLE(with_extras, np.ones(2), draws=200, tune=30, chains=2, seed=5)
    pwrite, left = os.pwrite, [10**9]

    def full(number, data, place):
        data = bytes(data)[: left[0]]
        left[0] -= len(data)
        if not data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(number, data, place)

    monkeypatch.setattr(npy_files.os, "pwrite", full)
    for room in (3000, 9000, 17000):
        path, left[0] = tmp_path / f"run{room}", room
        with pytest.raises(fk.SamplingError, match=r"cannot be written: No space") as seen:
            SAMPLE(with_extras, np.ones(2), draws=200, tune=30, chains=2, seed=5, store=path)
        result = seen.value.result
        rows = result.trace.rows
        assert rows < 200
        np.testing.assert_array_equal(result.draws, whole.draws[:, :rows])
        again = tmp_path / f"again{room}"
        shutil.copytree(path, again)
        left[0] = 10**9
        assert_same(result.resume(progress=False, diagnose=False), whole)
        assert_same(fk.resume(again, target=with_extras, progress=False, diagnose=False), whole)


def test_a_full_disk_behind_an_executor(tmp_path, monkeypatch):
    options = {"draws": 200, "tune": 30, "chains": 2, "seed": 5}
    whole = SAMPLE(normal, np.ones(2), **options)
    pwrite, left = os.pwrite, [6000]

    def full(number, data, place):
        left[0] -= len(data)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(number, data, place)

    monkeypatch.setattr(npy_files.os, "pwrite", full)
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(fk.SamplingError, match="No space left") as seen:
            SAMPLE(normal, np.ones(2), executor=pool, store=tmp_path / "run", **options)
        left[0] = 10**9
        assert_same(seen.value.result.resume(executor=pool, progress=False, diagnose=False), whole)
    assert_same(fk.load(tmp_path / "run"), whole)


def test_a_store_that_is_taken(place):
    SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)
    with pytest.raises(FileExistsError, match=r"holds a run already: go on with it, fk.resume"):
        SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)
    assert fk.load(place).trace.rows == 10


def test_places_for_no_store(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    for name, kind, says in (("file", FileExistsError, "is a file"),
                             ("folder", FileExistsError, "folder with other files"),
                             ("none/run", ValueError, "must be in a folder that exists")):
        with pytest.raises(kind, match=says):
            SAMPLE(normal, np.ones(2), draws=10, store=tmp_path / name)
    for wrong in (3, ["run"], True):
        with pytest.raises(TypeError, match="store must be the path of a folder"):
            SAMPLE(normal, np.ones(2), draws=10, store=wrong)
    with pytest.raises(ValueError, match="store must be a path"):
        SAMPLE(normal, np.ones(2), draws=10, store="a\0b")
    assert (tmp_path / "folder" / "mine").read_text() == "mine"
    with pytest.raises(IsADirectoryError, match="must be a file or a store"):
        fk.load(tmp_path / "folder")
    (tmp_path / "empty").mkdir()
    SAMPLE(normal, np.ones(2), draws=10, tune=5, store=tmp_path / "empty")


def test_two_runs_in_one_store(place):
    first = SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)

    def within(progress):
        fk.resume(place, 5, target=normal, progress=False)

    with pytest.raises(fk.SamplingError, match="is being written by another run"):
        first.resume(50, progress=within, diagnose=False)
    whole = fk.resume(place, target=normal, progress=False, diagnose=False)
    assert whole.trace.rows == 60


def test_a_result_from_which_the_store_has_gone_on(place, tmp_path):
    first = SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)
    first.resume(5, progress=False, diagnose=False)
    with pytest.raises(ValueError, match="has draws of a run that has gone on from this result"):
        first.resume(5, progress=False, diagnose=False)
    assert first.draws.shape == (4, 10, 2)
    first.save(tmp_path / "first.fk")  # which branches from there
    assert fk.resume(tmp_path / "first.fk", 7, target=normal, progress=False,
                     diagnose=False).trace.rows == 17
    assert fk.load(place).trace.rows == 15


def test_a_store_of_another_run(place):
    first = SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)
    shutil.rmtree(place)
    with pytest.raises(ValueError, match="is not there any more"):
        first.resume(5, progress=False)
    with pytest.raises((FileNotFoundError, ValueError)):
        np.asarray(first.draws)
    SAMPLE(normal, np.ones(2), draws=7, tune=5, store=place)
    with pytest.raises(ValueError, match="belongs to another run"):
        first.resume(5, progress=False)
    assert fk.load(place).trace.rows == 7


def test_rows_that_are_missing(tmp_path):
    path = tmp_path / "run"
    SAMPLE(normal, np.ones(2), draws=100, tune=5, store=path)
    file = path / "draws" / "logp.2.npy"
    os.truncate(file, file.stat().st_size - 80)
    with pytest.raises(ValueError, match=r"says 100 rows for chain 2, but draws/logp .* 90 rows"):
        fk.load(path)
    file.unlink()
    with pytest.raises(ValueError, match=r"says 100 rows for chain 2, but draws/logp .* not there"):
        fk.load(path)


def test_a_checkpoint_beside_the_store(place, tmp_path):
    """It has the state, and knows where the draws are."""
    options = {"tune": 30, "chains": 2, "seed": 5}
    SAMPLE(normal, np.ones(2), draws=4000, store=place, checkpoint=tmp_path / "run.fk", **options)
    assert (tmp_path / "run.fk").stat().st_size < 50_000
    other = fk.resume(tmp_path / "run.fk", 10, target=normal, progress=False, diagnose=False)
    assert_same(other, SAMPLE(normal, np.ones(2), draws=4010, **options))
    with pytest.raises(ValueError, match="has gone on from this result"):
        fk.resume(tmp_path / "run.fk", 10, target=normal, progress=False, diagnose=False)
    shutil.rmtree(place)
    with pytest.raises(ValueError, match="where there is no store any more"):
        fk.load(tmp_path / "run.fk")


def test_a_store_that_was_moved(place, tmp_path):
    whole = SAMPLE(normal, np.ones(2), draws=50, tune=5, seed=1, store=place)
    (tmp_path / "else").mkdir()
    moved = tmp_path / "else" / os.path.basename(place)
    shutil.move(place, moved)
    other = fk.resume(moved, 10, target=normal, progress=False, diagnose=False)
    assert_same(other, SAMPLE(normal, np.ones(2), draws=60, tune=5, seed=1))
    assert whole.trace.rows == 50


def test_a_run_in_memory_goes_on_in_a_store(place):
    options = {"tune": 30, "chains": 2, "seed": 5}
    whole = SAMPLE(with_extras, np.ones(2), draws=90, **options)
    part = SAMPLE(with_extras, np.ones(2), draws=40, **options)
    other = part.resume(50, store=place, progress=False, diagnose=False)
    assert_same(other, whole)
    same_extras(fk.load(place), whole)
    with pytest.raises(ValueError, match="store must not be given: the run goes on in its own"):
        other.resume(5, store=place + "2", progress=False)


def test_the_cost_of_a_checkpoint_does_not_grow(place):
    sizes = []
    for draws in (200, 20_000):
        shutil.rmtree(place, ignore_errors=True)
        result = SAMPLE(normal, np.ones(2), draws=draws, tune=5, chains=1, store=place)
        sizes.append(result.trace.store.state_path.stat().st_size)
    assert sizes[1] < sizes[0] + 100


# ---- reading ----


def test_parts_of_stored_draws(place):
    """Every index that NumPy takes gives what it gives there."""
    options = {"draws": 50, "tune": 5, "chains": 3, "seed": 2}
    whole = SAMPLE(normal, np.ones(2), **options).draws
    draws = SAMPLE(normal, np.ones(2), store=place, **options).draws
    assert isinstance(draws, StoredArray)
    assert (draws.shape, draws.ndim, draws.dtype, len(draws), draws.size, draws.nbytes) == (
        whole.shape, 3, whole.dtype, 3, whole.size, whole.nbytes)
    mask = np.arange(50) % 7 == 0
    keys = [0, -1, (1, 2), (1, -3, 1), (slice(None), 5), (..., 0), (..., slice(0, 1)),
            (slice(None), slice(40, 10, -3)), (slice(None), [3, -1, 3]), (slice(None), mask),
            (2, mask, 0), (slice(1, None), slice(None, None, 10), [1, 0]), [2, 0], slice(0, 0),
            (slice(None), slice(30, 20)), (None, 0), np.int64(1), (1, ..., 1), (...,),
            (slice(None), [0, 1], [0, 1]), (0, [1, 2], 1)]
    for key in keys:
        np.testing.assert_array_equal(draws[key], whole[key], err_msg=str(key))
    for key in (3, (0, 50), (0, 0, 2), (0, 0, 0, 0), (slice(None), [50]), (0, mask[:5]),
                (0, [0.5])):
        with pytest.raises(IndexError):
            draws[key]
    np.testing.assert_array_equal(list(draws), whole)
    np.testing.assert_allclose(np.mean(draws, axis=(0, 1)), whole.mean(axis=(0, 1)))
    np.testing.assert_array_equal(np.asarray(draws, np.float32), whole.astype(np.float32))
    with pytest.raises(AttributeError, match=r"write np.asarray\(...\).reshape to read all"):
        draws.reshape(-1, 2)
    with pytest.raises(ValueError, match="must be copied"):
        np.asarray(draws, copy=False)


def test_a_stored_run_is_looked_at(place):
    """Summary, warnings, statistics, and a result that travels."""
    options = {"sampler": "nuts", "draws": 300, "tune": 200, "chains": 4, "seed": 2}
    target = fk.targets.banana(d=2)
    whole = SAMPLE(target, np.zeros(2), **options)
    other = SAMPLE(target, np.zeros(2), store=place, **options)
    assert str(other.summary()) == str(whole.summary())
    assert other.warnings == whole.warnings
    for name, values in whole.stats.items():
        np.testing.assert_array_equal(other.stats[name], values)
        assert other.stats[name].dtype == values.dtype
    assert other.trace.n_diverging == whole.trace.n_diverging
    travelled = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(travelled.draws, whole.draws)
    np.testing.assert_array_equal(other.to_datatree()["posterior"]["x"], whole["x"])


def test_a_long_run_is_summarized_from_some_of_its_draws(tmp_path, monkeypatch):
    monkeypatch.setattr("fastkam.run.lazy.MOST_DRAWS", 4000)
    monkeypatch.setattr("fastkam.run.lazy.FEWEST_ROWS", 100)
    result = SAMPLE(normal, np.ones(2), draws=8000, tune=100, chains=2, seed=1,
                    store=tmp_path / "run")
    table = result.summary()
    assert "Of every 4th draw of each chain" in str(table)
    np.testing.assert_array_equal(
        table["mean"], fk.diagnostics.summary(np.asarray(result.draws)[:, ::4])["mean"])


@pytest.mark.parametrize("rule", [fk.stop.ESS(200), fk.stop.Rhat(1.05), fk.stop.Evaluations(900)])
def test_stop_rules(place, rule):
    options = {"draws": 3000, "tune": 100, "chains": 2, "seed": 1, "stop": rule}
    whole = SAMPLE(normal, np.ones(2), **options)
    assert whole.status == "stopped"
    assert_same(SAMPLE(normal, np.ones(2), store=place, **options), whole)


def test_saved_without_its_store(place, tmp_path):
    whole = run("extras")
    part = run("extras", whole.evaluations // 2, store=place)
    part.save(tmp_path / "run.fk")
    shutil.rmtree(place)
    other = fk.resume(tmp_path / "run.fk", target=target_of("extras"), progress=False,
                      diagnose=False)
    assert_same(other, whole)
    same_extras(other, whole)


# ---- zarr alone ----


@pytest.mark.parametrize("compression", [None, "zstd", "gzip", "lz4"])
def test_compression(tmp_path, compression):
    zarr = pytest.importorskip("zarr")
    store = Zarr(tmp_path / "run.zarr", compression=compression)
    whole = SAMPLE(normal, np.ones(2), draws=300, tune=5, seed=1)
    assert_same(SAMPLE(normal, np.ones(2), draws=300, tune=5, seed=1, store=store), whole)
    group = zarr.open(tmp_path / "run.zarr", mode="r")
    np.testing.assert_array_equal(group["draws/x"], whole.draws)
    np.testing.assert_array_equal(group["draws/counts"], [300] * 4)
    assert bool(group["draws/x"].compressors) == (compression is not None)
    assert {name for name, _ in group.members()} == {"draws", "warmup", "state"}


def test_arguments_of_zarr(tmp_path):
    pytest.importorskip("zarr")
    with pytest.raises(ValueError, match="compression must be None or one of"):
        Zarr(tmp_path / "run.zarr", compression="zip")
    with pytest.raises(ValueError, match="level must be given with compression"):
        Zarr(tmp_path / "run.zarr", level=3)


def test_without_zarr(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"needs zarr: pip install fastkam\[zarr\]; or"):
        SAMPLE(normal, np.ones(2), draws=10, store=tmp_path / "run.zarr")
    assert not (tmp_path / "run.zarr").exists()


def test_kinds_by_path(tmp_path):
    store = Npy(tmp_path / "run.zarr")  # an object decides itself
    SAMPLE(normal, np.ones(2), draws=10, tune=5, store=store)
    assert json.loads((tmp_path / "run.zarr" / "store.json").read_text())["kind"] == "npy"
    assert fk.load(tmp_path / "run.zarr").trace.rows == 10


# ---- results as tables ----


def test_arrays_tables_and_files(tmp_path):
    def density(a, b):
        return -0.5 * float(a @ a + b * b), {"sum": a.sum() + b}

    problem = fk.Problem(density, names=["a", "b"], shapes={"a": 2})
    result = SAMPLE(problem, {"a": [0.0, 0.0], "b": 0.0}, draws=20, tune=5, chains=3, seed=1)
    np.testing.assert_array_equal(result.to_numpy(), result.draws)
    np.testing.assert_array_equal(result.to_numpy(flat=True), result.draws.reshape(-1, 3))
    frame = result.to_pandas()
    assert list(frame.columns[:4]) == ["a[0]", "a[1]", "b", "sum"]
    assert frame.index.names == ["chain", "draw"]
    np.testing.assert_array_equal(frame.loc[(1, 3), ["a[0]", "a[1]", "b"]], result.draws[1, 3])
    np.testing.assert_array_equal(frame["lp"], result.stats["lp"].ravel())
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.nc"
    result.to_netcdf(path)
    result.to_netcdf(path)
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["a"], result["a"])
    assert os.listdir(tmp_path) == ["run.nc"]
    with pytest.raises(ValueError, match="path must be a file in a folder that exists"):
        result.to_netcdf(tmp_path / "none" / "run.nc")


def test_the_last_state_alone():
    """One draw after many steps takes no memory for the others."""
    whole = SAMPLE(normal, np.ones(2), draws=500, tune=50, seed=1)
    last = SAMPLE(normal, np.ones(2), draws=1, thin=500, tune=50, seed=1, keep_warmup=False)
    assert last.draws.shape == (4, 1, 2)
    assert last.trace.counts.tolist() == [1] * 4
    assert whole.draws.shape == (4, 500, 2)
