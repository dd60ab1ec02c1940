"""The default call on a funnel, of which chains without its slabs miss the narrow end."""

import warnings

import numpy as np
import pytest

import fastkam as fk
from fastkam.search import slabs

SD = 3.0  # of x_0; the others have the variance exp(x_0)


def logp(x):
    return -0.5 * (x[0] / SD) ** 2 - 0.5 * np.exp(-x[0]) * (x[1:] @ x[1:]) - 2 * x[0]


def is_right(seed):
    """Whether R-hat is good, and mean and standard deviation of x_0 are within 4 errors.

    A right run fails with a probability of about 1e-4.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)  # the tails of the others are heavy
        result = fk.sample(logp, [0.0] * 5, draws=1000, seed=seed, progress=False)
    table, x = result.summary(), result.draws[:, :, 0]
    off = abs(x.mean()) / table["mcse_mean"][0], abs(x.std() - SD) / table["mcse_sd"][0]
    return table["r_hat"][0] < 1.01 and max(off) < 4


@pytest.mark.parametrize("seed", range(3))
def test_the_default_call_reaches_both_ends_of_a_funnel(seed):
    assert is_right(seed)


def test_without_slabs_it_does_not(monkeypatch):
    monkeypatch.setattr(slabs, "walks", lambda *_, bent: [])
    assert not all(is_right(seed) for seed in range(3))


def test_a_search_that_ends_early_within_a_funnel_keeps_its_limit():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(logp, [0.0] * 5, stop=fk.stop.Evaluations(60_000), seed=0,
                           progress=False)
    assert result.evaluations <= 60_000


@pytest.mark.parametrize("seed", range(3))
def test_a_density_that_does_not_fall_off_is_no_fault_of_the_search(seed):
    """The covariances of slabs across it may have no factor; such slabs are left out."""
    with pytest.warns(fk.SamplingWarning), np.errstate(over="ignore"):
        result = fk.sample(lambda x: float(np.exp(-0.5 * x @ x)), [0.0, 0.0], seed=seed,
                           progress=False)
    assert "not_a_logarithm" in [one.kind for one in result.warnings]
