"""Each parameter of each sampler refuses bad values, with an error that names it and shows them."""

import dataclasses
import re

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.kernels import Gaussian, Matern
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Finite, Perpetual, Power

NOT_POSITIVE = [0, -1.5, np.nan, np.inf, "x", True, [1.0, 2.0]]
NOT_A_FRACTION = [0, 1, -0.1, 1.5, np.nan, "x", None]
NOT_A_SEQUENCE = [0, -1.0, np.nan, "x", None, [0.1]]
NOT_A_COVARIANCE = [0.0, -1.0, np.nan, [1.0, -2.0], [1.0, 2.0, 3.0], [1.0, np.nan], "x",
                    [[1.0, 0.5], [0.4, 1.0]], [[1.0, 2.0], [2.0, 1.0]], np.eye(3),
                    [[1.0, np.inf], [np.inf, 1.0]], [[1.0], [1.0, 2.0]], np.ones((2, 2, 2))]
NOT_A_MEAN = [1.0, [1.0], [1.0, np.nan], "x", [[1.0, 2.0]]]
NOT_A_COUNT = [0, -1, 1.5, "x", True, None, np.nan]

BAD = {  # values that are bad wherever the parameter occurs
    "proposal_cov": NOT_A_COVARIANCE,
    "target_cov": NOT_A_COVARIANCE,
    "preconditioner": NOT_A_COVARIANCE,
    "inverse_mass_matrix": NOT_A_COVARIANCE,
    "jump_cov": NOT_A_COVARIANCE,
    "mean": NOT_A_MEAN,
    "scale": NOT_POSITIVE,
    "target_acceptance": NOT_A_FRACTION,
    "safe_weight": NOT_A_FRACTION,
    "safe_scale": NOT_POSITIVE,
    "scale_gain": [-0.1, 1.0, np.nan, "x", None],
    "mean_gain": [0, 1.0, -0.1, np.nan, "x"],
    "min_diagonal": NOT_POSITIVE,
    "kernel": ["cosine", None, 1.0, Gaussian, fk.kernels.Kernel()],
    "subsample": [-1, 1.5, "x", True, None],
    "step_size": NOT_POSITIVE,
    "gamma": [value for value in NOT_A_SEQUENCE if value is not None],
    "renewal": NOT_A_SEQUENCE,
    "history_size": [1, 399, 1.5, "x", None],
    "n_components": NOT_A_COUNT,
    "max_components": NOT_A_COUNT,
    "cycle": [1, *NOT_A_COUNT],
    "exploration_fraction": [*NOT_A_FRACTION, 0.0005],
    "step_gain": NOT_A_SEQUENCE,
    "bank_size": NOT_A_COUNT,
    "second_cov_ratio": [*NOT_POSITIVE, None],
    "rejection_factor": [1.1, *NOT_POSITIVE, None],
    "damping": NOT_POSITIVE,
    "plain_steps": [-1, 1.5, "x", True, None],
    "n_gradients": NOT_A_COUNT,
    "entropy_weight": [*NOT_POSITIVE, None],
    "largest_step": NOT_POSITIVE,
    "norm_clip": NOT_POSITIVE,
    "diagonal": ["no", None, 1],
    "optimizer": ["sgd", None],
    "decay": [-0.1, 1.0, np.nan, "x"],
    "decay_mean": [-0.1, 1.0, np.nan, "x", None],
    "min_entropy_weight": [*NOT_POSITIVE, None],
    "max_entropy_weight": [1e-5, *NOT_POSITIVE],
    "entropy_weight_gain": [-0.1, 1.0, np.nan, "x", None],
    "exact": ["no", None, 1],
    "sampler": ["none such", None, 1.0, fk.ModeJumping()],
    "main": ["none such", None, 1.0, fk.Scout()],
    "scout": ["none such", 1.0],
    "n_replicas": [1, 65, *NOT_A_COUNT],
    "reference_scale": [0.5, np.nan, "x"],
    "min_beta": [-0.1, 1, np.nan, "x"],
    "betas": [[1.0, 0.5], np.linspace(1, -0.1, 8), np.linspace(0.9, 0.1, 8), [1.0]],
    "tune_betas": ["no", None, 1],
    "scheme": ["all", None],
    "swap_interval": NOT_A_COUNT,
    "beta": NOT_A_FRACTION,
    "reference": ["wide", 1.0, None, [[0.0], 1.0], [[0.0, 0.0], -1.0]],
    "moves": ["leap", (), ("hop", "hop"), ("hop", "leap"), None, 1],
    "jump_probability": [value for value in NOT_A_FRACTION if value is not None],
    "means": [1.0, [1.0], "x", [[1.0]], [[1.0, np.nan]], np.empty((0, 2)), [[1.0], [1.0, 2.0]]],
    "covs": [1.0, [1.0, 2.0], "x"],      # without means
    "weights": [1.0, [1.0, 2.0], "x"],
    "fit": ["no", None, 1],
    "n_states": [19, *NOT_A_COUNT],
    "metric": ["full", 1],
    "learn_from": ["both", None],
    "rank": NOT_A_COUNT,
    "max_tree_depth": [21, *NOT_A_COUNT],
    "divergence_threshold": [*NOT_POSITIVE, None],
    "n_steps": [10**6 + 1, *NOT_A_COUNT],
    "jitter": [-0.1, 1, np.nan, "x", None],
}

