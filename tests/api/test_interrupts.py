"""Ctrl-C at any time: before the run nothing is written, and afterwards no draw is lost."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import suppress
from pkgutil import resolve_name

import densities
import numpy as np
import pytest
from densities import D
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.run import checkpoint, drive
from fastkam.run.interrupts import Shield
from fastkam.search.implied import with_implied

OPTIONS = {"draws": 400, "tune": 50, "chains": 2, "seed": 3, "progress": False}


def press():
    """Ctrl-C, to this process."""
    os.kill(os.getpid(), signal.SIGINT)


# ---- the shield ----


def test_a_signal_is_deferred_within_a_shield():
    reached = []
    with Shield() as shield:
        press()
        press()
        reached.append("closed")
        with pytest.raises(KeyboardInterrupt), shield.opened:
            reached.append("opened")
        with shield.opened:
            reached.append("both were one")
        with pytest.raises(KeyboardInterrupt), shield.opened:
            press()
    assert reached == ["closed", "both were one"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_signal_is_deferred_within_a_shield():
    """The first signal may still be cleaning up."""
    with Shield() as shield:
        with suppress(KeyboardInterrupt), shield.opened:
            try:
                press()
            finally:
                press()
        assert shield.taken()
        assert not shield.taken()


def test_a_deferred_signal_is_delivered_at_the_end():
    with pytest.raises(KeyboardInterrupt), Shield():
        press()
    with suppress(ZeroDivisionError), Shield():
        press()
        raise ZeroDivisionError  # is what is raised


def test_the_handler_of_the_user_is_called():
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        with Shield() as shield:
            press()
            assert calls == []
            with shield.opened:
                assert len(calls) == 1
                press()
                assert len(calls) == 2
            press()
        assert len(calls) == 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_nested_shields():
    """A density may call sample: a deferred signal is raised where the outer shield is open."""
    with Shield() as outer:
        with pytest.raises(KeyboardInterrupt), outer.opened, Shield() as inner, inner.opened:
            press()
        with Shield() as inner, inner.opened:
            press()  # the outer one is closed
        with pytest.raises(KeyboardInterrupt), outer.opened:
            pass


def test_other_threads_and_ignored_signals_are_left_alone():
    seen = []

    def other():
        with Shield() as shield, shield.opened:
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Shield() as shield, shield.opened:
            press()
            seen.append(signal.getsignal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]


# ---- a run ----


def test_in_the_last_checkpoint(tmp_path, monkeypatch):
    """The file is written, and the result returned with a warning."""
    write, path = checkpoint.write, tmp_path / "run.fk"

    def slow_write(*args):
        press()
        write(*args)
        press()

    whole = sample(densities.python, np.ones(D), **OPTIONS)
    monkeypatch.setattr(checkpoint, "write", slow_write)
    with pytest.warns(fk.SamplingWarning, match="interrupted at the end of a run") as caught:
        result = sample(densities.python, np.ones(D), checkpoint=path, **OPTIONS)
    assert len(caught) == 1
    assert result.status == "complete"
    assert_same(result, whole)
    assert_same(fk.load(path), whole)
    assert os.listdir(tmp_path) == ["run.fk"]


def test_while_the_draws_are_looked_at(monkeypatch):
    whole = sample(densities.python, np.ones(D), **OPTIONS)
    monkeypatch.setattr("fastkam.diagnostics.checks.findings", lambda state: press() or [])
    with pytest.warns(fk.SamplingWarning, match="interrupted at the end of a run"):
        result = sample(densities.python, np.ones(D), **OPTIONS)
    assert_same(result, whole)


@pytest.mark.parametrize("interval", [0.0, 60.0])
@pytest.mark.parametrize("threads", [1, 2])
def test_in_a_checkpoint_of_the_run(tmp_path, monkeypatch, threads, interval):
    """Ctrl-C while a file is written never cuts the file, nor the run's state."""
    write, path, calls = checkpoint.write_members, tmp_path / "run.fk", []

    def write_members(file, arrays):
        calls.append(1)
        if len(calls) == 1:
            press()
        write(file, arrays)

    monkeypatch.setattr(checkpoint, "write_members", write_members)
    options = OPTIONS | {"draws": 20_000 if interval == 0 else 200, "threads": threads}
    with pytest.warns(fk.SamplingWarning, match="interrupted"):
        part = sample(densities.python, np.ones(D), checkpoint=path, checkpoint_interval=interval,
                      **options)
    assert_same(fk.load(path), part)
    monkeypatch.undo()
    assert_same(part.resume(), sample(densities.python, np.ones(D), **options))


