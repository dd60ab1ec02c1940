"""Estimated densities and surrogates leave point and noise invariant; mistakes do not.

The false-alarm rate of each test is at most 1e-4 over the seeds (Bonferroni over features); the
seeds are fixed, so that a run either always passes or always fails.
"""

import math

import numpy as np
import pytest
import runs
from forms import InPoints
from rungs import at_rungs
from scipy.stats import multivariate_normal, norm
from twins import TWINS, caught_by

import fastkam as fk
from fastkam._core.density.estimator import PythonEstimator, SurrogateTarget
from fastkam._core.density.python_target import PythonTarget
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam.samplers import SAMPLERS, DelayedAcceptance, RandomWalk
from fastkam.samplers.exchange import Coupled
from fastkam.schedules import Power
from fastkam.testing import compare, invariance

FALSE_ALARM = 1e-4
D, K = 2, 3
SMALL = {
    "kam": {"subsample": 30, "history_size": 200},
    "kpca": {"subsample": 30, "history_size": 200},
    "ckam": {"cycle": 10, "subsample": 8, "gamma": Power(c=2.0, k=0.25, offset=0.0)},
}
PLAIN = [name for name, cls in SAMPLERS.items()
         if not issubclass(cls, Coupled) and not cls().needs_gradient]
REFRESH = {"fresh": {}, "correlated": {"correlation": 0.7}, "block": {"blocks": 3}}


def spread(x):
    """s(x) = 1 + tanh(x_0) / 2"""
    return 1.0 + 0.5 * np.tanh(x)


def estimate(x, u):
    """log of N(x_0; 0, 1) N(x_1; x_0^2 / 2, 1) exp(s z - s^2 / 2), z = (u_0 + u_1 + u_2) / 3^(1/2).

    The last factor has mean 1. Jointly with x, u ~ N(s (1, 1, 1) / 3^(1/2), I) given x.
    """
    a, b = float(x[0]), float(x[1])
    s = 1.0 + 0.5 * math.tanh(a)
    z = (float(u[0]) + float(u[1]) + float(u[2])) / math.sqrt(3)
    return -0.5 * (a * a + (b - 0.5 * a * a) ** 2) + s * z - 0.5 * s * s


def exact(n, seed):
    """Draw points and noise (n, D + K) from their joint distribution."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, D))
    x[:, 1] += 0.5 * x[:, 0] ** 2
    u = rng.standard_normal((n, K)) + spread(x[:, :1]) / math.sqrt(3)
    return np.hstack([x, u])


class Banana(PythonEstimator):
    """The estimator, with exact draws."""

    def __init__(self, correlation=0.0, blocks=1):
        super().__init__(estimate, D, K, correlation=correlation, blocks=blocks)

    def sample(self, n, seed):
        return exact(n, seed)


class KnownBanana(PythonTarget):
    """The density itself."""

    def __init__(self):
        super().__init__(lambda x: -0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2), D,
                         vectorized=False, gradient=False)

    def sample(self, n, seed):
        return exact(n, seed)[:, :D]


class Surrogated(SurrogateTarget):
    """A target behind N(0, diag(2, 3)), or behind another density, `cheap`."""

    def __init__(self, made, cheap=lambda x: -0.25 * x[0] * x[0] - x[1] * x[1] / 6):
        super().__init__(made, fk.as_target(cheap, D))
        self.sample = made.sample


def small(name):
    return SAMPLERS[name](**SMALL.get(name, {}))


def check(sampler, target, steps=2, replicates=5_000, seed=1):
    cycle = getattr(getattr(sampler, "sampler", sampler), "cycle", 1)
    return invariance(sampler, target, steps=max(steps, cycle), replicates=replicates, tune=1000,
                      seed=seed)


@pytest.mark.parametrize("name", PLAIN)
def test_fresh_noise_in_every_estimate(name):
    found = check(small(name), Banana())
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("refresh", ["correlated", "block"])
@pytest.mark.parametrize("name", ["ram", "kam", "dram", "autorwm"])
def test_other_forms_of_noise(name, refresh):
    found = check(small(name), Banana(**REFRESH[refresh]), seed=2)
    assert found.p_value > FALSE_ALARM, found


def test_kam_in_as_many_dimensions_as_points():
    found = check(InPoints(**SMALL["kam"]), Banana(**REFRESH["correlated"]), seed=2)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize("refresh", REFRESH)
def test_a_single_step_is_reversible(refresh):
    for name in ("rwm", "dram"):
        found = invariance(name, Banana(**REFRESH[refresh]), steps=1, replicates=10_000, seed=3,
                           reversible=True)
        assert found.p_value > FALSE_ALARM, found


# what shows the mistakes made in each sampler
MISTAKES = {
    "rwm": lambda cls: check(cls(), Banana(), seed=4),
    "autorwm": lambda cls: check(cls(), Banana(), seed=4),
    # a small one, which takes more to be seen
    "dram": lambda cls: check(cls(), Banana(blocks=3), steps=8, replicates=20_000, seed=4),
    "delayed": lambda cls: check(cls(sampler=RandomWalk()), Surrogated(KnownBanana()), steps=16,
                                 replicates=60_000, seed=9),
    "pt": lambda cls: coupled(
        cls(sampler=RandomWalk(proposal_cov=0.01), **FLAT), 15_000, seed=6, steps=8),
    "scout": lambda cls: coupled(cls(beta=0.3, swap_interval=1), 15_000, seed=6, steps=8),
}


@pytest.mark.parametrize(("twin", "name"), [*caught_by("estimates"), ("swap_copies", "pt")])
def test_a_planted_mistake_is_detected(twins, twin, name):
    found = MISTAKES[name](twins.sampler(twin, name))
    assert found.p_value < FALSE_ALARM, (TWINS[twin].mistake, found)


@pytest.mark.parametrize("name", ["dram", "delayed", "pt"])
def test_without_a_mistake_nothing_is_detected(name):
    """Small numbers of steps and replicates suffice."""
    found = MISTAKES[name](DelayedAcceptance if name == "delayed" else SAMPLERS[name])
    assert found.p_value > FALSE_ALARM, found


# ---- a model with a known posterior ----

Y = np.random.default_rng(10).normal(0.5, math.sqrt(2.0), 10)
N = 6


def random_effects(x, u):
    """y_i ~ N(theta + b_i, 1), b_i ~ N(0, 1), theta ~ N(0, 10), with N points for each integral.

    Of a point and its noise, or of many; without the constants of the two normal densities.
    """
    residual = Y[:, None] - x[..., :1, None] - u.reshape(*u.shape[:-1], len(Y), N)
    with np.errstate(divide="ignore"):      # far out an estimate is 0
        log_means = np.log(np.exp(-0.5 * residual**2).mean(axis=-1))
    return log_means.sum(axis=-1) - x[..., 0] ** 2 / 20


def deviations(sampler, target, draws, seed):
    """Return the errors of the posterior's mean and variance, in standard errors."""
    result = runs.sample(target, [0.0], sampler=sampler, draws=draws, tune=500, seed=seed)
    precision = len(Y) / 2 + 1 / 10
    x = result.draws[:, :, :1] - Y.sum() / 2 / precision
    table = fk.diagnostics.summary(np.concatenate([x, x**2], axis=2), ["mean", "variance"])
    return (table["mean"] - [0, 1 / precision]) / table["mcse_mean"]


