"""Stores that are moved, deleted or damaged while their run goes on."""

import fcntl
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from same import assert_same
from stored_runs import SAMPLE, normal

import fastkam as fk
from fastkam.stores import store as store_module
from fastkam.stores.store import as_store

pytestmark = pytest.mark.usefixtures("small_windows")

OPTIONS = {"draws": 600, "tune": 20, "chains": 2, "seed": 1, "threads": 1}
LOST = "cannot be written: this folder, or the file lock in it, was moved, deleted or replaced"


class Until:
    """The log density N(0, I), which does something at one evaluation."""

    def __init__(self, calls, action):
        self.left, self.action = calls, action

    def __call__(self, x):
        self.left -= 1
        if self.left == 0:
            self.action()
        return normal(x)


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_run_does_not_write_into_the_store_of_another(place, how):
    """The other run, which has made a store of the same path, keeps its draws."""
    others, options = [], OPTIONS | {"draws": 900, "seed": 9}

    def exchange():
        if how == "moved":
            os.rename(place, place + "-old")
        else:
            shutil.rmtree(place)
        others.append(SAMPLE(normal, np.ones(2), store=place, **options))

    with pytest.raises(fk.SamplingError, match=LOST) as caught:
        SAMPLE(Until(700, exchange), np.ones(2), store=place, **OPTIONS)
    assert place in str(caught.value)
    with pytest.raises(ValueError, match="belongs to another run now"):
        np.asarray(caught.value.result.draws)
    whole = SAMPLE(normal, np.ones(2), **options)
    assert_same(others[0], whole)
    assert_same(fk.load(place), whole)
    if how == "moved":
        again = fk.resume(place + "-old", target=normal, progress=False, diagnose=False)
        assert_same(again, SAMPLE(normal, np.ones(2), **OPTIONS))


def test_the_state_does_not_go_into_the_store_of_another_run(place, monkeypatch):
    """The folder is exchanged while the state is being written."""
    fsync, armed = os.fsync, []

    def exchange(number):
        if armed:
            armed.clear()
            os.rename(place, place + "-old")
            SAMPLE(normal, np.ones(2), store=place, **OPTIONS | {"seed": 9})
        fsync(number)

    monkeypatch.setattr(os, "fsync", exchange)
    with pytest.raises(fk.SamplingError, match=r"moved, deleted or replaced|No such file"):
        SAMPLE(Until(1200, lambda: armed.append(1)), np.ones(2), store=place, **OPTIONS)
    assert_same(fk.load(place), SAMPLE(normal, np.ones(2), **OPTIONS | {"seed": 9}))


def test_a_store_that_is_moved_and_back_goes_on(place):
    def there_and_back():
        os.rename(place, place + "-old")
        os.rename(place + "-old", place)

    result = SAMPLE(Until(700, there_and_back), np.ones(2), store=place, **OPTIONS)
    assert_same(result, SAMPLE(normal, np.ones(2), **OPTIONS))


@pytest.mark.parametrize(("name", "file"), [
    ("run", "draws/x.1.npy"), ("run", "draws/logp.0.npy"), ("run.zarr", "draws/x/c/1/0/0"),
    ("run.zarr", "draws/counts/c/0")])
@pytest.mark.parametrize("how", ["deleted", "cut"])
def test_files_that_are_lost_during_the_run_do_not_become_zeros(tmp_path, name, file, how):
    path = tmp_path / name
    if name.endswith(".zarr"):
        pytest.importorskip("zarr")

    def damage():
        if how == "deleted":
            (path / file).unlink()
        else:
            os.truncate(path / file, min(100, os.path.getsize(path / file) - 1))

    says = "No such file" if how == "deleted" else "a file was cut to"
    with pytest.raises(fk.SamplingError, match=f"cannot be written: {says}") as caught:
        SAMPLE(Until(900, damage), np.ones(2), store=path, **OPTIONS)
    assert str(path / file) in str(caught.value)
    assert caught.value.result.trace.rows > 300


@pytest.mark.parametrize("compression", ["zstd", "gzip", "lz4"])
@pytest.mark.parametrize("size", [None, 0, 9])
def test_a_lost_chunk_with_earlier_rows_is_not_made_again(tmp_path, compression, size):
    """The rows before those that are written would become zeros."""
    pytest.importorskip("zarr")
    store = fk.stores.Zarr(tmp_path / "run.zarr", compression=compression)
    store.create()
    chunk = store.path / "draws" / "x" / "c" / "0" / "0" / "0"
    with store.writing():
        store.add("draws", "x", 1, (2,), float, 10)
        store.write("draws", "x", 0, 0, np.ones((5, 2)))
        if size is None:
            chunk.unlink()
        else:
            os.truncate(chunk, size)
        with pytest.raises(OSError, match=r"No such file|was cut|was damaged") as caught:
            store.write("draws", "x", 0, 5, np.ones((5, 2)))
        assert caught.value.filename == str(chunk)
        store.write("draws", "x", 0, 10, np.ones((5, 2)))


@pytest.mark.parametrize("use", [fk.load, lambda path: fk.resume(path, target=normal)])
def test_a_store_whose_run_has_not_made_a_step(place, use):
    """The run may be going on, and only without it the store may be deleted."""
    os.mkdir(place)
    with pytest.raises(FileNotFoundError, match=r"is empty: a run .* has not made its first step"):
        use(place)
    (Path(place) / "zarr.json.0123.partial").touch()
    with pytest.raises(FileNotFoundError, match="has not made its first step"):
        use(place)
    (Path(place) / "zarr.json.0123.partial").unlink()
    store = as_store(place)
    store.create()
    with store.writing():
        with pytest.raises(FileNotFoundError, match="its run has not made its first step yet"):
            use(place)
        with pytest.raises(BlockingIOError, match="is being written by another run"), (
                as_store(place).writing()):
            pass
    with pytest.raises(FileNotFoundError, match="was killed before the first step; delete it"):
        use(place)
    assert not store.being_written


def test_a_reader_that_asks_for_the_lock_does_not_stop_a_run(place, monkeypatch):
    """The reader holds the lock for a moment."""
    store = as_store(place)
    store.create()
    lock = store.state_path.parent / "lock"
    lock.touch()
    with lock.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        monkeypatch.setattr(store_module.time, "sleep",
                            lambda seconds: fcntl.flock(reader, fcntl.LOCK_UN))
        with store.writing():
            assert store.being_written
