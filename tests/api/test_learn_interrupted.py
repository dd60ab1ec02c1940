"""surrogate="learn" on workers, and where it is interrupted, killed or fails."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from learning import QUIET, SLOW, Bent, slow

import fastkam as fk
from fastkam.errors import SamplingWarning
from fastkam.surrogate import importance


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_an_executor_gives_the_same_draws(workers, alone):
    with ProcessPoolExecutor(workers) as pool:
        spread = fk.sample(slow, np.ones(2), executor=pool, **SLOW)
    np.testing.assert_array_equal(spread.draws, alone.draws)
    np.testing.assert_array_equal(spread.weights, alone.weights)
    np.testing.assert_array_equal(spread.extras["first"], alone.draws[..., 0])
    assert spread.evaluations == alone.evaluations
    assert spread.workers.points >= 200


@pytest.fixture(scope="module")
def alone():
    return fk.sample(slow, np.ones(2), **SLOW)


def fails(x, how, folder):
    """A density of 3 ms, of which a call beyond 1.2 fails: its process dies, or it is NaN."""
    time.sleep(3e-3)
    if how == "nan" and x[0] > 1.2:
        return np.nan
    if how == "raises" and x[0] > 1.2:
        raise ArithmeticError("no solution")
    if how == "slow" and x[0] > 1.2:
        time.sleep(0.05)
    if how == "dies" and x[0] > 1.2:
        with suppress(FileExistsError):
            os.close(os.open(os.path.join(folder, "dead"), os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    return -0.5 * float(x @ x)


@pytest.mark.parametrize("how", ["nan", "raises", "slow", "dies"])
def test_calls_that_fail_in_workers_change_no_draw(how, tmp_path):
    alone = "slow" if how == "dies" else how  # a call that has killed its process is made again
    options = SLOW | ({"on_error": "reject"} if how == "raises" else {})
    want = fk.sample(partial(fails, how=alone, folder=""), np.zeros(2), **options)
    with ProcessPoolExecutor(3) as pool:
        found = fk.sample(partial(fails, how=how, folder=str(tmp_path)), np.zeros(2),
                          executor=pool, spread="points", **options)
    np.testing.assert_array_equal(found.draws, want.draws)
    np.testing.assert_array_equal(found.weights, want.weights)
    assert (tmp_path / "dead").exists() == (how == "dies")
    if how in ("nan", "raises"):
        assert (found.draws[found.weights > 0][:, 0] <= 1.2).all()
    if how == "raises":
        assert found.workers.n_failures > 0


def test_an_interrupt_ends_a_run_on_workers():
    seen = []

    def interrupt(progress):
        seen.append(progress.searched)
        if progress.searched > 120:
            raise KeyboardInterrupt

    with ProcessPoolExecutor(2) as pool:
        with pytest.warns(SamplingWarning, match="the same call of sample continues from those"):
            result = fk.sample(slow, np.ones(2), executor=pool,
                               **SLOW | {"progress": interrupt})
        assert result.status == "interrupted"
        assert 0 < len(result.state.calls) < 250
        assert pool.submit(abs, -1).result() == 1


@pytest.mark.parametrize("after", [60, 500])
def test_an_interrupt_keeps_the_calls_and_the_draws(after):
    f = Bent()

    def interrupted(x):
        if f.n == after:
            raise KeyboardInterrupt
        return f(x)

    with pytest.warns(SamplingWarning, match="the same call of sample continues from those in the"):
        result = fk.sample(interrupted, np.ones(3), surrogate="learn", budget=700, seed=1, **QUIET)
    assert result.status == "interrupted"
    assert after - 64 <= len(result.state.calls) <= after
    assert result.evaluations == len(result.state.calls)
    assert result.draws.shape[1] == (0 if after == 60 else result.weights.shape[1])
    assert any("have weights" in note for note in result.summary().notes) == (after == 500)
    if after == 500:
        assert result.draws.shape[1] > 0
        assert np.isfinite(result.summary()["mean"]).all()
    else:
        assert "before any draw" in result.search[-1]
        assert np.isnan(result.summary()["mean"]).all()
        assert "There are no draws" in str(result.warnings[0])


@pytest.mark.parametrize("which", range(3))
def test_an_interrupt_while_the_surrogate_is_sampled_ends_the_run(monkeypatch, which):
    """In the pilot chains, in the draws, or in those that show the means of controls."""
    made = []

    def interrupted(state, target, rows, options, carry_out=importance.carry_out):
        outcome = carry_out(state, target, rows, options)
        made.append(rows)
        if len(made) == which + 1:
            return replace(outcome, state=replace(outcome.state, status="interrupted"))
        return outcome

    monkeypatch.setattr(importance, "carry_out", interrupted)
    with pytest.warns(SamplingWarning, match="evaluations, which are in result.state.calls"):
        result = fk.sample(Bent(), np.ones(3), surrogate="learn", budget=700, seed=1, **QUIET)
    assert result.status == "interrupted"
    assert len(made) == which + 1
    assert len(result.state.calls) > 200


def killed(x):
    """The bent density; the process dies at the 300th call of `killed.n`."""
    killed.n += 1
    if killed.n == 300:
        os.kill(os.getpid(), signal.SIGKILL)
    return float(-0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2 + (x[2] - x[1]) ** 2))


def run_killed(path):
    killed.n = 0
    fk.sample(killed, np.ones(3), surrogate="learn", budget=500, seed=1, evaluations=path, **QUIET)


def test_a_killed_run_goes_on_from_its_file_of_calls(tmp_path):
    path = str(tmp_path / "calls.fk")
    process = multiprocessing.get_context("fork").Process(target=run_killed, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    known = len(fk.Evaluations(path))
    assert 0 < known < 300
    killed.n = 10_000
    options = {"surrogate": "learn", "budget": 500, "seed": 1} | QUIET
    result = fk.sample(killed, np.ones(3), evaluations=path, **options)
    made = killed.n - 10_000
    assert made <= len(result.state.calls) - known + 1  # one, to see that the density is the same
    alone = fk.sample(Bent(), np.ones(3), **options)
    np.testing.assert_array_equal(result.draws, alone.draws)
    np.testing.assert_array_equal(result.weights, alone.weights)


def test_a_stop_while_learning_ends_the_call():
    """No search for a run without a surrogate follows, and the finding names the reason."""
    calls, at = [0], []

    def density(x):
        calls[0] += 1
        time.sleep(0.0005)
        return -0.5 * float((x - 3) @ (x - 3))

    def view(progress):
        if calls[0] > 30:
            at.append(calls[0])
            progress.stop()

    with pytest.warns(SamplingWarning, match="The run ended before any draw was kept"):
        result = fk.sample(density, np.zeros(3), surrogate="learn", budget=600, seed=1,
                           progress=view)
    assert result.stopped_by == "Progress.stop()"
    assert "(Progress.stop() was called)" in str(result.verdict())
    assert calls[0] <= at[0] + 40
