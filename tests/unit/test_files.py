"""Files that are replaced as a whole: their contents, what is left behind, what is refused."""

import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from faults.runs import FullFile

import fastkam as fk
from fastkam._core.engine.ranges import BadField
from fastkam.run import files
from fastkam.run.members import read_array

NEW = b"new" * 1000


def replace(path, content=NEW):
    with files.replacing(path) as file:
        file.write(content)


def test_a_new_file_has_the_permissions_of_the_process(tmp_path):
    old = os.umask(0o027)
    try:
        replace(tmp_path / "run.fk")
    finally:
        os.umask(old)
    assert (tmp_path / "run.fk").stat().st_mode & 0o7777 == 0o640
    assert os.listdir(tmp_path) == ["run.fk"]


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o640])
def test_an_old_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "run.fk"
    path.write_bytes(b"old")
    path.chmod(mode)
    replace(path)
    assert path.stat().st_mode & 0o7777 == mode
    assert path.read_bytes() == NEW


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_old_file_keeps_its_owner(tmp_path):
    path = tmp_path / "run.fk"
    path.write_bytes(b"old")
    os.chown(path, 4711, 4712)
    replace(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (4711, 4712)
    assert path.read_bytes() == NEW


def test_writing_keeps_a_symbolic_link(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("run.fk", "not yet"):
        link = tmp_path / f"link to {name}"
        link.symlink_to(f"there/{name}")
        replace(link)
        assert link.is_symlink()
        assert (tmp_path / "there" / name).read_bytes() == NEW


def test_paths_that_are_not_plain_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(tmp_path / "socket"))
    (tmp_path / "link").symlink_to(os.devnull)
    for path in (tmp_path / "pipe", tmp_path / "socket", tmp_path / "link", os.devnull):
        with pytest.raises(ValueError, match=r"checkpoint must be a plain file, not .* which is a "
                                             r"device, a pipe or a socket"):
            fk.sample(lambda x: 1 / 0, [0.0], checkpoint=path)
        with pytest.raises(OSError, match="not a plain file"):
            replace(path)
    bound.close()
    assert len(os.listdir(tmp_path)) == 3


def test_a_link_to_nowhere_and_a_circle_of_links_are_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "no folder" / "run.fk")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("link", "circle"):
        with pytest.raises((ValueError, OSError)):
            fk.sample(lambda x: 1 / 0, [0.0], checkpoint=tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any file, whatever its mode")
def test_a_file_that_may_not_be_written_is_refused(tmp_path):
    path = tmp_path / "run.fk"
    path.touch(mode=0o444)
    with pytest.raises(PermissionError, match="is a file without permission to write"):
        fk.sample(lambda x: 1 / 0, [0.0], checkpoint=path)


def test_a_long_name(tmp_path):
    for name in ("n" * 255, "\u00fc" * 127):
        replace(tmp_path / name)
        assert (tmp_path / name).read_bytes() == NEW
    assert len(os.listdir(tmp_path)) == 2


def test_several_threads_write_the_same_file(tmp_path):
    """One of them is last; none sees another's unfinished file, and nothing is left."""
    path, errors = tmp_path / "run.fk", []

    def write(i):
        try:
            for _ in range(30):
                files.clear(path)
                replace(path, bytes([i]) * 100_000)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    content = path.read_bytes()
    assert content == content[:1] * 100_000
    assert os.listdir(tmp_path) == ["run.fk"]


def test_runs_with_one_checkpoint(tmp_path):
    """One writes it; those that begin meanwhile, if any, are refused in the same words."""
    path, options = tmp_path / "run.fk", {"sampler": "rwm", "search": False, "diagnose": False}
    failed = []

    def run(seed):
        try:
            fk.sample(lambda x: -0.5 * float(x @ x), [0.0], draws=3000, seed=seed, checkpoint=path,
                      checkpoint_interval=0.0, **options)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "checkpoint=.* draws of another run")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(failed) < 3
    for error in failed:
        assert isinstance(error, BlockingIOError)
        assert "is being written by another run" in str(error)
    assert fk.load(path).draws.shape == (4, 3000, 1)
    assert set(os.listdir(tmp_path)) <= {"run.fk", "run.fk.bak"}


