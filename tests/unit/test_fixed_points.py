"""Fixed points: at the right value, the expected update of every adaptation rule is zero.

A chain stands at an exact draw of N(m, C), its kernel in the state that should be learned: the mean
is m, the factor that of C, the acceptance aimed at is the true one. It makes one step and adapts.
Over many replicates the mean of the update is zero: z-tests on each of its elements, with
Bonferroni's correction, of total false-alarm rate 1e-4 a test.
"""

import sys

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi, norm

from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam.density.forms import as_target
from fastkam.samplers import SAMPLERS
from reference import REFERENCES

FALSE_ALARMS = 1e-4
REPLICATES = 8000
GAIN = 1e-4                 # small: rules that use the moved mean are right to first order in it
MEAN = np.array([1.0, -2.0, 0.5])
COV = np.array([[2.0, 0.8, -0.3], [0.8, 1.0, 0.2], [-0.3, 0.2, 0.5]])
FACTOR = np.linalg.cholesky(COV)
SCALE = 1.3                 # of the proposal's covariance, against COV


def acceptance(scale, d=3):
    """E alpha of y ~ N(x, scale C) on N(m, C): given |e|, it is 2 Phi(-sqrt(scale) |e| / 2)."""
    return quad(lambda r: 2 * norm.cdf(-np.sqrt(scale) * r / 2) * chi.pdf(r, d), 0, 30)[0]


def logp(x):
    w = np.linalg.solve(FACTOR, x - MEAN)
    return -0.5 * w @ w


def grad(x):
    return np.linalg.solve(COV, MEAN - x)


def logp_isotropic(x):
    return -0.5 * (x - MEAN) @ (x - MEAN)


def acceptance_of_langevin(step, n=400_000):
    """E alpha of y ~ N(x - s^2/2 x, s^2 I) on N(0, I), by as many draws as make its error small."""
    rng = np.random.default_rng(9)
    x, e = rng.standard_normal((2, n, 3))
    y = (1 - step**2 / 2) * x + step * e
    back = x - (1 - step**2 / 2) * y
    log_ratio = 0.5 * (x**2 - y**2 + e**2 - back**2 / step**2).sum(axis=1)
    return np.exp(np.minimum(0, log_ratio)).mean()


def acceptance_of_barker(step, n=400_000):
    """E alpha of Barker's proposal with steps of deviation s on N(0, I)."""
    rng = np.random.default_rng(9)
    x, z = rng.standard_normal((2, n, 3))
    z *= step
    y = x + np.where(rng.random((n, 3)) < 1 / (1 + np.exp(x * z)), z, -z)
    log_ratio = 0.5 * (x**2 - y**2) + np.log1p(np.exp(x * (y - x))) - np.log1p(np.exp(y * (x - y)))
    return np.exp(np.minimum(0, log_ratio.sum(axis=1))).mean()


def divergence_scale(b, d=3):
    """The s at which s L is right for DM of entropy weight b: b / s = b s + E[y'e; |y| > |x|] / d,
    with y = x + s e; given |e| = r the last expectation is r phi(s r/2) + s r^2 Phi(s r/2)."""
    def missing(s):
        worse = quad(lambda r: (r * norm.pdf(s * r / 2) + s * r**2 * norm.cdf(s * r / 2))
                     * chi.pdf(r, d), 0, 30)[0]
        return b / s - b * s - worse / d
    return brentq(missing, 1e-3, 1)


def moments(before, after):
    """Updates of the mean and of the covariance, in the coordinates in which both are standard."""
    change = np.linalg.solve(FACTOR, after["L"]) @ np.linalg.solve(FACTOR, after["L"]).T - np.eye(3)
    return np.r_[np.linalg.solve(FACTOR, after["mu"] - before["mu"]), change[np.tril_indices(3)]]


def moments_of_F(before, after):
    after = after | {"L": after["F"].reshape(3, 3).T}
    return moments(before, after)


def shape(before, after):
    S = np.linalg.solve(before["S"], after["S"])
    return (S @ S.T - np.eye(3))[np.tril_indices(3)]


def preconditioner(before, after):
    """Updates of R R' but for its size, in the coordinates in which R R' is I, over the gain."""
    S = np.linalg.solve(before["R"], after["R"])
    update = 1e6 * GAIN * (S @ S.T - np.eye(3))
    return np.r_[np.diag(update) - np.trace(update) / 3, update[np.tril_indices(3, -1)]]


def variances(before, after):
    """Updates of the mean and of the variances, in units of them."""
    return np.r_[after["mu"] - before["mu"], (after["F"] / before["F"]) ** 2 - 1]


def scalar(name):
    return lambda before, after: np.array([after[name] - before[name]])


def both(f, g):
    return lambda before, after: np.r_[f(before, after), g(before, after)]


# R R' = COV / 10^6: as after many signals, so that one more is small
FISHER = {"R": 1e-3 * FACTOR, "trace": 1e-6 * np.trace(COV), "n": np.array(10**4)}
FISHER_STEP = 1.1 * np.sqrt(np.trace(COV) / 3)
LEARNED = {"mean": MEAN, "target_cov": COV}
WALK = {"subsample": 0, "gamma": np.sqrt(SCALE), "target_acceptance": acceptance(SCALE)}
# without a subsample: N(x, noise^2 I), on N(m, I)

