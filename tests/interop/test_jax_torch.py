"""JAX and PyTorch: value and gradient, batches of chains, precision, files and workers."""

import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import by_hand
import numpy as np
import pytest
from scipy import stats

import fastkam as fk
from fastkam.errors import SamplingWarning

QUIET = {"diagnose": False, "seed": 1}


def in_jax(beta):
    import jax.numpy as jnp
    from jax.nn import log_sigmoid

    eta = by_hand.X @ beta
    return (-jnp.sum(beta**2) / 8 - 4 * np.log(2 * np.sqrt(2 * np.pi))
            + jnp.sum(by_hand.LABELS * log_sigmoid(eta)
                      + (1 - by_hand.LABELS) * log_sigmoid(-eta)))


def in_torch(beta):
    import torch

    eta = torch.as_tensor(by_hand.X) @ beta
    labels = torch.as_tensor(by_hand.LABELS)
    log_sigmoid = torch.nn.functional.logsigmoid
    return (-(beta**2).sum() / 8 - 4 * np.log(2 * np.sqrt(2 * np.pi))
            + (labels * log_sigmoid(eta) + (1 - labels) * log_sigmoid(-eta)).sum())


def made(package, **options):
    """The logistic regression of by_hand.py."""
    pytest.importorskip(package)
    if package == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return fk.from_jax(in_jax, **options)
    return fk.from_torch(in_torch, **options)


BOTH = pytest.mark.parametrize("package", ["jax", "torch"])


@BOTH
@pytest.mark.parametrize("vectorized", [True, False])
def test_value_and_gradient_are_those_by_hand(package, vectorized):
    target = fk.as_target(made(package, vectorized=vectorized), 4)
    assert target.batched == vectorized
    points = np.random.default_rng(1).normal(size=(5, 4))
    for beta in points:
        value, slope = by_hand.logistic(beta)
        logp, gradient = target.logp_grad(beta)
        assert abs(logp - value) < 1e-10 * abs(value)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(target.logp(points), [by_hand.logistic(x)[0] for x in points],
                               rtol=1e-12)


@BOTH
def test_posterior_and_choice(package):
    """The gradient is found, and the posterior is that of the density by hand."""
    density = made(package)
    ours = fk.sample(density, np.zeros(4), draws=300, sampler="nuts", tune=300, **QUIET)
    hand = fk.sample(fk.Target.from_python(by_hand.logistic, 4, gradient=True), np.zeros(4),
                     sampler="nuts", draws=1000, diagnose=False, seed=2)
    error = np.hypot(ours.summary()["mcse_mean"], hand.summary()["mcse_mean"])
    off = ours.draws.mean(axis=(0, 1)) - hand.draws.mean(axis=(0, 1))
    assert (np.abs(off) < 5 * error).all()
    choice = fk.choose_sampler(density, np.zeros(4), seed=1)
    assert "gradient" in str(choice) or choice.sampler.needs_gradient


@BOTH
def test_a_sampler_without_gradients_asks_for_none(package):
    density = made(package)
    density.pair = None
    assert fk.sample(density, np.zeros(4), sampler="ram", draws=20, tune=20, search=False,
                     **QUIET).draws.shape == (4, 20, 4)


@BOTH
def test_batches_of_any_size_are_few_shapes(package):
    """A compiled function sees powers of two alone, whatever the search asks for."""
    density = made(package)
    if package == "torch":
        density.compile = True  # as for a function that is compiled
    seen, inner = set(), density.of_value

    def noted(x):
        seen.add(len(x))
        return inner(x)

    density.of_value = noted
    points = np.random.default_rng(1).normal(size=(9, 4))
    for k in range(1, 10):
        np.testing.assert_allclose(density.value(points[:k]),
                                   [by_hand.logistic(x)[0] for x in points[:k]], rtol=1e-10)
    assert seen == {1, 2, 4, 8, 16}


@BOTH
def test_as_the_likelihood_of_a_problem(package):
    density = made(package)
    problem = fk.Problem(density, prior={"beta": (stats.norm(0, 1), 4)})
    value, slope = problem.logp_grad(np.full(4, 0.1))
    by_parts = by_hand.logistic(np.full(4, 0.1))[0] + stats.norm.logpdf(0.1) * 4
    assert abs(value - by_parts) < 1e-9
    np.testing.assert_allclose(slope, by_hand.logistic(np.full(4, 0.1))[1] - 0.1, rtol=1e-8,
                               atol=1e-9)
    result = fk.sample(problem, sampler="nuts", draws=20, tune=20, **QUIET)
    assert result["beta"].shape == (4, 20, 4)


@BOTH
def test_pickling_and_workers(package):
    density = made(package)
    again = pickle.loads(pickle.dumps(density))
    assert abs(again(np.ones(4)) - by_hand.logistic(np.ones(4))[0]) < 1e-9
    options = {"sampler": "nuts", "draws": 5, "tune": 5, "search": False, "chains": 2, **QUIET}
    here = fk.sample(density, np.zeros(4), **options)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"),
                             initializer=partial(made, package)) as pool:
        there = fk.sample(density, np.zeros(4), executor=pool, **options)
    np.testing.assert_allclose(here.draws, there.draws, rtol=1e-9)


def test_single_precision_of_jax_is_noticed():
    pytest.importorskip("jax")
    import jax

    jax.config.update("jax_enable_x64", False)
    try:
        density = fk.from_jax(lambda x: -0.5 * (x * x).sum())
        with pytest.warns(SamplingWarning, match=r"single precision.*jax_enable_x64"):
            density(np.zeros(4))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            density(np.zeros(4))  # once
    finally:
        jax.config.update("jax_enable_x64", True)


def test_single_precision_of_torch_is_noticed():
    torch = pytest.importorskip("torch")
    with pytest.warns(SamplingWarning, match=r"single precision.*double"):
        fk.from_torch(lambda x: -0.5 * (x.to(torch.float32) ** 2).sum())(np.zeros(4))
    module = torch.nn.Linear(4, 1)
    with pytest.raises(RuntimeError) as caught:
        fk.from_torch(lambda x: module(x).sum())(np.zeros(4))
    assert any(".double()" in note for note in caught.value.__notes__)


def test_the_error_for_functions_that_vmap_cannot_map_suggests_a_remedy():
    pytest.importorskip("torch")

    def branches(x):
        return -x[0] ** 2 if x[0].item() > 0 else -2 * x[0] ** 2

    with pytest.raises(RuntimeError) as caught:
        fk.from_torch(branches)(np.zeros(1))
    assert any("vectorized=False" in note for note in caught.value.__notes__)
    assert fk.from_torch(branches, vectorized=False)(np.ones(1)) == -1


@pytest.mark.parametrize("package", ["jax", "torch"])
def test_bad_arguments(package):
    pytest.importorskip(package)
    maker = getattr(fk, f"from_{package}")
    with pytest.raises(TypeError, match="f must be a function, not 3"):
        maker(3)
    with pytest.raises(TypeError, match="vectorized"):
        maker(in_jax, vectorized="yes")


@pytest.mark.parametrize("package", ["jax", "torch", "pymc"])
def test_a_missing_package_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install fastkam\[{package}\]"):
        getattr(fk, f"from_{package}")(in_jax)
