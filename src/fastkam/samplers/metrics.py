"""Metrics for Hamiltonian samplers, estimated from draws and gradients.

The best linear map of a density onto N(0, I), in Fisher divergence, has the covariance Sigma with

    Sigma cov(grad) Sigma = cov(x),

the geometric mean of cov(x) and cov(grad)^-1: of a Gaussian exact from as many draws as it has
dimensions and one more. On the diagonal it is Sigma_ii = sd(x_i) / sd(grad_i).

Seyboldt, A., Carlson, E. L. and Carpenter, B. (2026). Preconditioning Hamiltonian Monte Carlo by
minimizing Fisher divergence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RIDGE = 1e-5  # added to covariances in units of the diagonal


def low_rank(draws: Array, gradients: Array, *, most: int, cutoff: float = 2.0) -> Any:
    """The metric s (I + U' diag(w) U) with few directions.

    Parameters
    ----------
    draws, gradients : array (n, d)
    most : int
        Directions at most.
    cutoff : float
        Only directions whose variance is above this, or below its inverse, after scaling by s.

    Returns
    -------
    s : ndarray, shape (d,)
        sd(x_i) / sd(grad_i), square-rooted.
    U : ndarray, shape (r, d)
        Orthonormal rows.
    w : ndarray, shape (r,)
        Square root of the variance along each, less 1.
    """
    s, basis, variances = scaled_eigenvectors(draws, gradients)
    far = np.abs(np.log(variances))
    kept = np.argsort(-far)[:most]
    kept = kept[far[kept] > np.log(cutoff)]
    return s, basis[:, kept].T, np.sqrt(variances[kept]) - 1


def dense(draws: Array, gradients: Array) -> Any:
    """The metric's lower-triangular factor (d, d), in the form (L, None, None)."""
    s, basis, variances = scaled_eigenvectors(draws, gradients)
    Sigma = np.eye(len(s)) + (basis * (variances - 1)) @ basis.T
    return s[:, None] * np.linalg.cholesky(Sigma), None, None


def dense_from_draws(draws: Array, gradients: Array) -> Any:
    """The same from the covariance of the draws alone, shrunk a little to its diagonal."""
    n, d = draws.shape
    C = np.atleast_2d(np.cov(draws.T))
    weight = n / (n + 5.0) if n > d else 0.0
    return np.linalg.cholesky(weight * C + (1 - weight) * np.diag(np.diag(C))), None, None


def scaled_eigenvectors(x: Array, g: Array) -> tuple[Array, Array, Array]:
    """(s, eigenvectors (d, r), eigenvalues (r,)) of Sigma in units of its diagonal estimate s.

    Within the span of draws and gradients; outside of it Sigma is I in these units.
    """
    x, g = x - x.mean(axis=0), g - g.mean(axis=0)
    s = np.sqrt(x.std(axis=0) / g.std(axis=0))
    n, d = x.shape
    x, g = x / s, g * s
    Q = np.eye(d) if 2 * n >= d else np.linalg.qr(np.concatenate([x, g]).T)[0]
    ridge = RIDGE * (Q.T * x.var(axis=0)) @ Q       # both have this diagonal
    x, g = x @ Q, g @ Q
    L_x = np.linalg.cholesky(x.T @ x / n + ridge)
    L_g = np.linalg.cholesky(g.T @ g / n + ridge)
    # L_g' L_x = U D V', Sigma = R R', R = L_x V D^-1/2: of factors, as rounding may make the least
    # eigenvalues of their products negative
    _, D, Vt = np.linalg.svd(L_g.T @ L_x)
    W, root, _ = np.linalg.svd(L_x @ Vt.T / np.sqrt(D))
    return s, Q @ W, root**2
