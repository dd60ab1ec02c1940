"""Display of a run in progress, and the data passed to a user's function."""

import io
import logging
import os
import pickle
import pty
import re
import subprocess
import sys
import textwrap
import threading
import time
from types import ModuleType, SimpleNamespace

import densities
import numpy as np
import pytest
from same import assert_same
from scipy import stats
from test_executors import Loopback

import fastkam as fk
from fastkam.diagnostics import ess_bulk
from fastkam.progress import Progress, monitor, text
from fastkam.progress.monitor import Monitor
from fastkam.run import executors

OPTIONS = {"sampler": "ram", "tune": 60, "draws": 300, "chains": 3, "seed": 4, "search": False,
           "diagnose": False}
X0 = np.ones(densities.D)


@pytest.fixture
def looking(monkeypatch):
    """Let every report examine the draws, as if that took no time."""
    monkeypatch.setattr(monitor, "SHARE", 1e9)
    monkeypatch.setattr(monitor, "EVERY_SECONDS", 0.0)


def seen_of(target=densities.python, x0=X0, **options):
    seen = []
    result = fk.sample(target, x0, progress=seen.append, **OPTIONS | options)
    return seen, result


# ---- what a function sees ----


@pytest.mark.parametrize("executor", [None, Loopback])
def test_measures_are_those_of_the_draws(looking, executor):
    seen, result = seen_of(names=["a", "b"], executor=executor and executor())
    last = seen[-1]
    sizes, r_hats = ess_bulk(result.draws), fk.diagnostics.r_hat(result.draws)
    assert last.ess == pytest.approx(sizes.min(), rel=1e-12)
    assert last.r_hat == pytest.approx(r_hats.max(), rel=1e-12)
    assert last.ess_of == "ab"[sizes.argmin()]
    assert last.r_hat_of == "ab"[r_hats.argmax()]
    assert last.evaluations == result.evaluations
    assert last.requested == 300
    assert last.names == ["a", "b"]


def test_step_size_and_divergences(looking):
    target = fk.targets.Funnel(4)
    seen, result = seen_of(target, np.zeros(4), sampler="nuts", tune=200)
    assert seen[-1].diverging == result.stats["diverging"].sum() > 0
    assert seen[-1].step_size == pytest.approx(result.stats["step_size"][:, -1].mean())


@pytest.mark.parametrize("executor", [None, Loopback])
def test_the_last_draws_are_in_the_parameters_of_the_user(executor):
    found = []

    def look(progress):
        found.append((min(progress.draws), progress.last_draws(7)))

    result = fk.sample(lambda s: -0.5 * (s - 1) ** 2, prior={"s": stats.expon()},
                       progress=look, executor=executor and executor(),
                       **OPTIONS | {"search": True})
    assert (result.draws > 0).all()
    for rows, draws in found:
        assert draws.shape[1] == min(rows, 7) or rows == 0
        if rows:
            np.testing.assert_array_equal(draws, result.draws[:, max(0, rows - 7) : rows])
    assert max(rows for rows, _ in found) == 300


@pytest.mark.parametrize("n", [-1, 1.5, "3"])
def test_a_bad_number_of_last_draws_is_named_and_loses_nothing(n):
    with pytest.raises(fk.SamplingError, match=r"n must be (an integer|at least 0)") as info:
        fk.sample(densities.python, X0, progress=lambda p: p.last_draws(n), **OPTIONS)
    whole = fk.sample(densities.python, X0, progress=False, **OPTIONS)
    assert_same(info.value.result.resume(target=densities.python, diagnose=False), whole)


def test_the_last_draws_of_a_run_with_a_store(tmp_path):
    found = []
    result = fk.sample(densities.python, X0, store=tmp_path / "run",
                       progress=lambda p: found.append(p.last_draws(3)), **OPTIONS)
    np.testing.assert_array_equal(found[-1], result.draws[:, -3:])


@pytest.mark.parametrize("executor", [None, Loopback])
def test_a_function_stops_the_run(monkeypatch, executor):
    monkeypatch.setattr(executors, "TASK_SECONDS", 0.01)

    def enough(progress):
        if min(progress.draws) > 100:
            progress.stop()

    part = fk.sample(densities.python, X0, progress=enough, executor=executor and executor(),
                     **OPTIONS | {"draws": 100_000})
    assert part.status == "stopped"
    rows = int(part.trace.counts.max()) + 10
    assert rows < 50_000
    assert_same(part.resume(10, progress=False),
                fk.sample(densities.python, X0, progress=False, **OPTIONS | {"draws": rows}))


