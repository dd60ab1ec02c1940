"""Thinning of a run without `thin`, by the effective sample size of its first draws."""

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics import ess_bulk
from fastkam.run.drive import least_effective


def run(density, **options):
    return fk.sample(density, np.zeros(2), sampler="rwm", search=False, tune=0, draws=200, chains=2,
                     seed=3, diagnose=False, **options)


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_chains_that_stand_still_have_no_effective_draw():
    stands = run(lambda x: 0.0 if not x.any() else -np.inf)
    assert not stands.draws.any()
    assert least_effective(stands.state) == 0.0


def test_the_worst_of_mean_variance_and_log_density_counts():
    state = run(lambda x: -0.5 * float(x @ x)).state
    draws, lp = state.trace.draws, state.lp()
    each = [ess_bulk(draws), ess_bulk((draws - draws.mean(axis=(0, 1))) ** 2),
            ess_bulk(lp[:, :, None])]
    assert 0 < least_effective(state) == pytest.approx(min(np.min(values) for values in each))
