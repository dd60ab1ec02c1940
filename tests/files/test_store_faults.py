"""Stores of runs that are killed, of full disks, and of other runs."""

import errno
import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from same import assert_same
from stored_runs import SAMPLE, normal, same_extras, with_extras

import fastkam as fk
from fastkam.run import stored
from fastkam.stores import npy as npy_files

pytestmark = pytest.mark.usefixtures("small_windows")


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
    """A reader finds no half of a file while a store is made; a damaged one is named."""
    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        fk.stores.Npy(tmp_path / "run").create()
    with pytest.raises(IsADirectoryError):
        fk.load(tmp_path / "run")
    (tmp_path / "run" / "store.json").write_text("")
    with pytest.raises(ValueError, match=r"run' has a damaged store.json"):
        fk.load(tmp_path / "run")


def test_rows_of_a_run_that_fails_in_an_executor_are_in_the_store(tmp_path, monkeypatch):
    """Also those that are few for the window."""
    calls = []

    def fails(x):
        calls.append(1)
        if len(calls) == 600:
            raise ValueError("no more")
        return normal(x)

    monkeypatch.setattr(stored, "FEWEST_ROWS", 10_000)
    with ThreadPoolExecutor(2) as pool, pytest.raises(fk.SamplingError) as caught:
        SAMPLE(fails, np.ones(2), draws=5000, tune=20, chains=2, seed=1, executor=pool,
               store=tmp_path / "run", stop=fk.stop.ESS(10**6))
    trace = caught.value.result.trace
    assert trace.counts.max() > 0
    assert trace.base.tolist() == trace.counts.tolist()


def test_an_unfinished_state_of_a_killed_process_is_removed(tmp_path):
    part = SAMPLE(normal, np.ones(2), draws=5, tune=5, store=tmp_path / "run")
    state = fk.stores.Npy(tmp_path / "run").state_path
    left = state.with_name(f".{state.name}.0123456789abcdef.unfinished")
    left.touch()
    part.resume(5)
    assert not left.exists()


def test_unfinished_files_of_killed_saves_are_removed(tmp_path):
    """Files for another path, and one that another process is writing, are left."""
    result = SAMPLE(normal, np.ones(2), draws=5, tune=5)
    left, going_on, others = (tmp_path / f".{name}.unfinished" for name in (
        "run.fk.0123456789abcdef", "run.fk.1123456789abcdef", "other.fk.0123456789abcdef"))
    for file in (left, going_on, others):
        file.touch()
    with going_on.open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        result.save(tmp_path / "run.fk")
        assert sorted(tmp_path.iterdir()) == sorted([going_on, others, tmp_path / "run.fk"])
    result.save(tmp_path / "run.fk")
    assert sorted(tmp_path.iterdir()) == sorted([others, tmp_path / "run.fk"])


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


def test_other_processes_read_the_store_of_a_run_under_way(place, going_on):
    """Readers see longer and longer beginnings of the run; no other process may write."""
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


def test_an_existing_store_is_refused(place):
    SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)
    with pytest.raises(FileExistsError, match=r"holds a run already: go on with it, fk.resume"):
        SAMPLE(normal, np.ones(2), draws=10, tune=5, store=place)
    assert fk.load(place).trace.rows == 10


@pytest.mark.parametrize(("name", "mark", "text"), [
    ("run.zarr", "zarr.json", '{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}'),
    ("run.zarr", "zarr.json", '{"zarr_format": 3, "node_type": "group"}'),
    ("run", "store.json", '{"name": "mine"}'), ("run", "store.json", "[1]"),
    ("run", "store.json", "mine")])
def test_a_store_of_another_program_is_no_run(tmp_path, name, mark, text):
    if name.endswith(".zarr"):
        pytest.importorskip("zarr")
    (tmp_path / name).mkdir()
    (tmp_path / name / mark).write_text(text)
    with pytest.raises(FileExistsError, match="is a folder with other files, and no store of fast"):
        SAMPLE(normal, np.ones(2), draws=10, tune=5, store=tmp_path / name)
    assert (tmp_path / name / mark).read_text() == text


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


def test_draws_are_not_read_from_the_store_of_another_run(place):
    first = SAMPLE(with_extras, np.ones(2), draws=60, tune=50, seed=1, store=place)
    held, traveled = first.draws, pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(held[:], traveled.draws)
    shutil.rmtree(place)
    other = SAMPLE(with_extras, np.ones(2), draws=60, tune=50, seed=2, store=place)
    readings = [lambda: np.asarray(held), lambda: held[0, 3], lambda: first["x[0]"][:],
                lambda: first.stats["lp"][:], lambda: first.extras["twice"][:],
                lambda: first.warmup_draws[:], first.summary, lambda: traveled.draws[:],
                lambda: first.save(place + ".fk")]
    for reading in readings:
        with pytest.raises(ValueError, match="belongs to another run now") as caught:
            reading()
        assert place in str(caught.value)
    assert_same(other, SAMPLE(with_extras, np.ones(2), draws=60, tune=50, seed=2))


def test_whose_store_it_is_is_read_once(tmp_path, monkeypatch):
    """A file is opened to find out only if it may have changed since the last reading."""
    result = SAMPLE(normal, np.ones(2), draws=60, tune=5, store=tmp_path / "run")
    np.asarray(result.draws)
    about = []
    monkeypatch.setattr(fk.stores.Npy, "about", lambda store: about.append(1) or {})
    for i in range(60):
        result.draws[:, i]
    assert not about


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


def test_a_checkpoint_in_the_place_of_the_store_is_refused(place):
    with pytest.raises(ValueError, match="checkpoint and store must have different paths"):
        SAMPLE(normal, np.ones(2), draws=9, store=place, checkpoint=place)


def test_a_checkpoint_beside_the_store(place, tmp_path):
    """The checkpoint has the state, and the place of the draws."""
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
    with pytest.raises(ValueError, match="store must not be given: the run continues in its own"):
        other.resume(5, store=place + "2", progress=False)


def test_the_cost_of_a_checkpoint_does_not_grow(place):
    sizes = []
    for draws in (200, 20_000):
        shutil.rmtree(place, ignore_errors=True)
        result = SAMPLE(normal, np.ones(2), draws=draws, tune=5, chains=1, store=place)
        sizes.append(result.trace.store.state_path.stat().st_size)
    assert sizes[1] < sizes[0] + 100


def test_draws_that_a_later_run_has_thinned_are_refused(tmp_path):
    """The run that continues without `draws` uses two sections of the store in turn."""
    def slow(x):
        return -0.5 * float(x[0] ** 2 / 1e4 + (x[1] + 0.03 * x[0] ** 2) ** 2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = fk.sample(slow, np.zeros(2), sampler="rwm", search=False, store=tmp_path / "run",
                          budget=9000, seed=1, progress=False)
        last = first.resume().resume()
    assert last.trace.section == first.trace.section
    assert np.isfinite(np.asarray(last.draws)).all()
    with pytest.raises(ValueError, match="the run that has continued from it has thinned them"):
        np.asarray(first.draws)
    with pytest.raises(ValueError, match="thinned them"):
        first.summary()
