"""The search's share of a run that a stop rule ends, and its progress."""

import ctypes
import io
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from densities import DOUBLES
from scipy import stats
from simulators import hangs_beyond, hangs_with_gradient

import fastkam as fk
from fastkam.run.workers import as_workers
from fastkam.search.spread import Spread
from fastkam.search.watch import Spent, Watch


class Counted:
    """log N(0, I), which takes some milliseconds."""

    def __init__(self, seconds=0.0):
        self.calls, self.seconds = 0, seconds

    def __call__(self, x):
        self.calls += 1
        time.sleep(self.seconds)
        return -0.5 * float(np.sum(np.square(x)))


def run(f, stop, x0=(1.0, 2.0), **options):
    """A run that a rule ends, with the warning that it gives."""
    with pytest.warns(fk.SamplingWarning):
        return fk.sample(f, x0, seed=1, stop=stop, **options)


@pytest.mark.parametrize("options", [
    {}, {"sampler": "ram"}, {"x0": None, "prior": {"x": (stats.norm(0, 10), 2)}}])
@pytest.mark.parametrize("count", [30, 200, 1000])
def test_evaluations_in_all(count, options):
    """The search takes a third of them at most, and one evaluation begins each chain."""
    f = Counted()
    # in one thread: further calls would measure, if others use the processors, whether more help
    result = run(f, fk.stop.Evaluations(count), threads=1, **options)
    assert result.status == "stopped"
    assert result.state.searched <= count / 3
    assert count <= result.evaluations <= count + 3  # each chain has an equal share
    assert f.calls <= result.evaluations + 10  # where chains start; and to see what it returns
    assert count < 100 or "sampler" in options or result.trace.rows > 0


@pytest.mark.parametrize(("chains", "about"), [(4, 30), (16, 40)])
def test_few_evaluations_make_some_more_calls(chains, about):
    """The documentation of the rule has these numbers, and what is counted."""
    f = Counted()
    result = run(f, fk.stop.Evaluations(20), threads=1, chains=chains)
    assert 20 <= result.evaluations <= 20 + chains
    assert f.calls == result.evaluations + chains + 1
    assert abs(f.calls - about) <= 3
    f = Counted()
    with pytest.warns(fk.SamplingWarning):
        fk.sample(f, [1.0, 2.0], seed=1, budget=20, threads=1, chains=chains)
    assert f.calls <= 20


def test_a_limit_above_the_evaluations_changes_nothing():
    whole, limited = (fk.sample(Counted(), [1.0, 2.0], draws=1000, seed=1, stop=stop)
                      for stop in (None, fk.stop.Evaluations(10**6)))
    np.testing.assert_array_equal(whole.draws, limited.draws)


def test_time_in_all():
    """An early end of the search leaves time for draws, also where warm-up would take it all."""
    f = Counted(0.004)
    begun = time.perf_counter()
    result = run(f, fk.stop.Time(2.0))
    assert result.status == "stopped"
    assert result.trace.rows > 0
    assert "the search has ended early" in result.state.search[-1]
    assert time.perf_counter() - begun < 4.0
    assert result.seconds > 2.0


@pytest.mark.parametrize("options", [{}, {"surrogate": "learn"}])
def test_time_of_the_first_points(options):
    f = Counted(0.1)
    starts = np.random.default_rng(1).standard_normal((64, 2))
    result = run(f, fk.stop.Time(2), starts, chains=64, **options)
    assert result.status == "stopped"
    assert f.calls < 30


@pytest.mark.parametrize("options", [
    {}, {"sampler": "ram"}, {"sampler": "ram", "search": False}, {"surrogate": "learn"}])
def test_time_of_starts_from_the_prior(options):
    f = Counted(0.1)
    result = run(f, fk.stop.Time(2), None, prior={"x": (stats.norm(), 2)}, chains=64, **options)
    assert result.status == "stopped"
    assert f.calls < 30


@pytest.mark.parametrize(("f", "d", "options"), [
    (hangs_beyond, 2, {}), (hangs_beyond, 2, {"surrogate": "learn"}),
    (hangs_with_gradient, 2, {}), (hangs_with_gradient, 20, {})])
