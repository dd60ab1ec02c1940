"""PINTS and UM-Bridge, and what emcee's users write."""

import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

QUIET = {"diagnose": False, "seed": 1}
SHORT = {"draws": 30, "tune": 30, "search": False, **QUIET}


# ---- emcee's forms ----


def log_prob(x, mean, scale=1.0):
    return -0.5 * ((x - mean) ** 2).sum() / scale**2


@pytest.mark.parametrize("args", [(2.0,), [2.0]])
def test_args_and_kwargs(args):
    result = fk.sample(log_prob, np.zeros(2), args=args, kwargs={"scale": 0.1}, draws=200, **QUIET)
    assert abs(result.draws.mean() - 2) < 0.05
    assert 0.08 < result.draws.std() < 0.12


def test_a_list_is_taken_as_a_pair():
    pair = fk.sample(lambda x: (-0.5 * x @ x, -x), np.zeros(3), sampler="nuts", **SHORT)
    listed = fk.sample(lambda x: [-0.5 * x @ x, -x], np.zeros(3), sampler="nuts", **SHORT)
    np.testing.assert_array_equal(pair.draws, listed.draws)
    rows = fk.sample(lambda X: [-0.5 * (X * X).sum(axis=1), -X], np.zeros(3), sampler="nuts",
                     vectorized=True, **SHORT)
    assert rows.draws.shape == pair.draws.shape
    extras = fk.sample(lambda x: [-0.5 * x @ x, {"s": x.sum()}], np.zeros(3), sampler="ram",
                       **SHORT)
    np.testing.assert_array_equal(extras.extras["s"], extras.draws.sum(axis=-1))
    auto = fk.choose_sampler(lambda x: [-0.5 * x @ x, -x], np.zeros(50), seed=1)
    assert "has a gradient" in str(auto)


def test_a_list_of_terms_is_no_pair():
    with pytest.raises(fk.SamplingError, match="sum it"):
        fk.sample(lambda x: [-0.5 * x[0] ** 2, -0.5 * x[1] ** 2], np.zeros(2), **SHORT)


# ---- PINTS ----


@pytest.fixture(scope="module")
def posterior():
    """Logistic growth of PINTS, with known noise."""
    pints = pytest.importorskip("pints")
    model = pytest.importorskip("pints.toy").LogisticModel()
    times = np.linspace(0, 1000, 50)
    values = model.simulate([0.015, 500], times) + np.random.default_rng(1).normal(0, 10, 50)
    likelihood = pints.GaussianKnownSigmaLogLikelihood(
        pints.SingleOutputProblem(model, times, values), 10)
    return pints.LogPosterior(likelihood, pints.UniformLogPrior([0.01, 400], [0.02, 600]))


def test_pints_value_and_sensitivities(posterior):
    target = fk.as_target(posterior, 2)
    x = np.array([0.0151, 505.0])
    assert target.logp(x) == posterior(x)
    logp, gradient = target.logp_grad(x)
    value, slope = posterior.evaluateS1(x)
    assert logp == value
    np.testing.assert_array_equal(gradient, slope)
    assert fk.check_gradient(posterior, x).ok


