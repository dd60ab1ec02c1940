"""The file of calls also has those of `log_evidence` and `verdict`, after the run."""

import copy
import errno
import os
import threading

import numpy as np
import pytest
from runs import sample
from scipy import stats

import fastkam as fk
from fastkam.points.calls import FileOfCalls
from fastkam.points.records import Form

PRIOR = {"x": (stats.norm(0, 3), 2)}


class Counted:
    """A log likelihood that counts its calls; it fails where x[0] is large, and after `most` calls.
    """

    def __init__(self):
        self.n, self.most, self.largest = 0, np.inf, np.inf

    def __call__(self, x):
        if self.n >= self.most:
            raise KeyError("license")
        self.n += 1
        if x[0] > self.largest:
            raise ValueError("no solution")
        return -0.5 * x @ x


def run(f, path):
    return sample(f, prior=PRIOR, sampler="am", draws=200, tune=200, seed=1, evaluations=path,
                  diagnose=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.fk"


@pytest.mark.parametrize("ask", [
    lambda result: result.log_evidence(), lambda result: result.verdict(evaluations=300)])
def test_they_are_kept_and_not_made_twice(path, ask, monkeypatch):
    """And the outcome is that without the file."""
    monkeypatch.chdir(path.parent)
    f = Counted()
    result = run(f, path.name)  # relative to the folder at the time of the run
    (path.parent / "elsewhere").mkdir()
    monkeypatch.chdir(path.parent / "elsewhere")
    before, of_run = f.n, len(fk.Evaluations(path))
    first = ask(copy.copy(result))
    made = len(fk.Evaluations(path)) - of_run
    assert made >= 200
    assert made < f.n - before <= made + 2  # these compare the density with that of the run
    before = f.n
    assert repr(ask(copy.deepcopy(result))) == repr(first)
    assert f.n - before <= 2
    path.unlink()
    assert repr(ask(result)) == repr(first)
    assert f.n - before >= made
    assert not path.exists()


def test_a_run_that_resumes_keeps_them_too(path):
    f = Counted()
    more = run(f, path).resume(50, evaluations=path, diagnose=False)
    before, of_runs = f.n, len(fk.Evaluations(path))
    more.log_evidence()
    assert f.n - before - 1 == len(fk.Evaluations(path)) - of_runs > 200


def test_a_function_that_changes_the_current_folder(path, monkeypatch):
    def f(x):
        os.chdir(elsewhere)
        return -0.5 * x @ x

    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(path.parent)
    result = run(f, path.name)
    before = len(fk.Evaluations(path))
    result.log_evidence()
    assert len(fk.Evaluations(path)) - before >= 200


def test_a_given_target_has_no_file(path):
    f = Counted()
    result = run(f, path)
    result.save(path.with_suffix(".npz"))
    before = len(fk.Evaluations(path))
    for one in (fk.load(path.with_suffix(".npz")), result):
        one.log_evidence(target=fk.Problem(f, prior=PRIOR))
    assert len(fk.Evaluations(path)) == before


def test_a_file_in_use_is_refused(path):
    result, seen = run(Counted(), path), []

    def other(x):
        if not seen:
            with pytest.raises(ValueError, match=r"calls.fk' is in use by another run"):
                result.log_evidence()
            seen.append(x)
        return -0.5 * x @ x

    run(other, path)  # which compares the file with this function
    assert seen


def test_a_file_of_another_run_at_the_same_path_is_left_alone(path):
    """Calls of another density would make it useless to the run that has written it."""
    def other(x):
        return -0.25 * float((x - 1) @ (x - 1))

    result = run(Counted(), path)
    path.unlink()
    again = run(other, path)
    before = path.read_bytes()
    result.log_evidence()
    assert path.read_bytes() == before
    np.testing.assert_array_equal(run(other, path).draws, again.draws)
    again.log_evidence()
    assert path.read_bytes()[: len(before)] == before
    assert path.stat().st_size > len(before)


def in_many_dimensions(factor, path):
    """A run of a density without a digest."""
    lock = threading.Lock()

    def f(x):
        with lock:
            return -factor * float(x @ x)

    return sample(f, np.ones(600), sampler="rwm", draws=5, tune=0, seed=1, evaluations=path,
                  search=False, diagnose=False)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_of_another_run_in_many_dimensions_is_left_alone(path, replaced):
    """Its header and first point are the same, and take more than 4096 bytes."""
    result = in_many_dimensions(0.5, path)
    assert fk.Evaluations(path).sections[0][0].target == ""
    if replaced:
        path.unlink()
        in_many_dimensions(0.25, path)
    target = fk.as_target(lambda x: 0.0, 600)
    with result.kept.keeping(target, []) as made:
        assert (made is target) == replaced


def test_a_file_of_which_the_start_could_not_be_read_is_left_alone(path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as during:
        during.setattr(FileOfCalls, "start", lambda self: b"")
        result = run(Counted(), path)
    target = fk.as_target(lambda x: 0.0, 2)
    with result.kept.keeping(target, []) as made:
        assert made is target
    calls = FileOfCalls(path, Form(2), False)
    assert len(calls.start()) > 0
    with monkeypatch.context() as during:
        during.setattr(os, "pread", fail)
        assert calls.start() == b""
    calls.close()


def test_an_error_keeps_the_calls_before_it(path):
    f = Counted()
    result = run(f, path)
    f.most = f.n + 50
    with pytest.raises(fk.SamplingError, match=r"KeyError.*license"):
        result.log_evidence()
    assert len(fk.Evaluations(path)) > f.n  # with those that failed
    f.most = np.inf
    assert np.isfinite(result.log_evidence().value)


def test_points_that_fail_have_no_density(path):
    f = Counted()
    result = run(f, path)
    f.largest = float(result.draws[..., 0].max())
    kept = result.log_evidence()
    assert any(fk.Evaluations(path).errors)
    path.unlink()
    assert result.log_evidence().value == kept.value