def test_a_function_stops_the_search():
    calls = []

    def slow(x):
        calls.append(x)
        time.sleep(1e-3)
        return -0.5 * float(x @ x)

    result = fk.sample(slow, np.ones(2), progress=lambda p: p.stop(), seed=1, diagnose=False)
    assert result.status == "stopped"
    assert len(calls) < 1000


def test_progress_can_be_sent_elsewhere():
    seen, _ = seen_of()
    other = pickle.loads(pickle.dumps(seen[-1]))
    assert other.steps == seen[-1].steps
    assert other.last_draws().shape == (3, 0, densities.D)
    other.stop()


def test_tasks_report_before_a_chain_ends(monkeypatch):
    """In processes, too, a chain is seen on its way."""
    monkeypatch.setattr(executors, "TASK_SECONDS", 0.05)
    seen, _ = seen_of(slow_density, executor=2, chains=2)
    steps = {p.steps for p in seen}
    assert len(steps) > 4


def slow_density(x):
    time.sleep(0.001)
    return densities.python(x)


class Forecasting(fk.stop.StopRule):
    def met(self, run):
        return False

    def forecast(self, run):
        return 5.0 if run.trace.rows else None


def test_the_forecast_of_a_stop_rule(looking):
    seen, _ = seen_of(slow_density, stop=Forecasting(), draws=100_000 // 500)
    assert any(p.seconds_left <= 5.0 for p in seen if min(p.draws))
    one = Monitor()
    one.past.append((time.perf_counter() - 10.0, 0, 0))
    assert one.shown(100, 300, 100)["seconds_left"] == pytest.approx(20.0, rel=0.01)
    one.forecast, one.forecast_at = 3.0, time.perf_counter()
    assert one.shown(100, 300, 100)["seconds_left"] == pytest.approx(3.0, rel=0.01)


# ---- what it costs ----


class Clock:
    """A clock for a monitor, by which each look at the draws takes a given time."""

    def __init__(self, monkeypatch, cost):
        self.now, self.cost, self.looks = 0.0, cost, 0
        monkeypatch.setattr(monitor, "time", SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(Monitor, "measure", self.measure)

    def measure(self, run):
        self.now += self.cost
        self.looks += 1


def stub_run(rows=1000):
    trace = SimpleNamespace(rows=rows, stat_names=(), counts=np.array([rows]))
    return SimpleNamespace(called=0.0, trace=trace, warmup=trace)


@pytest.mark.parametrize("cost", [1e-4, 0.01, 0.3])
def test_looks_take_one_part_in_two_hundred_of_the_time(monkeypatch, cost):
    clock, one, run = Clock(monkeypatch, cost), Monitor(), stub_run()
    for _ in range(40_000):
        clock.now += 0.05
        one.look(run, None)
    assert clock.looks >= 10
    # the first is begun before it is known how long it takes
    assert clock.looks * cost <= clock.now / 200 + cost
    assert clock.looks <= clock.now


def test_many_coordinates_are_looked_at_in_turn(monkeypatch):
    """The worst of them are looked at each time."""
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((2, 100, 40))
    draws[1, :, 7] += 2
    monkeypatch.setattr(monitor, "thinned", lambda run: draws)
    one = Monitor()
    one.names, one.per_coordinate = [f"p{k}" for k in range(40)], 1e9
    for i in range(1, 41):
        one.per_coordinate = 1e9  # time for one alone
        one.measure(None)
        assert np.isfinite(one.ess).sum() >= min(i, 40)
    shown = one.shown(1, 2, 3)
    assert shown["r_hat_of"] == "p7"
    assert one.ess[7] == ess_bulk(draws)[7]


# ---- the text ----


def progress_of(**fields):
    return Progress(**{"steps": 500, "total": 1000, "draws": [120, 130], "tuning": False,
                       "acceptance": 0.25, "seconds": 75.0, "requested": 400,
                       "rate": 12_345.0, "r_hat": 1.0423, "r_hat_of": "theta[3]", "ess": 87.2,
                       "ess_of": "mu", "step_size": 0.12345, "diverging": 2,
                       "seconds_left": 3700.0} | fields)


def test_one_line_has_all():
    assert text.one(progress_of()) == (
        "drawing 50 %, draws 120 of 400, 12 345 evaluations/s, accepted 0.25, step size 0.123, "
        "2 divergences, R-hat 1.042 (theta[3]), ESS 87 (mu), 1:15, 1:01:40 left")


def test_a_run_that_a_rule_has_stopped_has_no_time_left():
    stopped = progress_of(stopped_by="ESS(400)")
    assert text.one(stopped).startswith("stopped 50 %, draws 120 of 400")
    assert "left" not in text.one(stopped)
    assert text.several(stopped, plain=True, width=100)[0].split() == [
        "stopped", "############------------", "50", "%", "1:15"]


def test_the_last_report_says_which_rule_has_stopped_the_run():
    reports = []
    result = fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), draws=100_000, tune=200, seed=1,
                       sampler="ram", stop=fk.stop.ESS(200), progress=reports.append)
    assert result.status == "stopped"
    assert {one.stopped_by for one in reports[:-1]} == {""}
    assert reports[-1].stopped_by == result.stopped_by == "ESS(size=200, of='bulk')"


