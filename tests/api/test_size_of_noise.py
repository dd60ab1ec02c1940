"""The size of the noise of estimates: in a run, and in `check_noise`."""

import math

import densities
import numpy as np
import pytest
from densities import D
from runs import sample
from scipy import stats

import fastkam as fk
from fastkam.search.estimates import with_noise


def of_noise(s, seen=None):
    """N(0, I), estimated with the standard deviation s of the logarithm."""
    def f(x, u):
        if seen is not None:
            seen.append(x)
        return -0.5 * float(x @ x) + s * float(u[0]) - 0.5 * s * s

    return fk.Target.from_estimator(f, D, 1)


def aim_of(sampler, target=None, **options):
    result = fk.sample(of_noise(1.5) if target is None else target, np.zeros(D), sampler=sampler,
                       tune=10, draws=5, seed=1, progress=False, diagnose=False, **options)
    return result.sampler, result


@pytest.mark.parametrize("name", ["ram", "gam", "kam", "jumps", "pt", "scout", "auto"])
def test_the_acceptance_that_is_aimed_at_allows_for_the_noise(name):
    """Forty estimates show the standard deviation 1.5 to some 25 %."""
    sampler, result = aim_of(name)
    part = sampler if hasattr(sampler, "target_acceptance") else sampler.parts()[0]
    default = type(part).target_acceptance
    assert with_noise(default, 1.9**2, 0.0) < part.target_acceptance < with_noise(default, 1, 0.0)
    assert any("40 log estimates at the start of a chain have the standard deviation 1." in line
               for line in result.search)


def test_where_the_acceptance_that_is_aimed_at_stays():
    assert aim_of(fk.RobustAdaptiveMetropolis(target_acceptance=0.3))[0].target_acceptance == 0.3
    assert aim_of("ram", search=False)[0].target_acceptance == 0.234
    assert aim_of("ram", densities.python)[0].target_acceptance == 0.234
    assert aim_of("ram", surrogate=densities.python)[0].parts()[0].target_acceptance == 0.234


def test_the_acceptance_with_noise():
    """Simulate log ratios of a long step with noise on both sides."""
    rng = np.random.default_rng(1)
    for aim, s in ((0.234, 1.0), (0.44, 1.5), (0.25, 0.3)):
        length = -2 * stats.norm.ppf(aim / 2)
        r = rng.normal(-0.5 * (length**2 + 2 * s * s), math.sqrt(length**2 + 2 * s * s), 10**6)
        found = np.exp(np.minimum(r, 0)).mean()
        assert abs(with_noise(aim, s * s, 0.0) - found) < 4 * 0.5 / 1000
        assert with_noise(aim, s * s, 0.25) == 0.75 * with_noise(aim, s * s, 0.0)
        assert with_noise(aim, 100.0, 1.0) == pytest.approx(0.1 * with_noise(aim, 3.28, 0.0))
        assert with_noise(aim, 0.0, 0.0) == pytest.approx(aim)


def test_noise_is_measured_within_the_budget_and_counted():
    seen = []
    result = fk.sample(of_noise(1.0, seen), np.zeros(D), sampler="ram", tune=10, draws=5, seed=1,
                       progress=False, diagnose=False)
    assert result.evaluations + 4 == len(seen)
    few = fk.sample(of_noise(1.0, seen := []), np.zeros(D), sampler="ram", tune=0, seed=1,
                    stop=fk.stop.Evaluations(60), progress=False, diagnose=False)
    assert few.evaluations + 4 == len(seen) <= 60 + 2 * 4
    assert few.state.searched <= 60 / 3  # the share of a search


def test_correlated_noise_counts_by_the_difference_of_two_estimates():
    def f(x, u):
        return -0.5 * float(x @ x) + 3 * float(u[0]) - 4.5

    target = fk.Target.from_estimator(f, D, 1, correlation=0.98)  # sd of a difference: 0.6
    sampler, result = aim_of("ram", target)
    assert with_noise(0.234, 0.29, 0.0) < sampler.target_acceptance < with_noise(0.234, 0.09, 0.0)
    assert "40 differences of pairs of log estimates at the start" in result.search[-1]


def test_chains_of_noisy_estimates_mix():
    """An ESS of 8 to 123 was all, with steps for an acceptance probability of 0.234."""
    for seed in range(3):
        result = fk.sample(of_noise(1.5), np.zeros(D), sampler="ram", tune=2000, draws=5000,
                           seed=seed, progress=False, diagnose=False)
        assert result.summary()["ess_bulk"].min() > 200


