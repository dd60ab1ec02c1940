"""Hierarchies, centered and not. Standard deviations are sampled as their logarithms."""

import numpy as np

from bench.posteriors.posterior import posterior

SCHOOLS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
MU_SD, TAU_SCALE = 5.0, 5.0


def log_half_cauchy(log_tau, scale):
    """(log density of log tau, its derivative), tau half Cauchy."""
    u = log_tau - np.log(scale)
    return u - np.logaddexp(0, 2 * u), -np.tanh(u)


@posterior("eight schools, centered", 10, tolerance=0.15)
def schools_centered(x, gradient):
    """y ~ N(theta, errors^2), theta ~ N(mu, tau^2); x = (mu, log tau, theta)."""
    mu, log_tau, theta = x[0], x[1], x[2:]
    prior, g_prior = log_half_cauchy(log_tau, TAU_SCALE)
    precision = np.exp(-2 * log_tau)
    r, off = (SCHOOLS - theta) / ERRORS, theta - mu
    squares = precision * (off @ off)
    value = prior - 0.5 * (r @ r + squares + (mu / MU_SD) ** 2) - 8 * log_tau
    if not gradient:
        return value
    return value, np.concatenate([[precision * off.sum() - mu / MU_SD**2, g_prior + squares - 8],
                                  r / ERRORS - precision * off])


@posterior("eight schools, non-centered", 10, tolerance=0.15)
def schools_non_centered(x, gradient):
    """theta = mu + tau z, z ~ N(0, 1); x = (mu, log tau, z)."""
    mu, log_tau, z = x[0], x[1], x[2:]
    prior, g_prior = log_half_cauchy(log_tau, TAU_SCALE)
    tau = np.exp(log_tau)
    r = (SCHOOLS - mu - tau * z) / ERRORS
    value = prior - 0.5 * (r @ r + z @ z + (mu / MU_SD) ** 2)
    if not gradient:
        return value
    g_theta = r / ERRORS
    return value, np.concatenate([[g_theta.sum() - mu / MU_SD**2, g_prior + tau * (g_theta @ z)],
                                  tau * g_theta - z])


# ---- measurements in groups of 1 to 15, with one predictor ----

GROUPS = 16
PRIOR_SD = 10.0


def measurements():
    rng = np.random.default_rng(7)
    sizes = np.round(np.geomspace(1, 15, GROUPS)).astype(int)
    group = np.repeat(range(GROUPS), sizes)
    floor = (rng.random(len(group)) < 0.3).astype(float)
    level = rng.normal(1.3, 0.3, GROUPS)
    return group, floor, level[group] - 0.6 * floor + 0.7 * rng.standard_normal(len(group))


GROUP, FLOOR, LOG_RADON = measurements()


@posterior("levels of 16 groups, centered", 20)
def levels(x, gradient):
    """y ~ N(a_group + b floor, s^2), a ~ N(mu, t^2); x = (a, mu, b, log t, log s).

    mu and b ~ N(0, 10^2), log t and log s ~ N(-1, 0.7^2).
    """
    a, (mu, b, log_t, log_s) = x[:GROUPS], x[GROUPS:]
    t2, s2 = np.exp(2 * log_t), np.exp(2 * log_s)
    r, off = LOG_RADON - a[GROUP] - b * FLOOR, a - mu
    squares, spread = r @ r / s2, off @ off / t2
    value = (-0.5 * (squares + spread + (mu * mu + b * b) / PRIOR_SD**2
                     + ((log_t + 1) ** 2 + (log_s + 1) ** 2) / 0.49)
             - len(r) * log_s - GROUPS * log_t)
    if not gradient:
        return value
    g = np.empty(GROUPS + 4)
    g[:GROUPS] = np.bincount(GROUP, r, GROUPS) / s2 - off / t2
    g[GROUPS:] = (off.sum() / t2 - mu / PRIOR_SD**2, r @ FLOOR / s2 - b / PRIOR_SD**2,
                  spread - GROUPS - (log_t + 1) / 0.49, squares - len(r) - (log_s + 1) / 0.49)
    return value, g