@pytest.mark.parametrize("width", [20, 40, 79, 200])
@pytest.mark.parametrize("plain", [False, True])
def test_lines_fit_the_terminal(width, plain):
    lines = text.several(progress_of(r_hat_of="a" * 100), plain=plain, width=width)
    assert all(len(line) <= width for line in lines)
    assert not plain or "".join(lines).isascii()
    if width >= 40:
        whole = "".join(lines)
        assert "2 divergences" in whole
        assert "(" + "a" * 21 + "...)" in whole


@pytest.mark.parametrize(("seconds", "shown"), [
    (0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "0:09"), (61, "1:01"), (3600, "1:00:00"),
    (200_000, "2 d 7 h")])
def test_durations(seconds, shown):
    assert text.duration(seconds) == shown


def test_chains_of_which_some_have_not_begun():
    """Chains that have draws are shown as drawing, though two of the four are still in warm-up."""
    line = text.one(progress_of(tuning=True, draws=[120_000, 0, 0, 90_000], requested=200_000))
    assert line.startswith("drawing 50 %, draws 0 to 120 000 of 200 000")
    assert text.one(progress_of(tuning=True, draws=[0, 0])).startswith("tuning")


# ---- a terminal ----


def screen(shown):
    """Return the lines of a terminal that has received this text."""
    lines, row = [""], 0
    for part in re.split(r"(\x1b\[\d*[FJ]|\n)", shown.replace("\r", "")):
        if part == "\n":
            row += 1
        elif part.endswith("F") and part.startswith("\x1b"):
            row -= int(part[2:-1])
        elif part == "\x1b[J":
            lines = lines[:row]
        else:
            lines += [""] * (row + 1 - len(lines))
            lines[row] += part
        lines += [""] * (row + 1 - len(lines))
    return [line for line in lines if line]


def test_a_terminal_shows_one_state(looking, monkeypatch):
    monkeypatch.setattr(fk.progress.Terminal, "seconds", 1e-9)
    file = io.StringIO()
    fk.sample(slow_density, X0, progress=fk.progress.Terminal(file), **OPTIONS | {"search": True})
    shown = screen(file.getvalue())
    assert file.getvalue().count("\x1b[J") > 5
    assert shown[0].startswith("drawing ")
    assert "100 %" in shown[0]
    assert "draws 300 of 300" in shown[1]
    assert any("R-hat" in line and "ESS" in line for line in shown)
    assert "searching" in file.getvalue()
    assert "searching" not in "".join(shown)


def test_a_terminal_that_is_gone_does_not_end_the_run():
    class Gone(io.StringIO):
        def write(self, text):
            raise OSError("gone")

    result = fk.sample(densities.python, X0, progress=fk.progress.Terminal(Gone()), **OPTIONS)
    assert result.status == "complete"


def test_one_run_at_a_time_is_in_the_terminal():
    first, second = io.StringIO(), io.StringIO()

    def within(progress):
        outer(progress)
        if not second.getvalue() and progress.tuning:
            inner = fk.progress.Terminal(second)
            inner(progress)
            inner.close()

    outer = fk.progress.Terminal(first)
    thread = threading.Thread(target=within, args=[progress_of(tuning=True)])
    thread.start()
    thread.join()
    assert first.getvalue()
    assert not second.getvalue()
    outer.close()
    later = fk.progress.Terminal(second)
    later(progress_of())
    later.close()
    assert second.getvalue()