def test_time_where_a_worker_hangs(f, d, options):
    begun = time.perf_counter()
    result = run(f, fk.stop.Time(2), np.zeros(d), executor=2, spread="points", **options)
    assert time.perf_counter() - begun < 6
    assert (result.status, result.stopped_by) == ("stopped", "Time(limit=2.0)")
    assert any("ended early" in line for line in result.search)


def test_a_search_that_tasks_evaluate_does_not_wait_for_a_worker_that_hangs():
    target, watch = fk.as_target(partial(hangs_beyond, seconds=4), 2), Watch()
    with ProcessPoolExecutor(1) as pool:
        begun = watch.until = time.perf_counter()
        with pytest.raises(Spent):
            Spread(as_workers(pool), target)(np.full((1, 2), 2.0), None, watch.within)
        assert time.perf_counter() - begun < 3


def test_either_and_both():
    few, many = fk.stop.Evaluations(100), fk.stop.Evaluations(300)
    short = fk.stop.Time("1min")
    assert (few | many | short).limits() == (60.0, 100)
    assert (few & many).limits() == (np.inf, 300)
    assert (few & short).limits() == (np.inf, np.inf)
    assert fk.stop.ESS(100).limits() == (np.inf, np.inf)


@pytest.mark.parametrize(("options", "text"), [
    ({"sampler": "ram", "tune": 100}, "before any draw was kept"),
    ({}, "draws a chain: they are too few")])
def test_a_limit_that_leaves_too_few_draws_is_reported(options, text):
    with pytest.warns(fk.SamplingWarning, match=text):
        fk.sample(Counted(), [1.0, 2.0], seed=1, stop=fk.stop.Evaluations(60), **options)


def flat_far_away(x):
    """log N(0, 1), constant from 50 on, where trajectories do not turn."""
    far = x[0] > 50
    return -1250.0 if far else -0.5 * float(x @ x), np.zeros(1) if far else -x


@pytest.mark.parametrize("options", [{}, {"executor": 2}, {"draws": 400}])
def test_a_chain_that_has_used_its_share_of_the_evaluations_ends_the_run(options):
    """The others do not go on: their draws are of no use without this chain's."""
    stop = fk.stop.Evaluations(40_000) | fk.stop.Time("10min")
    says = r"chain 3 has made \d+ of 60 steps of warm-up, with 1\d{4} evaluations\. "
    with pytest.warns(fk.SamplingWarning, match=says):
        result = fk.sample(flat_far_away, [[0.1], [0.2], [0.3], [1000.0]], sampler="nuts", tune=60,
                           seed=1, stop=stop, search=False, progress=False, **options)
    assert result.status == "stopped"
    assert result.stopped_by == "Evaluations(count=40000)"
    assert result.state.trace.counts.tolist() == [100, 100, 100, 0]
    assert result.evaluations < 20_000


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, DOUBLES, DOUBLES, DOUBLES, ctypes.c_void_p)
def one_flat_far_away(n, x, gradient, value, data):
    far = x[0] > 50
    value[0], gradient[0] = (-1250.0, 0.0) if far else (-0.5 * x[0] * x[0], -x[0])
    return 0


def test_chains_of_one_part_have_shares_of_their_own():
    """Chains of a serial density are one task for the workers, which do not step together."""
    target = fk.Target.from_c(one_flat_far_away, 1, thread_safe=False)
    with ThreadPoolExecutor(2) as pool, pytest.warns(fk.SamplingWarning, match="chain 3 has made"):
        result = fk.sample(target, [[0.1], [0.2], [0.3], [1000.0]], sampler="nuts", draws=400,
                           tune=60, seed=1, stop=fk.stop.Evaluations(40_000), search=False,
                           progress=False, executor=pool)
    assert result.status == "stopped"


def test_warmup_that_is_shorter_than_a_draw():
    with pytest.warns(fk.SamplingWarning, match=r"has made 1\d of the 50 steps before its first"):
        fk.sample(lambda x: -0.5 * x @ x, [0.1], sampler="rwm", tune=10, thin=50, draws=10, seed=1,
                  stop=fk.stop.Evaluations(100), search=False, progress=False)


@pytest.mark.parametrize("options", [
    {"x0": [[4e6], [5e6], [6e6], [7e6]], "search": False, "sampler": "nuts", "tune": 1000},
    {"prior": {"x": stats.norm(0, 100)}, "sampler": "ram", "tune": 1000}])
