"""Densities by hand, in the unconstrained coordinates that PyMC and Stan use."""

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import expit, log_expit

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
S = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(z):
    """mu ~ N(0, 5), tau ~ HalfCauchy(5), theta ~ N(mu, tau), y ~ N(theta, s): z = (mu, log tau,
    theta) (10,), with the gradient."""
    mu, tau, theta = z[0], np.exp(z[1]), z[2:10]
    e, r = (theta - mu) / tau, (Y - theta) / S
    value = (stats.norm.logpdf(mu, 0, 5) + stats.halfcauchy.logpdf(tau, scale=5) + z[1]
             + stats.norm.logpdf(theta, mu, tau).sum() + stats.norm.logpdf(Y, theta, S).sum())
    slope = [-mu / 25 + e.sum() / tau,
             1 - 2 * tau**2 / (25 + tau**2) + (e * e - 1).sum(), *(-e / tau + r / S)]
    return value, np.array(slope)


X = np.column_stack([np.ones(60), np.random.default_rng(1).normal(size=(60, 3))])
LABELS = (np.random.default_rng(2).random(60) < expit(X @ [0.5, 1.0, -1.0, 0.0])).astype(float)


def logistic(beta):
    """beta ~ N(0, 2)^4, y ~ Bernoulli(expit(X beta)), with the gradient."""
    eta = X @ beta
    value = (stats.norm.logpdf(beta, 0, 2).sum()
             + (LABELS * log_expit(eta) + (1 - LABELS) * log_expit(-eta)).sum())
    return value, X.T @ (LABELS - expit(eta)) - beta / 4


TIMES = np.linspace(0.25, 5, 20)
COUNTS = np.array([0.6, 0.75, 1.1, 1.2, 1.65, 2.2, 2.4, 3.2, 3.5, 4.3, 4.8, 5.6, 6.1, 6.4, 7.0, 7.6,
                   7.9, 8.5, 8.3, 8.9])
STEPS = 4  # of Runge and Kutta between two times


def growth(n, r, K):
    return r * n * (1 - n / K)


def curve(r, K, n0=0.5):
    """Logistic growth by the classical Runge-Kutta method, at TIMES."""
    n, found, h = n0, [], TIMES[0] / STEPS
    for _ in TIMES:
        for _ in range(STEPS):
            a = growth(n, r, K)
            b = growth(n + h / 2 * a, r, K)
            c = growth(n + h / 2 * b, r, K)
            d = growth(n + h * c, r, K)
            n = n + h / 6 * (a + 2 * b + 2 * c + d)
        found.append(n)
    return found


def exact_curve(r, K, n0=0.5):
    """Return the result of solve_ivp, for the check of `curve`."""
    return solve_ivp(lambda t, n: growth(n, r, K), (0, 5), [n0], t_eval=TIMES, rtol=1e-10,
                     atol=1e-12).y[0]


def ode(z):
    """log r, log K and log sigma: r ~ LogNormal(0, 1), K ~ Uniform(1, 30), sigma ~ HalfNormal(1),
    y ~ N(curve, sigma); z of K is the logit on (1, 30)."""
    r, K, sigma = np.exp(z[0]), 1 + 29 * expit(z[1]), np.exp(z[2])
    return (stats.lognorm.logpdf(r, 1) + z[0] - np.log(29)
            + np.log(29) + log_expit(z[1]) + log_expit(-z[1])
            + stats.halfnorm.logpdf(sigma) + z[2]
            + stats.norm.logpdf(COUNTS, np.array(curve(r, K)), sigma).sum())


def slope_of(f, z, h=1e-3):
    """The gradient by differences of eighth order, whose error is that of rounding."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    found = np.empty(len(z))
    for i, e in enumerate(np.eye(len(z))):
        found[i] = sum(w * (f(z + k * h * e) - f(z - k * h * e)) for k, w in weights.items()) / h
    return found