def test_the_search_before_a_run_ends_with_the_interrupt(tmp_path):
    """No file is written."""
    calls = []

    def density(x):
        calls.append(1)
        if len(calls) == 100:
            press()
        return densities.python(x)

    with pytest.raises(KeyboardInterrupt):
        fk.sample(density, np.ones(D), checkpoint=tmp_path / "run.fk", seed=1)
    assert len(calls) <= 101
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", [1, 2, 50])
def test_the_search_does_not_catch_exceptions_that_end_a_program(error, at):
    calls = []

    def density(x):
        calls.append(1)
        if len(calls) == at:
            raise error
        return densities.python(x)

    with pytest.raises(error):
        fk.sample(density, np.ones(D), seed=1)


@pytest.mark.parametrize("module", ["fastkam.run.state.RunState.generator",
                                    "fastkam.run.trace.Trace.grown",
                                    "fastkam.schedules.Schedule.compiled"])
def test_between_the_search_and_the_first_step(monkeypatch, module):
    """The result has no draws, and goes on as the whole run."""
    owner, name = module.rsplit(".", 1)
    whole = sample(densities.python, np.ones(D), **OPTIONS)
    with monkeypatch.context() as patch:
        cls = getattr(sys.modules[owner.rsplit(".", 1)[0]], owner.rsplit(".", 1)[1])
        undisturbed, calls = getattr(cls, name), []

        def interrupted(self, *args):
            calls.append(1)
            if len(calls) == (2 if name == "compiled" else 1):  # the first is a check of arguments
                press()
            return undisturbed(self, *args)

        patch.setattr(cls, name, interrupted)
        with pytest.warns(fk.SamplingWarning, match="interrupted after"):
            part = sample(densities.python, np.ones(D), **OPTIONS)
    assert part.evaluations <= 1
    assert_same(part.resume(), whole)


@pytest.mark.parametrize("kind", ["progress", "stop"])
def test_in_functions_of_the_user(kind):
    class Rule(fk.stop.StopRule):
        def met(self, run):
            press()
            return False

    option = {"stop": Rule()} if kind == "stop" else {
        "progress": lambda p: press() if min(p.draws) > 0 else None}
    with pytest.warns(fk.SamplingWarning, match="interrupted after"):
        part = sample(densities.python, np.ones(D), **OPTIONS | {"draws": 5000} | option)
    assert part.trace.rows > 0
    assert_same(part.resume(progress=False),
                sample(densities.python, np.ones(D), **OPTIONS | {"draws": 5000}))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sampler", "threads", "options"), [
    ("ram", 1, {}), ("ram", 2, {}), ("pt", 1, {}), ("nuts", 1, {"share": True}),
    ("jumps", 2, {}), ("kam", 1, {"checkpoint_interval": 0.0})])
def test_at_random_times(tmp_path, sampler, threads, options, seed):
    """Signals from another thread, several a run: the run goes on to the same draws."""
    rng, path = random.Random(seed), tmp_path / "run.fk"
    target = densities.with_gradient("python", None)
    options = {"sampler": sampler, "threads": threads, "checkpoint": path, "diagnose": False,
               "check_gradient": False} | OPTIONS | options
    bare = {name: value for name, value in options.items() if "checkpoint" not in name}
    again = {name: value for name, value in options.items()
             if name in ("threads", "checkpoint", "checkpoint_interval", "diagnose")}
    begun = time.perf_counter()
    whole = sample(target, np.ones(D), **bare)
    seconds = time.perf_counter() - begun
    done = threading.Event()

    def press_again_and_again():
        for _ in range(4):
            if done.wait(rng.uniform(0, 0.5) * seconds):
                break
            press()

    pressing = threading.Thread(target=press_again_and_again)
    before = signal.signal(signal.SIGINT, only_within_a_run)
    result = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        pressing.start()
        try:
            while result is None or result.status != "complete":
                if result is None:
                    result = sample(target, np.ones(D), **options)
                else:
                    result = result.resume(progress=False, **again)
        finally:
            done.set()
            pressing.join()
            signal.signal(signal.SIGINT, before)
    assert_same(result, whole)
    assert_same(fk.load(path), whole)
    assert os.listdir(tmp_path) == ["run.fk"]