KILLED = """
import sys
from fastkam.run import files
with files.replacing(sys.argv[1]) as file:
    file.write(b"part")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_temporary_files_of_a_killed_process_are_removed(tmp_path):
    """Files that a running process writes, and files with other names, stay."""
    path = tmp_path / "run.fk"
    others = ["run.fk.unfinished", ".run.fk.0123.unfinished",
              ".other.fk.0123456789abcdef.unfinished"]
    for name in others:
        (tmp_path / name).touch()
    both = [subprocess.Popen([sys.executable, "-c", KILLED, path], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == b"writing\n"
    killed, living = both
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(os.listdir(tmp_path)) == len(others) + 2
    fk.sample(lambda x: -0.5 * float(x @ x), [0.0], draws=5, tune=0, checkpoint=path,
              diagnose=False)
    assert len(os.listdir(tmp_path)) == len(others) + 2  # the new file, and that of the living
    living.communicate(b"")
    assert living.returncode == 0
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "run.fk"])
    assert path.read_bytes() == b"part"


@pytest.mark.parametrize("share", np.linspace(0.0, 0.999, 25))
def test_a_disk_that_is_full_after_any_number_of_bytes(tmp_path, monkeypatch, share):
    """The error is that of the disk, the old file is whole, and the draws are in the error."""
    path = tmp_path / "run.fk"
    options = {"draws": 50, "tune": 10, "seed": 1, "search": False, "diagnose": False}

    def density(x):
        return -0.5 * float(x @ x)

    whole = fk.sample(density, [0.0, 0.0], sampler="ram", checkpoint=path, **options)
    size, old, unfinished = path.stat().st_size, path.read_bytes(), files.unfinished

    def unfinished_on_a_full_disk(place):
        temporary, file = unfinished(place)
        return temporary, FullFile(file, int(share * size))

    monkeypatch.setattr(files, "unfinished", unfinished_on_a_full_disk)
    with pytest.raises(fk.SamplingError, match="No space left on device") as caught:
        fk.sample(density, [0.0, 0.0], sampler="ram", checkpoint=path, **options)
    np.testing.assert_array_equal(caught.value.result.draws, whole.draws)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["run.fk"]


# ---- the checkpoint of an earlier run ----

SHORT = {"sampler": "ram", "search": False, "draws": 50, "tune": 10, "diagnose": False}


def normal(x):
    return -0.5 * float(x @ x)


@pytest.fixture
def earlier(tmp_path):
    """The checkpoint of a run."""
    fk.sample(normal, [0.0], seed=1, checkpoint=tmp_path / "run.fk", **SHORT)
    return tmp_path / "run.fk"


def test_the_checkpoint_of_an_earlier_run_is_moved_aside(earlier):
    first, backup = fk.load(earlier), earlier.with_name("run.fk.bak")
    earlier.chmod(0o640)
    fk.sample(normal, [0.0], seed=2, checkpoint=backup, **SHORT | {"draws": 20})  # an older one
    with pytest.warns(fk.SamplingWarning) as seen:
        second = fk.sample(normal, [0.0], seed=1, checkpoint=earlier, checkpoint_interval=0.0,
                           **SHORT | {"draws": 300})
    (warning,) = seen
    assert str(warning.message) == (
        f"checkpoint={str(earlier)!r} had 200 draws of another run: that file is now "
        f"{str(backup)!r}, and fk.resume({str(backup)!r}, target=...) continues its run")
    np.testing.assert_array_equal(fk.load(backup).draws, first.draws)
    np.testing.assert_array_equal(fk.load(earlier).draws, second.draws)
    assert sorted(os.listdir(earlier.parent)) == ["run.fk", "run.fk.bak"]
    assert earlier.stat().st_mode & 0o7777 == backup.stat().st_mode & 0o7777 == 0o640
    longer = fk.resume(backup, 20, target=normal, checkpoint=backup, diagnose=False)
    assert longer.draws.shape == (4, 70, 1)


def test_a_backup_of_something_else_is_kept(earlier):
    backup = earlier.with_name("run.fk.bak")
    backup.write_bytes(b"a file of the user")
    earlier.with_name("run.fk.bak2").mkdir()
    with pytest.warns(fk.SamplingWarning, match=r"that file is now .*run\.fk\.bak3"):
        fk.sample(normal, [0.0], seed=1, checkpoint=earlier, **SHORT)
    assert backup.read_bytes() == b"a file of the user"
    assert fk.load(earlier.with_name("run.fk.bak3")).draws.shape == (4, 50, 1)


def test_the_longest_of_earlier_runs_is_kept(earlier):
    """A job that is started again and again, and killed early, keeps the draws of the first run."""
    short = SHORT | {"draws": 20}
    for says in ("is now", "has more", "has more"):
        with pytest.warns(fk.SamplingWarning, match=says):
            fk.sample(normal, [0.0], seed=1, checkpoint=earlier, **short)
    assert fk.load(earlier.with_name("run.fk.bak")).draws.shape == (4, 50, 1)
    assert fk.load(earlier).draws.shape == (4, 20, 1)


def test_a_warning_about_a_moved_checkpoint_comes_with_the_result(earlier):
    with pytest.raises(fk.SamplingWarning, match="had 200 draws of another run") as caught:
        fk.sample(normal, [0.0], seed=1, checkpoint=earlier, **SHORT)
    assert caught.value.result.draws.shape == (4, 50, 1)


def test_a_run_that_fails_says_that_it_has_moved_a_checkpoint(earlier):
    with pytest.raises(fk.SamplingError, match=r"in this error's \.result; .*200 draws of another"):
        fk.sample(lambda x: 1 / 0 if x[0] != 1 else 0.0, [[1.0]] * 4, seed=1, checkpoint=earlier,
                  **SHORT)
    assert fk.load(earlier.with_name("run.fk.bak")).draws.shape == (4, 50, 1)


def test_a_run_that_continues_replaces_its_own_checkpoint(earlier):
    for result in (earlier, fk.load(earlier)):
        fk.resume(result, 10, target=normal, checkpoint=earlier, checkpoint_interval=0.0,
                  diagnose=False)
    path = earlier.with_name("new.fk")  # a call of several parts, each of which writes its own
    fk.sample(normal, [0.0, 0.0], seed=1, budget=20_000, checkpoint=path, checkpoint_interval=0.0,
              diagnose=False)
    assert sorted(os.listdir(earlier.parent)) == ["new.fk", "run.fk"]


def test_a_file_without_draws_is_replaced(tmp_path):
    path = tmp_path / "run.fk"
    path.touch(mode=0o600)
    for seed in (1, 2):
        with pytest.raises(fk.SamplingError):
            fk.sample(lambda x: 1 / 0, [0.0], seed=seed, checkpoint=path, **SHORT)
    fk.sample(normal, [0.0], seed=1, checkpoint=path, **SHORT)
    assert os.listdir(tmp_path) == ["run.fk"]
    assert path.stat().st_mode & 0o7777 == 0o600


def test_a_file_of_another_program_is_moved_aside(tmp_path):
    path = tmp_path / "run.fk"
    with path.open("wb") as file:
        np.savez(file, a=np.arange(3))
    with pytest.warns(fk.SamplingWarning, match=r"had something else: that file is now '.*\.bak'$"):
        fk.sample(normal, [0.0], seed=1, checkpoint=path, **SHORT)
    with np.load(tmp_path / "run.fk.bak") as old:
        np.testing.assert_array_equal(old["a"], np.arange(3))
    assert fk.load(path).draws.shape == (4, 50, 1)


def test_draws_in_a_store_are_draws_of_a_checkpoint(tmp_path):
    for i, path in enumerate((tmp_path / "a", tmp_path / "b")):
        with pytest.warns(fk.SamplingWarning, match="had 200 draws") if i else nullcontext():
            fk.sample(normal, [0.0], seed=1, checkpoint=tmp_path / "run.fk", store=path, **SHORT)
    assert fk.load(tmp_path / "run.fk.bak").trace.store.path == tmp_path / "a"


def test_the_backup_of_a_link_is_beside_the_file(earlier, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("run.fk")
    with pytest.warns(fk.SamplingWarning, match=r"'.*/run\.fk\.bak'"):
        fk.sample(normal, [0.0], seed=1, checkpoint=link, **SHORT)
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "run.fk", "run.fk.bak"]


def test_a_checkpoint_that_cannot_be_moved_aside_is_kept(earlier):
    """There is the error of a checkpoint that cannot be written, with the draws."""
    old = earlier.read_bytes()
    os.mkfifo(earlier.with_name("run.fk.bak"))
    with pytest.raises(fk.SamplingError, match=r"complete, but checkpoint=.* cannot be written"):
        fk.sample(normal, [0.0], seed=1, checkpoint=earlier, **SHORT)
    assert earlier.read_bytes() == old
    assert sorted(os.listdir(earlier.parent)) == ["run.fk", "run.fk.bak"]


def test_a_checkpoint_with_a_long_name_is_moved_aside(tmp_path):
    path = tmp_path / ("n" * 255)
    fk.sample(normal, [0.0], seed=1, checkpoint=path, **SHORT)
    with pytest.warns(fk.SamplingWarning, match="nnn.bak'"):
        fk.sample(normal, [0.0], seed=1, checkpoint=path, **SHORT)
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("shape", [(3,), (5,), (2, 3), ()], ids=str)
def test_an_array_of_another_size_than_its_header_says(shape):
    """A header may be damaged: too many bytes are refused like too few."""
    content = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, header)
    size = content.write(bytes(32)) + content.tell() - 32
    content.seek(0)
    with pytest.raises(BadField, match=rf"a says that it has shape {re.escape(str(shape))}"):
        read_array("a", content, size)


@pytest.mark.parametrize("dtype", ["|O", [("a", "<f8")], ("<f8", (2,))], ids=str)
def test_an_array_that_is_not_of_numbers(dtype):
    """The array is refused by its header, since the data may be a program."""
    content = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": (2,)}
    np.lib.format.write_array_header_1_0(content, header)
    size = content.write(bytes(32)) + content.tell() - 32
    content.seek(0)
    with pytest.raises(BadField, match="a must not be an array of"):
        read_array("a", content, size)