def test_proper_densities_are_not_called_improper(options):
    sd = 1e6 if "x0" in options else 1e-4

    def f(x):
        return -0.5 * float(x[0] / sd) ** 2, -x / sd**2

    with pytest.warns(fk.SamplingWarning, match=r"steps of warm-up, with \d+ evaluations\. Allow"):
        fk.sample(f, **options, seed=1, stop=fk.stop.Evaluations(700), progress=False)


def test_what_is_said_without_draws():
    """More evaluations would not help: the density has no integral, or its gradient is wrong."""
    def ridge(x):
        return -0.5 * (x[0] + x[1]) ** 2, -(x[0] + x[1]) * np.ones(2)

    with pytest.warns(fk.SamplingWarning, match="wandered far away: .* no finite integral"):
        fk.sample(ridge, np.zeros(2), sampler="nuts", budget=60_000, seed=1, progress=False)

    def wrong(x):
        return -0.5 * float(x @ x), x

    with pytest.warns(fk.SamplingWarning, match="the gradient disagrees"):
        result = fk.sample(wrong, np.ones(2), sampler="nuts", budget=3000, seed=1, progress=False,
                           diagnose=False)
    assert result.warnings[-1].text.endswith("A wrong gradient may be the cause: correct it first.")


def rows_flat_far_away(X):
    values, gradients = zip(*map(flat_far_away, X), strict=True)
    return np.array(values), np.array(gradients)


@pytest.mark.parametrize("options", [
    {"sampler": "autorwm"}, {"sampler": "dram"}, {"sampler": "dram", "share": True}])
def test_steps_of_several_evaluations_are_counted(options):
    """Chains that step together, not side by side; a step makes three evaluations or so."""
    with pytest.warns(fk.SamplingWarning):
        result = fk.sample(lambda X: -0.5 * (X * X).sum(axis=1), np.zeros((4, 3)), tune=10_000,
                           vectorized=True, seed=1, stop=fk.stop.Evaluations(20_000), search=False,
                           progress=False, **options)
    assert 20_000 <= result.evaluations <= 20_000 + 4 * 20


def test_chains_that_step_together_have_their_evaluations_in_common():
    """One chain's trajectories are much longer; a step of each chain is at most 1023 evaluations.
    """
    with pytest.warns(fk.SamplingWarning):
        result = fk.sample(rows_flat_far_away, [[0.1], [0.2], [0.3], [1000.0]], sampler="nuts",
                           vectorized=True, tune=1000, seed=1, stop=fk.stop.Evaluations(20_000),
                           search=False, progress=False)
    assert 20_000 <= result.evaluations <= 20_000 + 4 * 1023
    assert "Evaluations(count=20000)" in result.stopped_by


def test_progress_of_the_search():
    seen = []
    result = fk.sample(Counted(2e-4), [1.0, 2.0], seed=1, draws=300, progress=seen.append)
    searching = [one for one in seen if one.total == 0]
    assert len(searching) > 3
    assert seen[: len(searching)] == searching
    numbers = [one.searched for one in seen]
    assert numbers == sorted(numbers)
    after = result.state.searched - numbers[-1]  # of the gradients at draws
    assert 0 < after < 0.06 * result.evaluations
    assert all(one.draws == [0] * 4 and one.tuning for one in searching)
    seconds = [one.seconds for one in seen]
    assert seconds == sorted(seconds)


def test_the_lines_of_the_search_in_a_terminal():
    terminal = io.StringIO()
    fk.sample(Counted(2e-4), [1.0, 2.0], seed=1, draws=100,
              progress=fk.progress.Terminal(terminal))
    shown = terminal.getvalue()
    assert "searching" in shown
    assert "evaluations" in shown
    last = shown.split("\x1b[J")[-1]  # what is erased before each drawing
    assert last.startswith("drawing")
    assert "draws 100 of 100" in last


def test_an_error_of_the_progress_function_ends_the_search():
    def raises(progress):
        raise LookupError("shown")

    with pytest.raises(fk.SamplingError, match="LookupError: shown") as caught:
        fk.sample(Counted(2e-4), [1.0, 2.0], seed=1, progress=raises)
    assert isinstance(caught.value.__cause__, LookupError)
