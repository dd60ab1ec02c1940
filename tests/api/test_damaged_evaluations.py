"""Files of calls that are damaged, made up, deleted, or written by two at once."""

import json
import os
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runs import sample
from same import assert_same
from simulators import OPTIONS, quick

import fastkam as fk
from fastkam.points.calls import FileOfCalls
from fastkam.points.carriers import Here
from fastkam.points.pool import PointPool
from fastkam.points.records import MAGIC, Form

SHORT = OPTIONS | {"draws": 3, "tune": 1, "chains": 2}
GOOD = {"d": 2, "names": [], "gradient": False, "target": "", "extras": {}}
INTRUDER = """
import sys, fastkam as fk
try:
    fk.sample(lambda x: -0.5 * float(x @ x), [0.0, 0.0], sampler="ram", draws=5, tune=5, seed=1,
              progress=False, diagnose=False, evaluations=sys.argv[1])
except ValueError as error:
    print(error)
"""


def intrude(path):
    """Return the error of another process that appends to the same file."""
    return subprocess.run([sys.executable, "-c", INTRUDER, path], text=True, check=True,
                          capture_output=True, timeout=120).stdout


def in_two_parts(x):
    """A function whose first calls have no extras."""
    return quick(x) if x[0] > 0.45 else -np.inf


def header(text):
    """A header with a valid checksum and any contents."""
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return MAGIC + np.array([len(text), zlib.crc32(text)], "<u4").tobytes() + text


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.fk"


