"""Likelihoods with a prior whose evidence is known: in closed form, or by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import integrate, stats
from scipy.special import betaln, gammaln, log1p, logsumexp

HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Case:
    """A likelihood, a prior, and the log of the evidence.

    Attributes
    ----------
    loglike : callable
        Of points (k, d): (k,).
    prior : dict
        As `fastkam.sample` takes it; of one-dimensional distributions, or a pair of one and a
        number of elements.
    truth : float
    """

    loglike: Callable[[Any], Any]
    prior: dict[str, Any]
    truth: float

    @cached_property
    def marginals(self) -> list[Any]:
        """The prior of each coordinate."""
        return [one for value in self.prior.values()
                for one in ([value[0]] * value[1] if isinstance(value, tuple) else [value])]

    @property
    def d(self) -> int:
        return len(self.marginals)

    def from_cube(self, u: Any) -> Any:
        """The point of a point of the unit cube, (..., d)."""
        u = np.asarray(u)
        return np.stack([one.ppf(u[..., i]) for i, one in enumerate(self.marginals)], axis=-1)


def box(low: float, high: float, d: int) -> dict[str, Any]:
    """Uniform on a cube."""
    return {"x": (stats.uniform(low, high - low), d)}


def gaussian(d: int, rho: float, half: float = 10.0) -> Case:
    """Unit variances and equal correlations, in a wide cube."""
    L = np.linalg.cholesky((1 - rho) * np.eye(d) + rho)
    inverse, constant = np.linalg.inv(L), -np.log(np.diag(L)).sum() - d * HALF_LOG_2_PI

    def loglike(x):
        return constant - 0.5 * np.square(x @ inverse.T).sum(axis=1)

    return Case(loglike, box(-half, half, d), -d * np.log(2 * half))


def modes(means: Any, weights: Any, sd: float, half: float) -> Case:
    """Round normal modes of equal width."""
    means, logs = np.asarray(means, float), np.log(np.asarray(weights))
    d = means.shape[1]

    def loglike(x):
        squares = np.square(x[:, None] - means).sum(axis=2)
        return logsumexp(logs - 0.5 * squares / sd**2, axis=1) - d * (HALF_LOG_2_PI + np.log(sd))

    return Case(loglike, box(-half, half, d), -d * np.log(2 * half))


def eight_modes(d: int) -> Case:
    """On corners of a cube of side 8."""
    corners = np.array([[(k >> (i % 3)) & 1 for i in range(d)] for k in range(8)])
    weights = np.arange(1, 9) / 36
    return modes(8.0 * corners - 4.0, weights, 0.8, 10.0)


def banana(d: int, b: float) -> Case:
    """Return the banana of Haario et al. (1999): var x_1 = 100, x_2 bent by b (x_1^2 - 100)."""
    def loglike(x):
        y = x[:, 1] + b * (x[:, 0] ** 2 - 100)
        return (-0.5 * (x[:, 0] ** 2 / 100 + y**2 + np.square(x[:, 2:]).sum(axis=1))
                - np.log(10) - d * HALF_LOG_2_PI)

    wide = {"a": stats.uniform(-60, 120), "b": stats.uniform(-200, 240)}
    return Case(loglike, wide | {"c": (stats.uniform(-10, 20), d - 2)},
                -np.log(120) - np.log(240) - (d - 2) * np.log(20))


def rosenbrock() -> Case:
    """exp(-((x - 1)^2 + 100 (y - x^2)^2) / 2)"""
    def loglike(x):
        return -0.5 * ((x[:, 0] - 1) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2)

    return Case(loglike, {"x": stats.uniform(-6, 14), "y": stats.uniform(-5, 75)},
                np.log(2 * np.pi / 10) - np.log(14 * 75))


def shell(d: int) -> Case:
    """A shell of radius 2 and width 0.1, in a cube of side 6."""
    radius, width = 2.0, 0.1

    def loglike(x):
        r = np.sqrt(np.square(x).sum(axis=1))
        return -0.5 * ((r - radius) / width) ** 2 - HALF_LOG_2_PI - np.log(width)

    def integrand(r):
        return (r / radius) ** (d - 1) * np.exp(-0.5 * ((r - radius) / width) ** 2)

    radial = integrate.quad(integrand, 0.5, 3.0, points=[radius], epsabs=0, epsrel=1e-12)[0]
    surface = np.log(2) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d)
    return Case(loglike, box(-3, 3, d), float(
        surface + (d - 1) * np.log(radius) + np.log(radial) - HALF_LOG_2_PI - np.log(width)
        - d * np.log(6)))


def egg_box() -> Case:
    """18 modes: (2 + cos(x / 2) cos(y / 2))^5 on a square of side 10 pi."""
    def loglike(x):
        return (2 + np.cos(x[:, 0] / 2) * np.cos(x[:, 1] / 2)) ** 5

    # the integrand has the period 4 pi along each: trapezoids converge at once on 5 half periods
    n = 4000
    t = (np.arange(n) + 0.5) / n * 10 * np.pi
    c = np.cos(t / 2)
    logs = [logsumexp((2 + a * c) ** 5) for a in c]
    return Case(loglike, box(0, 10 * np.pi, 2), float(logsumexp(logs) - 2 * np.log(n)))


def student(d: int, nu: float, half: float = 100.0) -> Case:
    """Independent Student variables."""
    one = stats.t(nu)
    constant = one.logpdf(0.0)

    def loglike(x):
        return d * constant - 0.5 * (nu + 1) * log1p(x**2 / nu).sum(axis=1)

    return Case(loglike, box(-half, half, d),
                d * float(np.log(one.cdf(half) - one.cdf(-half)) - np.log(2 * half)))


def funnel(d: int, half: float = 30.0) -> Case:
    """Neal's: v ~ N(0, 3^2), x_i ~ N(0, e^v), cut off by the cube."""
    def loglike(x):
        v, rest = x[:, 0], np.square(x[:, 1:]).sum(axis=1)
        return (-0.5 * (v / 3) ** 2 - np.log(3) - 0.5 * (rest * np.exp(-v) + (d - 1) * v)
                - d * HALF_LOG_2_PI)

    def integrand(v):
        inside = 2 * stats.norm.cdf(half * np.exp(-v / 2)) - 1
        return stats.norm.pdf(v, 0, 3) * inside ** (d - 1)

    mass = integrate.quad(integrand, -half, half, points=[0.0, 6.0], limit=500)[0]
    return Case(loglike, box(-half, half, d), float(np.log(mass) - d * np.log(2 * half)))


