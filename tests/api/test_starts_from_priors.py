"""Starts of chains that are drawn from the prior."""

from types import SimpleNamespace

import numpy as np
import pytest
from runs import sample
from scipy import stats

import fastkam as fk

PRIOR = {"k": stats.uniform(0, 1), "sigma": stats.halfnorm(scale=2), "beta": (stats.norm(0, 1), 3)}


def value(x):
    return -0.5 * ((x - 0.5) ** 2).sum()


def run(target, **options):
    return sample(target, **{"draws": 40, "tune": 40, "chains": 2, "seed": 3} | options)


def test_starts_from_the_prior():
    """Each chain has its own start, whatever the number of chains; none has the density 0."""
    two, four = (run(value, prior=PRIOR, chains=n, tune=0, draws=1) for n in (2, 4))
    np.testing.assert_array_equal(two.state.x0, four.state.x0[:2])
    assert len(np.unique(four.state.x0[:, 0])) == 4

    def half(x):
        return value(x) if x[2] > 0 else -np.inf

    assert (run(half, prior=PRIOR, chains=6, tune=0, draws=1).state.x0[:, 2] > 0).all()
    with pytest.raises(ValueError, match=r"not finite at any of 10000 draws .*: give x0"):
        run(lambda x: -np.inf, prior=PRIOR)
    with pytest.raises(ValueError, match="is NaN at all of 100 draws from the prior: find what"):
        run(lambda x: np.nan, prior=PRIOR)
    with pytest.raises(fk.SamplingError, match="the target raised ZeroDivisionError"):
        run(lambda x: 1 / 0, prior=PRIOR)


@pytest.mark.parametrize("options", [{}, {"sampler": "am", "search": False}])
def test_a_log_density_of_infinity_at_a_start_from_the_prior(options):
    with pytest.raises(fk.SamplingError, match=r"is \+inf, .*is its sign wrong"):
        fk.sample(lambda x: np.inf, prior=PRIOR, seed=1, progress=False, **options)


@pytest.mark.parametrize("options", [{}, {"sampler": "auto", "search": True}])
def test_a_density_that_is_positive_in_a_small_part_of_the_prior(options):
    """In one of a hundred draws; a function that takes long is not called for more than seconds."""
    def thin(x):
        return 0.0 if abs(x[0] - x[1]) < 0.005 else -np.inf

    for seed in range(10):
        result = run(thin, prior={"x": (stats.uniform(0, 1), 2)}, seed=seed, tune=50, draws=50,
                     **options)
        assert (np.abs(np.diff(result.state.constrain(result.state.x0))) < 0.005).all()


def test_starts_in_a_slow_density_of_zero_are_not_looked_for_without_end(monkeypatch):
    """An evaluation takes a fiftieth of a second on a clock that nothing else advances."""
    calls = [0]

    def slow(x):
        calls[0] += 1
        return -np.inf

    monkeypatch.setattr("fastkam.problem.starts.time",
                        SimpleNamespace(perf_counter=lambda: calls[0] / 50))
    with pytest.raises(ValueError, match="not finite at any of 501 draws"):
        run(slow, prior=PRIOR)
    assert calls[0] == 501
