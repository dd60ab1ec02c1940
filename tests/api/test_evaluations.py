"""The file of calls has every call, none is made twice, and damage is reported."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from runs import sample
from same import assert_same
from scipy import stats
from simulators import OPTIONS, loglike, noted, quick, raises_beyond, with_gradient

import fastkam as fk
from fastkam.points.records import Form, sealed
from fastkam.search.repeated import REPEATED


class Counted:
    """A function that counts its calls."""

    def __init__(self, f):
        self.f, self.n = f, 0

    def __call__(self, x):
        self.n += 1
        return self.f(x)

    def __getstate__(self):         # what makes it another function, or not
        return {"f": self.f}


def read(path):
    """The calls in a file, or None where it is refused by name."""
    try:
        return fk.Evaluations(path)
    except ValueError as error:
        if str(path) not in str(error):
            raise
        return None


FROM_PRIOR = {"prior": {"x": (stats.norm(0, 2), 2)}, "chains": 12, "draws": 5, "tune": 5, "seed": 3,
              "progress": False, "diagnose": False}
callers = []


def half(x):
    """Half of a normal density, with its gradient; the calls note their threads."""
    callers.append(threading.current_thread().name)
    return (-0.5 * float(x @ x), -x) if x[0] > 0 else (-np.inf, -x)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.fk"


@pytest.fixture
def five_compared(monkeypatch):
    """No more calls are compared where they are fast."""
    monkeypatch.setattr("fastkam.points.opening.MOST_COMPARED", 0)


@pytest.mark.parametrize("sampler", ["ram", "pt", "dram", "auto", "jumps"])
def test_every_call_is_kept_and_none_made_twice(path, sampler):
    """Except four by which a search checks that the density is not random."""
    f = Counted(quick)
    options = OPTIONS | {"sampler": sampler, "search": sampler == "auto"}
    expected = fk.sample(quick, **options)
    assert_same(fk.sample(f, evaluations=path, **options), expected)
    calls = fk.Evaluations(path)
    repeated = REPEATED if sampler == "auto" else 0
    assert len(calls) == f.n == len(np.unique(calls.x, axis=0)) + repeated
    again = fk.sample(f, evaluations=path, **options)
    assert_same(again, expected)
    assert f.n == len(calls) == len(fk.Evaluations(path))
    np.testing.assert_array_equal(again["many"], expected["many"])


def test_contents_of_a_file_of_calls(path):
    sample(quick, evaluations=path, **OPTIONS)
    calls = fk.Evaluations(path)
    np.testing.assert_array_equal(calls.values, [quick(x)[0] for x in calls.x])
    np.testing.assert_array_equal(calls.extras["sum"], calls.x.sum(axis=1))
    assert calls.extras["many"].shape == (len(calls), 3)
    assert calls.extras["count"].dtype == np.int64
    assert (calls.extras["count"] == 2).all()
    assert (calls.seconds > 0).all()
    assert calls.errors == [""] * len(calls)
    assert all(who.endswith(f":{os.getpid()}") for who in calls.workers)
    assert (np.abs(calls.times - time.time()) < 600).all()
    assert calls.gradients is None
    assert calls.d == 2
    assert calls.names == ["x[0]", "x[1]"]
    best = calls.best(3)
    assert best.shape == (3, 2)
    assert len(np.unique(best, axis=0)) == 3
    np.testing.assert_array_equal(best[0], calls.x[calls.values.argmax()])
    with pytest.raises(ValueError, match=r"n must be at most \d+, the distinct points"):
        calls.best(10**6)


def test_gradients_are_kept(path):
    f = Counted(with_gradient)
    expected = sample(with_gradient, **OPTIONS | {"sampler": "mala"})
    for _ in range(2):
        assert_same(sample(f, evaluations=path, **OPTIONS | {"sampler": "mala"}), expected)
    calls = fk.Evaluations(path)
    np.testing.assert_array_equal(calls.gradients, -calls.x)
    assert f.n == len(calls)


def test_a_file_without_gradients_serves_no_sampler_that_needs_them(path):
    values_alone = Counted(lambda x: -0.5 * x @ x)
    sample(values_alone, evaluations=path, **OPTIONS)
    with pytest.raises(TypeError, match="this sampler needs the gradient"):
        sample(values_alone, evaluations=path, **OPTIONS | {"sampler": "mala"})


def test_the_likelihood_alone_is_kept_of_a_problem(path):
    options = {"draws": 40, "tune": 40, "seed": 2, "diagnose": False, "sampler": "ram"}
    narrow = {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=3)}
    expected = fk.sample(loglike, prior=narrow, **options)
    assert_same(fk.sample(loglike, prior=narrow, evaluations=path, **options), expected)
    calls = fk.Evaluations(path)
    assert calls.names == ["mu", "sigma"]
    assert (calls.x[:, 1] > 0).all()
    np.testing.assert_array_equal(calls.values, [loglike(*x) for x in calls.x])
    # another prior, the same likelihood: the calls serve
    wide = narrow | {"mu": stats.norm(0, 100)}
    result = fk.sample(loglike, prior=wide, x0=calls.best(4), evaluations=path, **options)
    assert_same(result, fk.sample(loglike, prior=wide, x0=calls.best(4), **options))


def test_failures_are_kept_with_their_errors(path, five_compared):
    result = sample(raises_beyond, evaluations=path, on_error="reject",
                    **OPTIONS | {"x0": np.zeros(2)})
    calls = fk.Evaluations(path)
    failed = np.array([bool(error) for error in calls.errors])
    assert failed.any()
    assert np.isnan(calls.values[failed]).all()
    assert set(np.array(calls.errors)[failed]) == {"ValueError: no solution"}
    assert (calls.x[failed, 0] > 1.5).all()
    assert (calls.x[~failed, 0] <= 1.5).all()
    assert result.rejected["nan"].sum() == failed.sum()
    f = Counted(raises_beyond)
    sample(f, evaluations=path, on_error="reject", **OPTIONS | {"x0": np.zeros(2)})
    assert f.n <= 5     # to compare the functions, as this one is within an object


def test_a_failure_that_ended_a_run_is_tried_again(path):
    def f(x):
        if broken and x[0] > 1.5:
            raise OSError("no license")
        return -0.5 * float(x @ x)

    broken = True
    options = OPTIONS | {"x0": np.zeros(2)}
    with pytest.raises(fk.SamplingError, match="OSError: no license"):
        sample(f, evaluations=path, **options)
    broken = False
    assert_same(sample(f, evaluations=path, **options), sample(f, **options))


def test_it_is_read_while_it_grows(path):
    seen = []

    def f(x):
        if path.exists() and len(seen) < 20:
            seen.append(len(fk.Evaluations(path)))
        return quick(x)

    sample(f, evaluations=path, **OPTIONS)
    assert seen == list(range(20))
    calls = fk.Evaluations(path)
    assert calls.refresh() == 0


def test_a_torn_end_is_left_out(path):
    expected = sample(quick, evaluations=path, **OPTIONS)
    whole = path.read_bytes()
    size = Form(2, extras={"sum": ((), "f8"), "many": ((3,), "f8"), "count": ((), "i8")}
                ).dtype.itemsize
    n = len(fk.Evaluations(path))
    for cut in (1, 5, size - 1, size, size + 7):
        path.write_bytes(whole[:-cut])
        assert len(fk.Evaluations(path)) == n - -(-cut // size)
    for end in (b"\0" * size, b"call" + b"\0" * size, b"fkca", b"fkcalls1" + b"\7",
                b"x" * 3 * size):
        path.write_bytes(whole + end)
        assert len(fk.Evaluations(path)) == n
    assert_same(sample(quick, evaluations=path, **OPTIONS), expected)
    assert len(fk.Evaluations(path)) == n
    assert path.read_bytes() == whole


def test_any_cut_is_a_shorter_file(path):
    sample(quick, evaluations=path, **OPTIONS | {"draws": 2, "tune": 1, "chains": 2})
    whole, x = path.read_bytes(), fk.Evaluations(path).x
    lengths = []
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        calls = read(path)
        if calls is None:
            continue
        np.testing.assert_array_equal(calls.x, x[: len(calls)])
        lengths.append(len(calls))
    assert sorted(set(lengths)) == list(range(len(x)))


def test_any_changed_byte_is_found(path):
    sample(quick, evaluations=path, **OPTIONS | {"draws": 2, "tune": 1, "chains": 2})
    whole, before = path.read_bytes(), fk.Evaluations(path)
    for i in range(0, len(whole), 3):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 16]) + whole[i + 1:])
        calls = read(path)
        if calls is None:
            continue
        # a damaged end is a torn one
        assert len(calls) < len(before)
        np.testing.assert_array_equal(calls.values, before.values[: len(calls)])


@pytest.mark.parametrize("content", [
    b"", b"f", b"PK\3\4" * 100, b"fkcalls1", b"fkcalls1" + b"\0" * 99, Form(2).header()[:-3],
    b"\0" * 1000])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole file of evaluations") as info:
        fk.Evaluations(path)
    assert str(path) in str(info.value)
    if content:
        with pytest.raises(ValueError, match="not a whole file of evaluations"):
            sample(quick, evaluations=path, **OPTIONS)
        assert path.read_bytes() == content


def test_a_file_in_use_is_refused(path):
    def f(x):
        with pytest.raises(ValueError, match="is in use by another run"):
            sample(quick, evaluations=path, **OPTIONS)
        return quick(x)

    sample(f, evaluations=path, **OPTIONS | {"draws": 2, "tune": 1})
    sample(quick, evaluations=path, **OPTIONS | {"draws": 2, "tune": 1})


def test_a_file_is_free_again_after_an_error(path):
    with pytest.raises(fk.SamplingError):
        sample(lambda x: np.inf, evaluations=path, **OPTIONS)
    path.unlink()
    with pytest.raises(ValueError, match="proposal_cov"):
        sample(quick, evaluations=path, **OPTIONS | {"sampler": fk.RandomWalk(
            proposal_cov=np.eye(3))})
    sample(quick, evaluations=path, **OPTIONS)


@pytest.mark.parametrize(("options", "message"), [
    ({"evaluations": 3}, "evaluations must be a path"),
    ({"evaluations": "/nowhere/at/all/calls.fk"}, "evaluations must be a file in a folder"),
    ({"evaluations": "calls.fk", "spread": "chains"}, "evaluations must not be given with spread"),
    ({"spread": "points"}, "spread='points' needs executor"),
    ({"spread": "point"}, "spread must be one of .* did you mean 'points'"),
    ({"on_error": "raise"}, "on_error must be one of"),
    ({"on_error": "reject", "spread": "chains"}, "on_error='reject' must not be given with"),
])
def test_bad_arguments(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sample(quick, **OPTIONS, **options)


def test_estimates_are_refused(path):
    target = fk.Target.from_estimator(lambda x, rng: -0.5 * x @ x + rng.standard_normal(), 2)
    with pytest.raises(ValueError, match=r"evaluations, on_error, .* are for densities that"):
        sample(target, evaluations=path, **OPTIONS)


def test_a_killed_process_loses_nothing(tmp_path, path, five_compared):
    """The next one makes no call again, and has the draws of a run that was not killed."""
    program = (
        "import sys, time; sys.path[:0] = sys.argv[3:]\n"
        "from functools import partial\n"
        "from runs import sample\n"
        "from simulators import OPTIONS, noted\n"
        "def f(x):\n"
        "    time.sleep(0.002)\n"
        "    return noted(x, sys.argv[1])\n"
        "sample(f, evaluations=sys.argv[2], **OPTIONS)\n")
    folder = tmp_path / "notes"
    folder.mkdir()
    here = Path(__file__).parent
    process = subprocess.Popen([sys.executable, "-c", program, folder, path, here, here.parent])
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < 60 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    made = len(list(folder.iterdir()))
    known = len(fk.Evaluations(path))
    assert made - 1 <= known <= made            # the last may have had no time to be written
    expected = sample(quick, **OPTIONS)
    result = sample(partial(noted, folder=folder), evaluations=path, **OPTIONS)
    assert_same(result, expected)
    calls = fk.Evaluations(path)
    again = len(list(folder.iterdir())) - len(calls)
    assert 0 <= again <= 6                      # that one, and five to see that f is the same


def test_a_full_disk_ends_the_run(path, monkeypatch):
    real, n = os.pwrite, [0]

    def full(file, data, offset):
        n[0] += 1
        if n[0] == 30:
            real(file, data[:10], offset)
            raise OSError(28, "No space left on device")
        return real(file, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(fk.SamplingError, match=r"calls\.fk' cannot be written: No space") as info:
        sample(quick, evaluations=path, **OPTIONS)
    assert len(fk.Evaluations(path)) == 28
    monkeypatch.undo()
    assert_same(info.value.result.resume(evaluations=path, diagnose=False),
                sample(quick, **OPTIONS))


@pytest.mark.parametrize("options", [{"sampler": "ram", "search": False}, {"sampler": "nuts"}, {}])
def test_starts_from_a_prior_are_evaluated_like_other_points(path, options):
    """Workers make these calls, and none of the file is made again."""
    here = fk.sample(half, None, **FROM_PRIOR | options)
    with ThreadPoolExecutor(2, thread_name_prefix="worker") as pool:
        through = {"executor": pool, "spread": "points", "evaluations": path}
        callers.clear()
        assert_same(fk.sample(half, None, **through, **FROM_PRIOR | options), here)
        assert len(callers) == len(fk.Evaluations(path))
        assert all(name.startswith("worker") for name in callers)
        callers.clear()
        assert_same(fk.sample(half, None, **through, **FROM_PRIOR | options), here)
        assert not callers


@pytest.mark.parametrize("options", [{}, {"on_error": "reject"}])
def test_a_start_from_a_prior_at_which_the_function_fails(path, options):
    """A chain begins there, as without a file."""
    def fails(x):
        if x[0] > 0:
            raise RuntimeError("no convergence")
        return -np.inf if x[0] < -2 else -0.5 * float(x @ x)

    options = options | FROM_PRIOR | {"sampler": "ram", "search": False, "seed": 5}
    if "on_error" in options:
        result = fk.sample(fails, None, evaluations=path, **options)
        assert (result.state.x0[:, 0] > 0).any()
        again = fk.sample(fails, None, evaluations=path, **options)
        np.testing.assert_array_equal(again.state.x0, result.state.x0)
    else:
        with pytest.raises(fk.SamplingError, match="no convergence"):
            fk.sample(fails, None, evaluations=path, **options)


def test_resume_takes_the_file(path):
    f = Counted(quick)
    first = sample(f, evaluations=path, **OPTIONS | {"draws": 30})
    more = first.resume(30, evaluations=path, diagnose=False)
    assert_same(more, sample(quick, **OPTIONS))
    assert len(fk.Evaluations(path)) == f.n


def test_sections_follow_each_other(path):
    """Points without a density have no extras; the form of a record changes with the first."""
    def f(x):
        return quick(x) if x[0] > 0.5 else -np.inf

    options = OPTIONS | {"x0": np.array([0.4, 0.0])}
    expected = sample(f, **options)
    for _ in range(2):
        result = sample(f, evaluations=path, **options)
        assert_same(result, expected)
        np.testing.assert_array_equal(result["many"], expected["many"])
    assert path.read_bytes().count(b"fkcalls1") == 2
    calls = fk.Evaluations(path)
    inside = np.isfinite(calls.values)
    np.testing.assert_array_equal(calls.extras["sum"][inside], calls.x[inside].sum(axis=1))
    assert np.isnan(calls.extras["sum"][~inside]).all()


def test_records_have_their_checksums():
    rows = np.zeros(3, Form(2).dtype)
    assert len(sealed(rows)) == 3 * Form(2).dtype.itemsize
    assert (rows["mark"] == b"call").all()
    assert (rows["crc"] != 0).all()


def test_an_interrupt_ends_a_long_call(path, five_compared):
    """The run ends without waiting for the call, and resumes from there."""
    def f(x):
        if len(seen) == 40:
            seen.append("interrupted")
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        seen.append(x)
        return quick(x)

    seen, begun = [], time.monotonic()
    with pytest.warns(fk.SamplingWarning, match="interrupted after"):
        result = sample(f, evaluations=path, **OPTIONS)
    assert time.monotonic() - begun < 50
    assert result.status == "interrupted"
    assert_same(result.resume(evaluations=path, diagnose=False), sample(quick, **OPTIONS))
    # the call that was interrupted, and those to compare f, whose list is another now
    assert len(seen) - 6 <= len(fk.Evaluations(path)) <= len(seen) - 2


def test_calls_with_gradients_that_are_nan_are_read_again(path):
    def f(x):
        return -0.5 * float(x @ x), x * np.nan if x[0] > 1.5 else -x

    options = {"sampler": "nuts", "draws": 50, "tune": 100, "seed": 1, "diagnose": False,
               "evaluations": path, "progress": False}
    one, other = (fk.sample(f, np.zeros(2), **options) for _ in range(2))
    np.testing.assert_array_equal(one.draws, other.draws)
    assert one.rejected["gradient"].sum() == other.rejected["gradient"].sum() > 0


def test_the_file_of_calls_is_not_that_of_the_run(path):
    with pytest.raises(ValueError, match="checkpoint and evaluations must have different paths"):
        sample(lambda x: -0.5 * x @ x, evaluations=path, checkpoint=path, **OPTIONS)
    sample(lambda x: -0.5 * x @ x, evaluations=path, **OPTIONS)
    calls = path.read_bytes()
    for use in (lambda: sample(lambda x: -0.5 * x @ x, checkpoint=path, **OPTIONS),
                lambda: sample(lambda x: -0.5 * x @ x, **OPTIONS).save(path)):
        with pytest.raises(ValueError, match="must be a new file or one that fastkam has written"):
            use()
    assert path.read_bytes() == calls


def test_the_layout_of_records_is_made_once(path, monkeypatch):
    """Making it takes longer than the rest of the work for a call."""
    made, usual = [], Form.dtype.func

    def counted(form):
        made.append(1)
        return usual(form)

    monkeypatch.setattr(Form.dtype, "func", counted)
    sample(quick, evaluations=path, **OPTIONS)
    assert len(fk.Evaluations(path)) > 100
    assert len(made) <= 4
