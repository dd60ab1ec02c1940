"""Stores that cannot be made: an error with the path, before any work, and nothing is left."""

import errno
import os
import shutil
import threading

import numpy as np
import pytest
from limits import largest_file

import fastkam as fk
from fastkam.run import checkpoint
from fastkam.stores import npy, store

RUN = {"sampler": "ram", "search": False, "draws": 50, "tune": 10, "chains": 2, "seed": 1,
       "progress": False, "diagnose": False}


def normal(x):
    return -0.5 * float(x @ x)


def never(x):
    raise AssertionError("the function was called")


def no_room(*arguments, **more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["run", "run.zarr"])
def place(request, tmp_path):
    if request.param.endswith("zarr"):
        pytest.importorskip("zarr")
    return tmp_path / request.param


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_is_noticed_before_any_work(place, tmp_path, there):
    if there:
        place.mkdir()
    before = fk.sample(normal, np.ones(2), **RUN)
    with largest_file(1000):
        with pytest.raises(OSError, match=f"store='.*{place.name}' cannot be written: File too l"):
            fk.sample(never, np.ones(2), store=place, **RUN)
        with pytest.raises(OSError, match="cannot be written: File too large"):
            before.resume(draws=10, store=place)
    assert os.listdir(tmp_path) == [place.name] * there
    assert not there or os.listdir(place) == []
    fk.sample(normal, np.ones(2), store=place, **RUN)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("step", ["make", "add", "state"])
def test_a_disk_that_is_full_after_the_search(place, tmp_path, monkeypatch, step, there):
    if there:
        place.mkdir()
    kind = npy.Npy if place.name == "run" else fk.stores.Zarr
    with monkeypatch.context() as patch:
        if step == "make":
            make = kind.make

            def half(self, about):
                make(self, about)
                no_room()

            patch.setattr(kind, "make", half)
        elif step == "add":
            patch.setattr(kind, "add", no_room)
        else:
            patch.setattr(checkpoint, "write_members", no_room)
        with pytest.raises(OSError, match=f"store='.*{place.name}' cannot be written: No space"):
            fk.sample(normal, np.ones(2), store=place, **RUN)
    assert os.listdir(tmp_path) == [place.name] * there
    assert not there or os.listdir(place) == []
    result = fk.sample(normal, np.ones(2), store=place, **RUN)
    np.testing.assert_array_equal(fk.load(place).draws, result.draws)


@pytest.mark.parametrize("there", [True, False])
def test_a_checkpoint_that_cannot_be_written_first(place, tmp_path, there):
    """The error names it, not the store, which is undone."""
    def density(x):
        shutil.rmtree(folder, ignore_errors=True)
        return normal(x)

    if there:
        place.mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match=r"^\[Errno 2\] checkpoint='.*c.npz' cannot be written: No "):
        fk.sample(density, np.ones(2), store=place, checkpoint=folder / "c.npz",
                  **RUN | {"search": True})
    assert os.listdir(tmp_path) == [place.name] * there
    assert not there or os.listdir(place) == []


def test_a_first_checkpoint_of_a_run_that_goes_on(place, tmp_path):
    """Its store stays as it was."""
    def density(x):
        shutil.rmtree(folder, ignore_errors=True)
        return normal(x)

    result = fk.sample(normal, np.ones(2), store=place, **RUN)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match=r"checkpoint='.*c.npz' cannot be written: No such file"):
        result.resume(draws=10, target=density, checkpoint=folder / "c.npz")
    np.testing.assert_array_equal(fk.load(place).draws, result.draws)


def test_a_run_that_was_killed_in_its_trial_does_not_block_the_path(place):
    place.mkdir()
    (place / ".0123456789abcdef.partial").write_bytes(bytes(10))
    fk.sample(normal, np.ones(2), store=place, **RUN)
    assert not list(place.glob("*.partial"))


@pytest.mark.parametrize("there", [True, False])
def test_files_of_others_are_kept(place, monkeypatch, there):
    """A file that comes into the folder between the making of the store and its first state."""
    def stopped(trace, *arguments):
        (place / "log.txt").write_text("of the user")
        (place / "figures").mkdir()
        no_room()

    if there:
        place.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", stopped)
        with pytest.raises(OSError, match=f"store='.*{place.name}' cannot be written: No space"):
            fk.sample(normal, np.ones(2), store=place, **RUN)
    assert sorted(os.listdir(place)) == ["figures", "log.txt"]


def test_a_store_of_a_run_that_is_interrupted_at_once(place, tmp_path, monkeypatch):
    """Ctrl-C between the making of the store and its first state."""
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fastkam.beginning.new_trace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fk.sample(normal, np.ones(2), store=place, **RUN)
    assert os.listdir(tmp_path) == []


