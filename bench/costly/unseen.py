"""Densities on which nothing of the learned surrogate was tuned, with their moments in closed form.

One for each shape that costly posteriors have: away from the start, bent, skewed, within walls, a
funnel, several modes, heavy tails, a narrow ridge, a prior with hard edges, a simulator that fails.
"""

import numpy as np
from scipy import special, stats

from bench.costly.densities import Case

UNSEEN: dict[str, Case] = {}


def shifted(x):
    """Normal, correlated, some 30 standard deviations from the start."""
    z = SHIFT_INVERSE @ (x - SHIFT)
    return -0.5 * float(z @ z)


SHIFT = np.array([30.0, -12, 5, 0, 3, -40, 1, 8])
SHIFT_FACTOR = np.tril(np.full((8, 8), 0.5)) + 0.5 * np.eye(8)
SHIFT_INVERSE = np.linalg.inv(SHIFT_FACTOR)
UNSEEN["shifted, d = 8"] = Case(
    shifted, np.zeros(8), SHIFT, np.sqrt(np.diag(SHIFT_FACTOR @ SHIFT_FACTOR.T)))


def curved(x):
    """Two bends: x_1 about x_0^2, x_3 about x_2^2 / 2; x_4 about x_0."""
    return -0.5 * float(x[0] ** 2 + (x[1] - x[0] ** 2) ** 2 + x[2] ** 2
                        + 4 * (x[3] - 0.5 * x[2] ** 2) ** 2 + (x[4] - x[0]) ** 2)


UNSEEN["curved, d = 5"] = Case(
    curved, np.array([1.0, 0, -1, 0, 2]), np.array([0, 1, 0, 0.5, 0]),
    np.sqrt([1, 3, 1, 0.75, 2]))

SHAPES = np.array([0.5, 1, 1.5, 2, 4, 8])


def skewed(x):
    """Logarithms of gamma variables."""
    return float(SHAPES @ x - np.exp(np.minimum(x, 500.0)).sum())


UNSEEN["skewed, d = 6"] = Case(
    skewed, np.zeros(6), special.digamma(SHAPES), np.sqrt(special.polygamma(1, SHAPES)))

BETAS = [stats.beta(1, 3), stats.beta(2, 5), stats.beta(4, 1.5)]


def bounded(x):
    """Three beta variables, the first with its maximum at a wall."""
    if not ((x > 0) & (x < 1)).all():
        return -np.inf
    return float(2 * np.log1p(-x[0]) + np.log(x[1]) + 4 * np.log1p(-x[1])
                 + 3 * np.log(x[2]) + 0.5 * np.log1p(-x[2]))


UNSEEN["bounded, d = 3"] = Case(
    bounded, np.full(3, 0.5), np.array([b.mean() for b in BETAS]),
    np.array([b.std() for b in BETAS]))


def funnel(x):
    """x_0 ~ N(0, 1), the others N(0, e^x_0)."""
    with np.errstate(over="ignore"):
        return -0.5 * float(x[0] ** 2 + (x[1:] @ x[1:]) * np.exp(-x[0]) + 4 * x[0])


UNSEEN["funnel, d = 5"] = Case(
    funnel, np.full(5, 0.3), np.zeros(5), np.r_[1.0, np.full(4, np.exp(0.25))])

MODES = np.array([[0.0, 0, 0], [5, 3, 0], [-2, 6, 4]])
MODE_WEIGHTS, MODE_SDS = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.7, 1.2])


def three_modes(x):
    """Three normal components, 6 to 8 apart."""
    away = ((x - MODES) ** 2).sum(axis=1)
    return float(special.logsumexp(
        np.log(MODE_WEIGHTS) - 3 * np.log(MODE_SDS) - 0.5 * away / MODE_SDS**2))


mean = MODE_WEIGHTS @ MODES
UNSEEN["three modes, d = 3"] = Case(
    three_modes, np.array([0.5, -0.5, 1]), mean,
    np.sqrt(MODE_WEIGHTS @ (MODES**2 + MODE_SDS[:, None] ** 2) - mean**2))


def student(x):
    """A Student distribution with 5 degrees of freedom."""
    return -0.5 * (5 + 4) * float(np.log1p(x @ x / 5))


UNSEEN["Student tails, d = 4"] = Case(
    student, np.array([2.0, 0, -1, 1]), np.zeros(4), np.full(4, np.sqrt(5 / 3)))


def ridge(x):
    """Standard deviations of 100 along a ridge, 0.01 across it, and 1."""
    u, v = (x[0] + x[1]) / 2**0.5, (x[0] - x[1]) / 2**0.5
    return -0.5 * float((u / 100) ** 2 + (v / 0.01) ** 2 + (x[2] - 1) ** 2)


UNSEEN["ridge of 1e4, d = 3"] = Case(
    ridge, np.array([3.0, 2.0, 0.0]), np.array([0, 0, 1.0]),
    np.r_[np.full(2, np.sqrt((100.0**2 + 0.01**2) / 2)), 1.0])

EDGES = [stats.truncnorm(-0.5, np.inf), stats.truncnorm(-np.inf, 0.2), stats.truncnorm(-1, 1),
         stats.truncnorm(1.0, np.inf)]


def edges(x):
    """A normal likelihood, and a uniform prior whose edges cut it."""
    if x[0] < -0.5 or x[1] > 0.2 or abs(x[2]) > 1 or x[3] < 1:
        return -np.inf
    return -0.5 * float(x @ x)


UNSEEN["hard edges, d = 4"] = Case(
    edges, np.array([0.5, -0.5, 0, 2.0]), np.array([e.mean() for e in EDGES]),
    np.array([e.std() for e in EDGES]))


def failing_region(x):
    """A standard normal density whose simulator raises where x_0 and x_1 are above 0.5."""
    if x[0] > 0.5 and x[1] > 0.5:
        raise ArithmeticError("the solver has not converged")
    return -0.5 * float(x @ x)


q, phi = stats.norm.sf(0.5), stats.norm.pdf(0.5)
mean = -phi * q / (1 - q * q)
sd = np.sqrt((1 - (q + 0.5 * phi) * q) / (1 - q * q) - mean**2)
UNSEEN["failing region, d = 4"] = Case(
    failing_region, np.full(4, -0.5), np.array([mean, mean, 0, 0]), np.array([sd, sd, 1, 1]),
    {"on_error": "reject"})
