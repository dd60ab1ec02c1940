"""Gaussian mixtures: general ones, lattices of equally spaced modes, and those of the papers."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations

import numpy as np

from fastkam._core.targets.mixtures import GaussianMixtureDensity, LatticeMixtureDensity
from fastkam.arguments import check_array, check_covariances, check_integer, check_number
from fastkam.parameters import owned
from fastkam.targets.builtin import Exact, check_points, full_matrix, mixture_moments
from fastkam.targets.gaussian import mahalanobis

MOST_DENSE = 500  # dimensions d of 2 d matrices (d, d), which then take 2 GB


class GaussianMixture(Exact, GaussianMixtureDensity):
    """A mixture of Gaussians: log pi(x) = log sum_k w_k phi(x; m_k, Sigma_k). Normalized.

    Parameters
    ----------
    means : array (K, d)
        The means m_k.
    covs : float, array (K,), (K, d) or (K, d, d)
        The covariances: one variance for all, a variance for each component, variances for each
        coordinate of each, or a matrix each.
    weights : array (K,), optional
        Positive; they are divided by their sum. Equal by default.

    Attributes
    ----------
    modes : ndarray (K, d)
        The means.
    mode_weights : ndarray (K,)
        The weights.
    overlap : float
        A bound on the probability that `mode_of` names another component than the one that a draw
        came from, sum_{j<k} sqrt(w_j w_k) exp(-D_jk), with D the Bhattacharyya distance. Compare
        the occupancy of modes to `mode_weights` only where it is small.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a weight is not positive, or a covariance not positive definite.
    """

    def __init__(self, means, covs=1.0, weights=None):
        means = check_array("means", means)
        if means.ndim != 2 or 0 in means.shape:
            raise ValueError(f"means must have shape (K, d), not {means.shape}")
        K, d = means.shape
        weights = check_array("weights", np.ones(K) if weights is None else weights, shape=(K,))
        if not (weights > 0).all():
            raise ValueError(f"weights must be positive, not {weights.min()}")
        self.weights = weights / weights.sum()
        self.factors = check_covariances("covs", covs, K, d)
        self.parameters = {"means": means, "covs": owned(covs), "weights": weights}
        self.modes, self.mode_weights = means, self.weights
        self.mean, self.cov = mixture_moments(self.weights, means, self.covs)
        self.set_up(self.weights, means, self.factors)

    @property
    def covs(self):
        """The components' covariances, (K, d, d)."""
        return np.array([full_matrix(factor) for factor in self.factors])

    def draw(self, n, rng):
        k = rng.choice(len(self.weights), n, p=self.weights)
        z = rng.standard_normal((n, self.dim))
        if self.factors.ndim == 2:
            return self.modes[k] + self.factors[k] * z
        return self.modes[k] + np.einsum("nij,nj->ni", self.factors[k], z)

    def mode_of(self, x):
        """The component to which x (..., d) most probably belongs, an index of `modes` each."""
        x = check_points(self, x)
        pivots = self.factors if self.factors.ndim == 2 else np.diagonal(
            self.factors, axis1=1, axis2=2)
        constants = np.log(self.weights) - np.log(pivots).sum(axis=1)
        return np.argmax([
            c - 0.5 * mahalanobis(L, x - m)
            for c, L, m in zip(constants, self.factors, self.modes, strict=True)
        ], axis=0)

    @cached_property
    def overlap(self):
        """See the class."""
        total, covs = 0.0, self.covs
        for j, k in combinations(range(len(covs)), 2):
            middle = np.linalg.cholesky((covs[j] + covs[k]) / 2)
            log_det = [np.linalg.slogdet(c)[1] for c in (covs[j], covs[k])]
            distance = mahalanobis(middle, self.modes[j] - self.modes[k]) / 8 + (
                np.log(np.diag(middle)).sum() - sum(log_det) / 4)
            total += np.sqrt(self.weights[j] * self.weights[k]) * np.exp(-distance)
        return float(total)


