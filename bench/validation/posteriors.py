"""Posteriors with exact moments: by conjugacy, by symmetry, or by quadrature to ten digits.

Each is written in plain Python, as it has few dimensions, with its gradient. Where a parameter is
positive it is sampled as its logarithm, with the derivative of the transform in the density.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import atan, exp, inf, log, log1p, pi
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma, gamma, polygamma

import fastkam as fk


@dataclass(frozen=True)
class Known:
    """A density and its exact moments.

    Attributes
    ----------
    f : callable or Target
        f(x) returns the log density, up to a constant, and its gradient (d,).
    mean, sd : array (d,)
        Exact mean and standard deviation of each coordinate.
    options : dict
        Further arguments of `fk.sample`.
    """

    f: Any
    mean: np.ndarray
    sd: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)

    def logp(self, x):
        """The log density alone."""
        return self.f.logp(x) if isinstance(self.f, fk.Target) else self.f(x)[0]

    def starts(self, chains, rng):
        """Points (chains, d) around the mean, twice as wide as the posterior, with a density."""
        points = []
        while len(points) < chains:
            x = self.mean + 2 * self.sd * rng.standard_normal(len(self.mean))
            if self.logp(x) > -inf:
                points.append(x)
        return np.array(points)


POSTERIORS: dict[str, Callable[[], Known]] = {}


def known(name):
    """Register the function below, which makes the posterior of that name."""
    def register(make):
        POSTERIORS[name] = make
        return make

    return register


def built_in(target):
    """One of fastkam's own densities, whose moments are in closed form."""
    return Known(target, target.mean, np.sqrt(np.diag(target.cov)))


def independent(one, d, mean, sd):
    """d coordinates of the same density; one(t) returns log density and derivative at a number."""
    def f(x):
        pairs = [one(t) for t in x.tolist()]
        return sum(value for value, _ in pairs), np.array([slope for _, slope in pairs])

    return Known(f, np.full(d, mean), np.full(d, sd))


def by_quadrature(f, center, width, points=600):
    """Moments in one or two dimensions by the trapezoidal rule over `center` +- `width`.

    For a smooth density that vanishes at the edges the rule converges faster than any power of
    the number of points.
    """
    axes = [np.linspace(c - w, c + w, points) for c, w in zip(center, width, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    logs = np.array([f(x)[0] for x in grid])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    return Known(f, mean, np.sqrt(weights @ (grid - mean) ** 2))


# ---- normal distributions, and what is made of them ----


@known("normal, correlation 0.9, d = 2")
def correlated():
    return built_in(fk.targets.Gaussian([1.0, -2.0], [[1.0, 0.9], [0.9, 1.0]]))


@known("normal, scales 0.2 to 5, d = 10")
def scales():
    return built_in(fk.targets.Gaussian(np.zeros(10), np.diag(np.linspace(0.2, 5, 10) ** 2)))


@known("Student t, 9 degrees of freedom, d = 3")
def student():
    return built_in(fk.targets.StudentT(3, 9.0))


@known("banana, d = 2")
def banana():
    return built_in(fk.targets.Banana(0.3, -0.6, [2.0, 1.0]))


@known("two normals 4 apart, weights 3 and 7, d = 2")
def two_normals():
    return built_in(fk.targets.GaussianMixture([[-2.0, 0.0], [2.0, 0.0]], weights=[3, 7]))


@known("funnel, variance 1, d = 3")
def funnel():
    return built_in(fk.targets.Funnel(d=3, variance=1.0))


@known("flower, d = 2")
def flower():
    return built_in(fk.targets.Flower(r0=3.0, A=1.0, w=3, s2=0.5, d=2))


# ---- conjugate posteriors ----


@known("normal data: mean and log sd, d = 2")
def normal_data():
    y = np.array([4.1, 5.3, 4.6, 3.9, 5.0, 4.4, 6.1, 4.9])
    return regression(np.ones((len(y), 1)), y)


@known("linear regression and log sd, d = 4")
def linear():
    rng = np.random.default_rng(11)
    X = np.column_stack([np.ones(25), rng.standard_normal((25, 2))])
    return regression(X, X @ [1.0, -0.5, 0.3] + 0.7 * rng.standard_normal(25))


def regression(X, y, shape=3.0, rate=2.0, precision=0.1):
    """y ~ N(X b, s^2), b | s ~ N(0, s^2 / precision), 1 / s^2 ~ Gamma(shape, rate): (b, log s)."""
    n, k = X.shape
    A = X.T @ X + precision * np.eye(k)
    mean = np.linalg.solve(A, X.T @ y)
    a, b = shape + 0.5 * n, rate + 0.5 * (y @ y - mean @ A @ mean)

    def f(x):
        beta, v = x[:k] - mean, exp(-2 * min(max(x[k], -100.0), 100.0))
        slope = A @ beta
        squares = b + 0.5 * float(beta @ slope)
        return (-(k + 2 * a) * x[k] - v * squares,
                np.append(-v * slope, 2 * v * squares - (k + 2 * a)))

    variances = b / (a - 1) * np.diag(np.linalg.inv(A))
    return Known(f, np.append(mean, 0.5 * (log(b) - digamma(a))),
                 np.sqrt(np.append(variances, polygamma(1, a) / 4)))


@known("Poisson counts: log rates, d = 2")
def rates():
    a, b = np.array([2.5, 9.0]), np.array([3.0, 4.0])

    def f(x):
        mean = b * np.exp(np.minimum(x, 300.0))
        return float(a @ x - mean.sum()), a - mean

    return Known(f, digamma(a) - np.log(b), np.sqrt(polygamma(1, a)))


@known("binomial counts: logits, d = 3")
def logits():
    a, b = np.array([1.5, 4.0, 12.0]), np.array([6.5, 4.0, 3.0])

    def f(x):
        return (float(a @ x - (a + b) @ np.logaddexp(0, x)),
                a - (a + b) * 0.5 * (1 + np.tanh(0.5 * x)))

    return Known(f, digamma(a) - digamma(b), np.sqrt(polygamma(1, a) + polygamma(1, b)))


@known("multinomial counts: log ratios, d = 3")
def log_ratios():
    a, last = np.array([2.0, 5.0, 8.0]), 4.0

    def f(x):
        high = max(0.0, x.max())
        terms = np.exp(x - high)
        total = terms.sum() + exp(-high)
        n = a.sum() + last
        return float(a @ x - n * (high + log(total))), a - n * terms / total

    return Known(f, digamma(a) - digamma(last), np.sqrt(polygamma(1, a) + polygamma(1, last)))


# ---- by quadrature ----


@known("logistic regression, d = 2")
def logistic():
    rng = np.random.default_rng(12)
    X = np.column_stack([np.ones(30), rng.standard_normal(30)])
    y = (rng.random(30) < 1 / (1 + np.exp(-X @ [0.3, 1.0]))).astype(float)

    def f(x):
        t = X @ x
        return (float(y @ t - np.logaddexp(0, t).sum() - 0.125 * x @ x),
                X.T @ (y - 0.5 * (1 + np.tanh(0.5 * t))) - 0.25 * x)

    return by_quadrature(f, [0.3, 1.0], [6.0, 6.0])


@known("Poisson regression, d = 2")
def poisson():
    X = np.column_stack([np.ones(12), np.linspace(-1, 1, 12)])
    y = np.array([1.0, 0, 2, 1, 1, 3, 2, 4, 3, 5, 4, 8])

    def f(x):
        t = X @ x
        mean = np.exp(np.minimum(t, 300.0))
        return float(y @ t - mean.sum() - 0.05 * x @ x), X.T @ (y - mean) - 0.1 * x

    return by_quadrature(f, [0.8, 0.9], [3.0, 4.0])


@known("Cauchy data: location, d = 1")
def cauchy():
    y = np.array([-1.2, 0.4, 0.9, 1.3, 6.0, 7.2])

    def f(x):
        r = x[0] - y
        return (float(-np.log1p(r**2).sum()) - 0.02 * float(x[0]) ** 2,
                np.array([-(2 * r / (1 + r**2)).sum() - 0.04 * x[0]]))

    return by_quadrature(f, [1.0], [60.0], points=60_001)


@known("eight schools: mean and log sd of effects, d = 2")
def schools():
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]) / 10
    v = (np.array([15.0, 10, 16, 11, 9, 11, 10, 18]) / 10) ** 2

    def f(x):
        """Effects integrated out; mean ~ N(0, 2^2), log sd ~ N(0, 0.7^2)."""
        t2 = exp(2 * min(float(x[1]), 300.0))
        s, r = v + t2, y - x[0]
        slope = (r**2 / s**2 - 1 / s).sum() * t2 - x[1] / 0.49
        return (float(-0.5 * (np.log(s) + r**2 / s).sum() - x[0] ** 2 / 8 - x[1] ** 2 / 0.98),
                np.array([(r / s).sum() - x[0] / 4, slope]))

    return by_quadrature(f, [0.5, -0.1], [7.0, 6.0])


