"""A file of calls on a full disk: the message, and the calls that are kept."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from limits import largest_file

import fastkam as fk
from fastkam.points.calls import Calls
from fastkam.points.carriers import Here
from fastkam.points.pool import PointPool
from fastkam.run.faults import Unwritten

FULL = r"^\[Errno 27\] evaluations='.*calls.fk' cannot be written: File too large \(in learning"


class Counted:
    def __init__(self):
        self.points, self.lock = [], threading.Lock()

    def __call__(self, x):
        with self.lock:
            self.points.append(x.copy())
        return -0.5 * float(x @ x) - 0.1 * float(x[0]) ** 4


@pytest.mark.parametrize(("size", "on_error"), [
    (1000, "stop"), (30_000, "reject"), (100_000, "stop")])
def test_learning(tmp_path, size, on_error):
    """The function is not blamed, and no call is lost: at the start, in learning, in drawing."""
    density, path = Counted(), tmp_path / "calls.fk"
    options = {"surrogate": "learn", "evaluations": path, "seed": 1, "progress": False,
               "on_error": on_error, "diagnose": False}
    with largest_file(size), pytest.raises(fk.SamplingError, match=FULL) as caught:
        fk.sample(density, np.zeros(3), **options)
    calls = caught.value.result.state.calls
    stored = fk.Evaluations(path)
    assert len(calls) == caught.value.result.evaluations
    assert len(np.unique(calls[:, :3], axis=0)) == len(np.unique(stored.x, axis=0)) + 1
    made = {x.tobytes() for x in density.points}
    assert {x.tobytes() for x in calls[:, :3]} <= made
    assert len(made) <= len(stored) + 2
    assert isinstance(caught.value.__cause__, OSError)
    whole = fk.sample(Counted(), np.zeros(3), **options | {"evaluations": tmp_path / "new.fk"})
    again = fk.sample(Counted(), np.zeros(3), **options)
    np.testing.assert_array_equal(again.draws, whole.draws)


def test_learning_with_workers(tmp_path):
    density, path = Counted(), tmp_path / "calls.fk"
    with largest_file(30_000), ThreadPoolExecutor(2) as pool, pytest.raises(
            fk.SamplingError, match=FULL) as caught:
        fk.sample(density, np.zeros(3), surrogate="learn", evaluations=path, seed=1,
                  progress=False, executor=pool)
    calls = caught.value.result.state.calls
    assert len(calls) == caught.value.result.evaluations > len(fk.Evaluations(path))


def test_a_run_makes_no_call_after_the_disk_is_full(tmp_path):
    density, path = Counted(), tmp_path / "calls.fk"
    with largest_file(30_000), pytest.raises(
            fk.SamplingError, match=r"stopped by \[Errno 27\] evaluations='") as caught:
        fk.sample(density, np.zeros(3), sampler="ram", search=False, draws=500, seed=1,
                  progress=False, evaluations=path, diagnose=False)
    assert len(density.points) == len(fk.Evaluations(path)) + 1
    assert caught.value.result.trace is not None


def test_calls_that_arrive_at_the_end():
    """A disk that is full when the last ones of idle workers arrive does not lose the draws."""
    class Full(Calls):
        closed = False

        def add(self, replies):
            raise Unwritten(28, "evaluations='calls.fk' cannot be written: No space left on device")

        def close(self):
            self.closed = True

    class Late(Here):
        def collect(self, timeout):
            return super().collect(None)

    calls = Full()
    pool = PointPool(Late(fk.as_target(Counted(), 3)), calls)
    pool.submit(np.ones((1, 3)))
    pool.hand_out()
    with pytest.warns(fk.SamplingWarning, match="on device: the last calls are not in it"):
        pool.close()
    assert calls.closed


@pytest.mark.parametrize("action", ["always", "error"])
def test_a_run_whose_last_calls_cannot_be_written_has_its_result(tmp_path, monkeypatch, action):
    """Also where warnings are errors, which would take the place of the result."""
    def full():
        raise Unwritten(28, "evaluations='calls.fk' cannot be written: No space left on device")

    def closed(pool):
        pool.cancel = full
        close(pool)

    close = PointPool.close
    monkeypatch.setattr(PointPool, "close", closed)
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(2) as pool:
        warnings.simplefilter(action, fk.SamplingWarning)
        result = fk.sample(Counted(), np.zeros(3), sampler="ram", search=False, draws=50, tune=10,
                           seed=1, progress=False, diagnose=False, executor=pool,
                           spread="prefetch", evaluations=tmp_path / "calls.fk")
    assert result.draws.shape == (4, 50, 3)
    said = [str(one.message) for one in caught]
    assert any("the last calls are not in it" in one for one in said) == (action == "always")