def test_a_run_that_has_not_made_its_store(place):
    """A second run with the same path is refused while the first one searches."""
    begun, refused = threading.Event(), []

    def slow(x):
        if not begun.is_set():
            begun.set()
            try:
                fk.sample(never, np.ones(2), store=place, **RUN)
            except BlockingIOError as error:
                refused.append(str(error))
        return normal(x)

    fk.sample(slow, np.ones(2), store=place, **RUN | {"search": True})
    assert len(refused) == 1
    assert f"{place.name}' is being written by another run" in refused[0]
    assert os.listdir(place.parent) == [place.name]


@pytest.mark.parametrize("there", [True, False])
def test_one_object_for_two_runs(place, there):
    """The second run, within the first, is refused, and the lock of the first ends as it should."""
    if there:
        place.mkdir()
    one, refused, beside = store.as_store(place), [], []

    def outer(x):
        if not refused:
            with pytest.raises(BlockingIOError, match="is being written by another run"):
                fk.sample(never, np.ones(2), store=one, **RUN)
            refused.append(True)
        beside.append(f".{place.name}.lock" in os.listdir(place.parent))
        return normal(x)

    result = fk.sample(outer, np.ones(2), store=one, **RUN | {"search": True})
    assert beside[0]
    assert not beside[-1]
    np.testing.assert_array_equal(fk.load(place).draws, result.draws)
    with pytest.raises(FileExistsError, match="holds a run already"):
        fk.sample(never, np.ones(2), store=one, **RUN)


def test_a_store_that_another_run_has_replaced_is_kept(place, monkeypatch):
    """The one that is there when the call ends is not its own."""
    def replaced(*arguments):
        os.rename(place, f"{place}-old")
        fk.stores.store.as_store(place).create()
        no_room()

    with monkeypatch.context() as patch:
        patch.setattr("fastkam.beginning.new_trace", replaced)
        with pytest.raises(OSError, match="No space"):
            fk.sample(normal, np.ones(2), store=place, **RUN)
    assert store.store_at(place) is not None


def test_a_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anywhere
    with pytest.raises(PermissionError, match=r"store='.*run' is in a folder without permission"):
        fk.sample(never, np.ones(2), store=tmp_path / "run", **RUN)


TOO_LONG = ["n" * 300, "n" * 300 + "/x", "/".join(["n" * 200] * 30), "\u00fc" * 200,
            "n" * 300 + "/../x"]


@pytest.mark.parametrize("name", ["checkpoint", "store", "evaluations"])
def test_an_empty_path_is_not_the_current_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"{name} must be a path, not '': it is empty"):
        fk.sample(never, np.ones(2), **{name: ""}, **RUN)
    with pytest.raises(ValueError, match="path must be a path, not '': it is empty"):
        fk.load("")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("bad", [*TOO_LONG, "a\0b"], ids=range(6))
@pytest.mark.parametrize("name", ["checkpoint", "store", "evaluations"])
def test_names_that_no_file_can_have(tmp_path, name, bad):
    what = "must be a path, not" if "\0" in bad else "must be a shorter path, not"
    with pytest.raises(ValueError, match=f"{name} {what}"):
        fk.sample(never, np.ones(2), **{name: tmp_path / bad}, **RUN)


def test_an_empty_path():
    with pytest.raises(ValueError, match="not '': it is empty; is a variable not set"):
        fk.sample(never, np.ones(2), checkpoint="", **RUN)


@pytest.mark.parametrize("bad", [*TOO_LONG, "a\0b"], ids=range(6))
def test_names_that_no_file_of_a_result_can_have(tmp_path, bad):
    result, path = fk.sample(normal, np.ones(2), **RUN), tmp_path / bad
    for call in (result.save, result.report, fk.load, fk.Evaluations):
        with pytest.raises(ValueError, match=r"path must be a (shorter )?path, not"):
            call(path)
    with pytest.raises(ValueError, match=r"store must be a (shorter )?path, not"):
        fk.stores.Npy(path)
    assert os.listdir(tmp_path) == []


def test_no_file_of_a_store_is_replaced(place):
    """Without its state the draws in the store could not be read, and without its lock two runs
    could write it.
    """
    result = fk.sample(normal, np.ones(2), store=place, **RUN)
    state = result.trace.store.state_path
    for path in (state, state.parent / "lock", place / "new.fk"):
        with pytest.raises(ValueError, match="path must be a file outside of the store"):
            result.save(path)
        with pytest.raises(ValueError, match="checkpoint must be a file outside of the store"):
            fk.sample(never, np.ones(2), checkpoint=path, **RUN)
    np.testing.assert_array_equal(fk.load(place).draws, result.draws)