OF_NO_KIND = ["x", np.nan]      # for parameters that BAD does not list
OPTIONAL = {("rwm", "target_acceptance")}   # where None has a meaning
CASES = [(name, field.name, value) for name, cls in SAMPLERS.items()
         for field in dataclasses.fields(cls) if field.init
         for value in BAD.get(field.name, OF_NO_KIND)
         if value is not None or (name, field.name) not in OPTIONAL]


@pytest.mark.parametrize(("name", "parameter", "value"), CASES, ids=str)
def test_bad_value(name, parameter, value):
    with pytest.raises((TypeError, ValueError), match=rf"\b{parameter}\b") as caught:
        SAMPLERS[name](**{parameter: value}).build(np.zeros(2))
    if not isinstance(value, (list, np.ndarray)) and parameter not in ("mean", "means"):
        # arrays show a part
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [0.5, 19.9])
def test_a_divergence_threshold_that_biases_nuts(value):
    with pytest.raises(ValueError, match=rf"divergence_threshold must be at least 20 .* {value}"):
        fk.NUTS(divergence_threshold=value)
    assert fk.HMC(divergence_threshold=value).divergence_threshold == value


def test_the_evaluations_of_a_step_are_those_of_its_parameters():
    """A budget is divided by them between warm-up and draws."""
    assert fk.HMC(n_steps=70).evaluations_per_step == 70
    assert fk.DivergenceMinimization(n_gradients=70).evaluations_per_step == 70
    result = sample(fk.targets.Gaussian(np.zeros(3)), np.zeros(3), budget=20_000, chains=4, seed=1,
                    sampler=fk.HMC(n_steps=70), diagnose=False)
    assert result.draws.shape[1] > 20


@pytest.mark.parametrize("fit", [True, False])
def test_hops_need_two_modes(fit):
    sampler = fk.ModeJumping(means=[[0.0, 0.0]], moves="hop", fit=fit)
    with pytest.raises(ValueError, match="means must name two modes or more for hops"):
        sampler.build(np.zeros(2))


@pytest.mark.parametrize("name", SAMPLERS)
def test_parameters_are_given_by_name_and_stay(name):
    with pytest.raises(TypeError):
        SAMPLERS[name](1.0)
    with pytest.raises(TypeError, match="unknown"):
        SAMPLERS[name](unknown=1)
    sampler = SAMPLERS[name]()
    for field in dataclasses.fields(sampler):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(sampler, field.name, 1)


@pytest.mark.parametrize("name", SAMPLERS)
def test_default_parameters_may_be_given(name):
    """A checkpoint returns all parameters."""
    sampler = SAMPLERS[name]()
    given = {field.name: getattr(sampler, field.name) for field in dataclasses.fields(sampler)
             if field.init}
    again = SAMPLERS[name](**given)
    assert again.build(np.zeros(2)).state().keys() == sampler.build(np.zeros(2)).state().keys()


@pytest.mark.parametrize(("name", "parameter", "value"), [
    ("dm", "n_gradients", 1), ("dm", "bank_size", 1), ("dm", "rejection_factor", 1.0),
    ("kpca", "n_components", 1), ("ckam", "bank_size", 1), ("kam", "subsample", 0),
    ("jumps", "max_components", 1), ("pt", "n_replicas", 2),
])
def test_the_largest_valid_value_is_accepted(name, parameter, value):
    sampler = SAMPLERS[name](**{parameter: value})
    assert getattr(sampler, parameter) == value
    sampler.build(np.zeros(2))


