"""A Gaussian process, mixtures, and a product of which only the value is known."""

import numpy as np

from bench.posteriors.posterior import posterior

# ---- hyperparameters of a Gaussian process ----


def curve(n=60):
    rng = np.random.default_rng(14)
    at = np.sort(rng.uniform(0, 10, n))
    return at, np.sin(at) + 0.3 * at + 0.3 * rng.standard_normal(n)


AT, CURVE = curve()
DISTANCES = np.subtract.outer(AT, AT) ** 2


@posterior("Gaussian process", 3)
def process(x, gradient):
    """y ~ N(0, A^2 exp(-r^2 / (2 l^2)) + s^2 I); x = log (l, A, s), each N(0, 1)."""
    l2, A2, s2 = np.exp(2 * x)
    C = A2 * np.exp(-0.5 / l2 * DISTANCES)
    try:
        L = np.linalg.cholesky(C + s2 * np.eye(len(AT)))
    except np.linalg.LinAlgError:
        return (-np.inf, np.zeros(3)) if gradient else -np.inf
    inverse = np.linalg.inv(L)
    w = inverse @ CURVE
    value = -0.5 * (w @ w + x @ x) - np.log(np.diag(L)).sum()
    if not gradient:
        return value
    a = inverse.T @ w
    W = np.outer(a, a) - inverse.T @ inverse        # twice the derivative by the covariance
    WC = W * C
    return value, np.array([0.5 * (WC * DISTANCES).sum() / l2, WC.sum(), s2 * np.trace(W)]) - x


# ---- two normal components ----


def sample_of_two(n=60):
    rng = np.random.default_rng(15)
    first = rng.random(n) < 0.4
    return np.where(first, rng.normal(-1.2, 0.6, n), rng.normal(1.4, 0.9, n))


SAMPLE = sample_of_two()


@posterior("mixture, labels free", 5)
def mixture(x, gradient):
    """y ~ w N(m1, s1^2) + (1 - w) N(m2, s2^2); x = (m1, m2, log s1, log s2, u).

    w = logistic(u), uniform; means ~ N(0, 3^2), log s ~ N(0, 0.5^2). It has two modes, mirror
    images of each other.
    """
    m, log_s, u = x[:2, None], x[2:4, None], x[4]
    log_w = -np.logaddexp(0, [-u, u])
    z = (SAMPLE - m) * np.exp(-log_s)
    logs = log_w[:, None] - log_s - 0.5 * z * z
    total = np.logaddexp(*logs)
    value = (total.sum() + log_w.sum() - 0.5 * (x[:2] @ x[:2]) / 9 - 2 * (x[2:4] @ x[2:4]))
    if not gradient:
        return value
    share = np.exp(logs - total)
    first = np.exp(log_w[0])
    return value, np.concatenate([
        (share * z).sum(axis=1) * np.exp(-x[2:4]) - x[:2] / 9,
        (share * (z * z - 1)).sum(axis=1) - 4 * x[2:4],
        [share[0].sum() - len(SAMPLE) * first + 1 - 2 * first]])


@posterior("mixture, labels ordered", 5)
def ordered_mixture(x, gradient):
    """The same with m2 = m1 + e^u; x = (m1, u, log s1, log s2, u)."""
    gap = np.exp(x[1])
    y = x.copy()
    y[1] = x[0] + gap
    if not gradient:
        return mixture(y, False) + x[1]
    value, g = mixture(y, True)
    g[0] += g[1]
    g[1] = g[1] * gap + 1
    return value + x[1], g


# ---- a product ----

PRODUCT, PRODUCT_SD = 2.0, 0.1


@posterior("product of two, known", [1.0, 1.0])
def product(x, gradient):
    """x y ~ N(2, 0.1^2), x and y positive, gamma(2, 1); not transformed."""
    if not (x > 0).all():
        return (-np.inf, np.zeros(2)) if gradient else -np.inf
    off = (PRODUCT - x[0] * x[1]) / PRODUCT_SD
    value = -0.5 * off * off + np.log(x).sum() - x.sum()
    return (value, off / PRODUCT_SD * x[::-1] + 1 / x - 1) if gradient else value
