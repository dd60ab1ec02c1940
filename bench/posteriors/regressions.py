"""Regressions. Scales sigma, lambda, tau are sampled as their logarithms."""

import numpy as np

from bench.posteriors.posterior import POSTERIORS, Posterior, posterior

# ---- logistic, with predictors in their own units and in many dimensions ----


def logistic(X, y, prior_sd):
    """y ~ Bernoulli(logit^-1(X b)), b ~ N(0, diag(prior_sd^2))."""
    precision = np.broadcast_to(1.0 / np.asarray(prior_sd, float) ** 2, X.shape[1])

    def evaluate(b, gradient):
        eta = X @ b
        value = y @ eta - np.logaddexp(0, eta).sum() - 0.5 * (b * precision) @ b
        if not gradient:
            return value
        return value, X.T @ (y - 0.5 * (1 + np.tanh(0.5 * eta))) - precision * b

    return evaluate


def clinic(n=150):
    """Intercept, dose (g), age (years), sodium (mmol/l), sex, weight (kg), and a cure."""
    rng = np.random.default_rng(1)
    X = np.c_[np.ones(n), rng.normal(0.05, 0.02, n), rng.normal(50, 12, n),
              rng.normal(140, 4, n), rng.random(n) < 0.5, rng.normal(80, 15, n)]
    eta = X @ [-13.0, 40.0, 0.04, 0.06, 0.8, 0.01]
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


posterior("logistic regression, raw predictors", 6)(
    logistic(*clinic(), prior_sd=[50, 50, 1, 1, 5, 1]))


def wide(n=250, p=25):
    rng = np.random.default_rng(2)
    L = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(range(p), range(p))))
    X = np.c_[np.ones(n), rng.standard_normal((n, p)) @ L.T]
    eta = X @ rng.normal(0, 0.5, p + 1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


posterior("logistic regression, d = 26", 26)(logistic(*wide(), prior_sd=2.5))


# ---- counts ----


def accidents(n=60):
    """Intercept, year (since 1980, not centered), two covariates, rain; counts and exposures."""
    rng = np.random.default_rng(3)
    exposure = rng.uniform(0.5, 3, n)
    X = np.c_[np.ones(n), np.linspace(0, 30, n), rng.standard_normal((n, 2)), rng.random(n) < 0.3]
    return X, rng.poisson(exposure * np.exp(X @ [1.0, -0.03, 0.3, -0.2, 0.4])), exposure


def poisson(X, y, exposure, prior_sd=5.0):
    def evaluate(b, gradient):
        eta = X @ b
        rate = exposure * np.exp(eta)
        value = y @ eta - rate.sum() - 0.5 * b @ b / prior_sd**2
        return (value, X.T @ (y - rate) - b / prior_sd**2) if gradient else value

    return evaluate


posterior("Poisson regression", 5)(poisson(*accidents()))


# ---- normal errors of unknown size: conjugate, so that moments are known ----


class NormalLinear:
    """y ~ N(X b, s^2), b ~ N(0, width s^2 I), s^2 ~ inverse gamma(a, c); x = (b, log s)."""

    def __init__(self, X, y, width=100.0, a=2.0, c=2.0):
        self.X, self.y, self.width, self.a, self.c = X, y, width, a, c

    def __call__(self, x, gradient):
        b, log_s = x[:-1], x[-1]
        n, p = self.X.shape
        r = self.y - self.X @ b
        squares = 0.5 * (r @ r + b @ b / self.width) + self.c
        precision = np.exp(-2 * log_s)
        value = -(n + p + 2 * self.a) * log_s - precision * squares
        if not gradient:
            return value
        return value, np.append(precision * (self.X.T @ r - b / self.width),
                                2 * precision * squares - (n + p + 2 * self.a))


def nearly_equal_predictors(n=60, p=7, rho=0.99):
    rng = np.random.default_rng(4)
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal((n, p))
    return X, X @ np.linspace(-1, 1, p) + 0.8 * rng.standard_normal(n)


LINEAR = NormalLinear(*nearly_equal_predictors())
posterior("linear regression, correlation 0.99", 8)(LINEAR)


# ---- Student errors ----


def outliers(n=50):
    rng = np.random.default_rng(5)
    X = np.c_[np.ones(n), rng.normal(10, 2, n), rng.standard_normal(n)]
    return X, X @ [2.0, 0.7, -0.5] + 0.6 * rng.standard_t(2, n)


def student(X, y, nu=3.0, prior_sd=10.0):
    """y ~ t_nu(X b, s), b ~ N(0, prior_sd^2), log s ~ N(0, 1); x = (b, log s)."""
    n = len(y)

    def evaluate(x, gradient):
        b, log_s = x[:-1], x[-1]
        r = y - X @ b
        s2 = np.exp(2 * log_s)
        value = (-n * log_s - 0.5 * (nu + 1) * np.log1p(r * r / (nu * s2)).sum()
                 - 0.5 * b @ b / prior_sd**2 - 0.5 * log_s**2)
        if not gradient:
            return value
        w = (nu + 1) * r / (nu * s2 + r * r)
        return value, np.append(X.T @ w - b / prior_sd**2, w @ r - n - log_s)

    return evaluate


posterior("regression, Student errors", 4)(student(*outliers()))


# ---- a horseshoe, non-centered ----


def sparse(n=30, p=8):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, p))
    return X, X @ np.r_[2.0, -1.0, np.zeros(p - 2)] + rng.standard_normal(n)


def horseshoe(X, y):
    """y ~ N(X b, s^2), b = z lambda tau; x = (z, log lambda, log tau, log s).

    z ~ N(0, 1), lambda and tau half Cauchy with scale 1, log s ~ N(0, 1).
    """
    n, p = X.shape

    def evaluate(x, gradient):
        z, log_scales, log_s = x[:p], x[p:2 * p + 1], x[-1]
        scale = np.exp(log_scales[:p] + log_scales[p])
        b = z * scale
        r = y - X @ b
        precision = np.exp(-2 * log_s)
        value = (-n * log_s - 0.5 * precision * (r @ r) - 0.5 * z @ z - 0.5 * log_s**2
                 + (log_scales - np.logaddexp(0, 2 * log_scales)).sum())
        if not gradient:
            return value
        g_b = precision * (X.T @ r)
        g_scales = -np.tanh(log_scales)         # of u - log(1 + exp(2 u))
        g_scales[:p] += g_b * b
        g_scales[p] += g_b @ b
        return value, np.concatenate([g_b * scale - z, g_scales,
                                      [precision * (r @ r) - n - log_s]])

    return evaluate


POSTERIORS["horseshoe regression"] = Posterior(horseshoe(*sparse()), np.zeros(18), tolerance=0.15)
