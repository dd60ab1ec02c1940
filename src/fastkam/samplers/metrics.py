"""Metrics for Hamiltonian samplers, estimated from draws and gradients.

The best linear map of a density onto N(0, I), in Fisher divergence, has the covariance Sigma with

    Sigma cov(grad) Sigma = cov(x),

the geometric mean of cov(x) and cov(grad)^-1. For a Gaussian it is exact if there is one draw more
than dimensions. On the diagonal it is Sigma_ii = sd(x_i) / sd(grad_i).

Seyboldt, A., Carlson, E. L. and Carpenter, B. (2026). Preconditioning Hamiltonian Monte Carlo by
minimizing Fisher divergence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import cholesky, orthonormal, product, singular
from fastkam._core.numerics.elementary import log

Array = NDArray[np.float64]
RIDGE = 1e-5  # added to covariances in units of the diagonal


def low_rank(draws: Array, gradients: Array, *, most: int, cutoff: float = 2.0) -> Any:
    """The metric s (I + U' diag(w) U) with few directions.

    Parameters
    ----------
    draws, gradients : array (n, d)
    most : int
        Largest number of directions.
    cutoff : float
        A direction is used if its variance after scaling by s is above this or below its inverse.

    Returns
    -------
    s : ndarray, shape (d,)
        Square root of sd(x_i) / sd(grad_i).
    U : ndarray, shape (r, d)
        Orthonormal rows.
    w : ndarray, shape (r,)
        Square root of the variance along each, minus 1.
    """
    s, basis, variances = scaled_eigenvectors(draws, gradients)
    far = np.abs(log(variances))
    kept = np.argsort(-far, kind="stable")[:most]
    kept = kept[far[kept] > log(cutoff)]
    return s, basis[:, kept].T, np.sqrt(variances[kept]) - 1


def dense(draws: Array, gradients: Array) -> Any:
    """The metric's lower-triangular factor (d, d), in the form (L, None, None)."""
    s, basis, variances = scaled_eigenvectors(draws, gradients)
    Sigma = np.eye(len(s)) + product(basis * (variances - 1), basis.T)
    return s[:, None] * cholesky(Sigma), None, None


def dense_from_draws(draws: Array, gradients: Array) -> Any:
    """The same from the covariance of the draws alone, shrunk a little to its diagonal."""
    n, d = draws.shape
    away = draws - draws.mean(axis=0)
    C = product(away.T, away) / (n - 1)
    weight = n / (n + 5.0) if n > d else 0.0
    return cholesky(weight * C + (1 - weight) * np.diag(np.diag(C))), None, None


def scaled_eigenvectors(x: Array, g: Array) -> tuple[Array, Array, Array]:
    """(s, eigenvectors (d, r), eigenvalues (r,)) of Sigma in units of its diagonal estimate s.

    They are within the span of draws and gradients; outside of it Sigma is I in these units.
    """
    x, g = x - x.mean(axis=0), g - g.mean(axis=0)
    s = np.sqrt(x.std(axis=0) / g.std(axis=0))
    n, d = x.shape
    x, g = x / s, g * s
    variances = x.var(axis=0)                       # those of the gradients are the same
    if 2 * n >= d:
        Q, ridge = None, RIDGE * np.diag(variances)
    else:
        Q = orthonormal(np.concatenate([x, g]).T)
        ridge = RIDGE * product(Q.T * variances, Q)
        x, g = product(x, Q), product(g, Q)
    L_x = cholesky(product(x.T, x) / n + ridge)
    L_g = cholesky(product(g.T, g) / n + ridge)
    # L_g' L_x = U D V', Sigma = R R', R = L_x V D^-1/2: from factors, since rounding may make the
    # least eigenvalues of their products negative
    D, V = singular(product(L_g.T, L_x))
    root, W = singular((product(L_x, V) / np.sqrt(D)).T)
    return s, W if Q is None else product(Q, W), root**2