SCRIPT = """
import numpy as np
import fastkam as fk

def density(x):
    return -0.5 * float(x @ x)

options = {"sampler": "ram", "draws": 3000, "seed": 1, "search": False, "diagnose": False}
fk.sample(density, np.zeros(2), **options)
"""


def in_terminal(*command):
    """Return the output of a program in a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs,
                          env=os.environ | {"TERM": "xterm", "COLUMNS": "90"}) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode()


def test_a_script_in_a_terminal_and_in_a_pipe():
    shown = screen(in_terminal(sys.executable, "-c", SCRIPT))
    assert shown[0].startswith("drawing ")
    assert "draws 3 000 of 3 000" in shown[1]
    piped = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                           check=True)
    assert piped.stderr == ""
    asked = SCRIPT.replace("**options", "**options, progress=True")
    piped = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True,
                           check=True)
    assert re.fullmatch(r"fastkam: drawing 100 %, draws 3 000 of 3 000, .*\n", piped.stderr)


# ---- lines and logs ----


def test_lines_come_at_their_interval():
    lines = []
    view = fk.progress.Lines(lines.append, seconds=0.0)
    fk.sample(slow_density, X0, progress=view, **OPTIONS)
    assert len(lines) > 3
    assert lines[0].startswith("fastkam: tuning")
    assert lines[-1].startswith("fastkam: drawing 100 %, draws 300 of 300")
    assert lines.count(lines[-1]) == 1
    rare = []
    fk.sample(densities.python, X0, progress=fk.progress.Lines(rare.append), **OPTIONS)
    assert rare == []  # it took less than 30 seconds


def test_an_error_of_the_users_function_is_no_lost_terminal():
    with pytest.raises(fk.SamplingError, match="stopped by ValueError: invalid literal for int"):
        fk.sample(densities.python, X0, progress=fk.progress.Lines(int, 0.0), **OPTIONS)


def test_a_logger_receives_lines(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "mine")
    monkeypatch.setattr(fk.progress.Lines.__init__, "__defaults__", (None, 0.0))
    fk.sample(densities.python, X0, progress=logging.getLogger("mine"), **OPTIONS)
    assert "fastkam: drawing 100 %" in caplog.text
    assert {record.name for record in caplog.records} == {"mine"}


@pytest.mark.parametrize("given", ["bar", 1, fk.progress.Lines, object()])
def test_objects_that_cannot_take_progress_are_refused(given):
    with pytest.raises(TypeError, match="progress must be"):
        fk.sample(densities.python, X0, progress=given, **OPTIONS)


# ---- notebooks ----


def test_a_notebook_has_one_output(monkeypatch, looking):
    """The kernel of a notebook receives one output."""
    outputs = []

    class Handle:
        def update(self, output, raw):
            outputs.append(("update", output))

    def display(output, raw, display_id):
        outputs.append(("display", output))
        return Handle()

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel="one")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(fk.progress.Notebook, "seconds", 1e-9)
    fk.sample(slow_density, X0, **OPTIONS)
    kinds = [kind for kind, _ in outputs]
    assert kinds.count("display") == 1
    assert kinds[0] == "display"
    assert len(kinds) > 3
    last = outputs[-1][1]
    assert "draws 300 of 300" in last["text/plain"]
    assert last["text/html"].startswith("<pre>")


def test_an_executed_notebook():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(textwrap.dedent(SCRIPT))]
    nbclient.NotebookClient(book, kernel_name="python3", timeout=120).execute()
    shown = [output for output in book.cells[0].outputs if output.output_type == "display_data"]
    assert len(shown) == 1
    assert "draws 3 000 of 3 000" in shown[0]["data"]["text/plain"]


FULL = pytest.param("/dev/full", marks=pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a device that is always full"))


@pytest.mark.parametrize("place", [FULL, "a closed pipe"])
def test_a_run_whose_last_line_cannot_be_written_ends_well(place):
    code = ("import fastkam as fk\n"
            "r = fk.sample(lambda x: -0.5 * x @ x, [0.0, 0.0], sampler='ram', draws=300, seed=1,"
            " progress=True)\n"
            "print(r.draws.shape)")
    if place == "a closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        error = os.fdopen(writing, "w")
    else:
        error = open(place, "w")  # noqa: SIM115
    with error:
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=error,
                              text=True)
    assert done.stdout == "(4, 300, 2)\n"


def test_a_closed_standard_error(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), sampler="ram", seed=1, draws=20,
                     diagnose=False).status == "complete"