@pytest.mark.parametrize("bit", [1, 128])
def test_a_changed_byte_costs_the_last_call_at_most(path, bit):
    """A damaged file is refused, so that nothing in it is lost, or it ends one record earlier."""
    sample(in_two_parts, evaluations=path, **SHORT | {"x0": np.array([0.4, 0.0])})
    whole, before = path.read_bytes(), fk.Evaluations(path)
    assert whole.count(MAGIC) == 2
    shorter = set()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :])
        try:
            calls = fk.Evaluations(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert len(calls) == len(before) - 1
            np.testing.assert_array_equal(calls.values, before.values[:-1])
            shorter.add(i)
    assert len(shorter) < 400                   # the bytes of the last record


@pytest.mark.parametrize("text", [
    [1], None, b"[" * 10**6, b'{"d":' + b"9" * 5000 + b"}", GOOD | {"d": float("inf")},
    GOOD | {"d": 10**18}, GOOD | {"d": float("nan")}, GOOD | {"extras": []},
    GOOD | {"extras": {"a": [[10**9], "f8"]}}, GOOD | {"extras": {"a": [[1] * 70, "f8"]}},
    GOOD | {"extras": {"a": [[0, 10**30], "f8"]}}, GOOD | {"extras": {"a": [[-1, -1], "f8"]}},
    GOOD | {"extras": {"a": [[float("inf")], "f8"]}}, GOOD | {"extras": {"a": [[], ["f8"]]}}])
def test_made_up_headers_are_refused_by_name(path, text):
    path.write_bytes(header(text))
    for call in (lambda: fk.Evaluations(path), lambda: sample(quick, evaluations=path, **SHORT)):
        with pytest.raises(ValueError, match="not a whole file of evaluations") as info:
            call()
        assert str(path) in str(info.value)


def test_parts_with_different_extras_are_refused(path):
    forms = [GOOD | {"extras": {name: [[], "f8"]}} for name in "ab"]
    path.write_bytes(b"".join(map(header, forms)))
    with pytest.raises(ValueError, match="its parts have different extras"):
        fk.Evaluations(path)


def test_points_of_many_coordinates_take_no_memory(path):
    path.write_bytes(header(GOOD | {"d": 10**8}))
    calls = fk.Evaluations(path)
    assert calls.x.shape == (0, 10**8)
    with pytest.raises(ValueError, match="n must be at most 0"):
        calls.best()


def test_paths_that_are_not_plain_files_are_refused(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for other in (pipe, "/dev/zero", tmp_path):
        with pytest.raises(ValueError, match="is not a plain file"):
            fk.Evaluations(other)
        with pytest.raises(ValueError, match="evaluations must be a"):
            sample(quick, evaluations=other, **SHORT)


def test_a_link_stays_a_link(path):
    link = path.with_name("link")
    link.symlink_to(path)
    sample(quick, evaluations=link, **SHORT)
    assert link.is_symlink()
    assert len(fk.Evaluations(path)) == len(fk.Evaluations(link))


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("read", [False, True])
def test_another_process_is_refused(path, there, read):
    """The file may be old, or have been read here."""
    def f(x):
        if len(seen) == 5:
            if read:
                fk.Evaluations(path)
            said.append(intrude(path))
        seen.append(x)
        return quick(x)[0]

    seen, said = [], []
    if there:
        sample(lambda x: quick(x)[0], evaluations=path, **SHORT)
    sample(f, evaluations=path, **OPTIONS)
    assert "is in use by another run" in said[0]
    assert len(fk.Evaluations(path)) >= len(seen)


def test_a_fork_holds_no_file(path):
    """A child that outlives the run neither keeps the file from others nor appends to it."""
    def f(x):
        if not children:
            children.append(os.fork())
            if not children[0]:
                os.read(ends[0], 1)
                os._exit(0)
        return quick(x)

    children, ends = [], os.pipe()
    sample(f, evaluations=path, **SHORT)
    try:
        sample(quick, evaluations=path, **OPTIONS)
    finally:
        os.write(ends[1], b"x")
        os.waitpid(children[0], 0)
        for end in ends:
            os.close(end)


@pytest.mark.parametrize("fault", ["deleted", "longer", "shorter"])
def test_a_file_that_others_change_ends_the_run(path, fault):
    """The draws are kept, and no call is written where it is lost or overwrites another."""
    def f(x):
        if len(seen) == 60:
            if fault == "deleted":
                path.unlink()
            elif fault == "longer":
                with path.open("ab") as file:
                    file.write(b"x" * 99)
            else:
                os.truncate(path, 1000)
        seen.append(x)
        return quick(x)

    seen = []
    what = {"deleted": "it has been deleted or replaced"}.get(fault, "another process has changed")
    with pytest.raises(fk.SamplingError,
                       match=f"evaluations='.*' cannot be written: {what}") as info:
        sample(f, evaluations=path, **OPTIONS)
    result = info.value.result
    assert_same(result.resume(diagnose=False), sample(quick, **OPTIONS))


@pytest.mark.parametrize("workers", [None, 2])
def test_a_deleted_file_ends_learning(path, workers):
    """The function is not blamed, and no call passes for a point without a density."""
    def f(x):
        if len(seen) >= 300 and not deleted:  # two threads may both pass 300 at once
            deleted.append(True)
            path.unlink(missing_ok=True)
        seen.append(x)
        return quick(x)

    seen, deleted = [], []
    with ThreadPoolExecutor(2) as pool, pytest.raises(
            fk.SamplingError, match=r"^\[Errno 2\] evaluations='.*it has been deleted") as info:
        fk.sample(f, np.zeros(2), surrogate="learn", evaluations=path, seed=1, progress=False,
                  executor=pool if workers else None)
    assert info.value.result.evaluations >= 300


def test_calls_after_the_file_was_deleted_do_not_lose_the_draws(path):
    """They arrive from idle workers at the end of the run."""
    class Late(Here):
        def collect(self, timeout):
            return super().collect(None)

    pool = PointPool(Late(fk.as_target(quick, 2)), FileOfCalls(path, Form(2, []), False))
    pool.submit(np.ones((1, 2)))
    pool.hand_out()
    path.unlink()
    with pytest.warns(fk.SamplingWarning, match="deleted or replaced: the last calls are not in"):
        pool.close()
    assert pool.calls.file < 0


def test_extras_without_elements(path):
    def f(x):
        return -0.5 * float(x @ x), {"none": np.zeros((2, 0))}

    expected = sample(f, **SHORT)
    for _ in range(2):
        result = sample(f, evaluations=path, **SHORT)
        assert_same(result, expected)
    calls = fk.Evaluations(path)
    assert calls.extras["none"].shape == (len(calls), 2, 0)


def test_best_points_are_distinct(path):
    values = iter([-3.0, -1.0, -2.0, -1.0])
    points = [[1.0, 0.0], [-0.0, 2.0], [2.0, 2.0], [0.0, 2.0]]
    loop = fk.AskTell(np.array(points), sampler="ram", draws=2, tune=0, chains=4, seed=1,
                      search=False, diagnose=False, evaluations=path)
    loop.tell(loop.ask(), list(values))
    _ = loop.ask()
    np.testing.assert_array_equal(fk.Evaluations(path).best(3), [[0, 2], [2, 2], [1, 0]])
