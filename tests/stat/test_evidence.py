"""The normalizing constant from tempered replicas, and its standard errors.

False-alarm rates are 1e-4 a test; seeds are fixed.
"""

import numpy as np
import pytest
import runs
from scipy.signal import lfilter
from scipy.stats import chi2, norm

import fastkam as fk
from fastkam.diagnostics.tempering import Rungs, mean_of

BATCHES, LENGTH = 60, 16


def stones(phi, rng):
    """The state of a chain of two rungs at 1 and 0 whose W is an AR(1) of sd 0.5 and mean 0."""
    noise = rng.standard_normal((2, BATCHES * LENGTH)) * 0.5
    noise[:, 1:] *= np.sqrt(1 - phi**2)
    W = lfilter([1.0], [1.0, -phi], noise).T.reshape(BATCHES, LENGTH, 2)
    return {"ladder": np.array([1.0, 0.0]), "swaps.swapped": np.ones(2),
            "swaps.attempted": np.ones(2), "evidence.batch": BATCHES,
            "evidence.batch_length": LENGTH,
            "evidence.stones": np.log(np.exp(W).sum(axis=1)), "evidence.sums": W.sum(axis=1),
            "evidence.squares": (W**2).sum(axis=1), "evidence.outside": np.zeros(BATCHES)}


def rms_of_errors(phi, of, seeds=400):
    """Root mean square of (estimate - truth) / standard error, of one chain each."""
    z = []
    for seed in range(seeds):
        rungs = Rungs(stones(phi, np.random.default_rng(seed)), "")
        if of == "stones":
            value, error = rungs.log_z(rungs.stepping_stones)
            value -= 0.125      # log E exp(W) = 0.5^2 / 2
        else:
            value, error = rungs.log_z(lambda b, r=rungs: r.moments(b)[0].mean())
        z.append(value / error)
    return np.sqrt(np.mean(np.square(z)))


@pytest.mark.parametrize("of", ["stones", "moments"])
@pytest.mark.parametrize("phi", [0.0, 0.9, 0.97])
def test_standard_errors_of_a_correlated_series(phi, of):
    """Batches of 16 steps, and a memory of up to 65 steps.

    400 squares of standard normals have a mean within 0.74 and 1.30 but for 1e-4; the estimated
    errors vary by themselves, which the bounds allow for: 7 % below, 18 % above.
    """
    low, high = np.sqrt(chi2.ppf([5e-5, 1 - 5e-5], 400) / 400)
    assert 0.93 * low < rms_of_errors(phi, of) < 1.18 * high


def test_batches_taken_as_independent_are_detected(monkeypatch):
    """The planted mistake: the error of a jackknife that takes each batch as independent."""
    monkeypatch.setattr("fastkam.diagnostics.tempering.standard_error",
                        lambda series: series.std(ddof=1) / np.sqrt(len(series)))
    assert rms_of_errors(0.97, "stones") > 1.5


def test_the_spread_of_chains_counts():
    """Estimates of 0 +- 0.1 and 4 +- 0.1 by two chains disagree."""
    assert mean_of([(0.0, 0.1), (4.0, 0.1)]) == (2.0, pytest.approx(2.0))
    assert mean_of([(1.0, 0.2)] * 4) == (1.0, pytest.approx(0.1))
    assert mean_of([(1.0, 0.2)]) == (1.0, pytest.approx(0.2))


def test_error_of_a_curved_density():
    """16 runs on a banana: z has the mean square 1; 2.8 is passed in 1e-4 of all cases."""
    target, z = fk.targets.banana(d=8), []
    for seed in range(16):
        report = fk.tempering(runs.sample(target, np.zeros(8), sampler="pt", draws=2000, tune=5000,
                                          chains=4, seed=seed, keep_warmup=False))
        z.append(report.log_z / report.log_z_error)
    assert np.mean(np.square(z)) < chi2.ppf(1 - 1e-4, 16) / 16, z


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_a_hard_bound(shift):
    """A normal density on a quarter, and a constant on a box: within 4 errors of what is known."""
    def quarter(x):
        return -0.5 * float(x @ x) + shift if (x > 0.5).all() else -np.inf

    def box(x):
        return shift if (np.abs(x) < 1).all() else -np.inf

    known = {quarter: shift + np.log(2 * np.pi) + 2 * norm.logsf(0.5), box: shift + np.log(4)}
    for density, truth in known.items():
        result = runs.sample(density, np.array([0.6, 0.6]), sampler=fk.ParallelTempering(
            n_replicas=6), draws=4000, tune=2000, chains=4, seed=5)
        report = fk.tempering(result)
        assert abs(report.log_z - truth) < 4 * report.log_z_error < 0.4, report
        away = report.log_z_thermodynamic - truth
        assert abs(away) < 4 * report.log_z_thermodynamic_error < 1, (truth, report)


def test_two_batches_become_one():
    """Full batches merge in pairs, and keep the sums of a shorter run."""
    def half(x):
        return -0.5 * float(x @ x) if x[0] > 0.3 else -np.inf

    def evidence(draws):
        state = runs.sample(half, np.ones(2), sampler=fk.ParallelTempering(n_replicas=4), tune=200,
                            draws=draws, chains=1, seed=2, diagnose=False).states[0]
        return {name: state[f"kernel.evidence.{name}"] for name in (
            "batch_length", "stones", "sums", "squares", "outside")}

    short, long = evidence(60), evidence(100)
    assert (short["batch_length"], long["batch_length"]) == (1, 2)
    assert short["outside"][:60].any()
    for name, joined in (("stones", np.logaddexp), ("sums", np.add), ("squares", np.add),
                         ("outside", np.add)):
        np.testing.assert_allclose(
            long[name][:30], joined(short[name][0:60:2], short[name][1:60:2]), rtol=1e-12)
    W = long["sums"][30:50] / 2     # of batches of two from the beginning on
    assert (long["squares"][30:50] / 2 >= W**2 * (1 - 1e-12)).all()


def test_a_bound_that_all_states_of_the_reference_miss():
    """The result is log 0 without an error, and numpy gives no warning."""
    state = stones(0.0, np.random.default_rng(1))
    state["evidence.outside"] += LENGTH
    rungs = Rungs(state, "")
    assert rungs.thermodynamic(np.arange(BATCHES)) == -np.inf


@pytest.mark.parametrize("sampler", ["pt", fk.ModeJumping(sampler="pt")])
def test_units_of_the_coordinates(sampler):
    """The integral is over x, not over the coordinates in which the search has the sampler run."""
    sd = np.array([300.0, 0.01])
    result = fk.sample(lambda x: -0.5 * np.square(x / sd).sum(), sd, sampler=sampler, draws=1000,
                       tune=1000, seed=1, progress=False)
    assert (result.scales != 1).any()
    report, truth = fk.tempering(result), np.log(2 * np.pi) + np.log(sd).sum()
    for value, error in ((report.log_z, report.log_z_error),
                         (report.log_z_thermodynamic, report.log_z_thermodynamic_error)):
        assert abs(value - truth) < norm.isf(5e-5) * error < 0.5
