"""Targets of one quadratic form: Gaussian and Student's t, and the Gaussians of the papers."""

from __future__ import annotations

import numpy as np

from fastkam._core.targets.gaussian import GaussianDensity, StudentTDensity
from fastkam.arguments import (
    check_array,
    check_covariance,
    check_integer,
    check_number,
    check_vector,
    real_array,
)
from fastkam.parameters import owned
from fastkam.targets.builtin import Exact, check_points, full_matrix, spread


class Gaussian(Exact, GaussianDensity):
    """A Gaussian: log pi(x) = -(x - m)' Sigma^-1 (x - m)/2 - d/2 log(2 pi) - log det(Sigma)/2.

    Normalized. With gradient and Hessian-vector product.

    Parameters
    ----------
    mean : array (d,)
        m.
    cov : float, array (d,) or array (d, d)
        Sigma: one variance, variances, or a matrix.

    Raises
    ------
    TypeError, ValueError
        If they are not numbers, not of these shapes, or `cov` is not positive definite.
    """

    def __init__(self, mean, cov=1.0):
        mean = check_vector("mean", mean)
        self.factor = broadcast_factor(check_covariance("cov", cov, len(mean)), len(mean))
        self.parameters = {"mean": mean, "cov": owned(cov)}
        self.mean, self.cov = mean, full_matrix(self.factor)
        self.set_up(mean, self.factor)

    def draw(self, n, rng):
        z = rng.standard_normal((n, self.dim))
        return self.mean + spread(self.factor, z)

    def quantile_region(self, x):
        """The statistic whose level sets are the quantile regions, and its distribution.

        Parameters
        ----------
        x : array (..., d)

        Returns
        -------
        q : ndarray (...)
            (x - m)' Sigma^-1 (x - m), which is chi-squared distributed.
        df : int
            Its degrees of freedom, d.
        """
        return mahalanobis(self.factor, check_points(self, x) - self.mean), self.dim


class StudentT(Exact, StudentTDensity):
    """Student's t: log pi(x) = c - (nu + d)/2 log(1 + (x - m)' S^-1 (x - m) / nu).

    Normalized. The mean exists for nu > 1, the covariance S nu/(nu - 2) for nu > 2.

    Parameters
    ----------
    d : int
        Dimension.
    df : float
        nu > 0.
    scale : float, array (d,) or array (d, d)
        S, which is not the covariance.
    location : float or array (d,)
        m.

    Raises
    ------
    TypeError, ValueError
        As for `Gaussian`, and if `df` is not positive.
    """

    def __init__(self, d=2, df=3.0, scale=1.0, location=0.0):
        d = check_integer("d", d, least=1)
        # the log of its constant is a difference of terms in df log df
        df = self.df = check_number("df", df, above=0, least=1e-100, most=1e8)
        location = real_array("location", location)
        location = np.broadcast_to(location, d) if location.ndim == 0 else location
        self.location = check_array("location", location, shape=(d,))
        self.factor = broadcast_factor(check_covariance("scale", scale, d), d)
        self.parameters = {"d": d, "df": df, "scale": owned(scale), "location": self.location}
        self.mean = self.location if df > 1 else None
        self.cov = full_matrix(self.factor) * df / (df - 2) if df > 2 else None
        self.set_up(self.location, self.factor, self.df)

    def draw(self, n, rng):
        z = spread(self.factor, rng.standard_normal((n, self.dim)))
        return self.location + z / np.sqrt(rng.chisquare(self.df, (n, 1)) / self.df)

    def quantile_region(self, x):
        """The statistic whose level sets are the quantile regions, and its distribution.

        Parameters
        ----------
        x : array (..., d)

        Returns
        -------
        q : ndarray (...)
            (x - m)' S^-1 (x - m) / d, which has Fisher's F distribution, mapped to chi-squared by
            the quantiles of both.
        df : int
            Its degrees of freedom, d.
        """
        from scipy.special import fdtr, fdtrc, gammainccinv, gammaincinv  # late: slow to import

        q = mahalanobis(self.factor, check_points(self, x) - self.location) / self.dim
        below, above = fdtr(self.dim, self.df, q), fdtrc(self.dim, self.df, q)
        # through the nearer tail, so that neither end is lost
        half = self.dim / 2
        chi2 = 2 * np.where(
            below < above, gammaincinv(half, below), gammainccinv(half, above))
        return chi2, self.dim


def broadcast_factor(factor, d):
    return np.full(d, factor) if factor.ndim == 0 else factor


def mahalanobis(factor, x):
    """|L^-1 x|^2 over the last axis."""
    z = x / factor if factor.ndim == 1 else np.linalg.solve(factor, x[..., None])[..., 0]
    return (z**2).sum(-1)


def correlated_gaussian(rho=0.99):
    """N(0, [[1, rho], [rho, 1]]): the two-dimensional example of Titsias and Dellaportas (2019).

    Titsias, M. K. and Dellaportas, P. (2019). Gradient-based adaptive Markov chain Monte Carlo.
    NeurIPS 32.

    Parameters
    ----------
    rho : float
        The correlation, between -1 and 1.

    Returns
    -------
    Gaussian
    """
    rho = check_number("rho", rho, above=-1, below=1)
    return Gaussian(np.zeros(2), [[1, rho], [rho, 1]]).named("correlated_gaussian")


def neal_gaussian(d=100):
    """Independent coordinates with standard deviations j/d, j = 1 .. d, and mean 0.

    Neal, R. M. (2010). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo; used
    by Titsias and Dellaportas (2019) with d = 100.

    Parameters
    ----------
    d : int
        Dimension.

    Returns
    -------
    Gaussian
    """
    d = check_integer("d", d, least=1)
    return Gaussian(np.zeros(d), (np.arange(1, d + 1) / d) ** 2).named("neal_gaussian")


def gp_gaussian():
    """A Gaussian process on 51 points: N(0, K), condition number 1207.

    K_ij = exp(-(s_i - s_j)^2 / (2 0.16)) + 0.01 [i = j] at s = 0, 0.08, .., 4. Titsias and
    Dellaportas (2019).
    """
    s = 0.08 * np.arange(51)
    K = np.exp(-((s[:, None] - s) ** 2) / 0.32) + 0.01 * np.eye(51)
    return Gaussian(np.zeros(51), K).named("gp_gaussian")
