"""Time series. The parameters are on the real line: see the functions."""

import numpy as np

from bench.posteriors.posterior import posterior
from bench.posteriors.regressions import NormalLinear

# ---- AR(2), given the first two values: a regression ----


def autoregression(n=102):
    rng = np.random.default_rng(8)
    y = np.zeros(n)
    for t in range(2, n):
        y[t] = 2.0 + 1.1 * y[t - 1] - 0.3 * y[t - 2] + rng.standard_normal()
    return np.c_[np.ones(n - 2), y[1:-1], y[:-2]], y[2:]


AR = NormalLinear(*autoregression())
posterior("AR(2)", 4)(AR)


# ---- GARCH(1, 1) ----


def logistic(u):
    return 0.5 * (1 + np.tanh(0.5 * u))


def returns(n=200):
    rng = np.random.default_rng(9)
    r, e, h = np.empty(n), 0.0, 0.4
    for t in range(n):
        h = 0.04 + 0.12 * e * e + 0.78 * h
        e = np.sqrt(h) * rng.standard_normal()
        r[t] = 0.05 + e
    return r


RETURNS = returns()
FIRST = float(RETURNS.var())


@posterior("GARCH(1, 1)", 4)
def garch(x, gradient):
    """r = mu + e, e ~ N(0, h), h' = omega + a e^2 + b h; x = (mu, log omega, u, v).

    a + b = logistic(u), b = (a + b) logistic(v); mu ~ N(0, 1), log omega ~ N(-2, 1.5^2),
    u and v ~ N(1, 1.5^2). The first h is the variance of the series.
    """
    mu, log_omega, u, v = x.tolist()
    omega, total, part = np.exp(log_omega), logistic(u), logistic(v)
    a, b = float(total * (1 - part)), float(total * part)
    e = RETURNS - mu
    h, h_now = np.empty(len(e)), FIRST
    pushes = (omega + a * e * e).tolist()
    for t, push in enumerate(pushes):
        h[t] = h_now
        h_now = push + b * h_now
    squares = e * e / h
    value = (-0.5 * (np.log(h).sum() + squares.sum() + mu**2)
             - ((log_omega + 2) ** 2 + (u - 1) ** 2 + (v - 1) ** 2) / 4.5)
    if not gradient:
        return float(value)
    w = ((squares - 1) * 0.5 / h).tolist()      # derivative by h
    back, adjoint = np.empty(len(e)), 0.0       # adjoint of h, from the last to the first
    for t in range(len(w) - 1, -1, -1):
        back[t] = adjoint                       # of h at t + 1, which e and h at t have made
        adjoint = w[t] + b * adjoint
    g_mu = (e / h).sum() - 2 * a * (back @ e) - mu
    g_a, g_b = back @ (e * e), back @ h
    return float(value), np.array([
        g_mu, omega * back.sum() - (log_omega + 2) / 2.25,
        total * (1 - total) * (g_a * (1 - part) + g_b * part) - (u - 1) / 2.25,
        total * part * (1 - part) * (g_b - g_a) - (v - 1) / 2.25])


# ---- stochastic volatility, centered ----


def volatile(n=47):
    rng = np.random.default_rng(10)
    h, y = -0.5, np.empty(n)
    for t in range(n):
        h = -0.5 + 0.9 * (h + 0.5) + 0.3 * rng.standard_normal()
        y[t] = np.exp(h / 2) * rng.standard_normal()
    return y


SQUARES = volatile() ** 2


@posterior("stochastic volatility, d = 50", 50, uses=(True,))
def volatility(x, gradient):
    """y ~ N(0, e^h), h' ~ N(mu + phi (h - mu), s^2), stationary; x = (h, mu, z, log s).

    phi = tanh(z); mu ~ N(0, 1), z ~ N(1.5, 0.5^2), log s ~ N(-1.5, 0.5^2).
    """
    h, (mu, z, log_s) = x[:-3], x[-3:]
    phi, precision = np.tanh(z), np.exp(-2 * log_s)
    c = h - mu
    step = c[1:] - phi * c[:-1]
    left = 1 - phi * phi
    scaled = SQUARES * np.exp(-h)
    total = left * c[0] ** 2 + step @ step
    value = (-0.5 * (h.sum() + scaled.sum() + precision * total + mu * mu) - len(h) * log_s
             + 0.5 * np.log(left) - 2 * (z - 1.5) ** 2 - 2 * (log_s + 1.5) ** 2)
    if not gradient:
        return value
    g_c = np.zeros(len(h))
    g_c[0] = -left * c[0]
    g_c[1:] -= step
    g_c[:-1] += phi * step
    g_c *= precision
    g_phi = precision * (phi * c[0] ** 2 + step @ c[:-1]) - phi / left
    return value, np.concatenate([
        g_c + 0.5 * (scaled - 1),
        [-g_c.sum() - mu, left * g_phi - 4 * (z - 1.5),
         precision * total - len(h) - 4 * (log_s + 1.5)]])
