"""Every sampler equals its NumPy reference on the same random numbers, step by step."""

import numpy as np
import pytest
from agreement import FIVE, GRADIENTS, TARGETS, compare, differ, disagreement
from runs import sample

from fastkam.kernels import Gaussian, Linear, Matern
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Diminishing, Finite, IncreasinglyRare, Perpetual, Power
from reference import REFERENCES
from reference.base import log_normal
from reference.kernels import kernel

KAM, PCA, CYCLES = (SAMPLERS[name] for name in ("kam", "kpca", "ckam"))

MEANS = [[-1.0, 0.0], [1.0, 1.0], [0.0, -1.0]]      # of mode jumping
PERIODS = [[0, -2.0, 4.0, 4.0, 0.1, 5.4], [1, -1.5, 3.0, 6.0, 0.0, 8.1]]  # the second is reflected

DEFAULT = {  # what each sampler is run with besides its defaults, to keep the references quick
    "kam": {"subsample": 40},
    "kpca": {"subsample": 30, "n_components": 4},
    "ckam": {"subsample": 20, "cycle": 150},
}


def default(name):
    return SAMPLERS[name](**DEFAULT.get(name, {}))


def takes_a_gain(name):
    """Others (cycles, dual averaging) have their own, and run under two schedules only."""
    try:
        SAMPLERS[name]().check_gain(Power(c=0.01, k=0.0))
    except ValueError:
        return False
    return True


def test_every_sampler_has_a_reference():
    assert set(REFERENCES) == set(SAMPLERS)


