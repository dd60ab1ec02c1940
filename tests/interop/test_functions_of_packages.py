"""Functions of JAX and PyTorch as users have them: by names, with data, and with mistakes."""

import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

QUIET = {"diagnose": False, "seed": 1, "progress": False}
BOTH = pytest.mark.parametrize("package", ["jax", "torch"])


def opened(package):
    """The module of functions and the function that makes a density."""
    module = pytest.importorskip(package)
    if package == "jax":
        module.config.update("jax_enable_x64", True)
        module = module.numpy
    return module, getattr(fk, f"from_{package}")


def normal(a, b):
    return -0.5 * (a - 1.0) ** 2 - 0.5 * (b**2).sum()


def shifted(x, data, scale=1.0):
    return -0.5 * ((x - data) ** 2).sum() / scale**2


@BOTH
@pytest.mark.parametrize("vectorized", [True, False])
def test_parameters_by_name(package, vectorized):
    _, maker = opened(package)
    density = maker(normal, vectorized=vectorized)
    prior = {"b": (stats.norm(0, 1), 2), "a": stats.norm(0, 1)}
    problem = fk.Problem(density, prior=prior)
    x = np.array([0.5, -0.5, 0.2])  # b, a
    expected = -0.5 * 0.8**2 - 0.25 + stats.norm.logpdf(x).sum()
    value, slope = problem.logp_grad(x)
    assert value == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(slope, [-1.0, 1.0, 0.6], atol=1e-12)
    result = fk.sample(density, {"a": 0.0, "b": np.zeros(2)}, draws=20, **QUIET)
    assert result["b"].shape == (4, 20, 2)


@BOTH
def test_data_as_arguments(package):
    module, maker = opened(package)
    data = module.asarray(np.array([1.0, 2.0]))
    result = fk.sample(maker(shifted), np.zeros(2), args=[data], kwargs={"scale": 0.01}, draws=20,
                       sampler="nuts", **QUIET)
    np.testing.assert_allclose(result.draws.mean(axis=(0, 1)), [1, 2], atol=0.02)


@BOTH
def test_a_function_of_several_arguments_without_names_is_refused_before_the_run(package):
    _, maker = opened(package)
    with pytest.raises(TypeError, match=r"function of one argument, .*not normal\(a, b\)"):
        fk.sample(maker(normal), np.zeros(3), **QUIET)


@BOTH
@pytest.mark.parametrize(("function", "says"), [
    (lambda x: (-(x**2).sum(), {"s": x}), "returns a tuple.*derived="),
    (lambda x: -(x**2), r"one number, not .* of shape \(2,\): sum it"),
    (lambda x: 0.0, None)])
def test_what_is_no_log_density_is_named(package, function, says):
    _, maker = opened(package)
    if says is None:
        function, says = {
            "jax": (lambda x: "text", "number"),
            "torch": (lambda x: -float((x**2).sum()), r"a tensor, not .*float")}[package]
    for vectorized in (True, False):
        if package == "torch" and vectorized and "tensor" in says:
            continue  # vmap itself refuses it
        with pytest.raises(TypeError, match=says):
            maker(function, vectorized=vectorized)(np.ones(2))


@BOTH
def test_an_array_of_one_element_is_a_number(package):
    _, maker = opened(package)
    for vectorized in (True, False):
        density = maker(lambda x: -0.5 * x[:1] ** 2, vectorized=vectorized)
        assert density(np.array([2.0, 3.0])) == -2.0
        target = fk.as_target(density, 2)
        np.testing.assert_array_equal(target.logp_grad(np.array([2.0, 3.0]))[1], [-2.0, 0.0])


@BOTH
def test_a_dict_of_parameters_is_explained(package):
    _, maker = opened(package)
    with pytest.raises(fk.SamplingError, match=r"an array of shape \(3,\).* f\(a, b\)"):
        fk.sample(maker(lambda p: -p["a"] ** 2), np.zeros(3), **QUIET)


def test_double_precision_travels_to_workers():
    """A process that has not set it would compute another density, in single precision."""
    opened("jax")
    density = fk.from_jax(shifted)
    options = {"sampler": "ram", "draws": 5, "tune": 5, "search": False, "chains": 2, **QUIET}
    run = {"args": [np.array([1.0, 2.0]) / 3]}
    here = fk.sample(density, np.zeros(2), **run, **options)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = fk.sample(density, np.zeros(2), executor=pool, **run, **options)
    np.testing.assert_array_equal(here.stats["lp"], there.stats["lp"])


def test_single_precision_stays_single():
    """Reading a density in single precision does not change what JAX does in this process."""
    pytest.importorskip("jax")
    code = ("import sys, pickle, jax, fastkam as fk; from operator import neg; "
            "sys.stdout.write(pickle.dumps(fk.from_jax(neg)).hex())")
    written = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                             text=True).stdout
    code = ("import sys, pickle, jax; pickle.loads(bytes.fromhex(sys.argv[1])); "
            "print(jax.config.jax_enable_x64)")
    read = subprocess.run([sys.executable, "-c", code, written], check=True, capture_output=True,
                          text=True).stdout
    assert read.strip() == "False"
    assert pickle.loads(bytes.fromhex(written)).f.__name__ == "neg"
