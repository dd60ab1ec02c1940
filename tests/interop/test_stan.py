"""A model that Stan itself has compiled, schools.stan; see compile_stan.py.

FASTKAM_STAN_LIBRARY is the path of the library, without which the tests are skipped.
"""

import os

import numpy as np
import pytest
from by_hand import S, Y
from scipy import stats

import fastkam as fk

LIBRARY = os.environ.get("FASTKAM_STAN_LIBRARY")
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="FASTKAM_STAN_LIBRARY names no library")
DATA = {"J": 8, "y": Y, "sigma": S}


@pytest.fixture(scope="module")
def model():
    return fk.from_bridgestan(LIBRARY, DATA)


def by_hand(q):
    """The density of q = (mu, log tau, z), with a whole Cauchy as Stan has it, and the gradient."""
    mu, tau, z = q[0], np.exp(q[1]), q[2:]
    r = (Y - mu - tau * z) / S**2
    value = (stats.norm.logpdf(mu, 0, 5) + stats.cauchy.logpdf(tau, 0, 5) + q[1]
             + stats.norm.logpdf(z).sum() + stats.norm.logpdf(Y, mu + tau * z, S).sum())
    slope = [-mu / 25 + r.sum(), 1 - 2 * tau**2 / (25 + tau**2) + tau * (r * z).sum(),
             *(-z + tau * r)]
    return value, np.array(slope)


def test_value_and_gradient(model):
    for q in np.random.default_rng(1).normal(size=(50, 10)):
        value, slope = by_hand(q)
        assert abs(model.logp(q) - value) < 1e-10 * abs(value)
        logp, gradient = model.logp_grad(q)
        assert logp == model.logp(q)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-10)


def test_posterior_and_quantities(model):
    """Means of a run of the density by hand agree within 5 standard errors."""
    ours = fk.sample(model, draws=1000, seed=1, diagnose=False)
    hand = fk.sample(fk.Target.from_python(by_hand, 10, gradient=True), np.zeros(10), draws=1000,
                     sampler="nuts", seed=2, diagnose=False)
    theirs = hand.draws.copy()
    theirs[..., 1] = np.exp(theirs[..., 1])
    error = np.hypot(ours.summary()["mcse_mean"], fk.diagnostics.mcse_mean(theirs))
    assert (np.abs(ours.draws.mean((0, 1)) - theirs.mean((0, 1))) < 5 * error).all()
    assert ours.names == ["mu", "tau", "z"]
    np.testing.assert_allclose(ours.extras["theta"],
                               ours["mu"][..., None] + ours["tau"][..., None] * ours["z"])


def test_threads_change_nothing(model):
    a, b = (fk.sample(model, draws=100, seed=1, threads=n, diagnose=False).draws for n in (1, 2))
    np.testing.assert_array_equal(a, b)


def test_stans_own_text_of_an_error():
    with pytest.raises(ValueError, match=r"sigma\[1\] is -1, but must be greater than"):
        fk.from_bridgestan(LIBRARY, DATA | {"sigma": [-1.0] * 8})