@pytest.mark.parametrize("target", ["correlated", "five"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_default(name, target):
    """Warm-up, then frozen draws."""
    compare(name, default(name), target, tune=1000, draws=1000)


def test_each_chain_has_its_generator():
    logp, d = TARGETS["five"]
    sampler, x0 = default("gam"), np.arange(3 * d).reshape(3, d) / 10
    options = {"tune": 0, "draws": 500, "chains": 3, "seed": 5, "schedule": Perpetual()}
    ours, theirs = (sample(logp, x0, sampler=one, progress=False, diagnose=False, **options)
                    for one in (sampler, REFERENCES["gam"](s=sampler)))
    assert differ(ours.draws, theirs.draws) is None
    assert differ(ours.draws[0], ours.draws[1]) is not None


@pytest.mark.parametrize("schedule", [
    Perpetual(), Perpetual(gain=Power(c=0.3, k=0.9), start=100), IncreasinglyRare(rarity=0.3),
    IncreasinglyRare(rarity=1.0, start=17), Finite(gain=Power(c=0.05, k=0.0), start=50),
    Diminishing(gain=Power(c=0.9, k=0.8, cap=0.1)),
], ids=str)
@pytest.mark.parametrize("name", [name for name in SAMPLERS if takes_a_gain(name)])
def test_schedules(name, schedule):
    compare(name, default(name), "five", tune=300, draws=700, schedule=schedule)


@pytest.mark.parametrize(("name", "options"), [
    ("rwm", {"proposal_cov": 0.5}),
    ("rwm", {"proposal_cov": [0.5, 2.0]}),
    ("rwm", {"proposal_cov": [[2.0, 0.7], [0.7, 0.5]]}),
    ("rwm", {"proposal_cov": [0.5, 2.0], "target_acceptance": 0.3}),
    ("ram", {"proposal_cov": [[2.0, 0.7], [0.7, 0.5]], "target_acceptance": 0.6}),
    ("am", {"target_cov": [0.5, 2.0], "mean": [1.0, -1.0], "scale": 3.0}),
    ("rbam", {"target_cov": [[2.0, 0.7], [0.7, 0.5]], "scale": 1.0}),
    ("gam", {"target_cov": 4.0, "scale": 0.01, "target_acceptance": 0.4}),
    ("arwm", {"safe_weight": 0.4, "safe_scale": 0.7}),
    ("cholam", {"proposal_cov": 1.0, "scale": 2.0, "scale_gain": 0.01}),
    ("cholam", {"mean_gain": 0.01, "proposal_cov": 1e-4, "min_diagonal": 0.05}),
    ("mala", {"preconditioner": [0.5, 2.0], "step_size": 0.1, "target_acceptance": 0.7}),
    ("mala", {"preconditioner": [[2.0, 0.7], [0.7, 0.5]]}),
    ("fishermala", {"plain_steps": 0, "damping": 0.1, "step_size": 0.1}),
    ("barker", {"metric": "dense", "preconditioner": [0.5, 2.0], "mean": [1.0, -1.0],
                "step_size": 0.1}),
    ("barker", {"metric": "diagonal", "preconditioner": [0.5, 2.0], "step_size": 0.7}),
    ("barker", {"metric": "fixed", "preconditioner": [[2.0, 0.7], [0.7, 0.5]],
                "target_acceptance": 0.6}),
    ("automala", {"metric": "fixed", "preconditioner": [0.5, 2.0], "step_size": 0.01}),
    ("autorwm", {"preconditioner": [0.5, 2.0], "mean": [1.0, -1.0], "step_size": 100.0}),
    ("dram", {"target_cov": [0.5, 2.0], "mean": [1.0, -1.0], "scale": 9.0,
              "second_cov_ratio": 0.5}),
    ("hmc", {"metric": "fixed", "n_steps": 3, "jitter": 0.0, "step_size": 0.1}),
    ("hmc", {"metric": "dense", "target_acceptance": 0.6, "divergence_threshold": 1.0}),
    ("hmc", {"metric": "diagonal", "learn_from": "draws", "inverse_mass_matrix": [0.5, 2.0],
             "jitter": 0.9}),
    ("gadrwm", {"optimizer": "adam", "max_entropy_weight": 1.1, "min_diagonal": 0.02}),
    ("gadrwm", {"optimizer": "plain", "proposal_cov": 1.0, "entropy_weight_gain": 0.1,
                "min_entropy_weight": 0.9}),
    ("gadrwm", {"diagonal": True, "decay": 0.5, "target_acceptance": 0.4}),
    ("gadmala", {"exact": True}),
    ("gadmala", {"exact": True, "diagonal": True, "proposal_cov": [0.5, 2.0], "optimizer": "adam"}),
    ("gadmala", {"diagonal": True, "proposal_cov": 0.3}),
    ("gadmala", {"proposal_cov": [[2.0, 0.7], [0.7, 0.5]], "exact": True, "optimizer": "plain"}),
    ("dm", {"n_gradients": 3, "bank_size": 40, "rejection_factor": 0.5,
            "proposal_cov": [[2.0, 0.7], [0.7, 0.5]]}),
    ("dm", {"norm_clip": 2e-3, "entropy_weight": 0.95}),
    ("dm", {"n_gradients": 1, "largest_step": 1e-3}),
    ("pt", {"n_replicas": 2, "betas": [1.0, 0.3], "reference": "flat", "sampler": "am"}),
    ("pt", {"n_replicas": 5, "scheme": "random", "swap_interval": 3, "min_beta": 0.2}),
    ("pt", {"n_replicas": 4, "reference": ([0.5, 0.0], [[2.0, 0.5], [0.5, 1.0]]),
            "sampler": "rwm"}),
    ("pt", {"n_replicas": 3, "sampler": "mala"}),
    ("pt", {"n_replicas": 3, "sampler": SAMPLERS["dm"](n_gradients=3, bank_size=30)}),
    ("scout", {"main": SAMPLERS["dm"](n_gradients=4), "swap_interval": 3}),
    ("scout", {"main": "gam", "scout": "arwm", "beta": 0.5, "swap_interval": 2}),
    ("jumps", {"jump_probability": 0.7, "jump_cov": [0.5, 2.0], "max_components": 3,
               "n_states": 99}),
    ("jumps", {"moves": "hop", "jump_probability": 0.5, "means": MEANS, "sampler": "kam"}),
    ("jumps", {"moves": ["independent", "hop"], "means": MEANS, "covs": [0.5, 1.0, 2.0],
               "weights": [1.0, 2.0, 3.0], "fit": False, "sampler": "dram"}),
    ("jumps", {"means": MEANS, "covs": 0.3, "sampler": SAMPLERS["dm"](n_gradients=3,
                                                                      bank_size=30)}),
    ("jumps", {"moves": "jump", "jump_cov": [[2.0, 0.7], [0.7, 0.5]], "sampler": "nuts"}),
    ("jumps", {"sampler": CYCLES(subsample=20, cycle=150)}),
    ("jumps", {"means": MEANS, "periods": PERIODS, "jump_probability": 0.6}),
    ("jumps", {"periods": PERIODS, "moves": ("independent", "hop")}),
    ("jumps", {"sampler": SAMPLERS["pt"](n_replicas=4, reference_scale=25.0)}),
    ("jumps", {"sampler": "scout", "n_states": 300}),
    ("jumps", {"sampler": SAMPLERS["pt"](n_replicas=3, sampler="mala", reference_scale=5.0)}),
    ("nuts", {"metric": "fixed", "inverse_mass_matrix": [[2.0, 0.7], [0.7, 0.5]],
              "max_tree_depth": 3}),
    ("nuts", {"metric": "dense", "step_size": 5.0}),
    ("nuts", {"metric": "dense", "learn_from": "draws"}),
    ("nuts", {"metric": "low-rank", "rank": 1, "divergence_threshold": 20.0, "step_size": 100.0}),
    ("nuts", {"metric": "diagonal"}),
    ("nuts", {"metric": "diagonal", "learn_from": "draws", "target_acceptance": 0.95}),
], ids=str)
def test_parameters(name, options):
    compare(name, SAMPLERS[name](**options), "correlated", tune=1500, draws=500)


@pytest.mark.parametrize("name", ["rwm", "am", "rbam", "gam", "ram", "dram", "mala", "fishermala",
                                  "barker"])
def test_jitter(name):
    compare(name, SAMPLERS[name](jitter=0.7), "five", tune=600, draws=400)


KERNELS = [Linear(), Gaussian(2.0), Gaussian("median"), Matern(1.0, 1.2), Matern(2.0, 1.5),
           Matern("median", 2.5), Matern(2.0, 4.0)]


@pytest.mark.parametrize("target", ["correlated", "five", "modes"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels(kernel, target):
    compare("kam", KAM(kernel=kernel, subsample=25), target, tune=800, draws=400)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_of_pca(kernel):
    # a linear kernel in d dimensions has d directions: further ones would be rounding alone
    compare("kpca", PCA(kernel=kernel, subsample=25, n_components=2), "correlated", tune=800,
            draws=400)


@pytest.mark.parametrize("options", [
    {"history_size": 80},
    {"history_size": 81, "renewal": 0.3},
    {"renewal": 0.05},
    {"renewal": Power(c=2.0, k=0.8)},
    {"gamma": 0.05},
    {"gamma": Power(c=2.0, k=0.4)},
    {"subsample": 0, "history_size": 50, "gamma": Power(c=3.0, k=0.1)},
    {"subsample": 1},
    {"step_size": 0.05, "target_acceptance": 0.5},
], ids=str)
@pytest.mark.parametrize("schedule", [Finite(), Perpetual()], ids=str)
def test_memory_of_kam(options, schedule):
    compare("kam", KAM(**{"subsample": 40} | options), "correlated", tune=800, draws=400,
            schedule=schedule)


@pytest.mark.parametrize("options", [
    {}, {"kernel": Linear()}, {"kernel": Gaussian(3.0), "gamma": 2.0}, {"bank_size": 3},
    {"exploration_fraction": 0.7, "cycle": 77, "renewal": 0.2},
    {"step_gain": 0.1, "step_size": 1.0, "gamma": Power(c=4.0, k=0.55)}, {"subsample": 0},
], ids=str)
@pytest.mark.parametrize("schedule", [Finite(), Perpetual()], ids=str)
def test_cycles(options, schedule):
    """Many cycles, so that the bank is written over, on two modes far apart."""
    sampler = CYCLES(**{"subsample": 20, "cycle": 100, "bank_size": 8} | options)
    compare("ckam", sampler, "modes", tune=1250, draws=600, schedule=schedule)


@pytest.mark.parametrize("name", SAMPLERS)
def test_thinning(name):
    compare(name, default(name), "correlated", tune=301, draws=200, thin=3)


@pytest.mark.parametrize("name", SAMPLERS)
def test_points_without_a_density(name):
    """A target that is NaN or -inf in places: alpha is 0 there and learning goes on."""
    compare(name, default(name), "holes", tune=600, draws=400)


@pytest.mark.parametrize("seed", range(10))
def test_steep_steps(seed):
    """Within a trajectory the weights differ by more than a double holds."""
    compare("nuts", SAMPLERS["nuts"](step_size=0.3, max_tree_depth=4), "stairs", tune=0, draws=10,
            seed=seed)


def test_frozen_from_the_start():
    compare("kam", KAM(), "five", tune=0, draws=500)


def test_one_leapfrog_step_is_mala():
    logp, d = TARGETS["five"]
    cov = np.linalg.inv(0.5 * (FIVE + FIVE.T))
    cov = 0.5 * (cov + cov.T)
    hmc = SAMPLERS["hmc"](metric="fixed", inverse_mass_matrix=cov, n_steps=1, jitter=0.0,
                          step_size=0.9)
    mala = SAMPLERS["mala"](preconditioner=cov, step_size=0.9)
    one, other = (
        sample(lambda x: (logp(x), GRADIENTS["five"](x)), np.zeros(d), sampler=sampler, tune=0,
               draws=1000, seed=3, progress=False) for sampler in (hmc, mala))
    assert differ(one.draws, other.draws) is None
    assert differ(one.stats["acceptance_rate"], other.stats["acceptance_rate"]) is None


# ---- references with one mistake each: the test must detect them ----


class OuterProductOfAverage(REFERENCES["rbam"]):
    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn(alpha * y + (1 - alpha) * x, gain)


class NewMean(REFERENCES["am"]):
    def learn(self, X, g):
        self.mu = self.mu + g * (X - self.mu)
        self.Sigma = self.Sigma + g * (np.outer(X - self.mu, X - self.mu) - self.Sigma)


class DecisionForProbability(REFERENCES["ram"]):
    def adapt(self, x, y, alpha, accepted, gain, rng):
        super().adapt(x, y, float(accepted), accepted, gain, rng)


class StaleReverse(REFERENCES["kam"]):
    """The reverse density of one step in 100 takes the covariance of the proposal before."""

    def log_q(self, x, y):
        stale = self.t % 100 == 99
        R_y, self.last = self.last if stale else self.R(y), self.R(y)
        x_u, y_u = self.white(x), self.white(y)
        return log_normal(x_u, y_u, R_y) - log_normal(y_u, x_u, self.R(x))


class WithoutHastings(REFERENCES["kam"]):
    def log_q(self, x, y):
        return 0.0


class OwnScaling(REFERENCES["kam"]):
    """The Matern gradient with order v - 1 and its own argument sqrt(2 (v - 1)) r / l."""

    def gradient(self, y):
        v, length = self.s.kernel.order, self.length
        k = kernel(Matern(length, v - 1), length, y, self.z)
        return v / (length**2 * (v - 1)) * k[:, None] * (self.z - y)


class OneOverN(REFERENCES["kam"]):
    def gradient(self, y):
        return super().gradient(y) / np.sqrt(len(self.z))


class EqualWeights(REFERENCES["kpca"]):
    """The ratio takes every component of the mixture for equally probable."""

    def log_mixture(self, y, x):
        p, self.p = self.p, (self.p > 0) / (self.p > 0).sum()
        found = super().log_mixture(y, x)
        self.p = p
        return found


class CovarianceOfTheLastStep(REFERENCES["ckam"]):
    """Sigma made where the last step of Exploration began."""

    def propose(self, x, rng):
        if self.place() == self.T_e - 1:
            self.before = x
        return super().propose(x, rng)

    def draw(self, x, center, scale, rng):
        sampling = self.place() >= self.T_e and not self.frozen
        return super().draw(x, self.before if sampling else center, scale, rng)


@pytest.mark.parametrize(("name", "mutant"), [
    ("rbam", OuterProductOfAverage), ("am", NewMean), ("ram", DecisionForProbability),
    ("kam", StaleReverse), ("kam", WithoutHastings), ("kam", OwnScaling), ("kam", OneOverN),
    ("kpca", EqualWeights), ("ckam", CovarianceOfTheLastStep),
])
def test_a_planted_mistake_is_detected(name, mutant):
    sampler = default(name)
    if name == "kam":
        sampler = KAM(kernel=Matern(2.0, 4.0), subsample=40)
    assert disagreement(REFERENCES[name], sampler, "correlated", tune=800, draws=400) is None
    assert disagreement(mutant, sampler, "correlated", tune=800, draws=400) is not None