def test_defaults_that_depend_on_the_dimension():
    """d^(-1/6) and 2.38 d^(-1/2), in terms of which the published results are stated."""
    for d, step in ((1, 1.0), (64, 0.5)):
        state = SAMPLERS["automala"]().build(np.zeros(d)).state()
        assert state["log_eps"] == pytest.approx(np.log(step))
        state = SAMPLERS["autorwm"]().build(np.zeros(d)).state()
        assert state["log_eps"] == pytest.approx(np.log(2.38 / np.sqrt(d)))


@pytest.mark.parametrize("name", ["kam", "kpca"])
def test_the_first_renewal_is_certain(name):
    assert SAMPLERS[name]().renewal(1) == 1.0
    assert SAMPLERS[name]().renewal(2) < 1.0


@pytest.mark.parametrize("name", ["am", "rbam", "gam", "arwm", "cholam", "ram", "barker",
                                  "automala", "autorwm", "dram"])
def test_a_gain_that_the_update_cannot_take_is_refused(name):
    for gain in (Power(c=1.5, k=0.0), Power(c=4.0, k=0.7)):
        with pytest.raises(ValueError, match=rf"gain.*{re.escape(repr(gain(1)))}"):
            run(name, schedule=Finite(gain=gain))
        run(name, schedule=Finite(gain=dataclasses.replace(gain, cap=0.9)))


@pytest.mark.parametrize("name", ["am", "rbam", "gam", "arwm", "cholam", "barker", "automala",
                                  "autorwm", "dram"])
def test_a_first_gain_of_one_would_forget_the_covariance(name):
    with pytest.raises(ValueError, match=r"below 1, not 1\.0"):
        run(name, schedule=Finite(gain=Power(c=1.0, k=0.0)))


def test_ckam_has_its_own_gain():
    with pytest.raises(ValueError, match="step_gain"):
        run("ckam", schedule=Perpetual(gain=Power()))
    with pytest.raises(ValueError, match="start = 5"):
        run("ckam", schedule=Perpetual(start=5))
    with pytest.raises(ValueError, match=r"tune must be more than .* Exploration, 400, .*not 400"):
        run("ckam", tune=400)


def test_ckam_has_its_own_history():
    with pytest.raises(TypeError, match="history_size"):
        fk.CyclicalKernelAdaptiveMetropolis(history_size=1000)
    sampler = dataclasses.replace(fk.CyclicalKernelAdaptiveMetropolis(), cycle=77, subsample=50)
    assert sampler.history_size == 100


def test_components_beyond_the_subsample():
    with pytest.raises(ValueError, match="subsample must be at least 7, not 5"):
        fk.KernelPCAMetropolis(n_components=7, subsample=5)


@pytest.mark.parametrize("value", ["ramm", None, 3, fk.RandomWalk], ids=str)
def test_bad_sampler(value):
    with pytest.raises(ValueError, match="sampler must be") as caught:
        run(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Gaussian(0), "length must be above 0, not 0"),
    (lambda: Gaussian("mean"), "length must be a number, not 'mean'"),
    (lambda: Gaussian(np.nan), "length.*nan"),
    (lambda: Matern(-1.0), "length.*-1.0"),
    (lambda: Matern(1.0, 1), "order must be above 1, not 1"),
    (lambda: Matern(1.0, 50.5), "order must be at most 50, not 50.5"),
    (lambda: Matern(1.0, None), "order.*None"),
    (lambda: fk.kernels.proposal_covariance([0.0], [[1.0, 2.0]], Gaussian(1.0)), r"z .*\(1, 2\)"),
    (lambda: fk.kernels.proposal_covariance([np.nan], [[1.0]], Gaussian(1.0)), "y .*nan"),
    (lambda: fk.kernels.proposal_covariance([0.0], [[1.0]], "cubic"), "kernel .*'cubic'"),
    (lambda: fk.kernels.proposal_covariance([0.0], [[1.0]], "linear", noise=-1), "noise .*-1"),
    (lambda: fk.kernels.proposal_covariance([0.0], [[1.0]], "linear", step_size="x"), "step_size"),
])
def test_kernels(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def run(sampler, *, tune=500, schedule="finite"):
    return sample(lambda x: (-0.5 * x @ x, -x), [0.0, 0.0], sampler=sampler, draws=1,
                  tune=tune, chains=1, seed=1, schedule=schedule, progress=False)
