"""Stop rules of the draws: a bounded number of them is looked at, and the decision is the same."""

from types import SimpleNamespace

import numpy as np
import pytest

from fastkam import stop
from fastkam.diagnostics import ess_bulk
from fastkam.stop import ESS, FEWEST_DRAWS, Rhat


def autoregressive(phi, shape, seed=1):
    """Chains x_i = phi x_(i-1) + N(0, 1), (chains, rows, d); phi (d,)."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    x = np.empty(shape)
    x[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for i in range(1, shape[1]):
        x[:, i] = phi * x[:, i - 1] + noise[:, i]
    return x


def run_of(draws):
    """What a rule sees of a run."""
    return SimpleNamespace(trace=SimpleNamespace(draws=draws, rows=draws.shape[1]), hardest=0,
                           past=SimpleNamespace(in_one_period=lambda x: x), expected={},
                           seconds_per_row=0.001)


@pytest.fixture
def looked_at(monkeypatch):
    """The shapes of what is measured."""
    shapes, measure = [], stop.measure

    def watched(draws, **options):
        shapes.append(draws.shape)
        return measure(draws, **options)

    monkeypatch.setattr(stop, "measure", watched)
    return shapes


@pytest.mark.parametrize("rule", [ESS(400), Rhat(1.01), ESS(3000)])
@pytest.mark.parametrize("shape", [(4, 250_000, 2), (1, 999_983, 1), (4, 100, 3), (400, 150, 1)])
def test_the_draws_looked_at_do_not_grow_with_the_run(looked_at, rule, shape):
    rule.met(run_of(np.random.default_rng(1).standard_normal(shape)))
    chains, rows = shape[:2]
    most = max(FEWEST_DRAWS, 10 * getattr(rule, "size", 0))
    assert looked_at
    for n, kept, _ in looked_at:
        assert n == chains
        assert kept == rows or kept >= 100
        assert n * kept <= max(2 * most + chains, 200 * chains)
        assert n * kept >= min(most, chains * rows) or kept < 200


def test_the_coordinate_that_failed_is_looked_at_alone(looked_at):
    """Wherever it is; and all are looked at before the run ends."""
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


def test_a_trend_at_the_end_is_seen():
    """The rows looked at reach the last one."""
    draws = np.random.default_rng(3).standard_normal((4, 100_000, 1))
    draws[:, -20_000:] += np.linspace(0, 3, 20_000)[:, None]
    assert not Rhat(1.01).met(run_of(draws))
