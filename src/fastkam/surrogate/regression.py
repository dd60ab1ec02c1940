"""Gaussian-process regression of a log density, in whitened coordinates.

    z = L^-1 (x - c),        log pi(x) = m(z) + f(z) + e
    m(z) = b0 + b'z + z'B z,                    B negative definite
    f ~ GP(0, s^2 k),        k(r) = (1 + t + t^2/3) e^-t,   t = sqrt(5) r,
                             r^2 = sum_k (z_k - z'_k)^2 / l_k^2
    e_i ~ N(0, v^2 + (g max(0, h_i - h0))^2),   h_i = max_j log pi(x_j) - log pi(x_i)

c and L L' are roughly the mean and the covariance of the distribution, so that z is about standard
normal, B about -I/2 and the lengths l about 1. Values far below the maximum are given noise: an
exact fit there matters less than one in the region that has most of the probability.

Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, 2.7 and
5.4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

Array = NDArray[np.float64]

MOST_BELOW = (16.0, 4.0)  # points further below the maximum than the first + d times the second
# are left out where the process is low there anyway
FIRST_NOISE = 0.3  # of the mean's regression
RELATIVE_NOISE = 0.1  # of the mean's regression, times the distance below the maximum
GROWTH = 0.15  # g
LIFTED = 0.3  # share of `most_below` by which the process may be too high at a point left out
TIMES = 4  # number of times that the points left out are checked
CURVATURE_SD, SLOPE_SD = 0.5, 3.0  # of the priors of B and b
LEAST_CURVATURE = 0.05  # of -B
LENGTH_SD, AMPLITUDE_SD, NOISE_SD = 0.7, 1.5, 1.0  # of the priors of log l, log s and log v
NOISE = 1e-2  # the prior median of v
LEAST_NOISE = 1e-3
MOST_LENGTH = 4.0  # so that it is uncertain beyond the points
JITTER = 1e-8  # on the diagonal, in units of s^2
MOST_FOR_HYPERPARAMETERS = 250  # points, spread evenly over the ranks of their densities


@dataclass(frozen=True)
class Process:
    """A fitted process.

    Attributes
    ----------
    center : ndarray, shape (d,)
    factor : ndarray, shape (d, d)
        c and L.
    b0, b, B : float, ndarray (d,), ndarray (d, d)
        Coefficients of the mean m(z).
    theta : ndarray, shape (d + 2,)
        log l, log s and log v.
    z : ndarray, shape (n, d)
        The points of the regression.
    a : ndarray, shape (n,)
        The weights s^2 (K + noise)^-1 (y - m).
    cholesky : ndarray, shape (n, n)
        Lower factor of K + noise.
    of_features : ndarray, shape (n, p)
        That factor's inverse times the features of the mean at the points.
    of_mean : ndarray, shape (p, p)
        Lower factor of the posterior precision of the coefficients of the mean.
    """

    center: Array
    factor: Array
    b0: float
    b: Array
    B: Array
    theta: Array
    z: Array
    a: Array = field(default_factory=lambda: np.zeros(0))
    cholesky: Array = field(default_factory=lambda: np.zeros((0, 0)))
    of_features: Array = field(default_factory=lambda: np.zeros((0, 0)))
    of_mean: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def lengths(self) -> Array:
        return np.exp(self.theta[:-2])

    def whitened(self, X: Array) -> Array:
        """Return z of points X (n, d)."""
        return whitened(X, self.center, self.factor)

    def log_density(self, X: Array) -> Array:
        """Return the posterior mean of m + f at points X (n, d)."""
        z = self.whitened(X)
        k = matern(squares(z / self.lengths, self.z / self.lengths))
        return quadratic(z, self.b0, self.b, self.B) + k @ self.a

    def sd(self, X: Array) -> Array:
        """The posterior standard deviation of m + f at points X (n, d)."""
        s2 = np.exp(2 * self.theta[-2])
        half, of_mean = self.explained(X)
        return np.asarray(np.sqrt(
            np.maximum(s2 - (half * half).sum(axis=0), 0.0) + (of_mean * of_mean).sum(axis=0)))

    def covariance(self, X: Array) -> Array:
        """The posterior covariance of m + f at points X (n, d), (n, n)."""
        z, s2 = self.whitened(X) / self.lengths, np.exp(2 * self.theta[-2])
        half, of_mean = self.explained(X)
        return np.asarray(s2 * matern(squares(z, z)) - half.T @ half + of_mean.T @ of_mean)

    def explained(self, X: Array) -> tuple[Array, Array]:
        """Two factors of covariances at points X (m, d): H'H is what the values explain of f's,
        with H (n, m), and M'M what the uncertain coefficients of the mean add, with M (p, m).
        """
        z, s2 = self.whitened(X), np.exp(2 * self.theta[-2])
        across = s2 * matern(squares(z / self.lengths, self.z / self.lengths))
        half = solve_triangular(self.cholesky, across.T, lower=True, check_finite=False)
        rest = features(z).T - self.of_features.T @ half
        return half, solve_triangular(self.of_mean, rest, lower=True, check_finite=False)


def fit(
    X: Array, y: Array, center: Array, factor: Array, theta: Array | None = None, steps: int = 30
) -> Process:
    """Return the process fitted to finite log densities y (n,) at points X (n, d).

    Parameters
    ----------
    X, y, center, factor
        As in the formulas of this module.
    theta : array (d + 2,), optional
        Starting point of the hyperparameters.
    steps : int
        Number of steps of their optimization.
    """
    d = X.shape[1]
    below = y.max() - y
    near = near_enough(below, d)
    z = whitened(X, center, factor)
    b0, b, B = mean_of(z[near], y[near], below[near])
    mean = quadratic(z, b0, b, B)
    residual = y - mean
    prior = prior_of(residual, below, d)
    # the points with the highest density alone show nothing of the tails
    some = np.argsort(below, kind="stable")[: near.sum()]
    some = some[np.unique(np.linspace(0, len(some) - 1, MOST_FOR_HYPERPARAMETERS).astype(int))]
    found = minimize(
        negative_log_posterior, prior[0] if theta is None else theta,
        args=(z[some], residual[some], noise_of(below[some], d), prior), jac=True,
        method="L-BFGS-B", options={"maxiter": steps},
        bounds=[(-1.5, np.log(MOST_LENGTH))] * d + [(-7.0, 8.0), (np.log(LEAST_NOISE), 2.0)])
    # the process must not predict a high density at a point that is left out
    floor = y.max() - most_below(d)
    residual[~near] = np.minimum(0.0, np.maximum(y, floor) - mean)[~near]
    used = near
    for _ in range(TIMES):
        process = conditioned(
            Process(center, factor, b0, b, B, found.x, z[used]), residual[used],
            noise_of(np.minimum(below[used], most_below(d)), d))
        wrong = ~used & (process.log_density(X) > floor + LIFTED * most_below(d))
        if not wrong.any():
            break
        used = used | wrong
    return process


def conditioned(process: Process, residual: Array, extra: Array) -> Process:
    """Return the process given residuals (n,) at its points, with additional noise variances (n,).
    """
    C = covariance_of(process.z, process.theta, extra)
    factored = cho_factor(C, lower=True, check_finite=False)
    a = np.exp(2 * process.theta[-2]) * cho_solve(factored, residual, check_finite=False)
    L = np.tril(factored[0])
    G = solve_triangular(L, features(process.z), lower=True, check_finite=False)
    precision = G.T @ G + np.diag(precision_of(process.z.shape[1]))
    return replace(process, a=a, cholesky=L, of_features=G,
                   of_mean=np.linalg.cholesky(precision))


def most_below(d: int) -> float:
    """Return the distance below the maximum at which log densities are left out."""
    return MOST_BELOW[0] + MOST_BELOW[1] * d


def noise_of(below: Array, d: int) -> Array:
    """Return the noise variances (n,) of values far below the maximum."""
    return np.asarray((GROWTH * np.maximum(0.0, below - 3 - d)) ** 2)


def enough(d: int) -> int:
    """Return a number of points that suffice for a quadratic function."""
    return (d + 1) * (d + 2) // 2 + d


def near_enough(below: Array, d: int) -> NDArray[np.bool_]:
    """Return the mask of points not far below the maximum, at least as many as a quadratic needs.
    """
    order = np.argsort(below, kind="stable")
    near = below < most_below(d)
    near[order[: min(enough(d), len(order))]] = True
    return np.asarray(near)


def whitened(X: Array, center: Array, factor: Array) -> Array:
    """Return L^-1 (x - c) for the rows x of X (n, d)."""
    z = solve_triangular(factor, (X - center).T, lower=True, check_finite=False)
    return np.ascontiguousarray(z.T)


# ---- the mean ----


def features(z: Array) -> Array:
    """Return 1, z and the products of its coordinates, (n, 1 + d + d (d + 1) / 2)."""
    i, j = np.tril_indices(z.shape[1])
    return np.column_stack([np.ones(len(z)), z, z[:, i] * z[:, j]])


def quadratic(z: Array, b0: float, b: Array, B: Array) -> Array:
    """Return b0 + b'z + z'B z at the rows of z."""
    return np.asarray(b0 + z @ b + np.einsum("ij,jk,ik->i", z, B, z))


def precision_of(d: int) -> Array:
    """The prior precisions (p,) of the coefficients of the features."""
    n = d * (d + 1) // 2
    return np.r_[1e-6, np.full(d, SLOPE_SD**-2), np.full(n, CURVATURE_SD**-2)]


def mean_of(z: Array, y: Array, below: Array) -> tuple[float, Array, Array]:
    """Return b0, b and B by penalized least squares, with B made negative definite.

    The penalty shrinks B towards -I/2, its value for a normal distribution.
    """
    d = z.shape[1]
    i, j = np.tril_indices(d)
    F = features(z)
    noise = FIRST_NOISE + RELATIVE_NOISE * below * (1 + RELATIVE_NOISE * below)
    prior = np.r_[0.0, np.zeros(d), np.where(i == j, -0.5, 0.0)]
    precision = precision_of(d)
    W = F / noise[:, None]
    target = (y - y.max() - F @ prior) / noise
    shift = np.linalg.solve(W.T @ W + np.diag(precision), W.T @ target)
    found = prior + shift
    B = np.zeros((d, d))
    B[i, j] = found[1 + d :]
    B = 0.5 * (B + B.T)
    values, vectors = np.linalg.eigh(B)
    clipped = np.minimum(values, -LEAST_CURVATURE)
    if (clipped != values).any():  # fit the linear part again, with the new curvature B
        B = (vectors * clipped) @ vectors.T
        rest = (y - y.max() - np.einsum("ij,jk,ik->i", z, B, z)) / noise
        W = W[:, : d + 1]
        found = np.linalg.solve(W.T @ W + np.diag(precision[: d + 1]), W.T @ rest)
    return float(found[0] + y.max()), found[1 : d + 1], B


def laplace(X: Array, y: Array, factor: Array) -> tuple[Array, Array]:
    """Return the mode (d,) of a quadratic fitted to log densities y (n,) at points X (n, d),
    and a factor (d, d) of -(2 B)^-1.

    The fit begins with a rough factor.
    """
    center = X[y.argmax()]
    for _ in range(3):  # the penalty depends on the units of a fit, which come from the last one
        rows = near_enough(y.max() - y, X.shape[1])
        z = whitened(X[rows], center, factor)
        _, b, B = mean_of(z, y[rows], y.max() - y[rows])
        values, vectors = np.linalg.eigh(-2 * B)
        spread = np.clip(1 / values, 0.04, 10.0)
        step = (vectors * spread) @ vectors.T @ b
        length = np.sqrt(step @ ((vectors / spread) @ vectors.T) @ step)
        center = center + factor @ step * min(1.0, 2.0 / max(length, 1e-300))
        cov = factor @ ((vectors * spread) @ vectors.T) @ factor.T
        factor = np.linalg.cholesky(0.5 * (cov + cov.T))
    return center, factor


# ---- the process ----


def squares(p: Array, q: Array) -> Array:
    """Return |p_i - q_j|^2, (n, m)."""
    r2 = (p * p).sum(axis=1)[:, None] + (q * q).sum(axis=1) - 2 * p @ q.T
    return np.asarray(np.maximum(r2, 0.0))


def matern(r2: Array) -> Array:
    """Return k at squared distances."""
    t = np.sqrt(5 * r2)
    return np.asarray((1 + t + t * t / 3) * np.exp(-t))


def covariance_of(z: Array, theta: Array, extra: Array) -> Array:
    """Return s^2 k(z_i, z_j), with the noise on the diagonal."""
    scaled = z / np.exp(theta[:-2])
    C = np.exp(2 * theta[-2]) * matern(squares(scaled, scaled))
    C[np.diag_indices(len(C))] += np.exp(2 * theta[-1]) + JITTER * np.exp(2 * theta[-2]) + extra
    return C


def prior_of(residual: Array, below: Array, d: int) -> tuple[Array, Array]:
    """Return the means and standard deviations of the normal priors of theta."""
    near = residual[below < 3 + 2 * d]
    spread = np.log(np.clip(near.std() if len(near) > 2 else 1.0, 0.05, 50.0))
    mean = np.r_[np.full(d, np.log(2.0) + 0.25 * np.log(d)), spread, np.log(NOISE)]
    return mean, np.r_[np.full(d, LENGTH_SD), AMPLITUDE_SD, NOISE_SD]


def negative_log_posterior(
    theta: Array, z: Array, residual: Array, extra: Array, prior: tuple[Array, Array]
) -> tuple[float, Array]:
    """Return -log of marginal likelihood times prior of theta, and its gradient (d + 2,).

    Each element of the likelihood's gradient is tr((C^-1 - a a') dC) / 2, with a = C^-1 (y - m).
    """
    n, d = z.shape
    lengths, s2, v2 = np.exp(theta[:-2]), np.exp(2 * theta[-2]), np.exp(2 * theta[-1])
    scaled = z / lengths
    r2 = squares(scaled, scaled)
    t = np.sqrt(5 * r2)
    e = s2 * np.exp(-t)
    C = (1 + t + t * t / 3) * e
    C[np.diag_indices(n)] += JITTER * s2
    smooth = C.copy()
    C[np.diag_indices(n)] += v2 + extra
    factored = cho_factor(C, lower=True, check_finite=False)
    inverse = cho_solve(factored, np.eye(n), check_finite=False)
    a = inverse @ residual
    u = (theta - prior[0]) / prior[1]
    value = 0.5 * residual @ a + np.log(np.diag(factored[0])).sum() + 0.5 * u @ u
    S = inverse - np.outer(a, a)
    gradient = u / prior[1]
    slope = S * (5 / 3 * (1 + t) * e)  # d k / d log l_k = (5/3) (1 + t) e^-t D_k^2 / l_k^2
    rows = slope.sum(axis=1)
    for k in range(d):
        p = scaled[:, k]
        gradient[k] += rows @ (p * p) - p @ slope @ p
    gradient[d] += (S * smooth).sum()
    gradient[d + 1] += v2 * np.trace(S)
    return float(value), gradient
