"""Means and standard deviations that the gradient of the log density implies.

Where pi has no walls and no jumps, every field v that does not grow too fast has

    E[s] = 0,   s(z) = div v(z) + v(z) . grad log pi(z)                     (Stein's identity)

under pi. So E[g] = E[g - s] for every function g of z. If s follows g closely, g - s hardly varies:
its mean over the draws is near E[g], even if the mean of g is not because the chains have not been
everywhere. Here v runs over the polynomials of some degree, and the combination of them that
follows g is fitted to draws by least squares (Mira, Solgi and Imparato 2013, "Zero variance Markov
chain Monte Carlo for Bayesian estimators", section 2; fields in place of gradients of a polynomial
as in Oates, Girolami and Chopin 2017, section 2.2). For a normal density degree 1 makes g - s
constant for means and variances.

Each chain's mean of g - s is computed with the combination that was fitted to the other chains, so
that the differences between the chains show the error of the fit.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam._core.linalg.decomposition import cholesky
from fastkam.arguments import check_array

Array = NDArray[np.float64]

MOST_DEGREE = 3
MOST_OFF = 0.1  # standard deviations, by which draws may differ from what is implied
SURE, SURE_OF_DRAWS = 4, 2.5  # standard errors of both, by which they must
PER_FIELD = 6  # least number of draws for each weight of the fit


def degree_for(n: int, d: int) -> int:
    """Return the highest degree of fields in `d` dimensions that `n` draws allow; 0 if none."""
    degrees = range(1, MOST_DEGREE + 1)
    return max((q for q in degrees if PER_FIELD * d * comb(d + q, q) <= n), default=0)


def fewest_draws(d: int) -> int:
    """Return the smallest number of draws that `implied_moments` needs."""
    return PER_FIELD * d * comb(d + 1, 1)


def monomials(z: Array, degree: int) -> tuple[Array, Array]:
    """Return all monomials of z (n, d) up to `degree`, (n, m), and their gradients (n, m, d)."""
    n, d = z.shape
    values, slopes = [np.ones(n)], [np.zeros((n, d))]
    for q in range(1, degree + 1):
        for which in combinations_with_replacement(range(d), q):
            slope = np.zeros((n, d))
            for k in set(which):
                others = list(which)
                others.remove(k)
                slope[:, k] = which.count(k) * z[:, others].prod(axis=1)
            values.append(z[:, which].prod(axis=1))
            slopes.append(slope)
    return np.array(values).T, np.array(slopes).transpose(1, 0, 2)


def stein_functions(z: Array, gradients: Array, degree: int) -> Array:
    """Return s for every monomial of at most `degree` along every coordinate.

    Parameters
    ----------
    z : array (n, d)
        Draws, of about unit standard deviation.
    gradients : array (n, d)
        Of the log density in z.
    degree : int

    Returns
    -------
    ndarray, shape (n, d * comb(d + degree, degree))
    """
    values, slopes = monomials(z, degree)
    s = values[:, :, None] * gradients[:, None, :] + slopes
    return np.asarray(s.reshape(len(z), -1))


def weights_of(s: Array, g: Array) -> Array:
    """Return the weights (p, m) of the least-squares fit of the columns of s (n, p) to g (n, m)."""
    s = s - s.mean(axis=0)
    size = s.std(axis=0)
    size[size == 0] = 1
    weights = np.linalg.lstsq(s / size, g - g.mean(axis=0), rcond=1e-8)[0]
    return np.asarray(weights / size[:, None])


def implied_means(s: Array, g: Array) -> tuple[Array, Array]:
    """Return E[g] and its standard error, from s and g at the draws of each chain.

    Parameters
    ----------
    s : array (chains, n, p)
    g : array (chains, n, m)
        At least two chains.

    Returns
    -------
    mean, error : ndarray, shape (m,)
        The error is the larger of two: that from all g - s as if they were independent, and that
        from the means of the chains.
    """
    chains, n, m = g.shape
    rest = np.empty_like(g)
    for k in range(chains):
        others = np.arange(chains) != k
        weights = weights_of(s[others].reshape(-1, s.shape[2]), g[others].reshape(-1, m))
        rest[k] = g[k] - s[k] @ weights
    means = rest.mean(axis=1)
    among = means.std(axis=0, ddof=1) / np.sqrt(chains)
    within = rest.reshape(-1, m).std(axis=0) / np.sqrt(chains * n)
    return means.mean(axis=0), np.maximum(among, within)


def implied_moments(
    draws: ArrayLike, gradients: ArrayLike, x: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the means and standard deviations that gradients of the log density at draws imply.

    They are estimates for the density, and need no draws from everywhere, by Stein's identity. It
    does not hold if the density has a wall or a jump, and a mode without draws is not seen. Mira,
    Solgi and Imparato (2013). Zero variance Markov chain Monte Carlo for Bayesian estimators.
    Statistics and Computing 23, 653-662.

    Parameters
    ----------
    draws : array (chains, n, d)
        At least two chains, and some 6 d (d + 1) draws in all; more draws allow more flexible
        fields, up to polynomials of degree 3. The draws should be nearly independent.
    gradients : array (chains, n, d)
        Of the log density at the draws.
    x : array (chains, n, m), optional
        The quantities whose moments are returned, at the same draws; the draws by default.

    Returns
    -------
    ndarray, shape (m, 4)
        Mean, its standard error, standard deviation, its standard error. A standard deviation is
        NaN where the implied variance is not positive. The errors are too small, perhaps by a
        factor of 3, if few draws are in tails whose gradients are far from those of a normal
        density, as with 400 draws of a logistic distribution; with 4000 they are nearly right.

    Examples
    --------
    Draws that are too few and all positive, from a normal distribution of mean 3 and sd 2:

    >>> import numpy as np
    >>> import fastkam as fk
    >>> draws = np.abs(np.random.default_rng(1).normal(3, 2, (2, 50, 1)))
    >>> fk.diagnostics.implied_moments(draws, -(draws - 3) / 4)[0, [0, 2]].round(6)
    array([3., 2.])
    """
    z = check_array("draws", draws)
    if z.ndim != 3 or z.shape[0] < 2 or z.shape[2] < 1:
        raise ValueError("draws must have shape (chains, n, d), of at least two chains and one "
                         f"dimension, not {z.shape}")
    gradients = check_array("gradients", gradients)
    if gradients.shape != z.shape:
        raise ValueError(f"gradients must have the shape of draws, {z.shape}, not "
                         f"{gradients.shape}")
    chains, n, d = z.shape
    if chains * n < fewest_draws(d):
        raise ValueError(f"draws must be at least {fewest_draws(d)} in all in {d} dimensions, not "
                         f"{chains * n}")
    x = z if x is None else check_array("x", x)
    if x.ndim != 3 or x.shape[:2] != z.shape[:2] or x.shape[2] == 0:
        raise ValueError(f"x must have shape {(chains, n)} + (m,), m > 0, not {x.shape}")
    flat = z.reshape(-1, d)
    try:
        L = cholesky(np.atleast_2d(np.cov(flat.T)))
    except ValueError:
        raise ValueError("draws must spread along all coordinates, and not on a plane") from None
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = np.linalg.solve(L, (flat - flat.mean(axis=0)).T).T
        s = stein_functions(whitened, gradients.reshape(-1, d) @ L, degree_for(chains * n, d))
    if not np.isfinite(s).all():
        raise ValueError("draws and gradients must not be so large that their products overflow")
    return moments_of(s.reshape(chains, n, -1), x)