def test_an_estimate_that_ignores_its_noise_is_reported():
    def ignores(x, rng):
        return -0.5 * float(x @ x) + float(np.random.default_rng(0).standard_normal())

    with pytest.warns(fk.SamplingWarning, match="does not depend on its noise: 40 estimates"):
        result = fk.sample(fk.Target.from_estimator(ignores, D), np.zeros(D), draws=200, tune=100,
                           seed=1, progress=False)
    assert result.verdict().status != "ok"
    correlated = fk.Target.from_estimator(lambda x, u: -0.5 * float(x @ x), D, 3, blocks=3)
    with pytest.warns(fk.SamplingWarning, match="does not depend on its noise: 80 estimates"):
        fk.sample(correlated, np.zeros(D), sampler="ram", draws=200, tune=100, seed=1,
                  progress=False)
    check = fk.check_noise(fk.Target.from_estimator(ignores, D), np.zeros(D), 20, seed=1)
    assert check.verdict == "none"
    assert "does not depend on its noise" in str(check)


def test_estimates_of_0_or_1_are_not_taken_for_some_without_noise():
    """As in approximate Bayesian computation; all are 1 where the chains start."""
    def near(x, rng):
        return 0.0 if abs(x[0] + 0.3 * rng.standard_normal() - 1) < 1.2 else -math.inf

    target = fk.Target.from_estimator(near, 1)
    for seed in range(4):
        result = fk.sample(target, prior={"x": stats.norm()}, seed=seed, draws=400, tune=100,
                           progress=False, diagnose=False)
        assert "random" not in [one.kind for one in result.warnings]


def test_noise_is_named_as_the_cause_of_stuck_chains():
    target = fk.Target.from_estimator(
        lambda x, u: -0.5 * float(x @ x) + u[0] - 0.5 + 1000 * (not x.any()), D, 1)
    with pytest.warns(fk.SamplingWarning, match="far too high keeps a chain where it is"):
        sample(target, np.zeros(D), draws=300, tune=40, chains=2, seed=3)
    with pytest.warns(fk.SamplingWarning, match=r"chains stay for long where one is too high"):
        fk.sample(of_noise(4.0), np.zeros(D), sampler="am", draws=2000, tune=100, seed=1,
                  progress=False)


# ---- check_noise ----


def test_check_noise():
    """exp(s z) has the variance s^2; a difference with correlation rho 2 s^2 (1 - rho)."""
    def f(x, u):
        return x[0] * u.mean() * 2

    for refresh, factor in (({}, 1.0), ({"correlation": 0.75}, 0.5), ({"blocks": 4}, 0.5)):
        target = fk.Target.from_estimator(f, 1, 4, **refresh)
        for s, verdict in ((0.5, "low"), (1.2, "useful"), (3.0, "high")):
            s = s / math.sqrt(factor) * (math.sqrt(2) if refresh else 1)
            check = fk.check_noise(target, [s], 4000, seed=1)
            assert abs(check.variance - s * s * factor) < 4 * check.variance_error
            assert check.verdict == verdict, check
            assert check.what == ("difference" if refresh else "estimate")
            assert f"{check.variance:.3g} +- " in str(check)
    zero = fk.Target.from_estimator(lambda x, u: -math.inf if u[0] > 1 else 0.0, 1, 1)
    check = fk.check_noise(zero, [0.0], 100, seed=1)
    assert check.verdict == "zeros"
    assert f"{check.zeros} of 100 estimates are 0" in str(check)


def test_bad_arguments_of_check_noise():
    with pytest.raises(TypeError, match=r"target must be made by Target\.from_estimator"):
        fk.check_noise(densities.python, np.ones(D))
    with pytest.raises(ValueError, match=r"x must have shape \(2,\)"):
        fk.check_noise(of_noise(1.0), np.ones(3))
    with pytest.raises(ValueError, match="n must be at least 10, not 1"):
        fk.check_noise(of_noise(1.0), np.ones(D), 1)


def test_check_noise_of_a_problem_and_without_a_dimension():
    """The prior has no noise; x are the parameters, a scale among them."""
    def f(mu, sigma, u):
        return -0.5 * (mu / sigma) ** 2 + 1.2 * float(u[0])

    problem = fk.Problem(fk.Target.from_estimator(f, n_aux=1),
                         prior={"mu": stats.norm(), "sigma": stats.halfnorm()})
    check = fk.check_noise(problem, {"mu": 0.5, "sigma": 2.0}, 4000, seed=1)
    assert abs(check.variance - 1.44) < 4 * check.variance_error
    np.testing.assert_array_equal(check.x, [0.5, 2.0])
    assert fk.check_noise(problem, [0.5, 2.0], 4000, seed=1).variance == check.variance
    alone = fk.Target.from_estimator(lambda x, u: 1.2 * u[0], n_aux=1)
    assert fk.check_noise(alone, np.ones(3), 100, seed=1).verdict == "useful"
    with pytest.raises(ValueError, match="x must have 'sigma' within"):
        fk.check_noise(problem, [0.5, -2.0])
    with pytest.raises(TypeError, match="or be a Problem of such, not <Problem"):
        fk.check_noise(fk.Problem(lambda x: 0.0, bounds=[(0, 1)]), [0.5])