def test_pints_posterior(posterior):
    """The same as that of the density by hand, from starts in the prior."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    ours = fk.sample(posterior, draws=500, **QUIET)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    np.testing.assert_array_equal(ours.draws, fk.sample(posterior, draws=500, **QUIET).draws)
    problem = posterior._log_likelihood._problem
    times, values = problem.times(), problem.values()

    def by_hand(r, k):
        curve = k / (1 + (k / 2 - 1) * np.exp(-r * times))
        return -0.5 * ((values - curve) ** 2).sum() / 100

    prior = {"r": stats.uniform(0.01, 0.01), "k": stats.uniform(400, 200)}
    hand = fk.sample(by_hand, prior=prior, draws=1000, diagnose=False, seed=2)
    error = np.hypot(ours.summary()["mcse_mean"], hand.summary()["mcse_mean"])
    assert (np.abs(ours.draws.mean(axis=(0, 1)) - hand.draws.mean(axis=(0, 1))) < 5 * error).all()


def test_pints_as_likelihood_and_with_gradients(posterior):
    likelihood = posterior._log_likelihood
    prior = {"r": stats.uniform(0.01, 0.01), "k": stats.uniform(400, 200)}
    result = fk.sample(likelihood, prior=prior, sampler="nuts", **SHORT)
    assert (result["r"] > 0.01).all()
    assert result.names == ["r", "k"]


def test_pints_without_sensitivities(posterior):
    import pints

    class Plain(pints.LogPDF):
        def n_parameters(self):
            return 2

        def __call__(self, x):
            return -0.5 * float(np.sum(np.square(x)))

    for options in ({}, {"on_error": "reject"}):
        result = fk.sample(Plain(), np.zeros(2), draws=200, **QUIET, **options)
        assert 0.8 < result.draws.std() < 1.2
    with pytest.raises(ValueError, match="NUTS needs the gradient"):
        fk.sample(Plain(), np.zeros(2), sampler="nuts")
    with pytest.raises(ValueError, match="x0"):
        fk.sample(Plain())
    with pytest.raises(ValueError, match="takes 2 numbers, and x0 has 3"):
        fk.sample(Plain(), np.zeros(3))
    assert pickle.loads(pickle.dumps(fk.as_target(posterior, 2))).dim == 2


# ---- UM-Bridge ----


@pytest.fixture(scope="module")
def umbridge():
    return pytest.importorskip("umbridge")


def model_of(umbridge, **options):
    from umbridge_server import Normal

    return Normal(**options)


def test_umbridge_model(umbridge):
    model = model_of(umbridge)
    x = np.array([1.0, 2.0, 3.0])
    logp, gradient = fk.as_target(model, 3).logp_grad(x)
    assert logp == -7
    np.testing.assert_array_equal(gradient, -x)
    assert fk.sample(model, np.zeros(3), sampler="nuts", **SHORT).draws.shape == (4, 30, 3)
    half = fk.from_umbridge(model, {"scale": 0.5})
    assert fk.as_target(half, 3).logp(x) == -28


@pytest.fixture
def client(umbridge, monkeypatch):
    """A client of a server in a process of its own."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, Path(__file__).with_name("umbridge_server.py"), str(port)]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield connected(umbridge, port, server)
        finally:
            server.terminate()


def connected(umbridge, port, server):
    """Return the client once the server responds; wait a minute at most."""
    for _ in range(300):
        try:
            return umbridge.HTTPModel(f"http://127.0.0.1:{port}", "normal")
        except Exception:
            assert server.poll() is None, "the server has ended"
            time.sleep(0.2)
    raise AssertionError("the server does not answer")


def test_umbridge_client(client):
    """Over HTTP, as models are used."""
    result = fk.sample(client, np.zeros(3), sampler="rwm", **(SHORT | {"draws": 5, "tune": 2}))
    assert result.draws.shape == (4, 5, 3)
    logp, gradient = fk.as_target(client, 3).logp_grad([1.0, 2.0, 3.0])
    assert logp == -7
    np.testing.assert_array_equal(gradient, [-1, -2, -3])
    again = pickle.loads(pickle.dumps(fk.as_target(client, 3)))
    assert again.logp([1.0, 2.0, 3.0]) == -7


def test_umbridge_refusals(umbridge):
    with pytest.raises(ValueError, match=r"outputs of sizes \[2\]"):
        fk.sample(model_of(umbridge, outputs=2), np.zeros(3))
    with pytest.raises(TypeError, match="model must be a model of UM-Bridge, not 3"):
        fk.from_umbridge(3)
    with pytest.raises(TypeError, match="config must be a dict"):
        fk.from_umbridge(model_of(umbridge), config=3)
    with pytest.raises(ValueError, match="takes 3 numbers"):
        fk.sample(model_of(umbridge), np.zeros(2))
    without = fk.as_target(model_of(umbridge, gradient=False), 3)
    assert "logp_grad" not in without.abilities
    with pytest.raises(ValueError, match="needs the gradient"):
        fk.sample(model_of(umbridge, gradient=False), np.zeros(3), sampler="nuts")
