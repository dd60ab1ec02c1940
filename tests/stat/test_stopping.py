"""Rules that use the draws bias them little; a rule that is made to bias them is detected.

The bias is the mean over 300 runs of the difference between the estimate of a run that a rule has
ended and that of the run of the same seed and of a fixed length, in units of the mean stated error.
The length is the mean of those that the rule has chosen, and most draws are the same, so that the
standard error is about 0.03. A rule with a bias of 0.1 passes the bound of 0.1 + 3 standard errors
with probability 0.999 for each figure.
"""

import numpy as np
import pytest
from runs import sample

import fastkam as fk

RUNS = 300
MOST, ERRORS = 0.1, 3  # of the stated errors; standard errors


def gamma(x):
    """Gamma(3, 1): mean 3, sd sqrt(3)."""
    return 2 * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf


def runs(stop, draws):
    """Mean, sd, their errors and the draws of short runs, (RUNS, 5)."""
    rows = []
    for seed in range(RUNS):
        result = sample(gamma, np.array([[2.0], [3.0], [4.0], [5.0]]), sampler="am", tune=200,
                        draws=draws, stop=stop, names=["x"], seed=seed, diagnose=False)
        known = result.summary()
        rows.append([*(known[name][0] for name in ("mean", "sd", "mcse_mean", "mcse_sd")),
                     result.trace.rows])
    return np.array(rows)


def biases(stop):
    """(Of mean and standard deviation, (2,); their standard errors, (2,))"""
    ended = runs(stop, 20_000)
    fixed = runs(None, int(ended[:, 4].mean()))
    off = (ended[:, :2] - fixed[:, :2]) / ended[:, 2:4].mean(axis=0)
    return off.mean(axis=0), off.std(axis=0, ddof=1) / np.sqrt(RUNS)


class WhenHigh(fk.stop.StopRule):
    """A mistake: ends the run when the mean is high."""

    def met(self, run):
        return run.trace.draws.mean() > 3.05


@pytest.mark.parametrize("rule", [
    fk.stop.Done(ess=200, r_hat=1.05), fk.stop.ESS(200), fk.stop.ESS(100),
    fk.stop.MCSE({"x": 0.1})], ids=repr)
def test_a_rule_hardly_biases_what_it_ends(rule):
    off, error = biases(rule)
    assert (np.abs(off) < MOST + ERRORS * error).all(), (off, error)


def test_the_test_detects_a_rule_that_waits_for_a_high_mean():
    off, error = biases(WhenHigh() | fk.stop.ESS(2000))
    assert off[0] > MOST + ERRORS * error[0]