DIAGONAL = {"metric": "diagonal", "mean": MEAN, "preconditioner": np.diag(COV)}
BARKER = {"mean": MEAN, "preconditioner": COV, "step_size": 1.1,
           "target_acceptance": acceptance_of_barker(1.1)}
DIVERGENCE = {"entropy_weight": 0.9, "proposal_cov": divergence_scale(0.9) ** 2 * COV,
              "bank_size": 1}
ONE_STEP = {"metric": "fixed", "inverse_mass_matrix": COV, "step_size": 1.1,
            "target_acceptance": acceptance_of_langevin(1.1)}      # one leapfrog step is MALA

# short name: (parameters, the state besides what they give, what is measured of the update)
RIGHT = {
    "rwm": ({"proposal_cov": SCALE * COV, "target_acceptance": acceptance(SCALE)}, {}, scalar("s")),
    "am": (LEARNED | {"scale": SCALE}, {}, moments),
    "rbam": (LEARNED | {"scale": SCALE}, {}, moments),
    "gam": (LEARNED | {"scale": SCALE, "target_acceptance": acceptance(SCALE)}, {},
            both(moments, scalar("log_scale"))),
    "arwm": ({"safe_weight": 0.3, "safe_scale": 1.0}, {"mu": MEAN, "L": FACTOR}, moments),
    "cholam": ({"mean": MEAN, "proposal_cov": COV, "scale": SCALE, "scale_gain": GAIN,
                "target_acceptance": acceptance(SCALE)}, {},
               both(moments, scalar("delta"))),
    "ram": ({"proposal_cov": SCALE * COV, "target_acceptance": acceptance(SCALE)}, {}, shape),
    "kam": (WALK | {"history_size": 2}, {}, scalar("log_nu")),
    "kpca": (WALK | {"history_size": 2, "subsample": 1, "n_components": 1}, {}, scalar("log_nu")),
    "ckam": (WALK | {"cycle": 4, "exploration_fraction": 0.5, "step_gain": GAIN}, {},
             scalar("log_nu")),
    "mala": ({"preconditioner": COV, "step_size": 1.1,
              "target_acceptance": acceptance_of_langevin(1.1)}, {}, scalar("log_s")),
    "fishermala": ({"step_size": FISHER_STEP, "target_acceptance": acceptance_of_langevin(1.1)},
                   FISHER, both(preconditioner, scalar("log_s"))),
    "barker": (BARKER | {"metric": "dense"}, {}, both(moments_of_F, scalar("log_s"))),
    "automala": (DIAGONAL, {}, variances),
    "autorwm": ({"mean": MEAN, "preconditioner": COV}, {}, moments_of_F),
    "dram": (LEARNED | {"scale": SCALE}, {}, moments),
    "dm": (DIVERGENCE, {}, lambda before, after: (after["C"] - before["C"])[np.tril_indices(3)]),
    "gadrwm": ({"proposal_cov": SCALE * COV, "entropy_weight_gain": GAIN,
                "target_acceptance": acceptance(SCALE)}, {}, scalar("beta")),
    "gadmala": ({"proposal_cov": 1.21 * COV, "entropy_weight_gain": GAIN,
                 "target_acceptance": acceptance_of_langevin(1.1)}, {}, scalar("beta")),
    "hmc": (ONE_STEP | {"n_steps": 1, "jitter": 0.0}, {"searching": np.array(0)}, scalar("H_mean")),
    "nuts": (ONE_STEP | {"max_tree_depth": 1}, {"searching": np.array(0)}, scalar("H_mean")),
}

RIGHT |= {name: cls.fixed_point(sys.modules[__name__]) for name, cls in REFERENCES.items()
          if hasattr(cls, "fixed_point")}       # of those that say so beside their formula


