"""Stop rules of the draws use a bounded number of them, and decide as with all."""

from types import SimpleNamespace

import numpy as np
import pytest

from fastkam import stop
from fastkam.diagnostics import Finding, ess_bulk
from fastkam.run.shapes import Layout
from fastkam.stop import ESS, FEWEST_DRAWS, MCSE, Done, Evaluations, Rhat, Time


def autoregressive(phi, shape, seed=1):
    """Chains x_i = phi x_(i-1) + N(0, 1), (chains, rows, d); phi (d,)."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    x = np.empty(shape)
    x[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for i in range(1, shape[1]):
        x[:, i] = phi * x[:, i - 1] + noise[:, i]
    return x


def run_of(draws):
    """Return the data of a run that a rule uses."""
    return SimpleNamespace(trace=SimpleNamespace(draws=draws, rows=draws.shape[1]), hardest=0,
                           past=SimpleNamespace(in_one_period=lambda x: x), expected={},
                           seconds_per_row=0.001)


@pytest.fixture
def looked_at(monkeypatch):
    """The shapes of the arrays that are measured."""
    shapes, measure = [], stop.measure

    def watched(draws, **options):
        shapes.append(draws.shape)
        return measure(draws, **options)

    monkeypatch.setattr(stop, "measure", watched)
    return shapes


@pytest.mark.parametrize("rule", [ESS(400), Rhat(1.01), ESS(3000)])
@pytest.mark.parametrize("shape", [(4, 250_000, 2), (1, 999_983, 1), (4, 100, 3), (400, 150, 1)])
def test_the_number_of_examined_draws_does_not_grow_with_the_run(looked_at, rule, shape):
    rule.met(run_of(np.random.default_rng(1).standard_normal(shape)))
    chains, rows = shape[:2]
    most = max(FEWEST_DRAWS, 10 * getattr(rule, "size", 0))
    assert looked_at
    for n, kept, _ in looked_at:
        assert n == chains
        assert kept == rows or kept >= 100
        assert n * kept <= max(2 * most + chains, 200 * chains)
        assert n * kept >= min(most, chains * rows) or kept < 200


def test_the_coordinate_that_failed_is_examined_alone(looked_at):
    """Whichever it is; and all are examined before the run ends."""
    draws = autoregressive(np.array([0.0, 0.0, 0.999]), (4, 5000, 3))
    run = run_of(draws)
    assert not ESS(1000).met(run)
    assert run.hardest == 2
    looked_at.clear()
    assert not ESS(1000).met(run)
    assert [shape[2] for shape in looked_at] == [1]
    looked_at.clear()
    assert ESS(1).met(run)
    assert [shape[2] for shape in looked_at] == [1, 3]
    run.trace.draws = draws[:, :, ::-1]
    assert not ESS(1000).met(run)
    assert run.hardest == 0


@pytest.mark.parametrize("phi", [0.995, 0.9995])
def test_the_size_of_some_draws_is_that_of_all(phi):
    """Rules just below and above the effective size, which is 10 or 100 times less than the draws.

    Their estimates of it differ by less than 4 %: the part of the correlation that is not seen, and
    the noise of two estimates from the same draws.
    """
    draws = autoregressive(np.array([phi]), (4, 100_000, 1))
    size = float(ess_bulk(draws)[0])
    assert ESS(0.96 * size).met(run_of(draws))
    assert not ESS(1.04 * size).met(run_of(draws))


def test_chains_that_differ_or_stand_still_do_not_end_a_run():
    draws = np.random.default_rng(2).standard_normal((4, 20_000, 2))
    assert Rhat(1.01).met(run_of(draws))
    apart = draws + np.array([0, 0, 0, 1.0])[:, None, None] * [0, 1]
    assert not Rhat(1.01).met(run_of(apart))
    still = draws * [1, 0]
    for rule in (ESS(100), Rhat(1.01)):
        assert not rule.met(run_of(still))
        assert not rule.met(run_of(draws[:, :0]))


def test_a_trend_at_the_end_is_detected():
    """The rows looked at reach the last one."""
    draws = np.random.default_rng(3).standard_normal((4, 100_000, 1))
    draws[:, -20_000:] += np.linspace(0, 3, 20_000)[:, None]
    assert not Rhat(1.01).met(run_of(draws))


# ---- the tails, errors, and all at once ----


def layout_of(*labels):
    names = [label.partition("[")[0] for label in labels]
    sizes = {name: names.count(name) for name in names}
    shapes = {name: (n,) if f"{name}[0]" in labels else () for name, n in sizes.items()}
    return Layout(shapes, {}, {})


def test_effective_sizes_of_the_tails():
    """Draws without correlation, whose spread changes slowly."""
    x = np.random.default_rng(1).standard_normal((4, 3000, 1))
    x = x * np.exp(0.1 * autoregressive(np.array([0.995]), (4, 3000, 1), seed=2))
    run = run_of(x)
    assert ESS(1000).met(run)
    assert not ESS(1000, "tail").met(run)
    assert not ESS(1000, "both").met(run)
    with pytest.raises(ValueError, match="of must be one of"):
        ESS(400, "middle")


def named_run(draws, *labels):
    run = run_of(draws)
    run.past.layout, run.past.constrain = layout_of(*labels), lambda x: x
    return run


def test_errors_of_named_means():
    """1000 independent draws of sd 10 and 1: errors of 0.32 and 0.032."""
    draws = np.random.default_rng(4).standard_normal((4, 250, 2)) * [10, 1]
    run = named_run(draws, "wide", "theta[0]")
    assert MCSE({"theta": 0.04}).met(run)
    assert MCSE({"theta[0]": 0.04, "wide": 0.4}).met(run)
    assert not MCSE({"theta": 0.04, "wide": 0.2}).met(run)
    assert not MCSE({"theta": 0.02}).met(run)
    assert not MCSE({"wide": 1.0}).met(named_run(draws * [0, 1], "wide", "theta[0]"))
    for errors, problem in (({}, TypeError), (0.1, TypeError), ({"a": 0.0}, ValueError)):
        with pytest.raises(problem, match="errors"):
            MCSE(errors)
    MCSE({"theta": 1.0}).check(run.past.layout, 4)
    for rule in (MCSE({"tehta": 1.0}), MCSE({"tehta": 1.0}) | Time(1), Time(1) & MCSE({"x": 1.0})):
        with pytest.raises(ValueError, match="there is no"):
            rule.check(run.past.layout, 4)


@pytest.mark.parametrize(("kind", "ends"), [
    (None, True), ("drift", False), ("stay", False), ("modes", False), ("divergences", True),
    ("tails", True), ("boundary", True)])
def test_done_waits_while_more_draws_may_help(kind, ends):
    run = run_of(np.random.default_rng(5).standard_normal((4, 2000, 2)))
    run.findings = lambda: [] if kind is None else [Finding(kind, "")]
    assert Done().met(run) == ends


def test_done_asks_for_sizes_and_agreement_first():
    x = np.random.default_rng(6).standard_normal((4, 1000, 2))
    run = run_of(x)
    run.findings = list
    assert Done().met(run)
    assert not Done(ess=5000).met(run)
    assert not Done(r_hat=1.00001).met(run)
    assert not Done().met(run_of(x + np.array([0, 0, 0, 1])[:, None, None]))
    alone = run_of(x[:1])
    alone.findings = list
    assert Done(ess=300).met(alone)  # R-hat of one chain is unknown
    assert not Rhat().met(alone)


def test_an_error_is_known_from_enough_draws_only():
    """100 draws have a small error, of which little is known."""
    draws = np.random.default_rng(4).standard_normal((4, 100, 1))
    assert not MCSE({"x": 1.0}).met(named_run(draws[:, :25], "x"))
    assert not MCSE({"x": 1.0}).met(named_run(draws[:, :90], "x"))
    run, rule = named_run(draws[:, :50], "x"), MCSE({"x": 1.0})
    assert not rule.met(run)
    assert rule.forecast(run) > 0.04  # 90 rows or more, a millisecond each
    more = np.random.default_rng(5).standard_normal((4, 250, 1))
    assert rule.met(named_run(more, "x"))


def test_an_error_must_have_been_small_before():
    """The rule ends a run a tenth after its error is small at first, or later."""
    x = autoregressive(np.array([0.9]), (4, 3000, 1))
    sizes = [n for n in range(500, 3000, 50)
             if stop.columns_of(x[:, :n], r_hat=False)["mcse_mean"][0] <= 0.1]
    ended = [n for n in range(500, 3000, 50) if MCSE({"x": 0.1}).met(named_run(x[:, :n], "x"))]
    assert ended[0] >= 1.1 * sizes[0]


def test_an_effective_size_of_few_draws_is_not_trusted():
    draws = np.random.default_rng(4).standard_normal((4, 400, 1))
    assert not ESS(100).met(run_of(draws[:, :199]))
    assert ESS(100).met(run_of(draws[:, :200]))
    assert ESS(100).met(run_of(draws.reshape(16, 100, 1)))


# ---- forecasts ----


def test_a_forecast_of_sizes_is_in_proportion():
    """4000 independent draws, of which 8000 are asked for: as many again, a millisecond each."""
    run = run_of(np.random.default_rng(7).standard_normal((4, 1000, 1)))
    rule = ESS(8000)
    assert rule.forecast(run) is None  # nothing was measured yet
    assert not rule.met(run)
    assert rule.forecast(run) == pytest.approx(1.0, rel=0.2)
    run.seconds_per_row = None
    assert rule.forecast(run) is None
    small = ESS(100)
    assert small.met(run)
    run.seconds_per_row = 0.001
    assert small.forecast(run) == 0


def test_forecasts_come_true():
    """Rows that a rule expects at 2000: right within a factor of two."""
    x = autoregressive(np.array([0.9]), (4, 20_000, 1))
    run = named_run(x[:, :2000], "x")
    for rule in (ESS(4000), MCSE({"x": 0.05}), Rhat(1.002)):
        assert not rule.met(run), rule
        expected = run.trace.rows + 1000 * rule.forecast(run)
        at = next(n for n in range(2000, 20_001, 200) if rule.met(named_run(x[:, :n], "x")))
        assert expected / 2 < at < expected * 2, (rule, expected, at)


def test_forecasts_of_time_and_of_evaluations():
    run = SimpleNamespace(seconds=12.0, evaluations=300, seconds_per_evaluation=0.01)
    assert Time(20).forecast(run) == 8
    assert Evaluations(1000).forecast(run) == pytest.approx(7)
    assert (Time(20) | Evaluations(1000)).forecast(run) == pytest.approx(7)
    assert (Time(20) & Evaluations(1000)).forecast(run) == 8
    assert Time(10).forecast(run) == 0
    run.seconds_per_evaluation = None
    assert Evaluations(1000).forecast(run) is None
    assert (Time(20) | Evaluations(1000)).forecast(run) == 8
    assert (Time(20) & Evaluations(1000)).forecast(run) is None
    assert stop.StopRule().forecast(run) is None


def test_r_hat_that_is_not_low_enough_needs_more_rows():
    """However close: a forecast never says that a rule holds which does not."""
    for r_hat in (1.0100000000000002, 1.01, 1.0, 0.999, np.nan, np.inf):
        needed = stop.rows_for_r_hat(1000, np.array([r_hat]), 1.01)
        assert bool(needed[0] <= 1000) == (r_hat <= 1.01), r_hat


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_an_error_that_needs_many_draws(scale):
    """200 000 independent draws of sd 1 have an error of 0.0022."""
    run = named_run(scale * np.random.default_rng(5).standard_normal((4, 50_000, 1)), "x")
    assert MCSE({"x": 0.003 * scale}).met(run)
    assert not MCSE({"x": 0.002 * scale}).met(run)
    assert not MCSE({"x": 0.0001 * scale}).met(run)