def only_within_a_run(number, frame):
    """Ctrl-C where a run lets it through; before and after it there is no interrupt."""
    if sys._getframe(1).f_code is Shield.receive.__code__:
        raise KeyboardInterrupt


@pytest.mark.parametrize("at", [10, 900, 1500, 4000])
def test_the_choice_of_thinning_goes_on(tmp_path, at, monkeypatch):
    """The thinning of a default run is chosen by its first draws, be they made in one go or not."""
    monkeypatch.setattr(drive, "WORTH", 1.0)
    monkeypatch.setattr(drive, "ENOUGH", 150)
    calls, first = [], []

    def density(x):
        calls.append(1)
        if first and len(calls) == first[0] + at:
            press()
        return -0.5 * float(x @ x) - 20 * float(x[1] - x[0] ** 2) ** 2

    options = {"draws": 700, "seed": 3, "chains": 2, "diagnose": False, "progress": False}
    whole = fk.sample(density, np.ones(D), **options)
    assert whole.thin > 1
    first.append(len(calls) - (whole.evaluations - whole.state.searched))
    calls.clear()
    path = tmp_path / "run.fk"
    with pytest.warns(fk.SamplingWarning, match="interrupted after"):
        part = fk.sample(density, np.ones(D), checkpoint=path, **options)
    for again in (part.resume(diagnose=False), fk.resume(path, target=density, diagnose=False)):
        assert again.thin == whole.thin
        assert again.requested == 700
        assert_same(again, whole)


# ---- where SIGINT is ignored ----

IGNORED = """
import sys, warnings
sys.path[:0] = {path!r}
import numpy as np, densities
import fastkam as fk
warnings.simplefilter("ignore")
calls = 0

def density(x):
    global calls
    calls += 1
    if calls in (150, 151):
        raise KeyboardInterrupt
    return densities.python(x)

options = dict(sampler={sampler}, search=False, tune=50, draws=400, chains=2, seed=3)
part = fk.sample(density, np.ones(2), derived=lambda x: {{"u": x[0]}}, **options)
assert part.status == "interrupted", part
assert calls == 150, calls
print("interrupted")
"""


def ignoring(script):
    """Return the output of a process that ignores SIGINT, as with nohup."""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    return run.stdout or run.stderr


@pytest.mark.parametrize("sampler", ["'ram'", "'pt'"])
def test_an_interrupt_of_the_density_where_sigint_is_ignored(sampler):
    here = [str(os.path.dirname(densities.__file__))]
    assert ignoring(IGNORED.format(path=here, sampler=sampler)) == "interrupted\n"


IN_ADAPT = """
import numpy as np
import fastkam as fk
import warnings
warnings.simplefilter("ignore")

class Mine(fk.PythonSampler):
    calls = 0

    def propose(self, x, rng):
        return x + rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        Mine.calls += 1
        if Mine.calls == 30:
            raise KeyboardInterrupt

part = fk.sample(lambda x: -0.5 * float(x @ x), [0.0], sampler=Mine(), search=False, tune=50_000,
                 draws=10, seed=1)
assert part.status == "interrupted", part
print("interrupted")
"""


def test_an_interrupt_of_an_adaptation_where_sigint_is_ignored():
    assert ignoring(textwrap.dedent(IN_ADAPT)) == "interrupted\n"