def updates(name, options, state, measure, *, seed=1, chains=1):
    """(replicates, elements): what one step of the compiled sampler changes, over the gain.

    With several chains, which learn as one: what their steps together change, in fewer replicates.
    """
    sampler = SAMPLERS[name](**options)
    isotropic = "subsample" in options
    density = logp_isotropic if isotropic else logp
    group = [ChainState(sampler.build(MEAN), np.random.PCG64(seed + k), MEAN)
             for k in range(chains)]
    before = group[0].kernel.state() | state
    gain = 1.0 if name == "ckam" else GAIN      # that of ckam is its step_gain
    target = as_target(lambda x: (density(x), grad(x)), 3, gradient=True)
    engine = Group(target.bind(), group, (gain, 0.0, 0.0, 1.0, 0, None, 0.0), share=True)
    start = group[0].state() | {f"kernel.{field}": value for field, value in before.items()}
    rows, rng = [], np.random.default_rng(seed + 1)
    for _ in range(REPLICATES if chains == 1 else REPLICATES // (2 * chains)):
        for chain in group:
            e = rng.standard_normal(3)
            x = MEAN + (e if isotropic else FACTOR @ e)
            chain.restore(start | {"x": x, "logp_x": np.array(density(x)), "grad_x": grad(x),
                                   "t": np.array(10 ** 4)})
        engine.run(1)
        rows.append(measure(before, group[0].kernel.state()) / GAIN)
    return np.array(rows)


def updates_of_reference(reference, sampler, measure, *, seed=1):
    """The same for a NumPy reference."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(REPLICATES // 2):
        other, x = reference(s=sampler).build(MEAN).own, MEAN + FACTOR @ rng.standard_normal(3)
        y = other.propose(x, rng)
        before = other.fields()
        alpha = np.exp(min(0.0, logp(y) - logp(x)))
        other.adapt(x, y, alpha, rng.random() < alpha, GAIN, rng)
        rows.append(measure(before, other.fields()) / GAIN)
    return np.array(rows)


def is_zero_in_mean(rows):
    z = rows.mean(axis=0) / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))
    return bool((np.abs(z) < norm.isf(FALSE_ALARMS / 2 / rows.shape[1])).all())


def test_every_learning_sampler_is_tested():
    of_others = {"pt", "scout", "jumps"}       # their parts learn
    assert set(RIGHT) | of_others == set(SAMPLERS)


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_covariance_is_a_fixed_point_of_the_adaptation(name):
    assert is_zero_in_mean(updates(name, *RIGHT[name]))


SHARING = [name for name in RIGHT
           if any(field.shared for field in SAMPLERS[name].kernel_class().FIELDS.values())]


@pytest.mark.parametrize("name", SHARING)
def test_the_right_covariance_is_a_fixed_point_for_chains_that_share(name):
    options, state, measure = RIGHT[name]
    assert is_zero_in_mean(updates(name, options, state, measure, chains=4))


@pytest.mark.parametrize(("name", "wrong"), [
    ("am", {"target_cov": 1.1 * COV}), ("mala", {"step_size": 1.0}),
    ("ram", {"proposal_cov": 1.2 * SCALE * COV}),
])
def test_a_wrong_covariance_is_not_a_fixed_point_for_chains_that_share(name, wrong):
    options, state, measure = RIGHT[name]
    assert not is_zero_in_mean(updates(name, options | wrong, state, measure, chains=4))


@pytest.mark.parametrize(("name", "wrong"), [
    ("rwm", {"proposal_cov": 1.1 * SCALE * COV}), ("am", {"target_cov": 1.1 * COV}),
    ("rbam", {"target_cov": 1.1 * COV}), ("gam", {"scale": 1.1 * SCALE}),
    ("rbam", {"mean": MEAN + 0.1}), ("cholam", {"proposal_cov": 1.1 * COV}), ("kam",
                                                                              {"gamma": 1.2}),
    ("ram", {"proposal_cov": SCALE * COV + np.diag([0, 0, 0.3])}), ("ckam", {"gamma": 1.2}),
    ("fishermala", {"step_size": 0.9 * FISHER_STEP}), ("barker", {"step_size": 1.0}),
    ("barker", {"preconditioner": np.diag(COV)}),
    ("automala", {"preconditioner": 1.1 * np.diag(COV)}),
    ("autorwm", {"mean": MEAN + 0.1}), ("dram", {"target_cov": 1.1 * COV}),
    ("dm", {"entropy_weight": 0.8}),
    ("dm", {"proposal_cov": DIVERGENCE["proposal_cov"] + np.diag([0, 0, 0.03])}),
    ("mala", {"step_size": 1.0}), ("gadrwm", {"proposal_cov": COV}), ("gadmala",
                                                                      {"proposal_cov": COV}),
    ("hmc", {"step_size": 1.0}), ("nuts", {"step_size": 1.0}),
])
def test_a_wrong_covariance_is_not_a_fixed_point(name, wrong):
    options, state, measure = RIGHT[name]
    assert not is_zero_in_mean(updates(name, options | wrong, state, measure))


def test_a_wrong_preconditioner_is_not_a_fixed_point():
    options, state, measure = RIGHT["fishermala"]
    wrong = {"R": 1e-3 * np.diag(np.sqrt(np.diag(COV)))}
    assert not is_zero_in_mean(updates("fishermala", options, state | wrong, measure))


class OuterProductOfAverage(REFERENCES["rbam"]):
    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn(alpha * y + (1 - alpha) * x, gain)


class LearnsFromProposals(REFERENCES["am"]):
    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn(y, gain)


class WithoutNorm(REFERENCES["ram"]):
    def adapt(self, x, y, alpha, accepted, gain, rng):
        super().adapt(x, y, alpha, accepted, gain * (self.u @ self.u), rng)


@pytest.mark.parametrize(("name", "wrong"), [
    ("rbam", OuterProductOfAverage), ("am", LearnsFromProposals), ("ram", WithoutNorm),
])
def test_a_wrong_rule_is_caught(name, wrong):
    options, _, measure = RIGHT[name]
    sampler = SAMPLERS[name](**options)
    assert is_zero_in_mean(updates_of_reference(REFERENCES[name], sampler, measure))
    assert not is_zero_in_mean(updates_of_reference(wrong, sampler, measure))
