"""Stopping by a rule that looks at the draws biases them little; one that wants to, much.

The bias is the mean error over runs, in units of the mean stated error, less that of runs of the
same length: 300 runs each, so that its standard error is sqrt(2 / 300) = 0.08. A rule without bias
passes the bound of 0.1 + 3 standard errors with probability 0.9999 for each figure.
"""

import numpy as np
import pytest
from runs import sample

import fastkam as fk

RUNS = 300
BOUND = 0.1 + 3 * np.sqrt(2 / RUNS)


def gamma(x):
    """Gamma(3, 1): mean 3, sd sqrt(3)."""
    return 2 * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf


def runs(stop, draws, first):
    """Mean, sd, their errors and the draws of short runs, (RUNS, 5)."""
    rows = []
    for seed in range(first, first + RUNS):
        result = sample(gamma, np.array([[2.0], [3.0], [4.0], [5.0]]), sampler="am", tune=200,
                        draws=draws, stop=stop, names=["x"], seed=seed, diagnose=False)
        known = result.summary()
        rows.append([*(known[name][0] for name in ("mean", "sd", "mcse_mean", "mcse_sd")),
                     result.trace.rows])
    return np.array(rows)


def biases(stop):
    """Of mean and standard deviation."""
    ended = runs(stop, 20_000, 0)
    fixed = runs(None, int(ended[:, 4].mean()), RUNS)
    size = ended[:, 2:4].mean(axis=0)
    return (ended[:, :2].mean(axis=0) - fixed[:, :2].mean(axis=0)) / size


class WhenHigh(fk.stop.StopRule):
    """A mistake: ends the run when the mean is high."""

    def met(self, run):
        return run.trace.draws.mean() > 3.05


@pytest.mark.parametrize("rule", [fk.stop.Done(ess=200, r_hat=1.05), fk.stop.ESS(200)], ids=repr)
def test_a_rule_hardly_biases_what_it_ends(rule):
    assert np.abs(biases(rule)).max() < BOUND


def test_a_rule_that_waits_for_a_high_mean_is_seen():
    assert biases(WhenHigh() | fk.stop.ESS(2000))[0] > BOUND