FORMS = {
    **{name: lambda options=options: fk.Target.from_estimator(
        random_effects, 1, len(Y) * N, **options)
       for name, options in {"fresh": {}, "correlated": {"correlation": 0.9},
                             "block": {"blocks": len(Y)}}.items()},
    "generator": lambda: fk.Target.from_estimator(
        lambda x, rng: random_effects(x, rng.standard_normal(len(Y) * N)), 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_random_effects(form):
    """2 numbers within 4.1 errors each: a false alarm in 1e-4."""
    assert (np.abs(deviations("ram", FORMS[form](), 4000, seed=11)) < 4.1).all()


def test_estimates_that_are_made_again_bias_the_posterior(twins):
    sampler = twins.sampler("estimate_repeated")(proposal_cov=2.0)
    assert (np.abs(deviations(sampler, FORMS["fresh"](), 4000, seed=12)) > 4.1).any()


@pytest.mark.parametrize("refresh", [{}, {"correlation": 0.9}], ids=["fresh", "correlated"])
@pytest.mark.parametrize(("bias", "within"), [(0.0, (-4, 4)), (0.3, (10, 40))],
                         ids=["right", "biased"])
def test_log_z(refresh, bias, within):
    """Y ~ N(0, 2 I + 10 (1 1')); within 4 stated errors: a false alarm in less than 1e-3.

    Estimates with a mean too large by a factor exp(0.3) give log Z wrong by many errors.
    """
    target = fk.Target.from_estimator(lambda X, U: random_effects(X, U) + bias, 1, len(Y) * N,
                                      vectorized=True, **refresh)
    result = runs.sample(target, [0.0], sampler=fk.ParallelTempering(), draws=4000, tune=1000,
                       seed=13)
    n = len(Y)
    truth = (multivariate_normal(cov=2 * np.eye(n) + 10).logpdf(Y)
             + 0.5 * (n + 1) * math.log(2 * math.pi) + 0.5 * math.log(10))
    report = fk.tempering(result)
    assert report.log_z_error < 0.05, report
    assert within[0] < (report.log_z - truth) / report.log_z_error < within[1], (truth, report)


# ---- couplings ----

FLAT = {"reference": "flat", "n_replicas": 3, "betas": [1.0, 0.5, 0.2]}
COUPLINGS = [
    fk.ParallelTempering(**FLAT),
    fk.ParallelTempering(scheme="random", sampler="autorwm", **FLAT),
    fk.ParallelTempering(reference=([0.5], 9.0), n_replicas=3, betas=[1.0, 0.3, 0.0],
                         sampler="dram"),
    fk.Scout(beta=0.3, swap_interval=1),
]


def coupled(sampler, replicates, seed, reference=None, steps=3, **refresh):
    """Whether the distribution of the coldest (x, u) changes, from exact states of all rungs.

    pi = N(0, 1), estimated with exp(u - 1 / 2): at beta, u ~ N(beta, 1) independently of x.
    """
    target = fk.Target.from_estimator(
        lambda x, u: -0.5 * float(x[0]) ** 2 + float(u[0]) - 0.5, 1, 1, **refresh)
    kernel = sampler.build(np.zeros(1))
    beta, rng = np.asarray(kernel.ladder), np.random.default_rng(seed)
    mean, variance = reference or (0.0, np.inf)
    precision = beta + (1 - beta) / variance
    shape = (replicates, len(beta))
    xs = rng.normal((1 - beta) * mean / variance / precision, 1 / np.sqrt(precision), shape)
    us = rng.normal(beta, 1.0, shape)
    chain = ChainState(kernel, np.random.PCG64(seed), np.zeros(1), n_aux=1)
    group = Group(target.bind(), [chain], (1.0, 0.0, 0.0, 1.0, 0, 0, 0.0))
    first, after = kernel.state(), np.empty((replicates, 2))

    def log_q(x):
        return norm.logpdf(x, mean, np.sqrt(variance)) if reference else 0 * x

    for i, (x, u) in enumerate(zip(xs, us, strict=True)):
        logp = -0.5 * x * x + u - 0.5
        kernel.restore(at_rungs(first, x[:, None], logp, log_q(x)))
        chain.place(x[:1], u[:, None], logp[0])
        group.start()
        group.run(steps + i % 2)     # so that both halves of the even-odd scheme come first
        after[i] = chain.position[0], chain.noise_at_x[0]
    return compare(np.column_stack([xs[:, 0], us[:, 0]]), after, seed=seed)


@pytest.mark.parametrize("refresh", [{}, {"correlation": 0.7}], ids=["fresh", "correlated"])
@pytest.mark.parametrize("sampler", COUPLINGS, ids=["flat", "random", "reference", "scout"])
def test_couplings(sampler, refresh):
    reference = (0.5, 9.0) if isinstance(getattr(sampler, "reference", ""), tuple) else None
    found = coupled(sampler, 4_000, seed=5, reference=reference, **refresh)
    assert found.p_value > FALSE_ALARM, found


# ---- surrogates ----

BEHIND = [name for name in PLAIN if not small(name).several_evaluations]


@pytest.mark.parametrize("name", BEHIND)
def test_a_surrogate(name):
    found = check(DelayedAcceptance(sampler=small(name)), Surrogated(KnownBanana()), seed=7)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("name", BEHIND)
def test_several_steps_on_a_surrogate(name):
    sampler = DelayedAcceptance(sampler=small(name), steps=4)
    found = check(sampler, Surrogated(KnownBanana()), seed=10)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


WRONG = {
    "shifted": lambda x: -0.5 * ((x[0] - 0.8) ** 2 + (x[1] + 0.5) ** 2),
    "too narrow": lambda x: -1.5 * (x[0] ** 2 + x[1] ** 2),
}


def test_several_steps_of_moves_that_remember_a_density():
    """A chain on the surrogate may end elsewhere than the next one begins."""
    jumps = fk.ModeJumping(sampler=RandomWalk(), moves="independent", jump_probability=0.9,
                           means=[[1.5, 0.0]], covs=[0.5], fit=False)
    found = check(DelayedAcceptance(sampler=jumps, steps=2),
                  Surrogated(KnownBanana(), WRONG["shifted"]), steps=8, replicates=20_000, seed=14)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.1


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_surrogate(wrong, steps):
    sampler = DelayedAcceptance(sampler=RandomWalk(), steps=steps)
    found = check(sampler, Surrogated(KnownBanana(), WRONG[wrong]), seed=11)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize("twin", ["second_stage_alone", "stale_surrogate"])
def test_a_planted_mistake_behind_several_steps(twins, twin):
    sampler = twins.sampler(twin, "delayed")(sampler=RandomWalk(), steps=4)
    found = check(sampler, Surrogated(KnownBanana()), steps=8, replicates=40_000, seed=12)
    assert found.p_value < FALSE_ALARM, (TWINS[twin].mistake, found)


@pytest.mark.parametrize("refresh", REFRESH)
def test_several_steps_before_an_estimate(refresh):
    sampler = DelayedAcceptance(sampler=RandomWalk(), steps=4)
    found = check(sampler, Surrogated(Banana(**REFRESH[refresh])), seed=13)
    assert found.p_value > FALSE_ALARM, found


@pytest.mark.parametrize("refresh", REFRESH)
def test_a_surrogate_before_an_estimate(refresh):
    sampler = DelayedAcceptance(sampler=RandomWalk())
    found = check(sampler, Surrogated(Banana(**REFRESH[refresh])), seed=8)
    assert found.p_value > FALSE_ALARM, found
