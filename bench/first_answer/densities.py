"""Forty densities that a user could bring, with the means and standard deviations that they have.

Each is given as a user has it: a Python function, and a starting point or a prior.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special, stats


@dataclass(frozen=True)
class Case:
    """A density, the user's arguments, and the truth.

    Attributes
    ----------
    f : callable
        Log density of x (d,); the log likelihood where there is a prior.
    mean, sd : array (d,)
        Of each coordinate; NaN where the density has none.
    x0 : array (d,) or None
    options : dict
        Further arguments of `fk.sample`.
    """

    f: Callable[[Any], Any]
    mean: Any
    sd: Any
    x0: Any = None
    options: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {}


def add(name, f, mean, sd, x0=None, **options):
    CASES[name] = Case(f, np.atleast_1d(np.asarray(mean, float)),
                       np.atleast_1d(np.asarray(sd, float)),
                       None if x0 is None else np.asarray(x0, float), options)


def normal(mean, cov, x0=None, name="", **options):
    """A normal distribution."""
    mean, cov = np.asarray(mean, float), np.atleast_2d(np.asarray(cov, float))
    P = np.linalg.inv(cov)
    add(name, lambda x: -0.5 * (x - mean) @ P @ (x - mean), mean, np.sqrt(np.diag(cov)),
        mean if x0 is None else x0, **options)


def equicorrelated(d, rho):
    return rho * np.ones((d, d)) + (1 - rho) * np.eye(d)


# ---- normal, of many sizes ----

for d in (1, 2, 5, 10, 20, 21, 50, 200):
    normal(np.zeros(d), np.eye(d), name=f"normal, d = {d}")
normal([1, 2], [[1, 0.9999], [0.9999, 1]], name="normal, correlation 0.9999")
normal(np.zeros(20), equicorrelated(20, 0.9), name="normal, d = 20, correlation 0.9")
four = np.array([1e-2, 0.1, 1, 10, 100])
normal(3 * four, np.diag(four**2), name="normal, scales over four orders")
normal([3e-6, 3, 3e6], np.diag([1e-6, 1, 1e6]) ** 2, [0, 0, 0], name="normal, scales 1e-6 and 1e6")
for far in (5, 20, 1000):
    normal([0, 0, 0], equicorrelated(3, 0.5), far * np.array([1.0, -1.0, 0.5]),
           name=f"normal, start {far} sd away")

# ---- tails, walls, bends ----

add("t3, d = 1", lambda x: -2 * np.log1p(x[0] ** 2 / 3), [0], [3**0.5], [0.0])
add("t3, d = 3", lambda x: -3 * np.log1p(x @ x / 3), [0] * 3, [3**0.5] * 3, [0.0] * 3)
add("t3, d = 3, start 20 away", lambda x: -3 * np.log1p(x @ x / 3), [0] * 3, [3**0.5] * 3,
    [20.0, 20, 20])
add("box, d = 2", lambda x: 0.0 if (np.abs(x) < 1).all() else -np.inf, [0, 0], [3**-0.5] * 2,
    [0.0, 0.5])
add("box, d = 10", lambda x: 0.0 if (np.abs(x) < 1).all() else -np.inf, [0] * 10, [3**-0.5] * 10,
    [0.0] * 10)
add("exponential, d = 3", lambda x: -x.sum() if (x > 0).all() else -np.inf, [1] * 3, [1] * 3,
    [1.0] * 3)
add("half normal at its wall", lambda x: -0.5 * x @ x if (x > 0).all() else -np.inf,
    [(2 / np.pi) ** 0.5] * 2, [(1 - 2 / np.pi) ** 0.5] * 2, [1e-9] * 2)
add("funnel, d = 3", lambda x: -(x[0] ** 2) / 18 - 0.5 * np.exp(-x[0]) * (x[1:] @ x[1:]) - x[0],
    [0, 0, 0], [3, np.exp(9 / 4), np.exp(9 / 4)], [0.0] * 3)
add("mild funnel, d = 6", lambda x: -0.5 * x[0] ** 2 - 0.5 * np.exp(-x[0]) * (x[1:] @ x[1:])
    - 2.5 * x[0], [0] * 6, [1] + [np.exp(0.25)] * 5, [0.0] * 6)
add("shell, d = 2", lambda x: -0.5 * ((np.hypot(*x) - 3) / 0.2) ** 2, [0, 0],
    [((9 + 3 * 0.04) / 2) ** 0.5] * 2, [3.0, 0])
add("banana, d = 2", lambda x: -0.5 * (x[0] ** 2 / 100 + (x[1] + 0.03 * (x[0] ** 2 - 100)) ** 2),
    [0, 0], [10, 19**0.5], [0.0, 0])
add("Rosenbrock", lambda x: -(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2) / 20,
    [1, 11], [10**0.5, (240 + 0.1) ** 0.5], [-1.2, 1])

# ---- several modes ----


def mixture(name, means, sds, weights, x0=None, **options):
    """A mixture of round normal components."""
    means = [np.atleast_1d(np.asarray(m, float)) for m in means]
    d = len(means[0])

    def f(x):
        return special.logsumexp([np.log(w) - 0.5 * ((x - m) @ (x - m)) / s**2 - d * np.log(s)
                                  for m, s, w in zip(means, sds, weights, strict=True)])

    mean = sum(w * m for m, w in zip(means, weights, strict=True))
    square = sum(w * (s**2 + m**2) for m, s, w in zip(means, sds, weights, strict=True))
    if "prior" not in options:
        add(name, f, mean, np.sqrt(square - mean**2), means[0] if x0 is None else x0)
        return
    # the likelihood is the density over the prior, so that the posterior is the mixture
    sd = options.pop("prior")
    add(name, lambda x: f(x) + 0.5 * (x @ x) / sd**2, mean, np.sqrt(square - mean**2),
        prior={"x": (stats.norm(0, sd), d)})


mixture("modes of sd 1 and 0.05", [-5, 5], [1, 0.05], [0.5, 0.5])
mixture("modes at -20 and 20, d = 5", [-20 * np.ones(5), 20 * np.ones(5)], [1, 1], [0.5, 0.5])
mixture("modes at -3 and 3 of sd 1 and 0.3, d = 10", [-3 * np.ones(10), 3 * np.ones(10)],
        [1, 0.3], [0.5, 0.5])
mixture("modes of weights 1 to 99", [[0, 0], [6, 6]], [1, 1], [0.99, 0.01])
mixture("three modes, d = 2", [[0, 0], [8, 0], [0, 8]], [1, 0.5, 2], [0.3, 0.3, 0.4])
mixture("modes 90 sd apart, with a prior", [[-45, 0], [45, 10]], [1, 1], [0.5, 0.5], prior=60)
mixture("modes of sd 1 and 0.1, with a prior", [[-4, 2, 1], [5, -3, 0]], [1, 0.1], [0.7, 0.3],
        prior=6)

# ---- the first examples of other packages ----

times = np.linspace(0, 1000, 1000)
values = 500 / (1 + 249 * np.exp(-0.015 * times)) + np.random.default_rng(1).normal(0, 10, 1000)


def growth(r, k, sigma):
    """PINTS: logistic growth with normal noise, log likelihood."""
    model = k / (1 + (k / 2 - 1) * np.exp(-r * times))
    return -1000 * np.log(sigma) - 0.5 * np.sum((values - model) ** 2) / sigma**2


def growth_in_a_box(x):
    inside = (x > [0.01, 400, 5]).all() and (x < [0.02, 600, 20]).all()
    return growth(*x) if inside else -np.inf


rng = np.random.default_rng(123)
N = 50
at = np.sort(10 * rng.random(N))
errors = 0.1 + 0.5 * rng.random(N)
seen = -0.9594 * at + 4.294
seen += np.abs(0.534 * seen) * rng.standard_normal(N) + errors * rng.standard_normal(N)


def line(x):
    """emcee: a line whose errors are underestimated by a fraction, log density."""
    m, b, log_f = x
    if not (-5 < m < 0.5 and 0 < b < 10 and -10 < log_f < 1):
        return -np.inf
    model = m * at + b
    variance = errors**2 + model**2 * np.exp(2 * log_f)
    return -0.5 * np.sum((seen - model) ** 2 / variance + np.log(variance))


x_line = np.linspace(0, 9, 10)
y_line = 0.4 * x_line + 3 + np.random.default_rng(716743).normal(0, 1, 10)


def black_box(m, c):
    """PyMC: a line with known noise behind a black-box likelihood, priors uniform on [-10, 10]."""
    return -0.5 * np.sum((y_line - m * x_line - c) ** 2)


def by_quadrature(f, center, width, n):
    """(mean, sd) of f on a grid of n points a coordinate around a center."""
    grids = np.meshgrid(*[c + w * np.linspace(-1, 1, n)
                          for c, w in zip(center, width, strict=True)], indexing="ij")
    X = np.stack([grid.ravel() for grid in grids], axis=1)
    logs = np.array([f(x) for x in X])
    w = np.exp(logs - logs.max())
    mean = w @ X / w.sum()
    return mean, np.sqrt(w @ (X - mean) ** 2 / w.sum())


truth = by_quadrature(growth_in_a_box, [0.01501, 499.4, 9.9], [1.1e-4, 3.0, 1.4], 25)
add("PINTS: logistic growth", growth_in_a_box, *truth, [0.015, 500, 10])
add("PINTS: logistic growth, with priors", growth, *truth,
    prior={"r": stats.uniform(0.01, 0.01), "k": stats.uniform(400, 200),
           "sigma": stats.uniform(5, 15)})
add("emcee: a line", line, *by_quadrature(line, [-1.0, 4.5, -0.8], [0.65, 3.2, 1.1], 41),
    [-0.95, 4.29, -0.63])
A = np.c_[x_line, np.ones(10)]
add("PyMC: black-box likelihood", black_box, np.linalg.lstsq(A, y_line, rcond=None)[0],
    np.sqrt(np.diag(np.linalg.inv(A.T @ A))),
    prior={"m": stats.uniform(-10, 20), "c": stats.uniform(-10, 20)})

# ---- shapes of parameters ----

alpha = np.array([2.0, 3.0, 5.0])
counts = np.array([3, 1, 6])
after = stats.dirichlet(alpha + counts)
add("simplex", lambda p: counts @ np.log(p), after.mean(), np.sqrt(after.var()),
    prior={"p": stats.dirichlet(alpha)})
add("arcsine within bounds", lambda x: -0.5 * np.log(x[0] * (1 - x[0])), [0.5], [8**-0.5], [0.3],
    bounds=[(0, 1)])
