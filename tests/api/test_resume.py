"""Resuming: run(n) is run(k), save, load in a new process, run(n - k), bit for bit."""

import copy
import errno
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import densities
import numpy as np
import pytest
from densities import D, Stop, replaced, short, stopped_at, with_gradient
from forms import CyclesInPoints, InPoints
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam._core.samplers import kpca
from fastkam.run import checkpoint
from fastkam.run.state import BIT_GENERATORS
from fastkam.samplers import SAMPLERS, metrics, modes

HERE = str(Path(__file__).parent)


def start(script, *args):
    """Start a new Python that runs `script`, which can import the densities, with `args`."""
    code = f"import sys; sys.path.insert(0, {HERE!r})\nimport densities, fastkam as fk\n" + script
    return subprocess.Popen([sys.executable, "-c", code, *map(str, args)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# one new process resumes every file of a test: its start is what takes the time
RESUME = """
import json
for path, kind, threads in json.loads(sys.argv[1]):
    target = densities.with_gradient(kind, sys.argv[2])
    fk.resume(path, target=target, threads=threads).save(path)
"""


def resumed(files, library):
    """The results in `files`, (path, kind, threads), after another process has resumed them."""
    process = start(RESUME, json.dumps(files), library)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return [fk.load(path) for path, *_ in files]


@pytest.mark.parametrize("name", SAMPLERS)
def test_resume_in_a_new_process(library, tmp_path, name):
    """Each kind of target, thinned and not, stopped within warm-up and within the draws."""
    wholes, files = [], []

    def keep(whole, part, kind):
        path = str(tmp_path / f"{len(files)}.fk")
        replaced(part, requested=whole.requested).save(path)
        wholes.append(whole)
        files.append((path, kind, 1 + len(files) % 2))

    for kind in ("python", "vectorized", "c"):
        target = with_gradient(kind, library)
        for thin in (1, 3):
            options = {"sampler": short(name), "tune": 40, "chains": 2, "seed": 9, "thin": thin,
                       "check_gradient": False}
            whole = sample(target, np.ones(D), draws=60, **options)
            keep(whole, sample(target, np.ones(D), draws=23, **options), kind)
            if kind != "c":
                for evaluation in (20, 90):
                    with pytest.raises(fk.SamplingError) as caught:
                        sample(stopped_at(target, evaluation), np.ones(D), draws=60, **options)
                    keep(whole, caught.value.result, kind)
    for whole, other in zip(wholes, resumed(files, library), strict=True):
        assert_same(whole, other)


@pytest.mark.parametrize("within", ["nuts", "dm", "dram", "kam"])
def test_resume_where_moves_alternate(library, within):
    """Mode jumping around samplers of several evaluations, several points, and a memory of x."""
    target = with_gradient("python", library)
    sampler = fk.ModeJumping(sampler=within, jump_probability=0.5, means=[[0.0, 0.0], [1.0, 1.0]])
    options = {"sampler": sampler, "tune": 40, "draws": 60, "chains": 2, "seed": 9,
               "check_gradient": False}
    whole = sample(target, np.ones(D), **options)
    for evaluation in (20, 21, 90, 160):
        with pytest.raises(fk.SamplingError) as caught:
            sample(stopped_at(target, evaluation), np.ones(D), **options)
        assert_same(caught.value.result.resume(target=target), whole)


@pytest.mark.parametrize(("sampler", "share"), [
    (InPoints(subsample=9, renewal=0.3), False), (InPoints(subsample=9, renewal=0.3), True),
    (CyclesInPoints(subsample=9, cycle=20), False),
    (fk.ParallelTempering(n_replicas=3, sampler=InPoints(subsample=9)), False),
], ids=["kam", "shared", "ckam", "pt"])
def test_resume_with_few_points(library, tmp_path, sampler, share):
    """Distances between points are not fields: they are computed again, with the same values."""
    target = with_gradient("python", library)
    options = {"sampler": sampler, "tune": 40, "draws": 60, "chains": 2, "seed": 9, "share": share}
    whole = sample(target, np.ones(D), **options)
    for evaluation in (*range(5, 40, 3), 75, 90, 161):
        with pytest.raises(fk.SamplingError) as caught:
            sample(stopped_at(target, evaluation), np.ones(D), **options)
        assert_same(caught.value.result.resume(target=target), whole)
    caught.value.result.save(tmp_path / "run.fk")
    assert repr(fk.load(tmp_path / "run.fk").sampler) == repr(sampler)
    assert_same(fk.resume(tmp_path / "run.fk", target=target), whole)


def test_the_clocks_of_replicas_go_on(library):
    """Near the end of warm-up HMC learns its step size alone: by the clock of each replica."""
    target = with_gradient("python", library)
    sampler = fk.ParallelTempering(n_replicas=3, sampler=fk.HMC(metric="diagonal", n_steps=3))
    options = {"sampler": sampler, "tune": 40, "draws": 30, "chains": 1, "seed": 9,
               "check_gradient": False}
    whole = sample(target, np.ones(D), **options)
    for evaluation in range(whole.evaluations * 34 // 70, whole.evaluations * 40 // 70, 5):
        with pytest.raises(fk.SamplingError) as caught:
            sample(stopped_at(target, evaluation), np.ones(D), **options)
        assert_same(caught.value.result.resume(target=target), whole)


@pytest.mark.parametrize("schedule", ["finite", "diminishing", "rare", "perpetual"])
def test_resume_under_every_schedule(schedule):
    options = {"tune": 40, "chains": 2, "seed": 9, "schedule": schedule}
    whole = sample(densities.python, np.ones(D), draws=200, **options)
    part = sample(densities.python, np.ones(D), draws=77, **options)
    assert_same(part.resume(123), whole)


def test_resume_with_every_bit_generator(library, tmp_path):
    wholes, files = [], []
    for bits in BIT_GENERATORS:
        options = {"tune": 20, "chains": 2, "seed": 4, "bit_generator": bits}
        target = with_gradient("c", library)
        wholes.append(sample(target, np.ones(D), draws=50, **options))
        path = str(tmp_path / f"{bits}.fk")
        replaced(sample(target, np.ones(D), draws=20, **options), requested=50).save(path)
        files.append((path, "c", 1))
    for whole, other in zip(wholes, resumed(files, library), strict=True):
        assert_same(whole, other)
    draws = [whole.draws.tobytes() for whole in wholes]
    assert len(set(draws)) == len(draws)


def test_a_file_keeps_everything(tmp_path):
    result = sample(densities.python, np.ones(D), draws=20, tune=10, seed=2**90,
                    sampler=fk.RandomWalk(proposal_cov=[1.0, 2.0]), names=["a"],
                    shapes={"a": (2,)})
    result.save(tmp_path / "run.fk")
    other = fk.load(tmp_path / "run.fk")
    assert_same(result, other)
    assert repr(other.sampler) == repr(result.sampler)
    assert other.schedule == result.schedule
    assert other.shapes == result.shapes
    assert other["a"].shape == (4, 20, 2)
    assert other.state.seed.entropy == 2**90
    with pytest.raises(ValueError, match="target must be given"):
        other.resume(10)
    assert_same(other.resume(10, target=densities.python), result.resume(10))


def test_states_alone(tmp_path):
    """Without statistics the draws are the same, also through a file and in processes."""
    run = {"draws": 60, "tune": 40, "chains": 2, "seed": 3, "sampler": "nuts"}
    target = fk.targets.banana(d=2)
    full = sample(target, np.zeros(2), **run)
    bare = sample(target, np.zeros(2), keep_stats=False, **run | {"draws": 25})
    assert bare.stats == bare.warmup.stats == {}
    assert np.isnan(bare.acceptance).all()
    bare.save(tmp_path / "bare.fk")
    bare = fk.resume(tmp_path / "bare.fk", 35, target=target)
    np.testing.assert_array_equal(bare.draws, full.draws)
    assert bare.trace.arrays()["logp"].size == 0
    with ProcessPoolExecutor(1) as pool:
        there = sample(target, np.zeros(2), keep_stats=False, executor=pool, **run)
    np.testing.assert_array_equal(there.draws, full.draws)
    assert there.stats == {}
    bare.summary()
    bare.to_datatree()


def test_a_result_from_a_file_may_be_resumed_before_any_step(tmp_path):
    def fails(x):
        raise Stop

    options = {"draws": 30, "tune": 10, "seed": 5}
    with pytest.raises(fk.SamplingError) as caught:
        sample(fails, np.ones(D), **options)
    caught.value.result.save(tmp_path / "run.fk")
    whole = sample(densities.python, np.ones(D), **options)
    assert_same(fk.resume(tmp_path / "run.fk", target=densities.python), whole)


# ---- killed ----

KILLED = """
f = densities.ctypes_function(sys.argv[1], "slow")
fk.sample(f, [0.0, 0.0], sampler="ram", search=False, draws=10**6, tune=300, chains=2, seed=7,
          threads=int(sys.argv[3]), checkpoint=sys.argv[2], checkpoint_interval=0.1)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_kill_during_a_run(library, tmp_path, threads):
    path = tmp_path / "run.fk"
    process = start(KILLED, library, path, threads)
    written, seen = 0, None
    while written < 4:  # let it be written several times, so that it holds draws
        assert process.poll() is None, process.stderr.read()
        if path.exists() and path.stat().st_mtime_ns != seen:
            written, seen = written + 1, path.stat().st_mtime_ns
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    part = fk.load(path)
    assert part.status == "running"
    rows = int(part.trace.counts.max()) + 50
    fast = densities.ctypes_function(library, "plain_form")
    whole = sample(fast, np.zeros(D), draws=rows, tune=300, chains=2, seed=7)
    assert_same(fk.resume(path, 50, target=fast), whole)


def test_checkpoints_of_threads_hold_the_state_of_their_draws(library, tmp_path, monkeypatch):
    """Every checkpoint that is written while other threads run resumes to the same draws."""
    kept = []
    write = checkpoint.write

    def slow_write(path, state):
        time.sleep(0.02)  # the threads go on meanwhile
        write(path, state)
        kept.append(fk.load(path))

    monkeypatch.setattr(checkpoint, "write", slow_write)
    target = densities.ctypes_function(library, "slow")
    sample(target, np.zeros(D), draws=1500, tune=100, chains=2, seed=7, threads=2,
           checkpoint=tmp_path / "run.fk", checkpoint_interval=0.0)
    fast = densities.ctypes_function(library, "plain_form")
    whole = sample(fast, np.zeros(D), draws=1500, tune=100, chains=2, seed=7)
    assert len(kept) > 3
    for part in kept[:: max(1, len(kept) // 10)]:
        assert_same(part.resume(target=fast), whole)


# ---- files that are no results ----


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "run.fk"
    sample(densities.python, np.ones(D), draws=20, tune=10, seed=1, checkpoint=path)
    return path


@pytest.mark.parametrize("size", [0, 1, 100, 2000, -1])
def test_truncated_files(good, size):
    whole = good.read_bytes()
    good.write_bytes(whole[:size])
    with pytest.raises(ValueError, match=r"run\.fk is not a fastkam result"):
        fk.load(good)


def test_foreign_files(tmp_path):
    path = tmp_path / "other"

    def refused(says="is not a fastkam result|has a format"):
        with pytest.raises(ValueError, match=says):
            fk.resume(path, target=densities.python)

    path.write_text("some text")
    refused()
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    refused()
    for header in ("no json", "[]", "3", '{"format": 1}', '{"format": 1, "seed": 3}'):
        with open(path, "wb") as file:
            np.savez(file, header=np.frombuffer(header.encode(), np.uint8), x0=np.zeros((1, 2)))
        refused()
    with open(path, "wb") as file:
        np.savez(file, header=np.frombuffer(b'{"format": 99}', np.uint8))
    refused("has a format that this version")


def test_a_flipped_bit_is_found(good):
    data = bytearray(good.read_bytes())
    data[data.index(fk.load(good).draws[0, 0].tobytes())] ^= 1
    good.write_bytes(data)
    with pytest.raises(ValueError, match="is not a fastkam result"):
        fk.load(good)


def test_an_object_that_is_not_a_bit_generator_is_refused(good):
    result = fk.load(good)
    replaced(result, bit_generator="default_rng").save(good)
    with pytest.raises(ValueError, match="bit_generator must be one of"):
        fk.load(good)


# ---- checkpoints that cannot be written ----


@pytest.fixture
def full_disk(monkeypatch):
    """No room on the disk, from the moment it is called with True."""
    full, fsync = [False], os.fsync

    def refuse(file):
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    monkeypatch.setattr("fastkam.run.files.os.fsync", refuse)
    return lambda value: full.__setitem__(0, value)


def test_a_full_disk_in_mid_run_is_warned_of_and_passes(full_disk, tmp_path):
    path = tmp_path / "run.fk"
    options = {"draws": 3000, "tune": 10, "seed": 1, "chains": 1, "diagnose": False}

    def progress(p):
        full_disk(p.draws[0] < 3000)

    with pytest.warns(fk.SamplingWarning, match="goes on, but checkpoint=.*No space left") as seen:
        result = sample(densities.python, np.ones(D), checkpoint=path, checkpoint_interval=0.0,
                        progress=progress, **options)
    assert len(seen) == 1
    assert_same(result, sample(densities.python, np.ones(D), **options))
    assert_same(result, fk.load(path))
    assert os.listdir(tmp_path) == ["run.fk"]


def test_a_full_disk_at_the_end_is_an_error_with_the_draws(full_disk, good):
    old = good.read_bytes()
    full_disk(True)
    with pytest.raises(fk.SamplingError, match=r"complete, but checkpoint=.*No space left") as seen:
        sample(densities.python, np.ones(D), draws=20, seed=1, checkpoint=good)
    assert seen.value.result.draws.shape == (4, 20, D)
    assert isinstance(seen.value.__cause__, OSError)
    assert good.read_bytes() == old


def test_a_full_disk_does_not_hide_the_densitys_error(full_disk, good):
    def density(x):
        raise Stop("for another reason")

    full_disk(True)
    with pytest.raises(fk.SamplingError, match=r"Stop: for another reason.*No space left") as seen:
        sample(density, np.ones(D), seed=1, checkpoint=good)
    assert isinstance(seen.value.__cause__, Stop)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("nth", [1, 3, 4])
@pytest.mark.parametrize(("name", "module", "function"), [
    ("jumps", modes, "fit"), ("nuts", metrics, "low_rank"), ("kpca", kpca, "eigen")])
def test_an_interrupt_within_an_adaptation(monkeypatch, tmp_path, name, module, function, nth,
                                           share):
    """An interrupt takes effect after the step, or after both steps if a second one follows."""
    options = {"x0": np.zeros(D), "sampler": SAMPLERS[name](), "draws": 40, "tune": 600,
               "chains": 2, "seed": 4, "share": share, "threads": 1}
    target, path, calls = with_gradient("python", None), tmp_path / "run.fk", 0
    whole = sample(target, **options)
    undisturbed = getattr(module, function)

    def interrupted(*args, **more):
        nonlocal calls
        calls += 1
        if calls in (nth, nth + 1):
            raise KeyboardInterrupt
        return undisturbed(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, function, interrupted)
        with pytest.warns(fk.SamplingWarning, match="interrupted"):
            part = sample(target, **options)
    assert calls >= nth + 2
    assert part.status == "interrupted"
    part.save(path)
    assert_same(fk.resume(path, target=target), whole)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_result_can_be_resumed(duplicate):
    result = fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), sampler="ram", seed=1, draws=50)
    again = duplicate(result)
    np.testing.assert_array_equal(again.resume(5).draws, result.resume(5).draws)


def test_a_checkpoint_stays_in_its_folder(tmp_path, monkeypatch):
    """Although the function changes the current one, as simulators do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()

    def logp(x):
        os.chdir(tmp_path / "work")
        return -0.5 * float(x @ x)

    fk.sample(logp, np.zeros(2), sampler="ram", draws=50, tune=50, checkpoint="run.fk",
              progress=False, diagnose=False)
    assert fk.load(tmp_path / "run.fk").draws.shape == (4, 50, 2)


@pytest.mark.parametrize("sampler", ["auto", "am", "pt", "nuts"])
def test_a_target_that_differs_only_at_draws_is_refused(sampler, tmp_path):
    """The chains are where both densities are equal; some draws are where the new one is 0."""
    def f(x):
        return -0.5 * float(x @ x), -x

    def cut(x):
        return (-np.inf if abs(x[1]) > 2.2 else f(x)[0]), -x

    result = fk.sample(f, np.zeros(2), sampler=sampler, draws=500, tune=200, seed=1, diagnose=False)
    inner = [chain["x"] for chain in result.states]
    assert np.abs(inner).max() < 2.2
    assert np.abs(result.draws[..., 1]).max() > 2.2
    result.save(tmp_path / "run.fk")
    with pytest.raises(ValueError, match=r"run\.fk: .* at one of the draws it returns -inf"):
        fk.resume(tmp_path / "run.fk", 10, target=cut)
    assert fk.resume(tmp_path / "run.fk", 10, target=f).draws.shape[1] == 510


def test_a_function_whose_data_have_changed_is_not_continued():
    """The result holds the function; one evaluation shows that it is another density now."""
    data = np.zeros(3)
    calls = []

    def f(x):
        calls.append(1)
        return -0.5 * ((data - x[0]) ** 2).sum()

    first = fk.sample(f, [0.0], sampler="am", draws=50, tune=50, seed=1, progress=False)
    before = len(calls)
    first.resume(draws=10)
    assert len(calls) == before + 10 * 4 + 1
    data += 5.0
    with pytest.raises(ValueError, match=r"density of the result must be that.*check_target"):
        first.resume(draws=10)
    with pytest.warns(fk.SamplingWarning, match="target is another density than that of the draws"):
        assert first.resume(draws=10, check_target=False).draws.shape[1] == 60


@pytest.mark.parametrize("rule", [fk.stop.Evaluations(2000),
                                  fk.stop.Evaluations(2000) | fk.stop.Time(600)])
def test_a_limit_of_evaluations_is_that_of_the_call(rule, tmp_path):
    """The rule counted the evaluations of all calls, so that a second call made no draw."""
    first = fk.sample(densities.python, np.zeros(2), sampler="ram", seed=1, stop=rule,
                      diagnose=False)
    first.save(tmp_path / "run.fk")
    for result in (first.resume(stop=rule, diagnose=False),
                   fk.resume(tmp_path / "run.fk", 10**4, stop=rule, diagnose=False,
                             target=densities.python)):
        assert first.evaluations + 1990 < result.evaluations <= first.evaluations + 2000
        assert result.stopped_by == first.stopped_by == "Evaluations(count=2000)"
        again = result.resume(stop=rule, diagnose=False, executor=1)
        assert result.evaluations + 1990 < again.evaluations <= result.evaluations + 2000
    run = SimpleNamespace(seconds_per_evaluation=2.0, evaluations=2500)
    assert fk.stop.Evaluations(2000).after(1000).forecast(run) == 1000.0
