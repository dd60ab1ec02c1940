"""Two runs with one checkpoint: the second is refused before any work."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import fastkam as fk
from fastkam.run import files

RUN = {"sampler": "ram", "search": False, "draws": 50, "tune": 10, "chains": 2, "seed": 1,
       "progress": False, "diagnose": False}
SLOW = """
import sys, time
import numpy as np
import fastkam as fk
def normal(x):
    time.sleep(1e-3)
    return -0.5 * float(x @ x)
fk.sample(normal, np.ones(2), sampler="ram", search=False, draws=10**5, chains=2, seed=7,
          checkpoint=sys.argv[1], checkpoint_interval=0.05, progress=False)
"""
OF_ANOTHER = (r"checkpoint='.*c.fk' cannot be written: Permission denied \(.*\.c\.fk\.lock: it may "
              "belong to another user: delete it if no run is using it")
REFUSED = r"checkpoint='.*c.fk' is being written by another run: wait for its end, or give another"


def normal(x):
    return -0.5 * float(x @ x)


def never(x):
    raise AssertionError("the function was called")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "c.fk")


@pytest.fixture
def going_on(path):
    """A run in another process, which has written its checkpoint."""
    process = subprocess.Popen([sys.executable, "-c", SLOW, path], stderr=subprocess.PIPE,
                               text=True)
    try:
        until = time.monotonic() + 60
        while not os.path.exists(path):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_another_process_and_its_end(going_on, path, tmp_path):
    with pytest.raises(BlockingIOError, match=REFUSED):
        fk.sample(never, np.ones(2), checkpoint=path, **RUN)
    with pytest.raises(BlockingIOError, match=REFUSED):
        fk.resume(path, target=never, checkpoint=path)
    link = tmp_path / "link.fk"
    link.symlink_to("c.fk")
    with pytest.raises(BlockingIOError, match=r"link.fk' is being written"):
        fk.sample(never, np.ones(2), checkpoint=link, **RUN)
    other = fk.sample(normal, np.ones(2), checkpoint=tmp_path / "other.fk", **RUN)
    assert other.draws.shape == (2, 50, 2)
    going_on.send_signal(signal.SIGKILL)
    going_on.wait()
    more = fk.load(path).trace.rows + 3  # possibly of the warm-up, with no draw yet
    result = fk.resume(path, target=normal, draws=more, checkpoint=path, diagnose=False)
    assert fk.load(path).trace.rows == result.trace.rows >= more
    assert sorted(os.listdir(tmp_path)) == ["c.fk", "link.fk", "other.fk"]


def test_within_a_run_of_this_process(path, tmp_path):
    """A run that the progress function begins has the checkpoint of the outer one."""
    errors, refused = [], 0

    def look(_):
        nonlocal refused
        try:
            fk.sample(never, np.ones(2), checkpoint=path, **RUN)
        except BlockingIOError as error:
            refused, errors[:] = refused + 1, [str(error)]

    result = fk.sample(normal, np.ones(2), checkpoint=path, **RUN | {"progress": look})
    assert result.status == "complete"
    assert refused
    assert "is being written by another run" in errors[0]
    assert os.listdir(tmp_path) == ["c.fk"]


@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_released_by_a_run_that_fails(path, tmp_path, error):
    def fails(x):
        raise error

    with suppress(fk.SamplingError, SystemExit):
        fk.sample(fails, np.ones(2), checkpoint=path, **RUN)
    fk.sample(normal, np.ones(2), checkpoint=path, **RUN)
    assert "c.fk" in os.listdir(tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".lock")]


def test_forked_processes_hold_no_lock(path):
    """A worker that outlives its parent does not keep others from the checkpoint."""
    code = f"""
import os, time
import numpy as np
import fastkam as fk
def forks(x):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.close(1)
        time.sleep(60)
    os.kill(os.getpid(), 9)
fk.sample(forks, np.ones(2), checkpoint={path!r}, **{RUN!r})
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                          timeout=50, check=False)
    child = int(done.stdout)
    try:
        os.kill(child, 0)
        fk.sample(normal, np.ones(2), checkpoint=path, **RUN)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_folder_that_is_full(path, monkeypatch):
    """No lock can be made there: an error before any work, with the path."""
    def full(lock):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(lock))

    monkeypatch.setattr(files, "locked", full)
    with pytest.raises(OSError, match=r"checkpoint='.*c.fk' cannot be written: No space left"):
        fk.sample(never, np.ones(2), checkpoint=path, **RUN)


@contextmanager
def another_user():
    """A context with the rights of a user who is not root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def shared():
    """A folder in which all users may write; the folders of pytest belong to one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # that of TMPDIR may be in one of root
        os.chmod(folder, 0o777)
        yield Path(folder)


def test_the_lock_of_another_user_is_taken_if_it_can_be_read(shared):
    path, lock = shared / "c.fk", shared / ".c.fk.lock"
    lock.touch(mode=0o444)
    with another_user(), files.alone("checkpoint", path), pytest.raises(
            BlockingIOError, match=REFUSED), files.alone("checkpoint", path):
        pass
    assert not lock.exists()


def test_a_lock_that_its_owner_removes_in_between_is_made(tmp_path, monkeypatch):
    """The first open is refused since it is there, and the second finds no file."""
    def removed(place, flags, *mode):
        if not seen:
            seen.append(place)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return opened(place, flags, *mode)

    seen, opened = [], os.open
    with monkeypatch.context() as during:
        during.setattr(os, "open", removed)
        os.close(files.opened_to_lock(tmp_path / "c.fk"))
    assert seen == [tmp_path / "c.fk"]
    assert seen[0].exists()


def test_the_lock_of_another_user_that_cannot_be_read_is_named(shared):
    path, lock = shared / "c.fk", shared / ".c.fk.lock"
    lock.touch(mode=0o000)
    with another_user(), pytest.raises(PermissionError, match=OF_ANOTHER), files.alone(
            "checkpoint", path):
        pass
    assert lock.exists()


def test_a_lock_that_is_refused_since_the_file_is_open_for_reading(tmp_path, monkeypatch):
    """As on NFS: a second run must not go on without a lock."""
    def refused(*arguments):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(files.fcntl, "flock", refused)
    with pytest.raises(PermissionError, match=OF_ANOTHER), files.alone(
            "checkpoint", tmp_path / "c.fk"):
        pass