class LatticeMixture(Exact, LatticeMixtureDensity):
    """K^d equal modes on a lattice: log pi(x) = sum_j log (1/K) sum_m phi(x_j; mu_m, v).

    mu_m, m = 1 .. K, lie `spacing` apart about 0. Normalized; one evaluation costs two exponentials
    per coordinate.

    Parameters
    ----------
    d : int
        Dimension.
    K : int
        Centers in each coordinate.
    spacing, variance : float
        Distance of neighboring centers, and v.

    Attributes
    ----------
    modes : ndarray (K,)
        The centers mu_m of one coordinate.
    mode_weights : ndarray (K,)
        The exact probability that a coordinate is nearest to each center: not 1/K, since the
        components overlap.

    Raises
    ------
    TypeError, ValueError
        If a number is not positive.
    """

    def __init__(self, d=32, K=5, spacing=15.0, variance=15.0):
        from scipy.special import ndtr  # late: slow to import

        d = check_integer("d", d, least=1)
        K = check_integer("K", K, least=1)
        spacing = check_number("spacing", spacing, above=0, most=1e150)  # it is squared
        variance = check_number("variance", variance, above=0)
        self.parameters = {"d": d, "K": K, "spacing": spacing, "variance": variance}
        self.modes = spacing * (np.arange(K) - (K - 1) / 2)
        edges = np.r_[-np.inf, (self.modes[1:] + self.modes[:-1]) / 2, np.inf]
        self.mode_weights = np.diff(
            ndtr((edges - self.modes[:, None]) / np.sqrt(variance)).mean(axis=0))
        self.mean = np.zeros(d)
        self.cov = (variance + (self.modes**2).mean()) * np.eye(d)
        self.set_up(d, K, spacing, variance)

    def draw(self, n, rng):
        centers = self.modes[rng.integers(len(self.modes), size=(n, self.dim))]
        z = rng.standard_normal((n, self.dim))
        return centers + np.sqrt(self.parameters["variance"]) * z

    def mode_of(self, x):
        """The nearest center in each coordinate of x (..., d), indices (..., d) of `modes`."""
        nearest = np.rint((check_points(self, x) - self.modes[0]) / self.parameters["spacing"])
        return np.clip(nearest, 0, len(self.modes) - 1).astype(int)


# ---- of the papers -----------------------------------------------------------------------------

def two_mode():
    """Half N((-8, 0), I/2) and half N((8, 0), 2 I), as Li, Zeng and Guo write it.

    Mean 0, E x^2 = (65.25, 1.25).

    Li, J. C., Zeng, Y. and Guo, W. Cyclical kernel adaptive Metropolis.
    """
    return GaussianMixture([[-8, 0], [8, 0]], [0.5, 2.0]).named("two_mode")


def five_component():
    """Five equal components N(2.5 (i - 1) (1, 1), sqrt(i) I), i = 1 .. 5, of Li, Zeng and Guo.

    Mean 5, variances 14.1765, covariance 12.5. The components overlap.
    """
    i = np.arange(1, 6)
    return GaussianMixture(2.5 * (i[:, None] - 1) * np.ones(2), np.sqrt(i)).named("five_component")


def mixture_32d(d=32):
    """The lattice of Li, Zeng and Guo: centers -30, -15, 0, 15, 30 in each coordinate, variance 15.

    Mean 0, variances 465. The authors' program has another function, which cannot be normalized.

    Parameters
    ----------
    d : int
        Dimension.

    Returns
    -------
    LatticeMixture
    """
    return LatticeMixture(d=d).named("mixture_32d")


def basis_vectors(d=4):
    """2 d equal components N(+-10 e_i, I).

    Mean 0, E x_i^2 = 1 + 100/d: 26 in the four dimensions of Dharamshi, Ngo and
    Rosenthal (Sampling by divergence minimization).

    Parameters
    ----------
    d : int
        Dimension.

    Returns
    -------
    GaussianMixture
    """
    d = check_integer("d", d, least=1, most=MOST_DENSE)
    return GaussianMixture(10 * np.vstack([np.eye(d), -np.eye(d)])).named("basis_vectors")
