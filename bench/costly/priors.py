"""Densities with wide priors, from which the chains start: the way to the mass counts too.

Moments are in closed form, or sums over a grid; those of a regression are sums over its error's
standard deviation alone, since the coefficients are normal given that.
"""

import numpy as np
from scipy import stats

from bench.costly.densities import Case
from bench.costly.further import grid_moments

WITH_PRIORS: dict[str, Case] = {}


def add(name, f, prior, mean, sd):
    WITH_PRIORS[name] = Case(f, None, np.asarray(mean), np.asarray(sd), {"prior": prior})


# ---- normal densities ----


def normal(d, wide):
    """A correlated normal likelihood, and d independent normal priors of standard deviation wide.
    """
    A = np.random.default_rng(d).standard_normal((d, d))
    precision, mode = np.linalg.inv(A @ A.T / d + 0.3 * np.eye(d)), np.linspace(-3, 5, d)
    cov = np.linalg.inv(precision + np.eye(d) / wide**2)
    add(f"normal, d = {d}", lambda x: -0.5 * float((x - mode) @ precision @ (x - mode)),
        {"x": (stats.norm(0, wide), d)}, cov @ precision @ mode, np.sqrt(np.diag(cov)))


normal(4, 50.0)
normal(8, 50.0)


def two_modes(d, away, wide):
    """Components of standard deviation 1, 2 * away apart in each coordinate, one twice as high."""
    def f(x):
        low, high = x + away, x - away
        return float(np.logaddexp(-0.5 * low @ low, np.log(2) - 0.5 * high @ high))

    shrunk = wide**2 / (1 + wide**2)
    mean = shrunk * away / 3
    add(f"two modes, d = {d}", f, {"x": (stats.norm(0, wide), d)}, np.full(d, mean),
        np.full(d, np.sqrt(shrunk + (shrunk * away) ** 2 - mean**2)))


two_modes(4, 5.0, 20.0)


def corner(d):
    """A normal likelihood beside a corner of a uniform prior."""
    one = stats.truncnorm((0 - 0.97) / 0.05, (1 - 0.97) / 0.05, 0.97, 0.05)
    add(f"corner, d = {d}", lambda x: float(-0.5 * (((x - 0.97) / 0.05) ** 2).sum()),
        {"x": (stats.uniform(0, 1), d)}, np.full(d, one.mean()), np.full(d, one.std()))


corner(4)

# ---- models ----


def growth():
    """Logistic growth with normal errors."""
    t = np.linspace(0, 1000, 30)

    def size(r, K):
        return K / (1 + (K / 10 - 1) * np.exp(-r * t))

    y = size(0.015, 500.0) + 10 * np.random.default_rng(1).standard_normal(30)
    prior = {"r": stats.loguniform(1e-4, 1), "K": stats.uniform(50, 2000),
             "s": stats.halfnorm(scale=50)}

    def f(r, K, s):
        return float(stats.norm.logpdf(y, size(r, K), s).sum())

    def rows(X):
        r, K, s = X.T[:, :, None]
        z = (y - size(r, K)) / s
        return (-0.5 * z * z - np.log(s)).sum(axis=1) + sum(
            p.logpdf(x) for p, x in zip(prior.values(), X.T, strict=True))

    add("growth", f, prior, *grid_moments(rows, (0.0145, 485, 5), (0.0158, 520, 20), 61))


growth()


def peak():
    """A peak of unknown height, place and width above a known level."""
    t = np.linspace(0, 10, 60)
    y = 3 * np.exp(-0.5 * ((t - 4) / 0.5) ** 2) + 0.3 * np.random.default_rng(8).standard_normal(60)
    prior = {"h": stats.halfnorm(scale=10), "c": stats.uniform(0, 10),
             "w": stats.halfnorm(scale=3)}

    def f(h, c, w):
        return float(-0.5 * (((y - h * np.exp(-0.5 * ((t - c) / w) ** 2)) / 0.3) ** 2).sum())

    def rows(X):
        h, c, w = X.T[:, :, None]
        z = (y - h * np.exp(-0.5 * ((t - c) / w) ** 2)) / 0.3
        return -0.5 * (z * z).sum(axis=1) + sum(
            p.logpdf(x) for p, x in zip(prior.values(), X.T, strict=True))

    add("peak", f, prior, *grid_moments(rows, (1.8, 3.6, 0.2), (4.4, 4.4, 0.9), 61))


peak()


def regression(name, A, y, wide, widest):
    """y = A b + s e, with normal priors of b and a half-normal one of s."""
    n, d = A.shape

    def f(b, s):
        r = (y - A @ b) / s
        return float(-0.5 * r @ r - n * np.log(s))

    s = np.exp(np.linspace(np.log(0.01), np.log(10), 2000))
    log_p, b, squares = np.empty(len(s)), np.empty((len(s), d)), np.empty((len(s), d))
    for k, one in enumerate(s):
        precision = A.T @ A / one**2 + np.eye(d) / wide**2
        b[k] = np.linalg.solve(precision, A.T @ y / one**2)
        squares[k] = np.diag(np.linalg.inv(precision)) + b[k] ** 2
        rest = 0.5 * (y @ y / one**2 - b[k] @ precision @ b[k])
        log_p[k] = np.log(one) - n * np.log(one) - rest - 0.5 * np.linalg.slogdet(precision)[1]
    log_p += stats.halfnorm.logpdf(s, scale=widest)
    w = np.exp(log_p - log_p.max())
    w /= w.sum()
    mean, square = np.append(w @ b, w @ s), np.append(w @ squares, w @ s**2)
    add(name, f, {"b": (stats.norm(0, wide), d), "s": stats.halfnorm(scale=widest)}, mean,
        np.sqrt(square - mean**2))


rng = np.random.default_rng(3)
X = rng.standard_normal((60, 3))
regression("regression, d = 4", X, X @ np.array([2.0, -1.0, 0.5]) + 0.5 * rng.standard_normal(60),
           20.0, 5.0)
t = np.linspace(0, 1, 40)
regression("cubic polynomial, d = 5", np.vander(t, 4),
           1 + 2 * t - 3 * t**2 + 0.1 * rng.standard_normal(40), 100.0, 10.0)