def moments_of(s: Array, x: Array) -> Array:
    """Return the moments (m, 4) of x (chains, n, m), from s (chains, n, p) at the same draws."""
    m = x.shape[2]
    middle, scale = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    scale = np.where(scale > 0, scale, 1.0)
    u = (x - middle) / scale
    mean, error = implied_means(s, np.concatenate([u, u * u], axis=2))
    first, second = mean[:m], mean[m:]
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(second - first * first)
        sd_error = np.hypot(error[m:], 2 * first * error[:m]) / (2 * sd)
    return np.column_stack([middle + scale * first, scale * error[:m], scale * sd,
                            scale * sd_error])


def disagreeing(implied: Array, x: Array, worth: Array | None = None) -> NDArray[np.intp]:
    """Return the coordinates of x (chains, n, m) whose moments differ from the implied (m, 4).

    The mean differs by more than 0.1 standard deviations, or the standard deviation by more than
    10 %. The difference is also more than four standard errors of the implied moment, and more than
    2.5 standard errors of as many independent normal draws as the effective sample size, `worth`
    (m,) if it is known: with few draws it may be due to chance. (The draws' own standard errors are
    not used, since they grow with the difference.)
    """
    mean, error, sd, sd_error = implied.T
    if worth is None:
        worth = measure(x, r_hat=False, mcse_sd=False)[COLUMNS.index("ess_bulk")]
    least = sd * np.maximum(MOST_OFF, SURE_OF_DRAWS / np.sqrt(np.maximum(worth, 1)))
    with np.errstate(over="ignore", invalid="ignore"):  # draws of an improper density go anywhere
        off, wide = np.abs(x.mean(axis=(0, 1)) - mean), np.abs(x.std(axis=(0, 1)) - sd)
    # NaN where sd is NaN: the comparison is then False
    return np.flatnonzero((off > np.maximum(least, SURE * error))
                          | (wide > np.maximum(least, SURE * sd_error)))
