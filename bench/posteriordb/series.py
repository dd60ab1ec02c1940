"""Time series and hidden Markov models."""

import math

import numpy as np
from scipy import stats
from scipy.signal import lfilter

from bench.posteriordb.database import posterior

try:
    from numba import njit
except ImportError:

    def njit(f):
        """The function itself, which is slower and gives the same."""
        return f


@posterior("arma-arma11")
def arma(data):
    y = data["y"]

    def loglike(mu, phi, theta, sigma):
        before = np.append(mu, y[:-1])
        e = lfilter([1.0], [1.0, theta], y - mu - phi * before)  # e + theta e of before
        return -0.5 * (e @ e) / sigma**2 - len(y) * np.log(sigma)

    return loglike, {
        "prior": {"mu": stats.norm(0, 10), "phi": stats.norm(0, 2), "theta": stats.norm(0, 2),
                  "sigma": stats.halfcauchy(scale=2.5)}}


@posterior("garch-garch11")
def garch(data):
    y, first = data["y"], data["sigma1"] ** 2

    def loglike(mu, alpha0, alpha1, beta1):
        if alpha1 + beta1 >= 1:
            return -np.inf
        squares = (y - mu) ** 2
        h = lfilter([1.0], [1.0, -beta1], np.append(first, alpha0 + alpha1 * squares[:-1]))
        return -0.5 * np.sum(np.log(h) + squares / h)

    return loglike, {
        "prior": dict.fromkeys(["mu", "alpha0", "alpha1", "beta1"]),
        "bounds": {"alpha0": (0, None), "alpha1": (0, 1), "beta1": (0, 1)}}


# ---- two hidden states ----


@njit
def log_forward(weights, theta1, theta2):
    """The log of the sum over all paths, scaled at each time; the first state has no prior.

    weights (n, 2) are the densities of the observations in the two states.
    """
    total, one, other = 0.0, 1.0, 1.0
    for t in range(len(weights)):
        if t > 0:
            one, other = (one * theta1[0] + other * theta2[0],
                          one * theta1[1] + other * theta2[1])
        one, other = one * weights[t, 0], other * weights[t, 1]
        both = one + other
        if not both > 0.0:
            return -np.inf
        total += math.log(both)
        one, other = one / both, other / both
    return total


def log_paths(logs, theta1, theta2):
    """The same of log densities."""
    top = logs.max(axis=1, keepdims=True)
    return float(top.sum()) + log_forward(np.exp(logs - top), theta1, theta2)


def positive(mean):
    """N(mean, 1), above 0."""
    mean = np.array(mean, float)
    return stats.truncnorm(-mean, np.inf, loc=mean)


@posterior("hmm_example-hmm_example")
def hmm(data):
    y = data["y"][:, None]

    def loglike(theta1, theta2, mu):
        if mu[0] > mu[1]:
            return -np.inf
        return log_paths(-0.5 * (y - mu) ** 2, theta1, theta2)

    return loglike, {
        "prior": {"theta1": stats.dirichlet([1, 1]), "theta2": stats.dirichlet([1, 1]),
                  "mu": positive([3, 10])}}


# basketball: the speed of a player and the distance from the hoop, in drives and between them


def of_drives(data, emission):
    """The priors: `emission` is that of the pairs phi and lambda, which are ordered."""
    one, other = map(stats.dirichlet, data["alpha"])
    return {"theta1": one, "theta2": other, "phi": emission, "lambda_": emission}


@posterior("bball_drive_event_0-hmm_drive_0")
def drives(data):
    u, v = data["u"][:, None], data["v"][:, None]

    def loglike(theta1, theta2, phi, lambda_):
        if phi[0] > phi[1] or lambda_[0] > lambda_[1]:
            return -np.inf
        return log_paths(np.log(phi) - phi * u + np.log(lambda_) - lambda_ * v, theta1, theta2)

    return loglike, {"prior": of_drives(data, positive([0, 3]))}


@posterior("bball_drive_event_1-hmm_drive_1")
def normal_drives(data):
    u, v, tau, rho = data["u"][:, None], data["v"][:, None], data["tau"], data["rho"]

    def loglike(theta1, theta2, phi, lambda_):
        if phi[0] > phi[1] or lambda_[0] > lambda_[1]:
            return -np.inf
        logs = -0.5 * ((u - phi) / tau) ** 2 - 0.5 * ((v - lambda_) / rho) ** 2
        return log_paths(logs, theta1, theta2)

    return loglike, {"prior": of_drives(data, stats.norm([0, 3], 1))}