# ---- edges, kinks and tails ----


@known("half normal: a hard bound, d = 2")
def half_normal():
    def one(t):
        return (-0.5 * t * t, -t) if t > 0 else (-inf, 0.0)

    return independent(one, 2, (2 / pi) ** 0.5, (1 - 2 / pi) ** 0.5)


@known("uniform on a square, d = 2")
def uniform():
    return independent(lambda t: (0.0 if abs(t) < 1 else -inf, 0.0), 2, 0.0, 3**-0.5)


@known("Laplace: a kink, d = 3")
def laplace():
    return independent(lambda t: (-abs(t), -1.0 if t > 0 else 1.0), 3, 0.0, 2**0.5)


@known("exp(-x^4): light tails, d = 2")
def quartic():
    return independent(lambda t: (-t**4, -4 * t**3), 2, 0.0, (gamma(0.75) / gamma(0.25)) ** 0.5)


@known("Gumbel: a skew, d = 2")
def gumbel():
    def one(t):
        e = exp(min(-t, 300.0))
        return -t - e, e - 1

    return independent(one, 2, np.euler_gamma, pi / 6**0.5)


@known("logistic distribution, d = 2")
def logistic_distribution():
    def one(t):
        e = exp(-abs(t))
        return -abs(t) - 2 * log1p(e), (-1 if t > 0 else 1) * (1 - e) / (1 + e)

    return independent(one, 2, 0.0, pi / 3**0.5)


@known("arctangent: two modes of unequal width, d = 1")
def unequal():
    def f(x):
        t = float(x[0])
        a, b = -0.5 * (t + 1.5) ** 2, -2 * (t - 1.5) ** 2
        high = max(a, b)
        p, q = exp(a - high), exp(b - high)
        value = high + log(p + q) + 0.3 * atan(t)
        slope = (-p * (t + 1.5) - 4 * q * (t - 1.5)) / (p + q) + 0.3 / (1 + t * t)
        return value, np.array([slope])

    moments = [quad(lambda t, k=k: t**k * exp(f([t])[0]), -12, 12, epsabs=1e-12, points=[-1.5, 1.5],
                    limit=200)[0] for k in range(3)]
    mean = moments[1] / moments[0]
    return Known(f, np.array([mean]), np.array([(moments[2] / moments[0] - mean**2) ** 0.5]))