def test_an_exit_keeps_the_checkpoint(tmp_path):
    """SIGTERM is often made a SystemExit: the file is written before it goes on."""
    path = tmp_path / "run.fk"

    def progress(p):
        if min(p.draws) > 0:
            sys.exit(3)

    options = OPTIONS | {"draws": 5000, "progress": progress}
    with pytest.raises(SystemExit):
        sample(densities.python, np.ones(D), checkpoint=path, **options)
    whole = sample(densities.python, np.ones(D), **OPTIONS | {"draws": 5000})
    assert fk.load(path).trace.rows > 0
    assert_same(fk.resume(path, target=densities.python), whole)


class Panic(BaseException):
    """An exception that is no Exception, as that of a panic in compiled Rust code."""


class BarePanic(BaseException):
    """One that takes no result."""

    @property
    def result(self):
        """A name that is taken."""
        raise AttributeError


@pytest.mark.parametrize("error", [Panic, BarePanic, SystemExit, GeneratorExit])
def test_an_exception_that_is_no_error_of_the_run_has_its_draws(error):
    calls = []

    def density(x):
        calls.append(1)
        if len(calls) == 700:
            raise error("stop")
        return densities.python(x)

    with pytest.raises(error) as caught:
        sample(density, np.ones(D), **OPTIONS)
    if error is not BarePanic:
        part = caught.value.result
        assert (part.status, part.trace.rows > 0) == ("failed", True)
        assert "draws a chain are kept" in caught.value.__notes__[0]
        assert_same(part.resume(), sample(densities.python, np.ones(D), **OPTIONS))


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_ctrl_c_in_the_checks_after_a_run_keeps_the_run():
    """A signal between two checks, or within one, ends the checks alone."""
    calls, at = 0, np.inf

    def f(x):
        nonlocal calls
        calls += 1
        if calls == at:
            press()
        return -0.5 * float(x @ x) - 0.1 * x[0] ** 4

    whole = fk.sample(f, [1.0, 2.0], seed=5, progress=False)
    for moment in np.linspace(0.88 * calls, calls - 1, 12).astype(int):
        calls, at = 0, moment
        result = fk.sample(f, [1.0, 2.0], seed=5, progress=False)
        rows = result.draws.shape[1]
        np.testing.assert_array_equal(result.draws, whole.draws[:, :rows])
        assert rows == whole.draws.shape[1] or result.status == "interrupted"


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize(("place", "nth", "options"), [
    ("fastkam.search.implied.Evaluator.__init__", 1, {}),
    ("fastkam.run.loop.Run.__init__", 2, {"sampler": "ram"}),
    ("fastkam.run.drive.thinned", 1, {"sampler": "ram", "stop": fk.stop.ESS(3000)}),
    ("fastkam.run.drive.since_visited", 1, {"sampler": "ram", "draws": 200}),
])
def test_an_exception_of_a_signal_handler_between_two_parts_of_a_run(
        monkeypatch, tmp_path, place, nth, options, error):
    """A handler of SIGALRM may raise anywhere, and not only within the loop."""
    def f(x):
        return -0.5 * float(x @ x)

    options = {"seed": 5, "progress": False} | options
    whole = fk.sample(f, [1.0, 2.0], **options)
    undisturbed, calls = resolve_name(place), []

    def late(*args, **given):
        if "search" not in place or sys._getframe(1).f_code is with_implied.__code__:
            calls.append(1)
            if len(calls) == nth:
                raise error("late")
        return undisturbed(*args, **given)

    path = tmp_path / "run.fk"
    with monkeypatch.context() as patch:
        patch.setattr(place, late)
        if error is KeyboardInterrupt:
            part = fk.sample(f, [1.0, 2.0], checkpoint=path, **options)
            assert part.status == "interrupted"
        else:
            with pytest.raises(fk.SamplingError, match="stopped by TimeoutError: late") as caught:
                fk.sample(f, [1.0, 2.0], checkpoint=path, **options)
            part = caught.value.result
            assert part.status == "failed"
    assert part.draws.shape[1] >= 200
    assert_same(fk.load(path), part)
    assert_same(part.resume(stop=options.get("stop"), progress=False), whole)
