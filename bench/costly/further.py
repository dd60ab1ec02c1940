"""Nine densities more, written before the check of draws by tempered chains.

Nothing of the learned surrogate was tuned on them, but for the enzyme and the bend, at which runs
were looked at while its search for tails was made wider. Two models of few observations and a
Gaussian process have moments by sums over a grid; shapes have them in closed form: a singular wall,
a bend in six dimensions, skewness, unequal modes far apart, a plateau, and a gap without a density
through the middle.
"""

import numpy as np
from scipy import special, stats

from bench.costly.densities import Case

FURTHER: dict[str, Case] = {}


def grid_moments(f, low, high, n):
    """Means and standard deviations (d,) of the density f(X), by sums over n points a dimension."""
    axes = [np.linspace(a, b, n) for a, b in zip(low, high, strict=True)]
    X = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
    lp = np.concatenate([f(part) for part in np.array_split(X, max(1, len(X) // 20_000))])
    w = np.exp(lp - lp.max())
    w /= w.sum()
    mean = w @ X
    return mean, np.sqrt(w @ (X - mean) ** 2)


# ---- models of few observations ----

DOSE = np.array([0.2, 0.5, 1.0, 1.5, 2.5, 4.0, 6.0, 9.0, 13.0, 20.0])
RATE = np.array([0.71, 1.52, 2.61, 5.90, 4.52, 5.78, 6.47, 4.10, 7.62, 8.31])  # two outliers


def enzyme_rows(X):
    """Michaelis-Menten with Student errors: log Vmax, log Km, log scale; (n,) at X (n, 3)."""
    V, K, s = np.exp(X.T)[:, :, None]
    r = (RATE - V * DOSE / (K + DOSE)) / s
    prior = -0.5 * ((X - np.array([2.0, 1.0, -1.0])) ** 2).sum(axis=1)
    return prior - (len(DOSE) * X[:, 2]) - (2.5 * np.log1p(r * r / 4)).sum(axis=1)


def enzyme(x):
    return float(enzyme_rows(np.asarray(x)[None])[0])


FURTHER["Michaelis-Menten, outliers"] = Case(
    enzyme, np.zeros(3), *grid_moments(enzyme_rows, (0.5, -2.5, -5.5), (4.5, 5.5, 2.5), 120))

PLACES = np.array([0.0, 0.3, 0.9, 1.1, 1.8, 2.2, 2.9, 3.1, 3.8, 4.4, 5.0, 5.2])
HEIGHTS = np.array([0.3, 0.7, 1.2, 1.3, 0.8, 0.9, -0.4, -0.2, -0.9, -1.3, -0.6, -0.8])
APART = (PLACES[:, None] - PLACES) ** 2


def process_rows(X):
    """A Gaussian process, squared exponential: logs of amplitude, length, noise; at X (n, 3)."""
    a, length, noise = np.exp(2 * X.T)
    C = a[:, None, None] * np.exp(-0.5 * APART / length[:, None, None])
    C += (noise[:, None, None] + 1e-9) * np.eye(len(PLACES))
    L = np.linalg.cholesky(C)
    z = np.linalg.solve(L, np.broadcast_to(HEIGHTS[:, None], (*L.shape[:2], 1)))[:, :, 0]
    prior = -0.5 * ((X - np.array([0.0, 0, -1.5])) ** 2).sum(axis=1)
    return prior - 0.5 * (z * z).sum(axis=1) - np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)


def process(x):
    try:
        return float(process_rows(np.asarray(x)[None])[0])
    except np.linalg.LinAlgError:
        return -np.inf


FURTHER["process, 12 observations"] = Case(
    process, np.zeros(3), *grid_moments(process_rows, (-3.5, -4.5, -6.0), (4.0, 4.0, 2.0), 70))

TIMES = np.arange(0.0, 12.0, 1.5)
STOCK = np.array([1.9, 3.1, 5.6, 7.7, 8.1, 10.4, 9.4, 9.9])


def growth(x):
    """Logistic growth, errors of an unknown sd: log r, log K, log n0, log sigma."""
    r, K, n0, sigma = np.exp(np.clip(x, -50, 50))
    with np.errstate(all="ignore"):
        level = K / (1 + (K / n0 - 1) * np.exp(-r * TIMES))
        value = (-0.5 * (((STOCK - level) / sigma) ** 2).sum() - len(TIMES) * x[3]
                 - 0.5 * (((x - np.array([-0.7, 2.3, 0.5, -0.5])) / 0.5) ** 2).sum())
    return float(value) if np.isfinite(value) else -np.inf


GROWTH = ((-0.5363, 2.3093, 0.5313, -0.5124), (0.1702, 0.0504, 0.2206, 0.2671))  # by a grid of 48^4
FURTHER["growth, noise unknown"] = Case(growth, np.zeros(4), *map(np.array, GROWTH))

# ---- shapes ----

SINGULAR = [stats.beta(0.8, 2), stats.beta(1, 4), stats.beta(2.5, 0.9), stats.beta(3, 3)]


def singular(x):
    """Beta variables; the density of the first has no bound at 0, that of the third none at 1."""
    if not ((x > 0) & (x < 1)).all():
        return -np.inf
    return float(-0.2 * np.log(x[0]) + np.log1p(-x[0]) + 3 * np.log1p(-x[1]) + 1.5 * np.log(x[2])
                 - 0.1 * np.log1p(-x[2]) + 2 * np.log(x[3]) + 2 * np.log1p(-x[3]))


FURTHER["singular walls, d = 4"] = Case(
    singular, np.full(4, 0.4), np.array([b.mean() for b in SINGULAR]),
    np.array([b.std() for b in SINGULAR]))


def bent_in_six(x):
    """x_0 ~ N(0, 4), x_1 about x_0^2 / 4, the others standard normal."""
    return -0.5 * float(x[0] ** 2 / 4 + (x[1] - 0.25 * x[0] ** 2) ** 2 + x[2:] @ x[2:])


FURTHER["banana, d = 6"] = Case(
    bent_in_six, np.full(6, 0.5), np.array([0, 1.0, 0, 0, 0, 0]),
    np.array([2, np.sqrt(3.0), 1, 1, 1, 1]))

SKEW = 4.0


def skew_normal(x):
    """Independent skew-normal variables."""
    return float(-0.5 * x @ x + special.log_ndtr(SKEW * x).sum())


one = stats.skewnorm(SKEW)
FURTHER["skew-normal, d = 8"] = Case(
    skew_normal, np.full(8, 0.2), np.full(8, one.mean()), np.full(8, one.std()))

FAR = np.array([6.0, 0, 0])


def unequal_modes(x):
    """Standard normal components, 6 apart, of the weights 0.7 and 0.3."""
    away = x - FAR
    return float(np.logaddexp(np.log(0.7) - 0.5 * x @ x, np.log(0.3) - 0.5 * away @ away))


FURTHER["modes 70 : 30, d = 3"] = Case(
    unequal_modes, np.array([0.5, -0.5, 1]), 0.3 * FAR, np.sqrt(1 + 0.21 * FAR**2))


def plateau(x):
    """Flat within about 3 of 0, with soft walls."""
    return -float(((x / 3) ** 8).sum())


FURTHER["plateau, d = 4"] = Case(
    plateau, np.full(4, 0.5), np.zeros(4),
    np.full(4, 3 * np.sqrt(special.gamma(3 / 8) / special.gamma(1 / 8))))


def gap(x):
    """Standard normal, without a density where 0.2 < x_0 < 0.8."""
    return -np.inf if 0.2 < x[0] < 0.8 else -0.5 * float(x @ x)


left, right = stats.truncnorm(-np.inf, 0.2), stats.truncnorm(0.8, np.inf)
p = stats.norm.cdf(0.2) / (stats.norm.cdf(0.2) + stats.norm.sf(0.8))
m = p * left.mean() + (1 - p) * right.mean()
v = p * left.moment(2) + (1 - p) * right.moment(2) - m * m
FURTHER["gap, d = 3"] = Case(
    gap, np.full(3, -0.5), np.array([m, 0, 0]), np.array([v**0.5, 1, 1]))