def logistic(d: int, n: int = 60) -> Case:
    """Logistic regression, by Gauss-Hermite quadrature about the mode."""
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    y = rng.random(n) < 1 / (1 + np.exp(-X @ np.linspace(0.5, -1.5, d)))
    signs = np.where(y, 1.0, -1.0)

    def loglike(beta):
        return -np.logaddexp(0, -signs * (beta @ X.T)).sum(axis=1)

    def log_posterior(beta):
        return loglike(beta) + stats.norm(0, 2).logpdf(beta).sum(axis=1)

    mode = np.zeros(d)
    for _ in range(50):  # Newton's method
        p = 1 / (1 + np.exp(-X @ mode))
        hessian = (X * (p * (1 - p))[:, None]).T @ X + np.eye(d) / 4
        mode = mode + np.linalg.solve(hessian, X.T @ (y - p) - mode / 4)
    L = np.linalg.cholesky(np.linalg.inv(hessian))
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    Z = np.stack(np.meshgrid(*[nodes] * d), axis=-1).reshape(-1, d)
    W = np.log(np.stack(np.meshgrid(*[weights] * d), axis=-1).reshape(-1, d)).sum(axis=1)
    values = log_posterior(mode + Z @ L.T) + 0.5 * np.square(Z).sum(axis=1) + W
    return Case(loglike, {"beta": (stats.norm(0, 2), d)},
                float(logsumexp(values) + np.log(np.diag(L)).sum()))


def linear(d: int, n: int = 80) -> Case:
    """Linear regression with a known variance of the noise."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)

    def loglike(beta):
        return -0.5 * np.square(y - beta @ X.T).sum(axis=1) - n * HALF_LOG_2_PI

    truth = stats.multivariate_normal(np.zeros(n), np.eye(n) + 4 * X @ X.T).logpdf(y)
    return Case(loglike, {"beta": (stats.norm(0, 2), d)}, float(truth))


def conjugate() -> Case:
    """Two rates with gamma priors and two probabilities with beta priors, few observations."""
    counts, hits, tries = np.array([3, 0]), np.array([1, 9]), np.array([4, 10])
    shape, rate, a, b = 2.0, 0.5, 0.7, 1.5

    def loglike(x):
        rates, p = x[:, :2], x[:, 2:]
        return ((counts * np.log(rates) - rates - gammaln(counts + 1)).sum(axis=1)
                + (hits * np.log(p) + (tries - hits) * log1p(-p)).sum(axis=1))

    poisson = (shape * np.log(rate) - (shape + counts) * np.log(rate + 1)
               + gammaln(shape + counts) - gammaln(shape) - gammaln(counts + 1)).sum()
    binomial = (betaln(a + hits, b + tries - hits) - betaln(a, b)).sum()
    return Case(loglike, {"rates": (stats.gamma(shape, scale=1 / rate), 2),
                          "p": (stats.beta(a, b), 2)}, float(poisson + binomial))


CASES: dict[str, Callable[[], Case]] = {
    "Gaussian, d = 2": lambda: gaussian(2, 0.5),
    "Gaussian, d = 10, correlations 0.9": lambda: gaussian(10, 0.9),
    "Gaussian, d = 50": lambda: gaussian(50, 0.5),
    "two modes, d = 6": lambda: modes([[-4.0] * 6, [4.0] * 6], [0.3, 0.7], 1.0, 12.0),
    "eight modes, d = 5": lambda: eight_modes(5),
    "banana, d = 8": lambda: banana(8, 0.03),
    "Rosenbrock, d = 2": rosenbrock,
    "shell, d = 2": lambda: shell(2),
    "shell, d = 5": lambda: shell(5),
    "shell, d = 15": lambda: shell(15),
    "egg-box, 18 modes": egg_box,
    "Student, 3 degrees, d = 5": lambda: student(5, 3.0),
    "funnel, d = 5": lambda: funnel(5),
    "logistic regression, d = 3": lambda: logistic(3),
    "linear regression, d = 20": lambda: linear(20),
    "rates and probabilities, d = 4": conjugate,
}
