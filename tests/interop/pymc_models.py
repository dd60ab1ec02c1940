"""PyMC models of the densities in by_hand.py, and others, that workers can import."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from by_hand import COUNTS, LABELS, STEPS, TIMES, S, X, Y, growth


def eight_schools():
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Deterministic("effect", theta - mu, dims="school")
        pm.Deterministic("positive", theta > 0, dims="school")
        pm.Normal("y", theta, S, observed=Y, dims="school")
    return model


def logistic():
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 2, shape=4)
        pm.Bernoulli("label", logit_p=pt.dot(X, beta), observed=LABELS)
    return model


def ode():
    """Logistic growth, by the classical Runge-Kutta method."""
    with pm.Model(coords={"time": TIMES}) as model:
        r, K = pm.LogNormal("r", 0, 1), pm.Uniform("K", 1, 30)
        sigma = pm.HalfNormal("sigma", 1)
        h = TIMES[0] / STEPS

        def step(n, r, K):
            a = growth(n, r, K)
            b = growth(n + h / 2 * a, r, K)
            c = growth(n + h / 2 * b, r, K)
            d = growth(n + h * c, r, K)
            return n + h / 6 * (a + 2 * b + 2 * c + d)

        steps = pytensor.scan(step, outputs_info=pt.constant(0.5, dtype="float64"),
                              non_sequences=[r, K], n_steps=len(TIMES) * STEPS,
                              return_updates=False)
        curve = pm.Deterministic("curve", steps[STEPS - 1 :: STEPS], dims="time")
        pm.Normal("count", curve, sigma, observed=COUNTS, dims="time")
    return model


def transformed():
    """Every transform that fastkam has too, and with `all` others besides."""
    with pm.Model() as model:
        pm.Normal("plain", shape=(2, 2))
        pm.Exponential("positive", 1, shape=2)
        pm.Beta("share", 2, 3)
        pm.Uniform("between", [-1.0, 2.0], [1.0, 5.0])
        pm.Normal("rising", shape=3, transform=pm.distributions.transforms.ordered,
                  initval=np.array([-1.0, 0.0, 1.0]))
    return model


def of_its_own():
    """Transforms that only PyMC has."""
    with pm.Model() as model:
        pm.Dirichlet("w", np.ones(3))
        pm.VonMises("angle", 0, 2)
        low = pm.Normal("low", 0, 1)
        pm.Uniform("above", low, low + 2)
        pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0))
    return model
